//! Errors of a client.

use hatebeam_net::{WireError, explain};
use hatebeam_runs::NameError;
use thiserror::Error;
use tonic::Status;

/// Why a request to a coordinator failed.
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
    /// The coordinator refuses the request.
    #[error("the coordinator refuses: {0}")]
    Refused(String),
    /// The connection was closed.
    #[error("the coordinator closed the connection")]
    Closed,
    /// The coordinator stayed unreachable.
    #[error("the coordinator is unreachable")]
    Unreachable(#[source] Box<ClientError>),
    /// The coordinator has no run.
    #[error("there is no run: submit one with `hatebeam submit`")]
    NoRun,
    /// The name stands for no run, or for several.
    #[error("{0}: list the runs with `hatebeam status`")]
    Name(NameError),
}

impl ClientError {
    /// Converts an error that the coordinator returned.
    pub fn refused(status: Status) -> ClientError {
        ClientError::Refused(explain(&status))
    }
}
