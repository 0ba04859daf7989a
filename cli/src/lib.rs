//! The command line of `hatebeam`: arguments, commands and their output.

mod args;
mod commands;
mod input;
mod output;
mod spec;
mod state;

use clap::{CommandFactory, Parser};
use commands::Args;
use output::Failure;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Parses the command line of this process, runs the command, and returns the exit code.
pub fn main() -> ExitCode {
    hatebeam_host::return_large_blocks();
    hatebeam_host::raise_file_limit();
    match command_line().and_then(commands::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::report(&error),
    }
}

/// Returns the definition of the command line.
pub fn command() -> clap::Command {
    Args::command()
}

/// Parses the command line together with the flags from the configuration file. If the user requests help or the command
/// line is invalid, this function prints the text from clap and exits the process.
fn command_line() -> anyhow::Result<Args> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let merged = hatebeam_config::merge(&command(), typed)?;
    Args::try_parse_from(&merged.words).map_err(|error| {
        if !error.use_stderr() || merged.added.is_empty() {
            error.exit();
        }
        // A write error is ignored, because there is no other place to report it.
        let _ = error.print();
        let file = merged.file.as_deref().unwrap_or(Path::new(""));
        let added = merged.added.join(" ");
        output::note(format_args!(
            "{} added {added} to the command line",
            file.display()
        ));
        std::process::exit(error.exit_code());
    })
}
