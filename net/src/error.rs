//! Connection, certificate and token errors.

use super::token::{MAX_CHARACTERS, MIN_CHARACTERS};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;
use tonic::Status;

/// A connection, certificate or token error.
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
    /// A URI is invalid, or its scheme does not match the use of certificates.
    #[error("invalid address '{uri}': {reason}")]
    Address {
        /// The URI.
        uri: String,
        /// Description of the problem.
        reason: String,
    },
    /// The server is unreachable. A later attempt may succeed.
    #[error("cannot reach {uri}: {reason}")]
    Unreachable {
        /// URI of the server.
        uri: String,
        /// Description of the problem.
        reason: String,
    },
    /// The client or the server does not accept the other side. A later attempt would fail in the same way.
    #[error("cannot connect to {uri}: {reason}")]
    Refused {
        /// URI of the server.
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

/// The reason why a token is invalid. The message does not contain the token.
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

    /// Converts a configuration error.
    pub(super) fn setup(error: &(dyn Error + 'static)) -> Self {
        Self::Tls {
            reason: causes(error),
        }
    }

    /// Returns the error for a client that connects without TLS to a server that uses TLS.
    pub(super) fn no_plain(uri: &str) -> Self {
        Self::Refused {
            uri: uri.to_owned(),
            reason: "the server uses TLS: write https:// and give certificates".to_owned(),
        }
    }

    /// Converts a connection error to [`WireError::Refused`] or [`WireError::Unreachable`].
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

/// Returns the reason for a failed call: the server's message, or the connection error.
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

/// Joins the messages of an error and its sources. Omits messages that are empty, repeated or "transport error".
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // The `Display` output of a status contains all of its fields, but only the message is useful.
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

/// Returns the reason if one side of a connection does not accept the other, or `None` for another error.
///
/// The HTTP/2 library returns TLS errors only as text, so this function distinguishes them by their text.
fn refusal(causes: &str) -> Option<&'static str> {
    let has = |part: &str| causes.contains(part);
    if has("received fatal alert") {
        return Some(if has("CertificateRequired") {
            "the server requires a client certificate, but the client has none"
        } else if has("CertificateExpired") {
            "the server considers the client's certificate expired: check the server's clock"
        } else {
            "the server does not accept the client's certificate: another CA issued it"
        });
    }
    if has("invalid peer certificate") {
        return Some(if has("expired") {
            "the server's certificate has expired"
        } else if has("not valid for name") {
            "the server's certificate is for another role, or does not belong to a hatebeam cluster"
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
