//! A word that callers must know.

use super::{BadToken, WireError, files};
use rustls::crypto::ring;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use subtle::ConstantTimeEq;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The environment variable that a token may be in. There is no option for one: what processes were
/// started with is there for everybody to see.
pub const TOKEN_VARIABLE: &str = "HATEBEAM_TOKEN";

pub(super) const MIN_CHARACTERS: usize = 16;
pub(super) const MAX_CHARACTERS: usize = 512;
/// Of a random token.
const RANDOM_BYTES: usize = 32;
const HEADER: &str = "authorization";

/// A token: 16 to 512 visible ASCII characters. It is not shown, not even to those who debug.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new token that nobody can guess, of 64 characters.
    ///
    /// # Errors
    /// [`WireError::Random`].
    pub fn random() -> Result<Self, WireError> {
        let mut bytes = [0; RANDOM_BYTES];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .map_err(|_| WireError::Random)?;
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The token in a file. White space around it does not count.
    ///
    /// # Errors
    /// [`WireError::Read`] and [`WireError::Token`].
    pub fn from_file(path: &Path) -> Result<Self, WireError> {
        let bytes = files::read_private(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text, || path.display().to_string())
    }

    /// The token in [`TOKEN_VARIABLE`], if that is set. A variable that is set to nothing is an error: whoever
    /// set it did not mean to do without.
    ///
    /// # Errors
    /// [`WireError::Token`].
    pub fn from_env() -> Result<Option<Self>, WireError> {
        let Some(text) = std::env::var_os(TOKEN_VARIABLE) else {
            return Ok(None);
        };
        Self::parse(&text.to_string_lossy(), || TOKEN_VARIABLE.to_owned()).map(Some)
    }

    /// The token in a file if one is named, else that of the environment, if there is one.
    ///
    /// # Errors
    /// [`WireError::Read`] and [`WireError::Token`].
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, WireError> {
        match file {
            Some(file) => Self::from_file(file).map(Some),
            None => Self::from_env(),
        }
    }

    fn parse(text: &str, place: impl Fn() -> String) -> Result<Self, WireError> {
        text.parse().map_err(|reason| WireError::Token {
            place: place(),
            reason,
        })
    }

    /// Whether something is the token, in a time that says nothing about where it differs. (It does tell whether
    /// the lengths do: that is no secret, the token's characters are.)
    fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }

    /// The token itself, for the file it is kept in.
    #[cfg(feature = "certs")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let text = text.trim();
        let odd = |character: char| !character.is_ascii_graphic();
        if let Some(at) = text.chars().position(odd) {
            return Err(BadToken::Character(at + 1));
        }
        match text.len() {
            MIN_CHARACTERS..=MAX_CHARACTERS => Ok(Self(text.to_owned())),
            length => Err(BadToken::Length(length)),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Lets calls of a service pass that bring the token; without one, all.
#[derive(Clone, Debug)]
pub struct Guard(Option<Token>);

impl Guard {
    /// The guard of a server that has this token, or none.
    pub fn new(token: Option<Token>) -> Self {
        Self(token)
    }

    /// Whether there is a token to be brought.
    pub fn wants_token(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a word is the token. Without one, every word is.
    pub fn knows(&self, word: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|token| token.is(word))
    }

    /// Whether a call with this `authorization` header may pass; if not, why not.
    ///
    /// # Errors
    /// What to tell the caller.
    pub fn admits(&self, header: Option<&[u8]>) -> Result<(), &'static str> {
        match header {
            _ if !self.wants_token() => Ok(()),
            None => Err(
                "the server wants a token, and none was given: name its file, or set HATEBEAM_TOKEN",
            ),
            Some(header) if bearer(header).is_some_and(|word| self.knows(word)) => Ok(()),
            Some(_) => Err("the token is not the server's"),
        }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let brought = request.metadata_mut().remove(HEADER);
        let brought = brought.as_ref().map(|value| value.as_bytes());
        self.admits(brought).map_err(Status::unauthenticated)?;
        Ok(request)
    }
}

/// What comes after "Bearer ", which may be written large or small.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, word) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(word)
}

