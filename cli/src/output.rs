//! What goes to the terminal that is not a result, how a run fails, and the exit codes.

use crate::interrupt::EXIT_CODE;
use anyhow::Context;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Failures that do not end in the common way (a line on standard error and exit code 1).
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be had.
    #[error("{0}")]
    Usage(String),
    /// What is wrong is part of the results, and has been printed with them.
    #[error("not valid")]
    Printed,
    /// It was told to stop, and has said what that means.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Says what went wrong, and which exit code that makes. A reader who went away (`| head`) has
    /// what he wanted: nothing went wrong then.
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

/// Prints a remark on standard error.
pub(crate) fn note(text: impl Display) {
    message("note", text);
}

fn message(kind: &str, text: impl Display) {
    // If even standard error is closed, there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{kind}: {text}");
}

/// Prints a result on standard output.
pub(crate) fn print(text: &dyn Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")
        .and_then(|()| out.flush())
        .context(CANNOT_WRITE)
}

/// The context of an error in writing results.
pub(crate) const CANNOT_WRITE: &str = "cannot write to standard output";

/// "1 key", "2 keys".
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_found_below_its_context() {
        let closed = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context(CANNOT_WRITE)));
        assert!(!is_closed_pipe(&anyhow::Error::new(Failure::Printed)));
    }
}
