//! Requests of clients that are not carried out.

use hatebeam_runs::ManifestError;
use thiserror::Error;

/// Error of a client's request, by the client's next step.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// There is no such run.
    #[error("there is no run {0:?}; `hatebeam status` lists them")]
    NoRun(String),
    /// There is no such worker.
    #[error("there is no worker {0:?}")]
    NoWorker(String),
    /// Something else has the name already.
    #[error("{0}")]
    Conflict(String),
    /// The run is not in a state for that.
    #[error("{0}")]
    State(String),
    /// There are too many requests or runs.
    #[error("{0}")]
    Busy(String),
    /// The object store is unavailable: try again later.
    #[error("{0}")]
    Unavailable(String),
    /// The request takes too long.
    #[error("{0}")]
    Timeout(String),
    /// A fault of this program.
    #[error("{0}")]
    Internal(String),
}

impl From<ManifestError> for RequestError {
    fn from(error: ManifestError) -> RequestError {
        match error {
            ManifestError::Superseded { run } => RequestError::Conflict(format!(
                "another coordinator has written run {run} to the object store"
            )),
            error => RequestError::Unavailable(format!("the object store: {error}")),
        }
    }
}
