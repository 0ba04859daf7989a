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
    /// The coordinator cannot use the object store.
    #[error("cannot use the object store {store}")]
    Store {
        /// Location of the object store.
        store: String,
        /// The underlying error.
        source: ObjectError,
    },
    /// The runs in the object store cannot be listed.
    #[error("cannot list the runs in the object store")]
    Runs(#[source] ManifestError),
    /// The object store ignores conditional writes, so two coordinators could overwrite each other's work undetected.
    #[error(
        "the object store {store} does not honor conditional writes, so a second coordinator could corrupt its runs \
         undetected: if this is the only coordinator, pass --single-coordinator"
    )]
    Unconditional {
        /// Location of the object store.
        store: String,
    },
    /// The lease is held by another coordinator, was taken over, or cannot be renewed.
    #[error(transparent)]
    Lease(LeaseError),
    /// Another coordinator keeps writing the manifests of this coordinator's runs.
    #[error("another coordinator has taken over run {run}")]
    Superseded {
        /// Name of the run.
        run: String,
    },
    /// The gRPC server failed.
    #[error("the gRPC server failed")]
    Server(#[source] tonic::transport::Error),
    /// A server ended without an error before the coordinator stopped it.
    #[error("the {server} server ended unexpectedly: restart the coordinator")]
    ServerEnded {
        /// Name of the server.
        server: &'static str,
    },
    /// A task of the coordinator panicked, which is a bug.
    #[error("the coordinator's {task} task ended unexpectedly: {reason}")]
    Panicked {
        /// Name of the task.
        task: &'static str,
        /// Description of the panic.
        reason: String,
    },
}

impl CoordinatorError {
    /// Creates the error for a task that panicked or was aborted.
    pub(crate) fn panicked(task: &'static str, error: &JoinError) -> CoordinatorError {
        CoordinatorError::Panicked {
            task,
            reason: error.to_string(),
        }
    }
}
