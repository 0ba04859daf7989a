//! The configuration file: a TOML file that supplies flags of a clap command line.
//!
//! This crate has no list of settings. The names of sections are the names of commands, and the names of keys are the
//! names of the command's flags, as clap defines them. [`merge`] inserts the file's flags in front of the typed flags,
//! except flags that the command line or the environment sets. clap then checks the values, the conflicts and the required
//! flags of the whole command line. The section `[shared]` can contain every flag that has
//! an environment variable, and sets it for all commands that read this variable.

mod error;
mod example;
mod file;
mod flags;
mod location;
mod setting;

pub use error::{ConfigError, Problem};
pub use example::example;
pub use file::{File, SHARED};
pub use flags::{commands, flags_of, is_shared, is_switch};
pub use location::Location;
pub use setting::{Origin, Setting, table};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use file::{Entry, Given};
use std::ffi::OsString;
use std::path::PathBuf;

/// Commands that ignore the file, so that they work even if the file contains errors.
const EXCLUDED: [&str; 3] = ["config", "completions", "man"];

/// Pairs of a flag and an environment variable that overrides the flag, although it does not contain the flag's value.
/// HATEBEAM_TOKEN contains a token, whereas --token-file names a file with a token.
const OTHER_VARIABLES: [(&str, &str); 1] = [("token-file", "HATEBEAM_TOKEN")];

/// A command line to which flags from a file have been added.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// The command line.
    pub words: Vec<OsString>,
    /// The words that were added from the file.
    pub added: Vec<String>,
    /// The file, if one was read.
    pub file: Option<PathBuf>,
}

/// Adds the flags from the configuration file to the words that the user typed. `all` defines the command line, whose
/// global flag `--config` can name the file.
///
/// Returns the words unchanged if the user requests help, if the words contain no command, if the command is `config`,
/// `completions` or `man`, or if there is no file.
///
/// # Errors
/// Returns an error if the file cannot be read or contains an error.
pub fn merge(all: &Command, typed: Vec<OsString>) -> Result<Merged, ConfigError> {
    let unchanged = |words| Merged {
        words,
        ..Merged::default()
    };
    let Some(matches) = leniently_parsed(all, &typed) else {
        return Ok(unchanged(typed));
    };
    let named = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let called = Called::of(&matches, all);
    let Some(called) = called.filter(|called| !EXCLUDED.contains(&called.path[0])) else {
        return Ok(unchanged(typed));
    };
    let Some(path) = Location::of(named).existing() else {
        return Ok(unchanged(typed));
    };
    let file = File::read(&path, all)?;
    let mut merged = called.add(&file, typed);
    merged.file = Some(path);
    Ok(merged)
}

/// Parses a command line and ignores errors such as missing or conflicting flags. The file may supply missing flags, and
/// clap reports all other errors later. Returns `None` if the user requests help.
fn leniently_parsed(all: &Command, words: &[OsString]) -> Option<ArgMatches> {
    let lenient = all.clone().ignore_errors(true);
    lenient.try_get_matches_from(words).ok()
}

impl File {
    /// Adds the flags from this file to the words that the user typed. `all` defines the command line.
    pub fn add_to(&self, all: &Command, typed: Vec<OsString>) -> Merged {
        let matches = leniently_parsed(all, &typed);
        match matches.as_ref().and_then(|found| Called::of(found, all)) {
            Some(called) => called.add(self, typed),
            None => Merged {
                words: typed,
                ..Merged::default()
            },
        }
    }
}

/// The command that a command line calls, such as `runs show`.
struct Called<'a> {
    path: Vec<&'a str>,
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl<'a> Called<'a> {
    /// Returns the innermost command, or `None` if the command line names no command.
    fn of(matches: &'a ArgMatches, all: &'a Command) -> Option<Called<'a>> {
        let (mut path, mut command, mut inner) = (Vec::new(), all, matches);
        while let Some((name, matches)) = inner.subcommand() {
            command = command.find_subcommand(name)?;
            inner = matches;
            path.push(name);
        }
        (!path.is_empty()).then_some(Called {
            path,
            command,
            matches: inner,
        })
    }

    /// Inserts the flags of a file directly after the command, in front of the typed flags.
    fn add(&self, file: &File, typed: Vec<OsString>) -> Merged {
        let taken = self.taken_from(file).into_iter();
        let added: Vec<String> = taken.flat_map(|(entry, flag)| words(entry, flag)).collect();
        let at = self.position(&typed);
        let mut merged = Merged {
            words: typed,
            added,
            file: None,
        };
        let inserted: Vec<OsString> = merged.added.iter().map(OsString::from).collect();
        merged.words.splice(at..at, inserted);
        merged
    }

    /// Returns whether the command line or the environment sets an argument.
    fn is_set(&self, id: &clap::Id) -> bool {
        let is_known = self.matches.try_contains_id(id.as_str()).unwrap_or(false);
        is_known
            && matches!(
                self.matches.value_source(id.as_str()),
                Some(ValueSource::CommandLine | ValueSource::EnvVariable)
            )
    }

    /// Returns the entries of a file that apply, each with its flag. An entry applies if neither the command line nor the
    /// environment sets its flag or an argument that conflicts with the flag.
    fn taken_from<'f>(&self, file: &'f File) -> Vec<(&'f Entry, &'a Arg)> {
        let conflicts = |one: &Arg, other: &Arg| {
            let conflicting = self.command.get_arg_conflicts_with(one);
            conflicting.iter().any(|arg| arg.get_id() == other.get_id())
        };
        let mut taken = Vec::new();
        for flag in flags_of(self.command) {
            let Some(entry) = file.entry(&self.path, flag) else {
                continue;
            };
            let is_opposed = flags::arguments_of(self.command).any(|other| {
                self.is_set(other.get_id()) && (conflicts(flag, other) || conflicts(other, flag))
            });
            if !self.is_set(flag.get_id()) && !is_opposed && other_variable(flag).is_none() {
                taken.push((entry, flag));
            }
        }
        taken
    }

    /// Returns the index of the first word after the command.
    fn position(&self, words: &[OsString]) -> usize {
        let mut at = 1;
        for name in &self.path {
            while let Some(word) = words.get(at) {
                // Of the flags that can precede a command, only `--config` has a value.
                at += if word == "--config" { 2 } else { 1 };
                if word == name {
                    break;
                }
            }
        }
        at.min(words.len())
    }
}

/// Returns the words that a user would type for an entry.
fn words(entry: &Entry, flag: &Arg) -> Vec<String> {
    let name = flags::name(flag);
    match &entry.given {
        Given::Switch(on) => on.then(|| format!("--{name}")).into_iter().collect(),
        Given::Values(values) => {
            let typed = values.iter().map(|value| format!("--{name}={value}"));
            typed.collect()
        }
    }
}

/// Returns the variable that overrides this flag, if the variable is set (see [`OTHER_VARIABLES`]).
fn other_variable(flag: &Arg) -> Option<&'static str> {
    let name = flags::name(flag);
    let (_, variable) = OTHER_VARIABLES.iter().find(|(flag, _)| *flag == name)?;
    std::env::var_os(variable).map(|_| *variable)
}

#[cfg(test)]
mod tests;