/// Has calls of a client bring the token, if it has one.
#[derive(Clone, Debug)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    /// For a client that has this token, or none.
    pub fn new(token: Option<&Token>) -> Self {
        Self(token.map(|token| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.0)
                .parse()
                .expect("a token is made of visible ASCII characters");
            // It is then neither shown nor kept in the tables that compress headers.
            value.set_sensitive(true);
            value
        }))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert(HEADER, value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tonic::Code;

    const WORD: &str = "correct-horse-battery";

    fn token(text: &str) -> Token {
        text.parse().unwrap()
    }

    fn call(guard: Option<&str>, header: Option<&str>) -> Result<Request<()>, Status> {
        let mut request = Request::new(());
        if let Some(header) = header {
            request
                .metadata_mut()
                .insert(HEADER, header.parse().unwrap());
        }
        Guard::new(guard.map(token)).call(request)
    }

    #[test]
    fn a_guard_lets_pass_who_knows_the_token() {
        for header in [
            "Bearer correct-horse-battery",
            "bearer correct-horse-battery",
        ] {
            let passed = call(Some(WORD), Some(header)).unwrap();
            assert!(passed.metadata().get(HEADER).is_none());
        }
        call(None, None).unwrap();
        call(None, Some("Bearer whatever")).unwrap();
        for (header, expected) in [
            (None, "none was given"),
            (Some(""), "not the server's"),
            (Some("Bearer"), "not the server's"),
            (Some("Bearer "), "not the server's"),
            (Some("correct-horse-battery"), "not the server's"),
            (Some("Basic correct-horse-battery"), "not the server's"),
            (Some("Bearer correct-horse-batter"), "not the server's"),
            (Some("Bearer correct-horse-batterz"), "not the server's"),
            (Some("Bearer correct-horse-battery2"), "not the server's"),
        ] {
            let refused = call(Some(WORD), header).unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
            assert!(refused.message().contains(expected), "{header:?}");
        }
    }

    #[test]
    fn what_a_client_sends_a_server_accepts() {
        let token = Token::random().unwrap();
        let sent = Bearer::new(Some(&token)).call(Request::new(())).unwrap();
        Guard::new(Some(token)).call(sent).unwrap();
        let sent = Bearer::new(None).call(Request::new(())).unwrap();
        assert!(sent.metadata().is_empty());
    }

    #[test]
    fn random_tokens_differ_and_are_tokens() {
        let [one, other] = [(); 2].map(|()| Token::random().unwrap());
        assert_ne!(one.0, other.0);
        assert_eq!(token(&one.0).0, one.0);
    }

    #[test]
    fn nobody_sees_a_token() {
        let shown = format!(
            "{:?} {:?} {:?}",
            token(WORD),
            Guard::new(Some(token(WORD))),
            Bearer::new(Some(&token(WORD)))
        );
        assert!(!shown.contains("horse"), "{shown}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "correct horse battery").unwrap();
        let error = Token::from_file(&file).unwrap_err();
        let shown = format!("{error:?} {error}");
        assert!(!shown.contains("horse"), "{shown}");
        assert!(shown.contains("character 8"), "{shown}");
        assert!(shown.contains(file.to_str().unwrap()), "{shown}");
    }

    #[test]
    fn a_file_that_is_no_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let error = Token::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("cannot read"), "{error}");
        std::fs::write(&file, b"\xff\xfe0123456789abcdef").unwrap();
        let error = Token::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("character 1 "), "{error}");
        std::fs::write(&file, vec![b'a'; 2 << 20]).unwrap();
        let error = Token::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("more than"), "{error}");
        std::fs::write(&file, format!("{WORD}\n")).unwrap();
        assert!(Token::from_file(&file).unwrap().is(WORD.as_bytes()));
        assert!(Token::find(Some(&file)).unwrap().is_some());
    }

    proptest! {
        /// What is visible, ASCII and long enough is a token, whatever is around it; nothing else is.
        #[test]
        fn tokens_are_visible_and_long_enough(
            before in "[ \t\r\n]{0,3}",
            text in prop_oneof!["[!-~]{0,40}", "[!-~]{500,530}", "\\PC{10,40}", ".{10,40}"],
            after in "[ \t\r\n]{0,3}",
        ) {
            let word = text.trim();
            let visible = word.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
            let parsed = format!("{before}{text}{after}").parse::<Token>();
            match parsed {
                Ok(token) => {
                    prop_assert!(visible && (16..=512).contains(&word.len()));
                    prop_assert!(token.is(word.as_bytes()));
                    // It can always be sent.
                    let sent = Bearer::new(Some(&token)).call(Request::new(())).unwrap();
                    Guard::new(Some(token)).call(sent).unwrap();
                }
                Err(BadToken::Length(length)) => {
                    prop_assert!(visible && length == word.len() && !(16..=512).contains(&length));
                }
                Err(BadToken::Character(at)) => {
                    let character = word.chars().nth(at - 1).unwrap();
                    prop_assert!(!character.is_ascii_graphic());
                }
            }
        }
    }
}
