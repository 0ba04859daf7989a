//! Errors that stop a coordinator.

use crate::lease::LeaseError;
use hatebeam_net::WireError;
use hatebeam_objects::ObjectError;
use hatebeam_runs::ManifestError;
use thiserror::Error;
use tokio::task::JoinError;

/// An error that stops a coordinator.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The coordinator cannot listen, or its certificates cannot be used.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The object store cannot be used.
    #[error("cannot use the object store {store}")]
    Store {
        /// Its location.
        store: String,
        /// The reason.
        source: ObjectError,
    },
    /// The runs in the object store cannot be listed.
    #[error("cannot list the runs in the object store")]
    Runs(#[source] ManifestError),
    /// Two coordinators could overwrite each other's work without noticing.
    #[error(
        "the object store {store} does not honor conditional writes, so two coordinators could corrupt each other's runs \
         without noticing: if this is its only coordinator, say so with --single-coordinator"
    )]
    Unconditional {
        /// Its location.
        store: String,
    },
    /// Another coordinator holds the lease.
    #[error(transparent)]
    Lease(LeaseError),
    /// Another coordinator keeps writing the manifests of this coordinator's runs.
    #[error("another coordinator has taken over run {run}")]
    Superseded {
        /// The run.
        run: String,
    },
    /// The gRPC server ended.
    #[error("the coordinator's server failed")]
    Server(#[source] tonic::transport::Error),
    /// A task of the coordinator panicked: a fault of this program.
    #[error("the coordinator's {task} ended unexpectedly: {reason}")]
    Panicked {
        /// The task.
        task: &'static str,
        /// The panic.
        reason: String,
    },
}

impl CoordinatorError {
    /// A task that panicked, or was ended from outside.
    pub(crate) fn panicked(task: &'static str, error: &JoinError) -> CoordinatorError {
        CoordinatorError::Panicked {
            task,
            reason: error.to_string(),
        }
    }
}
