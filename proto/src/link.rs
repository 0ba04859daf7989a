//! The type and the errors of message streams between two processes.

use std::pin::Pin;
use thiserror::Error;
use tokio_stream::Stream;
use tonic::{Code, Status};

/// An owned stream of messages.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// The reason why a stream of messages failed. Each kind has a different remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct LinkError {
    /// Category of the failure.
    pub kind: LinkErrorKind,
    /// Human-readable reason.
    pub reason: String,
}

/// Category of a [`LinkError`], which determines the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkErrorKind {
    /// The other side is unreachable or the connection was lost. A later attempt may succeed.
    Transient,
    /// The other side does not accept this process. An attempt with different credentials, a different name or a
    /// different program version may succeed.
    Refused,
    /// A message is invalid.
    BadMessage,
    /// The stream carries data for work that has ended: an epoch (a period with a fixed set of workers), a depth, or an
    /// attempt at a depth. A retry is pointless.
    Superseded,
}

impl LinkError {
    fn new(kind: LinkErrorKind, reason: impl Into<String>) -> LinkError {
        let reason = reason.into();
        LinkError { kind, reason }
    }

    /// Creates an error for an unreachable peer or a lost connection.
    pub fn transient(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Transient, reason)
    }

    /// Creates an error for a peer that does not accept this process.
    pub fn refused(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Refused, reason)
    }

    /// Creates an error for an invalid message.
    pub fn bad_message(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::BadMessage, reason)
    }

    /// Creates an error for a stream whose epoch, depth or attempt has ended.
    pub fn superseded(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Superseded, reason)
    }

    /// Creates the error for a gRPC call that ended with `status`. `reason` is its human-readable reason.
    pub fn from_status(status: &Status, reason: String) -> LinkError {
        let kind = match status.code() {
            Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => {
                LinkErrorKind::Refused
            }
            Code::InvalidArgument => LinkErrorKind::BadMessage,
            Code::FailedPrecondition => LinkErrorKind::Superseded,
            _ => LinkErrorKind::Transient,
        };
        LinkError { kind, reason }
    }
}

impl From<LinkError> for Status {
    fn from(error: LinkError) -> Status {
        let code = match error.kind {
            LinkErrorKind::Transient => Code::Unavailable,
            LinkErrorKind::Refused => Code::PermissionDenied,
            LinkErrorKind::BadMessage => Code::InvalidArgument,
            LinkErrorKind::Superseded => Code::FailedPrecondition,
        };
        Status::new(code, error.reason)
    }
}
