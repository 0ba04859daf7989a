//! Errors for client requests.

use hatebeam_runs::ManifestError;
use thiserror::Error;

/// An error returned for a client request. The variant determines the gRPC status code.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// There is no such run.
    #[error("there is no run {0:?}: `hatebeam status` lists all runs")]
    NoRun(String),
    /// There is no such worker.
    #[error("there is no worker {0:?}")]
    NoWorker(String),
    /// The request conflicts with an existing run or with another coordinator.
    #[error("{0}")]
    Conflict(String),
    /// The state of the run does not permit the request.
    #[error("{0}")]
    State(String),
    /// There are too many requests or runs.
    #[error("{0}")]
    Busy(String),
    /// The object store, a table or the local disk is temporarily unavailable. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The request timed out.
    #[error("{0}")]
    Timeout(String),
    /// An internal error, such as a bug or damaged data.
    #[error("{0}")]
    Internal(String),
}

impl From<ManifestError> for RequestError {
    fn from(error: ManifestError) -> RequestError {
        match error {
            ManifestError::Superseded { run } => RequestError::Conflict(format!(
                "another coordinator has written run {run} to the object store"
            )),
            error => RequestError::Unavailable(format!("cannot use the object store: {error}")),
        }
    }
}
