//! Errors that occur while an order is carried out.

use hatebeam_env::Panicked;
use hatebeam_objects::ObjectError;
use hatebeam_proto::messages::{Failed, FailureKind};
use hatebeam_runs::{ManifestError, SpecError};
use hatebeam_store::StoreError;
use std::collections::BTreeMap;
use thiserror::Error;

/// Reason why an order was not carried out. The variants correspond to those of [`FailureKind`], which determines how
/// the coordinator reacts.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum OrderError {
    /// The order is invalid in itself, or in the worker's current state.
    #[error("{0}")]
    BadOrder(String),
    /// A table or the evaluator's neural network is missing or damaged.
    #[error("{reason}")]
    Damaged {
        reason: String,
        /// Depth of the table, if it is known.
        depth: Option<u32>,
    },
    /// A well in the tables of a depth has no parent in those of the depth before.
    #[error("{reason}")]
    Contradiction {
        reason: String,
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// The object store is unavailable. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The exchange of children with other workers failed, for these reasons.
    #[error("cannot exchange children with {}", peers_text(.0))]
    PeersUnreachable(BTreeMap<String, String>),
    /// Children from other workers have failed a spot check, for these reasons.
    #[error("received wrong children from {}", peers_text(.0))]
    WrongChildren(BTreeMap<String, String>),
    /// The order is for an epoch or an attempt that has ended.
    #[error("{0}")]
    Superseded(String),
    /// This worker itself failed.
    #[error("{0}")]
    Worker(String),
}

impl OrderError {
    pub(crate) fn bad_order(reason: impl Into<String>) -> OrderError {
        OrderError::BadOrder(reason.into())
    }

    pub(crate) fn damaged(reason: String) -> OrderError {
        OrderError::Damaged {
            reason,
            depth: None,
        }
    }

    pub(crate) fn superseded(reason: impl Into<String>) -> OrderError {
        OrderError::Superseded(reason.into())
    }
}

/// Returns the names of workers with the reasons for which they are reported.
fn peers_text(reasons: &BTreeMap<String, String>) -> String {
    let one = |(peer, reason)| format!("worker {peer}: {reason}");
    reasons.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl From<OrderError> for Failed {
    fn from(error: OrderError) -> Failed {
        let reason = error.to_string();
        let kind = match error {
            OrderError::BadOrder(_) => FailureKind::BadOrder,
            OrderError::Damaged { depth, .. } => FailureKind::Damaged { depth },
            OrderError::Contradiction { depth, well, .. } => {
                FailureKind::Contradiction { depth, well }
            }
            OrderError::Unavailable(_) => FailureKind::Unavailable,
            OrderError::PeersUnreachable(reasons) => FailureKind::PeersUnreachable {
                peers: reasons.into_keys().collect(),
            },
            OrderError::WrongChildren(reasons) => FailureKind::WrongChildren {
                peers: reasons.into_keys().collect(),
            },
            OrderError::Superseded(_) => FailureKind::Superseded,
            OrderError::Worker(_) => FailureKind::Worker,
        };
        Failed { reason, kind }
    }
}

impl From<SpecError> for OrderError {
    fn from(error: SpecError) -> OrderError {
        OrderError::BadOrder(error.to_string())
    }
}

impl From<ObjectError> for OrderError {
    fn from(error: ObjectError) -> OrderError {
        let reason = error.to_string();
        match error {
            error if error.is_transient() => OrderError::Unavailable(reason),
            ObjectError::NotFound { .. }
            | ObjectError::Damaged { .. }
            | ObjectError::OutOfRange { .. } => OrderError::damaged(reason),
            _ => OrderError::Worker(reason),
        }
    }
}

impl From<ManifestError> for OrderError {
    fn from(error: ManifestError) -> OrderError {
        match error {
            ManifestError::Object(error) => error.into(),
            ManifestError::Damaged(_) | ManifestError::Network { .. } => {
                OrderError::damaged(error.to_string())
            }
            ManifestError::Spec(error) => error.into(),
            error => OrderError::Worker(error.to_string()),
        }
    }
}

impl From<StoreError> for OrderError {
    fn from(error: StoreError) -> OrderError {
        OrderError::Worker(error.to_string())
    }
}

impl From<Panicked> for OrderError {
    fn from(error: Panicked) -> OrderError {
        OrderError::Worker(error.to_string())
    }
}
