//! The command line of `hatebeam`: arguments, commands and their output.

/// Returns the text of a file in `help`, which follows the arguments in a command's help.
macro_rules! help {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/help/", $name, ".txt")).trim_ascii_end()
    };
}

mod args;
mod commands;
mod input;
mod output;
mod spec;
mod state;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};
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
pub fn command() -> Command {
    accept_negative_numbers(join_help(Args::command()))
}

/// Accepts negative numbers as values of all options of a command and its subcommands. Otherwise, clap would report them as
/// unknown options, and not as values that are out of range.
fn accept_negative_numbers(command: Command) -> Command {
    let with_numbers = |arg: Arg| {
        let is_option = arg.get_long().is_some() && arg.get_action().takes_values();
        if is_option {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    };
    command
        .mut_args(with_numbers)
        .mut_subcommands(accept_negative_numbers)
}

/// Joins the lines of each paragraph in the help texts of a command and its subcommands. clap wraps every line on its own to
/// the width of the terminal, and would print the source's line breaks as well.
fn join_help(command: Command) -> Command {
    let help = command.get_after_help().map(ToString::to_string);
    command
        .after_help(join_lines(&help.unwrap_or_default()))
        .mut_subcommands(join_help)
}

/// Joins consecutive lines that are neither empty nor indented.
fn join_lines(text: &str) -> String {
    let is_joined = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            let is_continued = is_joined(previous) && is_joined(line);
            joined.push(if is_continued { ' ' } else { '\n' });
        }
        joined.push_str(line);
        previous = line;
    }
    joined
}

/// Parses the command line together with the flags from the configuration file. If the user requests help or the command
/// line is invalid, this function prints the text from clap and exits the process.
fn command_line() -> anyhow::Result<Args> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let command = command();
    let merged = hatebeam_config::merge(&command, typed)?;
    let matches = matches_of(command, &merged.words);
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    args.map_err(|error| {
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

/// Parses a command line. A flag takes precedence over the variable of a flag that conflicts with it: clap counts a value from
/// the environment as given, so it would refuse --store if the variable of --state is set.
fn matches_of(command: Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let matches = command.clone().try_get_matches_from(words);
    matches.or_else(|error| match error.kind() {
        ErrorKind::ArgumentConflict => {
            without_conflicting_variables(command).try_get_matches_from(words)
        }
        _ => Err(error),
    })
}

/// Removes the environment variables of the flags with which another flag conflicts.
fn without_conflicting_variables(command: Command) -> Command {
    let conflicting = command
        .get_arguments()
        .flat_map(|arg| command.get_arg_conflicts_with(arg));
    let ids: Vec<_> = conflicting.map(|arg| arg.get_id().clone()).collect();
    let without = |command: Command, id| command.mut_arg(id, |arg| arg.env(Resettable::Reset));
    ids.into_iter()
        .fold(command, without)
        .mut_subcommands(without_conflicting_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_number_is_a_value_that_is_out_of_range() {
        for line in [
            "run --max-hours -1",
            "resume a --max-depth -3",
            "endgame DD --seconds -0.5",
            "replay show DD --well -1",
            "runs repair a --threads -1",
        ] {
            let words = ["hatebeam"].into_iter().chain(line.split(' '));
            let error = command().try_get_matches_from(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
        }
    }

    #[test]
    fn flag_takes_precedence_over_variable_of_conflicting_flag() {
        // Cargo sets this variable for tests.
        let state = Arg::new("state").long("state").env("CARGO_PKG_NAME");
        let store = Arg::new("store").long("store").conflicts_with("state");
        let command = Command::new("x").subcommand(Command::new("rm").args([state, store]));
        let parse = |args: &[&str]| {
            let words: Vec<OsString> = ["x", "rm"].iter().chain(args).map(OsString::from).collect();
            let matches = matches_of(command.clone(), &words)?;
            let (_, rm) = matches.subcommand().unwrap();
            let value = |id| rm.get_one::<String>(id).cloned();
            Ok::<_, clap::Error>((value("state"), value("store")))
        };
        let a = Some("a".to_owned());
        assert!(parse(&[]).unwrap().0.is_some());
        assert_eq!(parse(&["--store", "a"]).unwrap(), (None, a.clone()));
        assert_eq!(parse(&["--state", "a"]).unwrap(), (a, None));
        let both = parse(&["--state", "a", "--store", "a"]).unwrap_err();
        assert_eq!(both.kind(), ErrorKind::ArgumentConflict);
    }
}
