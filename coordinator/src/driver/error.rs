//! Errors of a run's search.

use super::failures::MAX_FAILURES;
use crate::registry::WorkerError;
use hatebeam_runs::{ManifestError, SpecError};
use thiserror::Error;

/// An error after which a run cannot continue on this coordinator.
#[derive(Debug, Error)]
pub(crate) enum DriverError {
    /// The object store or the manifest failed, or another coordinator has taken the run over.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A depth failed again and again.
    #[error(
        "depth {depth} failed {MAX_FAILURES} times; the last failure was of worker {worker}: {reason}"
    )]
    Failing {
        depth: u32,
        worker: String,
        reason: String,
    },
    /// The best game cannot be read back.
    #[error("the best game cannot be read back: {0}")]
    Game(String),
}

impl DriverError {
    /// Whether another coordinator has written the manifest.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(
            self,
            DriverError::Manifest(ManifestError::Superseded { .. })
        )
    }

    /// Whether the same may succeed a while later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, DriverError::Manifest(error) if error.is_transient())
    }
}

/// An error that ends an epoch.
#[derive(Debug)]
pub(super) enum EpochError {
    /// A worker is gone or failed. The next epoch resumes after the last committed depth.
    Worker(WorkerError),
    /// The run cannot continue on this coordinator.
    Run(DriverError),
}

impl From<WorkerError> for EpochError {
    fn from(error: WorkerError) -> EpochError {
        EpochError::Worker(error)
    }
}

impl From<ManifestError> for EpochError {
    fn from(error: ManifestError) -> EpochError {
        EpochError::Run(error.into())
    }
}

impl From<SpecError> for EpochError {
    fn from(error: SpecError) -> EpochError {
        EpochError::Run(error.into())
    }
}
