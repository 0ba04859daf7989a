//! Tokens that authorize callers, and the interceptors that send and check them.

use super::{BadToken, Role, WireError, files};
use crate::role::check_role;
use rustls::crypto::ring;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use subtle::ConstantTimeEq;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Name of the environment variable that may contain a token. No command-line option accepts the token itself, because
/// every user of a machine can see the arguments of all processes.
pub const TOKEN_VARIABLE: &str = "HATEBEAM_TOKEN";

pub(super) const MIN_CHARACTERS: usize = 16;
pub(super) const MAX_CHARACTERS: usize = 512;
/// Number of random bytes in a generated token.
const RANDOM_BYTES: usize = 32;
const HEADER: &str = "authorization";

/// A token of 16 to 512 visible ASCII characters. Its `Debug` output does not reveal it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Generates a random token of 64 characters.
    ///
    /// # Errors
    /// Returns [`WireError::Random`] if the operating system provides no random numbers.
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

    /// Reads a token from a file and ignores surrounding whitespace.
    ///
    /// # Errors
    /// Returns [`WireError::Read`] if the file cannot be read, [`WireError::File`] if it is too large, and
    /// [`WireError::Token`] if it does not contain a valid token.
    pub fn from_file(path: &Path) -> Result<Self, WireError> {
        let bytes = files::read_private(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text, || path.display().to_string())
    }

    /// Returns the token in the environment variable [`TOKEN_VARIABLE`], or `None` if the variable is not
    /// set. An empty variable is an error, because a user who sets the variable wants a token.
    ///
    /// # Errors
    /// Returns [`WireError::Token`] if the variable does not contain a valid token.
    pub fn from_env() -> Result<Option<Self>, WireError> {
        let Some(text) = std::env::var_os(TOKEN_VARIABLE) else {
            return Ok(None);
        };
        Self::parse(&text.to_string_lossy(), || TOKEN_VARIABLE.to_owned()).map(Some)
    }

    /// Returns the token in `file`, or the result of [`Token::from_env`] if `file` is `None`.
    ///
    /// # Errors
    /// Returns the errors of [`Token::from_file`] and [`Token::from_env`].
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

    /// Returns whether `other` equals the token. The duration of the comparison depends only on the lengths, which
    /// are not secret.
    pub fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }

    /// Returns the text of the token, for writing it to a file or sending it to the caller that owns it.
    pub fn reveal(&self) -> &str {
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

/// Permissions of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The caller may see runs and workers.
    View,
    /// The caller may also change runs and workers, which can cost money.
    Full,
}

/// The tokens of a server.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// Token that grants [`Access::Full`].
    pub full: Option<Token>,
    /// Token that grants [`Access::View`].
    pub view: Option<Token>,
}

impl From<Option<Token>> for Tokens {
    fn from(full: Option<Token>) -> Self {
        Self { full, view: None }
    }
}

/// An interceptor that checks the certificate and the token of each call. A guard without tokens requires no token.
#[derive(Clone, Debug)]
pub struct Guard {
    tokens: Tokens,
    /// Roles that are admitted. An empty list admits all roles.
    roles: &'static [Role],
    /// Whether a caller with a certificate needs no token.
    certificate_suffices: bool,
}

impl Guard {
    /// Creates a guard that admits all roles.
    pub fn new(tokens: impl Into<Tokens>) -> Self {
        Self {
            tokens: tokens.into(),
            roles: &[],
            certificate_suffices: false,
        }
    }

    /// Admits only these roles. Callers without certificates are not restricted.
    #[must_use]
    pub fn for_roles(mut self, roles: &'static [Role]) -> Self {
        self.roles = roles;
        self
    }

    /// Requires a token only from callers without a certificate.
    #[must_use]
    pub fn or_certificate(mut self) -> Self {
        self.certificate_suffices = true;
        self
    }

    /// Returns whether the guard has a token to compare with.
    pub fn requires_token(&self) -> bool {
        self.tokens.full.is_some() || self.tokens.view.is_some()
    }

    /// Returns the access that the token `text` grants, or `None` if the token is wrong. If the guard has no tokens,
    /// every caller has full access.
    pub fn accepts(&self, text: &[u8]) -> Option<Access> {
        let is = |token: &Option<Token>| token.as_ref().is_some_and(|token| token.is(text));
        if !self.requires_token() || is(&self.tokens.full) {
            Some(Access::Full)
        } else {
            is(&self.tokens.view).then_some(Access::View)
        }
    }

