//! Errors of a client.

use hatebeam_net::{WireError, explain};
use hatebeam_runs::NameError;
use thiserror::Error;
use tonic::Status;

/// An error from a call to a coordinator.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client cannot connect. The contents are the cause, which names the address.
    #[error("{}", connect_text(.0))]
    Connect(Box<WireError>),
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
            ClientError::Connect(cause) => cause.is_transient(),
            _ => true,
        }
    }

    /// Creates the error for an error status that the coordinator returned.
    pub fn refused(status: Status) -> ClientError {
        ClientError::Refused(explain(&status))
    }
}

/// Describes why a client cannot connect. If no coordinator answers, adds the remedy.
fn connect_text(cause: &WireError) -> String {
    match cause {
        WireError::Unreachable { uri, reason } => format!(
            "cannot connect to the coordinator {uri}: {reason}: start one with `hatebeam coordinator`, or name its \
             address with --coordinator"
        ),
        WireError::Refused { uri, reason } => {
            format!("cannot connect to the coordinator {uri}: {reason}")
        }
        _ => format!("cannot connect to the coordinator: {cause}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_errors_name_the_address_once_and_a_remedy_if_nothing_answers() {
        let (uri, reason) = ("http://127.0.0.1:7800".to_owned(), "reason".to_owned());
        let text = |cause| ClientError::Connect(Box::new(cause)).to_string();
        let unreachable = text(WireError::Unreachable {
            uri: uri.clone(),
            reason: reason.clone(),
        });
        let refused = text(WireError::Refused {
            uri: uri.clone(),
            reason: reason.clone(),
        });
        let invalid = text(WireError::Address {
            uri: uri.clone(),
            reason,
        });
        for text in [&unreachable, &refused, &invalid] {
            assert_eq!(text.matches(&uri).count(), 1, "{text}");
        }
        assert!(
            unreachable.contains("hatebeam coordinator"),
            "{unreachable}"
        );
        assert!(unreachable.contains("--coordinator"), "{unreachable}");
        assert!(!refused.contains("--coordinator"), "{refused}");
    }
}
