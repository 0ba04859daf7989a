//! Errors that interrupt the search of a run.

use super::failures::MAX_FAILURES;
use crate::registry::WorkerError;
use hatebeam_runs::{ManifestError, SpecError};
use thiserror::Error;

/// An error that interrupts a run on this coordinator.
#[derive(Debug, Error)]
pub(crate) enum DriverError {
    /// The manifest cannot be read or written, or another coordinator has taken over the run.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(
        "depth {depth} failed {MAX_FAILURES} times; the last failure was on worker {worker}: {reason}"
    )]
    Failing {
        depth: u32,
        worker: String,
        reason: String,
    },
    #[error(
        "depth {depth} failed: workers were lost {losses} times without a committed depth in between, most recently \
         {worker} ({reason}): if {width} wells do not fit into memory, connect more workers or choose a smaller width"
    )]
    Losing {
        depth: u32,
        losses: u32,
        worker: String,
        reason: String,
        width: u64,
    },
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

    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, DriverError::Manifest(error) if error.is_transient())
    }
}

/// An error that ends an epoch (a period with a fixed set of workers).
#[derive(Debug)]
pub(super) enum EpochError {
    /// A worker disconnected or failed. The next epoch resumes after the last committed depth.
    Worker(WorkerError),
    /// The table list of the last committed depth is missing or damaged.
    Damaged(ManifestError),
    /// The run is interrupted on this coordinator.
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
