//! Errors of connections, certificates and tokens.

use super::token::{MAX_CHARACTERS, MIN_CHARACTERS};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;
use tonic::Status;

/// Errors of connections, certificates and tokens, by what to do about them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// A file has invalid contents.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A token is invalid.
    #[error("invalid token in {place}: {reason}")]
    Token {
        /// The file or the variable.
        place: String,
        /// The reason.
        reason: BadToken,
    },
    /// A server would be reachable from other machines without TLS.
    #[error(
        "{address} is reachable from other machines without TLS: give certificates (`hatebeam certs` makes them), \
         or --insecure-bind on a private network"
    )]
    OpenBind {
        /// The address.
        address: SocketAddr,
    },
    /// A server cannot listen.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// An address is invalid or does not match the certificates.
    #[error("invalid address '{uri}': {reason}")]
    Address {
        /// The address.
        uri: String,
        /// The reason.
        reason: String,
    },
    /// The other side is unreachable. A later attempt may work.
    #[error("cannot reach {uri}: {reason}")]
    Unreachable {
        /// Its address.
        uri: String,
        /// The reason.
        reason: String,
    },
    /// The two sides do not accept each other. Another attempt fails in the same way.
    #[error("cannot connect to {uri}: {reason}")]
    Refused {
        /// Address of the other side.
        uri: String,
        /// The reason.
        reason: String,
    },
    /// TLS cannot be set up for another reason.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// Error of the library.
        reason: String,
    },
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers")]
    Random,
}

/// Why a token is invalid. The error does not contain the token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadToken {
    /// The length is out of range.
    #[error("it has {0} characters instead of {MIN_CHARACTERS} to {MAX_CHARACTERS}")]
    Length(usize),
    /// A character cannot be sent in a header.
    #[error("character {0} is not a visible ASCII character")]
    Character(usize),
}

impl WireError {
    /// Whether a later attempt may work.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Wraps an error of setting up TLS.
    pub(super) fn setup(error: &(dyn Error + 'static)) -> Self {
        Self::Tls {
            reason: causes(error),
        }
    }

    /// The server uses TLS and this side does not.
    pub(super) fn no_plain(uri: &str) -> Self {
        Self::Refused {
            uri: uri.to_owned(),
            reason: "the server uses TLS: write https:// and give certificates".to_owned(),
        }
    }

    /// Classifies an error of connecting to a server.
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

/// Describes why a call failed: the server's message, or the reason why the server was not reached.
pub fn explain(status: &Status) -> String {
    if status.source().is_none() {
        return match status.message() {
            "" => status.code().description().to_owned(),
            message => message.to_owned(),
        };
    }
    let causes = causes(status);
    refusal(&causes).map_or(causes, str::to_owned)
}

/// Joins the messages of an error and its sources, without repetitions and empty messages.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // The text of a status has all its fields, of which only the message is of use.
        let message = match error.downcast_ref::<Status>() {
            Some(status) => status.message().to_owned(),
            None => error.to_string(),
        };
        let is_new =
            !message.is_empty() && message != "transport error" && !text.contains(&message);
        if is_new {
            let colon = if text.is_empty() { "" } else { ": " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{colon}{message}");
        }
        next = error.source();
    }
    text
}

/// Describes why one side does not accept the other. HTTP/2 passes errors of TLS on as text only, so the text has to
/// tell them apart; the tests provoke each of them.
fn refusal(causes: &str) -> Option<&'static str> {
    let has = |part: &str| causes.contains(part);
    if has("received fatal alert") {
        return Some(if has("CertificateRequired") {
            "the server requires a client certificate: none is given"
        } else if has("CertificateExpired") {
            "the server considers this side's certificate expired: check the server's clock"
        } else {
            "the server does not accept this side's certificate: another CA issued it"
        });
    }
    if has("invalid peer certificate") {
        return Some(if has("expired") {
            "the server's certificate has expired"
        } else if has("not valid for name") {
            "the server's certificate is not for a hatebeam cluster"
        } else if has("extended key usage") {
            "the server's certificate is for clients only"
        } else {
            "the server's certificate was issued by another CA"
        });
    }
    if has("corrupt message") {
        return Some("the server does not use TLS: write http:// and give no certificates");
    }
    None
}