    /// Checks the `authorization` header of a call.
    ///
    /// # Errors
    /// Returns a message to send to the caller if the token is missing or wrong.
    pub fn admits(&self, header: Option<&[u8]>) -> Result<Access, &'static str> {
        if !self.requires_token() {
            return Ok(Access::Full);
        }
        let header = header
            .ok_or("the server requires a token: give --token-file, or set HATEBEAM_TOKEN")?;
        let access = bearer(header).and_then(|text| self.accepts(text));
        access.ok_or("wrong token: the server expects a different token")
    }
}

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let has_certificate = check_role(&request, self.roles)?;
        let header = request.metadata_mut().remove(HEADER);
        let access = if has_certificate && self.certificate_suffices {
            Access::Full
        } else {
            let header = header.as_ref().map(|value| value.as_bytes());
            self.admits(header).map_err(Status::unauthenticated)?
        };
        request.extensions_mut().insert(access);
        Ok(request)
    }
}

/// Checks that a caller has [`Access::Full`]. A request that no [`Guard`] has checked comes from this process and is
/// allowed.
///
/// # Errors
/// Returns the status to send to a caller without full access.
pub fn check_full<T>(request: &Request<T>) -> Result<(), Status> {
    match request.extensions().get() {
        Some(Access::View) => Err(Status::permission_denied(VIEW_ONLY)),
        Some(Access::Full) | None => Ok(()),
    }
}

/// Error message for a caller with [`Access::View`] that tries to change something.
pub const VIEW_ONLY: &str = "this token is read-only: use the token that permits changes (the file `token` that `hatebeam certs` creates)";

/// Returns the text after the prefix "Bearer ", ignoring the case of the prefix.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, text) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(text)
}

/// An interceptor that adds the client's token to each call.
#[derive(Clone, Debug)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    /// Creates an interceptor. If `token` is `None`, it does nothing.
    pub fn new(token: Option<&Token>) -> Self {
        Self(token.map(|token| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.0)
                .parse()
                .expect("a token consists of visible ASCII characters");
            // A sensitive value appears neither in logs nor in the header compression table.
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
    fn guard_admits_only_calls_with_correct_token() {
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
            (None, "requires a token"),
            (Some(""), "wrong token"),
            (Some("Bearer"), "wrong token"),
            (Some("Bearer "), "wrong token"),
            (Some("correct-horse-battery"), "wrong token"),
            (Some("Basic correct-horse-battery"), "wrong token"),
            (Some("Bearer correct-horse-batter"), "wrong token"),
            (Some("Bearer correct-horse-batterz"), "wrong token"),
            (Some("Bearer correct-horse-battery2"), "wrong token"),
        ] {
            let refused = call(Some(WORD), header).unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
            assert!(refused.message().contains(expected), "{header:?}");
        }
    }

    #[test]
    fn guard_accepts_header_that_bearer_adds() {
        let token = Token::random().unwrap();
        let sent = Bearer::new(Some(&token)).call(Request::new(())).unwrap();
        Guard::new(Some(token)).call(sent).unwrap();
        let sent = Bearer::new(None).call(Request::new(())).unwrap();
        assert!(sent.metadata().is_empty());
    }

    #[test]
    fn random_tokens_are_valid_and_differ() {
        let [one, other] = [(); 2].map(|()| Token::random().unwrap());
        assert_ne!(one.0, other.0);
        assert_eq!(token(&one.0).0, one.0);
    }

    #[test]
    fn debug_output_and_errors_hide_the_token() {
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
    fn error_for_invalid_token_file_contains_the_reason() {
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

    #[test]
    fn view_token_does_not_permit_changes() {
        let (full, view) = (Token::random().unwrap(), Token::random().unwrap());
        let mut guard = Guard::new(Tokens {
            full: Some(full.clone()),
            view: Some(view.clone()),
        });
        let mut changes = |token: &Token| {
            let sent = Bearer::new(Some(token)).call(Request::new(())).unwrap();
            check_full(&guard.call(sent)?)
        };
        changes(&full).unwrap();
        let refused = changes(&view).unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("`token`"), "{refused:?}");
        let wrong = changes(&Token::random().unwrap()).unwrap_err();
        assert_eq!(wrong.code(), Code::Unauthenticated);
        check_full(&Request::new(())).unwrap();
        assert_eq!(Guard::new(None).accepts(b"any"), Some(Access::Full));
    }

    proptest! {
        #[test]
        fn tokens_are_visible_ascii_text_of_valid_length(
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
