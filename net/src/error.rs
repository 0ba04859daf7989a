//! Errors of connections, certificates and tokens.

use super::token::{MAX_CHARACTERS, MIN_CHARACTERS};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;
use tonic::Status;

/// Error of a connection, a certificate or a token. Each variant has a different remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The contents of a file are invalid.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// A token is invalid.
    #[error("invalid token in {place}: {reason}")]
    Token {
        /// The file or environment variable that contains the token.
        place: String,
        /// Description of the problem.
        reason: BadToken,
    },
    /// A server without TLS would be reachable from other machines.
    #[error(
        "{address} is reachable from other machines without TLS: give certificates (`hatebeam certs` creates them), \
         or --insecure-bind on a private network"
    )]
    OpenBind {
        /// The address at which the server would listen.
        address: SocketAddr,
    },
    /// A server cannot listen at its address.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        reason: io::Error,
    },
    /// An address is invalid, or its scheme does not match the use of certificates.
    #[error("invalid address '{uri}': {reason}")]
    Address {
        /// The address.
        uri: String,
        /// Description of the problem.
        reason: String,
    },
    /// The other side is unreachable. A later attempt may succeed.
    #[error("cannot reach {uri}: {reason}")]
    Unreachable {
        /// Address of the other side.
        uri: String,
        /// Description of the problem.
        reason: String,
    },
    /// One side does not accept the other. A later attempt fails in the same way.
    #[error("cannot connect to {uri}: {reason}")]
    Refused {
        /// Address of the other side.
        uri: String,
        /// Description of the problem.
        reason: String,
    },
    /// The TLS configuration cannot be built.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// The TLS library's error.
        reason: String,
    },
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers")]
    Random,
}

/// The reason why a token is invalid. It does not contain the token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadToken {
    /// The number of characters is out of range.
    #[error("it has {0} characters instead of {MIN_CHARACTERS} to {MAX_CHARACTERS}")]
    Length(usize),
    /// The character at this position, counted from 1, cannot be sent in a header.
    #[error("character {0} is not a visible ASCII character")]
    Character(usize),
}

impl WireError {
    /// Returns whether a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Converts an error from building the TLS configuration.
    pub(super) fn setup(error: &(dyn Error + 'static)) -> Self {
        Self::Tls {
            reason: causes(error),
        }
    }

    /// Returns the error for a client that connects without TLS to a server that uses it.
    pub(super) fn no_plain(uri: &str) -> Self {
        Self::Refused {
            uri: uri.to_owned(),
            reason: "the server uses TLS: write https:// and give certificates".to_owned(),
        }
    }

    /// Converts a connection error. The variant depends on whether a later attempt may succeed.
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

/// Returns why a call failed: the server's message, or the reason why the server could not be reached.
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

/// Joins the messages of an error and its sources. Repeated and empty messages are omitted.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // The text form of a status contains all of its fields, but only the message is useful.
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

/// Returns why one side does not accept the other, or `None` if the error has another cause.
///
/// The HTTP/2 library returns TLS errors only as text, so this function distinguishes them by their text.
/// The tests cause each of these errors.
fn refusal(causes: &str) -> Option<&'static str> {
    let has = |part: &str| causes.contains(part);
    if has("received fatal alert") {
        return Some(if has("CertificateRequired") {
            "the server requires a client certificate, and this side has none"
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
            "the server's certificate is for another role, or for no hatebeam cluster"
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
