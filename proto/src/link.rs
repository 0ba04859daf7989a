//! Streams of messages between two processes, whatever carries them.

use std::pin::Pin;
use thiserror::Error;
use tokio_stream::Stream;
use tonic::{Code, Status};

/// An owned stream of messages.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// Why a stream of messages failed, by what the caller can do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct LinkError {
    /// What the caller can do.
    pub kind: LinkErrorKind,
    /// Reason for people.
    pub reason: String,
}

/// What the caller can do about a [`LinkError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkErrorKind {
    /// The other side is unreachable or the connection was lost: a later attempt may work.
    Transient,
    /// The other side does not accept this process: an attempt with other credentials, another name or another
    /// version of the program may work.
    Refused,
    /// A message is invalid: the sender has a fault.
    BadMessage,
    /// The stream belongs to an epoch, depth or attempt that has ended: nothing is left to do.
    Superseded,
}

impl LinkError {
    /// An error of this kind.
    pub fn new(kind: LinkErrorKind, reason: impl Into<String>) -> LinkError {
        let reason = reason.into();
        LinkError { kind, reason }
    }

    /// The other side is unreachable.
    pub fn transient(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Transient, reason)
    }

    /// The other side does not accept this process.
    pub fn refused(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Refused, reason)
    }

    /// A message is invalid.
    pub fn bad_message(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::BadMessage, reason)
    }

    /// The stream's epoch, depth or attempt has ended.
    pub fn superseded(reason: impl Into<String>) -> LinkError {
        LinkError::new(LinkErrorKind::Superseded, reason)
    }

    /// Whether a later attempt may work.
    pub fn is_transient(&self) -> bool {
        self.kind == LinkErrorKind::Transient
    }

    /// Classifies the status of a gRPC call; `reason` is its text for people.
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
