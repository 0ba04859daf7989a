//! What can go wrong before and while two members of a cluster talk.

use super::token::{MAX_CHARACTERS, MIN_CHARACTERS};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;
use tonic::Status;

/// What can go wrong, sorted by what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The token cannot be one.
    #[error("the token in {place} is no good: {reason}")]
    Token {
        /// The file or the variable.
        place: String,
        /// What is wrong with it.
        reason: BadToken,
    },
    /// A server was to be open to everybody.
    #[error(
        "{address} can be reached from other machines, and there is no TLS: give certificates (`hatebeam certs` \
         makes them), or say --insecure-bind if nobody else is on the network"
    )]
    OpenBind {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// A server cannot listen.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// An address cannot be one, or does not fit the certificates.
    #[error("'{uri}' cannot be connected to: {reason}")]
    Address {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The other end cannot be reached now. It may be worth another try.
    #[error("cannot reach {uri}: {reason}")]
    Unreachable {
        /// Where it should be.
        uri: String,
        /// Why not.
        reason: String,
    },
    /// The two ends do not accept each other. It will be the same the next time.
    #[error("cannot connect to {uri}: {reason}")]
    Refused {
        /// Where the other end is.
        uri: String,
        /// Who does not accept what.
        reason: String,
    },
    /// TLS cannot be set up, for none of the common reasons.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// What the library says.
        reason: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// Why something cannot be a token. What it was is not said.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadToken {
    /// It is too short or too long.
    #[error("it has {0} characters: give {MIN_CHARACTERS} to {MAX_CHARACTERS}")]
    Length(usize),
    /// It has a character that cannot be sent.
    #[error("character {0} is not a visible ASCII character")]
    Character(usize),
}

impl WireError {
    /// Whether it may come right without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// TLS cannot be set up.
    pub(super) fn setup(error: &(dyn Error + 'static)) -> Self {
        Self::Tls {
            reason: causes(error),
        }
    }

    /// The server has TLS, and was spoken to without.
    pub(super) fn no_plain(uri: &str) -> Self {
        Self::Refused {
            uri: uri.to_owned(),
            reason: "the server has TLS: write https:// and give certificates".to_owned(),
        }
    }

    /// Why there is no connection.
    pub(super) fn connection(uri: &str, error: &(dyn Error + 'static)) -> Self {
        let uri = uri.to_owned();
        let causes = causes(error);
        match refusal(&causes) {
            Some(reason) => Self::Refused {
                uri,
                reason: reason.to_owned(),
            },
            None => Self::Unreachable {
                uri,
                reason: causes,
            },
        }
    }
}

/// What a call failed of, in words: what the server said, or why it could not be asked.
pub fn explain(status: &Status) -> String {
    if status.source().is_none() {
        return match status.message() {
            "" => status.code().description().to_owned(),
            said => said.to_owned(),
        };
    }
    let causes = causes(status);
    refusal(&causes).map_or(causes, str::to_owned)
}

/// All that an error says, without what is said twice and without what says nothing.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // A status prints all its fields; its message says less and more.
        let says = match error.downcast_ref::<Status>() {
            Some(status) => status.message().to_owned(),
            None => error.to_string(),
        };
        let is_news = !says.is_empty() && says != "transport error" && !text.contains(&says);
        if is_news {
            let colon = if text.is_empty() { "" } else { ": " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{colon}{says}");
        }
        next = error.source();
    }
    text
}

/// What it means that one end does not accept the other. HTTP/2 hands on the errors of TLS as text
/// only, so it is by their text that they are told apart; the tests have each of them come from the other end.
fn refusal(causes: &str) -> Option<&'static str> {
    let has = |part: &str| causes.contains(part);
    if has("received fatal alert") {
        return Some(if has("CertificateRequired") {
            "the server wants a certificate, and none is given"
        } else if has("CertificateExpired") {
            "the server finds this side's certificate expired: is its clock right?"
        } else {
            "the server does not accept this side's certificate: it is not of the server's CA"
        });
    }
    if has("invalid peer certificate") {
        return Some(if has("expired") {
            "the server's certificate has expired"
        } else if has("not valid for name") {
            "the server's certificate is not one of a hatebeam cluster"
        } else if has("extended key usage") {
            "the server's certificate is one of a client"
        } else {
            "the server's certificate is not of this side's CA"
        });
    }
    if has("corrupt message") {
        return Some("the server has no TLS: write http:// and give no certificates");
    }
    None
}
