//! Output of commands: results, messages, failures and exit codes.

use anyhow::Context;
use hatebeam_files::write_whole;
use hatebeam_host::INTERRUPTED;
use hatebeam_store::StoreError;
use serde::Serialize;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, absolute};
use std::process::ExitCode;
use thiserror::Error;

/// Failures with a special exit code or without a message. For any other error, the process prints the error on standard
/// error and exits with code 1.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The command line is invalid: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The printed results already report the failure: exit code 1 without a message.
    #[error("not valid")]
    Printed,
    /// A signal stopped the command, and the command has reported it: exit code [`INTERRUPTED`] without a message.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Reports an error and returns the exit code. A closed pipe, for example because of `| head`, is a success, because the
    /// reader needs no more output.
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
            Some(Failure::Interrupted) => INTERRUPTED,
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
    // A write error is ignored, because there is no other place to report it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a result on standard output.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")
        .and_then(|()| out.flush())
        .context(CANNOT_WRITE)
}

/// Prints a result on standard output as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(format_args!("{}\n", serde_json::to_string(value)?))
}

/// A file that a command writes.
pub(crate) struct OutputFile<'a> {
    /// Argument that names the file.
    pub(crate) argument: &'static str,
    /// Path of the file.
    pub(crate) path: Option<&'a Path>,
}

/// Checks that files can be written, before work that takes long, and that no two arguments name the same file.
pub(crate) fn check_files(files: &[OutputFile<'_>]) -> anyhow::Result<()> {
    check_distinct(files)?;
    let mut paths = files.iter().filter_map(|file| file.path);
    paths.try_for_each(check_writable)
}

/// Returns an error if two arguments name the same file, also if one of the paths is relative.
fn check_distinct(files: &[OutputFile<'_>]) -> Result<(), Failure> {
    let place = |file: &OutputFile<'_>| file.path.and_then(|path| absolute(path).ok());
    for (number, file) in files.iter().enumerate() {
        let Some(path) = place(file) else { continue };
        let same = files[number + 1..]
            .iter()
            .find(|other| place(other).as_ref() == Some(&path));
        if let Some(OutputFile { argument, .. }) = same {
            return Err(Failure::Usage(format!(
                "{} and {argument} name the same file: give each its own",
                file.argument
            )));
        }
    }
    Ok(())
}

/// Checks that [`write_file`] can write a file, before work that takes long. Creates a temporary file in its folder and
/// removes the temporary file. Does not check a link, a device or a pipe, because opening a pipe is visible to its reader.
pub(crate) fn check_writable(path: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    if path.is_dir() {
        let error = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(error).with_context(context);
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".check-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    File::create_new(&temporary).with_context(context)?;
    fs::remove_file(&temporary).with_context(context)
}

/// Writes a file like [`write_whole`]. The error says what could not be done.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    match write_whole(path, bytes).map_err(StoreError::io(path)) {
        Err(StoreError::Io { error, .. }) => {
            Err(error).with_context(|| format!("cannot write {}", path.display()))
        }
        written => Ok(written?),
    }
}

/// Error context for a failed write of results.
pub(crate) const CANNOT_WRITE: &str = "cannot write to standard output";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_is_recognized_below_error_context() {
        let closed = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context(CANNOT_WRITE)));
        assert!(!is_closed_pipe(&anyhow::Error::new(Failure::Printed)));
    }
}
