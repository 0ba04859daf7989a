//! Errors of a client.

use hatebeam_net::{WireError, explain};
use hatebeam_runs::NameError;
use thiserror::Error;
use tonic::Status;

/// An error from a call to a coordinator.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client cannot connect.
    #[error("cannot connect to the coordinator {uri}")]
    Connect {
        /// Address of the coordinator.
        uri: String,
        /// The cause.
        source: Box<WireError>,
    },
    /// The coordinator refused the request.
    #[error("the coordinator refused the request: {0}")]
    Refused(String),
    /// The connection was closed.
    #[error("the coordinator closed the connection")]
    Closed,
    /// The coordinator remained unreachable until the timeout.
    #[error("the coordinator is unreachable")]
    Unreachable(#[source] Box<ClientError>),
    /// The coordinator has no run.
    #[error("there is no run: submit one with `hatebeam submit`")]
    NoRun,
    /// No run has this name or prefix, or several runs have this prefix.
    #[error("{0}: list the runs with `hatebeam status`")]
    Name(NameError),
}

impl ClientError {
    /// Returns whether another attempt to connect may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            ClientError::Connect { source, .. } => source.is_transient(),
            _ => true,
        }
    }

    /// Creates the error for an error status that the coordinator returned.
    pub fn refused(status: Status) -> ClientError {
        ClientError::Refused(explain(&status))
    }
}
