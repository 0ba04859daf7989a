//! Errors of a demo.

use hatebeam_store::StoreError;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;

/// Why a demo failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The demo was stopped.
    #[error("interrupted")]
    Interrupted,
    /// The system refused an operation.
    #[error("cannot {what}")]
    Io {
        /// The operation.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A message cannot be reported.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    /// The replay cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server ended.
    #[error("the {name} ended ({status}); the end of its log:\n{log}")]
    ServerEnded {
        /// Name of the server.
        name: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// The coordinator did not print its addresses.
    #[error("the coordinator printed no addresses within {limit:?}; the end of its log:\n{log}")]
    NoAddresses {
        /// The time limit.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
    /// A command failed.
    #[error("a command of the demo failed ({0})")]
    Command(ExitStatus),
    /// A command printed something unexpected.
    #[error("cannot read the output of hatebeam {command}")]
    Json {
        /// The command.
        command: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// The run did not finish.
    #[error("the run is {state}: {note}")]
    NotFinished {
        /// State of the run.
        state: String,
        /// Note of the coordinator.
        note: String,
    },
    /// The best game is not valid.
    #[error("the game is not valid")]
    InvalidGame,
}

impl DemoError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> DemoError {
        let what = what.into();
        |source| DemoError::Io { what, source }
    }

    pub(crate) fn json(command: &'static str) -> impl FnOnce(serde_json::Error) -> DemoError {
        move |source| DemoError::Json { command, source }
    }
}
