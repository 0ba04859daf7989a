//! Output of commands: results, messages, failures and exit codes.

use crate::interrupt::EXIT_CODE;
use anyhow::Context;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Failures that do not end in the usual way, which is a line on standard error and exit code 1.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The command line asks for something impossible.
    #[error("{0}")]
    Usage(String),
    /// The failure is part of the results and was printed with them.
    #[error("not valid")]
    Printed,
    /// A signal stopped the command, which has reported it.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Reports an error and returns the exit code. A closed pipe (`| head`) is no error: its reader has what it needs.
    pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
        if is_closed_pipe(error) {
            return ExitCode::SUCCESS;
        }
        let failure = error.downcast_ref::<Failure>();
        if !matches!(failure, Some(Failure::Printed | Failure::Interrupted)) {
            message("error", format_args!("{error:#}"));
        }
        ExitCode::from(match failure {
            Some(Failure::Usage(_)) => 2,
            Some(Failure::Interrupted) => EXIT_CODE,
            _ => 1,
        })
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a warning on standard error.
pub(crate) fn warn(text: impl Display) {
    message("warning", text);
}

/// Prints a note on standard error.
pub(crate) fn note(text: impl Display) {
    message("note", text);
}

fn message(kind: &str, text: impl Display) {
    line(format_args!("{kind}: {text}"));
}

/// Prints a line on standard error.
pub(crate) fn line(text: impl Display) {
    // If standard error is closed, nothing can report the failure.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a result on standard output.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")
        .and_then(|()| out.flush())
        .context(CANNOT_WRITE)
}

/// Prints a result as one line of JSON on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(format_args!("{}\n", serde_json::to_string(value)?))
}

/// Context of an error of writing results.
pub(crate) const CANNOT_WRITE: &str = "cannot write to standard output";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_is_found_below_its_context() {
        let closed = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context(CANNOT_WRITE)));
        assert!(!is_closed_pipe(&anyhow::Error::new(Failure::Printed)));
    }
}
