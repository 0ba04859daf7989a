//! Errors that can end a demo.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;

/// Error that ends a demo.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The user or a signal stopped the demo.
    #[error("interrupted")]
    Interrupted,
    /// An operating system call failed.
    #[error("cannot {what}")]
    Io {
        /// The operation that failed, such as "create a temporary folder".
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A message to the user cannot be written.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    /// A server ended during the demo.
    #[error("the process {name} ended ({status}); the last lines of its log:\n{log}")]
    ServerEnded {
        /// Name of the server's process.
        name: &'static str,
        /// Exit status of the server.
        status: ExitStatus,
        /// Last lines of the server's log.
        log: String,
    },
    /// The coordinator did not print its addresses in time.
    #[error(
        "the coordinator printed no addresses within {limit:?}; the last lines of its log:\n{log}"
    )]
    NoAddresses {
        /// The time limit.
        limit: Duration,
        /// Last lines of the coordinator's log.
        log: String,
    },
    /// A command of the demo failed without output.
    #[error("a command of the demo failed ({0})")]
    Command(ExitStatus),
    /// The output of a command is not the expected JSON.
    #[error("cannot read the output of hatebeam {command}")]
    Json {
        /// Name of the command.
        command: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// The run did not finish.
    #[error("the run is {state}: {note}")]
    NotFinished {
        /// State of the run.
        state: String,
        /// The coordinator's note about the run.
        note: String,
    },
    /// The check of the best game found an invalid move or a different score.
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
