//! The configuration file: flags for those who would rather not type them again and again.
//!
//! There is no list of settings. A section is a command and a key one of its flags, both as clap has them;
//! what is in the file is put into the command line, in front of what was typed, unless the flag was
//! typed too or the environment has it. So clap judges all of it alike: values, conflicts, what is missing.
//! `[shared]` holds what an environment variable could say as well, for all the commands that heed it.

mod command;
mod example;
mod file;
mod flags;

pub(crate) use command::{CONFIG_EXAMPLES, ConfigArgs, config};

use crate::args::Args;
use crate::output;
use anyhow::{Context, bail};
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, Parser};
use file::{File, Given, Setting};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Says that no file is to be read.
const NONE: &str = "none";

/// The variable that names a file.
const VARIABLE: &str = "HATEBEAM_CONFIG";

/// Commands that have to work whatever is in the file, and take nothing from it.
const APART: [&str; 3] = ["config", "completions", "man"];

/// What says the same as a flag, and is no variable of that flag: a token itself, where the flag names a file.
const OTHER_VARIABLES: [(&str, &str); 1] = [("token-file", "HATEBEAM_TOKEN")];

/// The command line, with what the file adds to it. Ends the process where clap does: with help, and with
/// what is wrong with the command line.
pub(crate) fn command_line() -> anyhow::Result<Args> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let merged = merge(typed)?;
    Args::try_parse_from(&merged.words).or_else(|error| give_up(&error, &merged))
}

/// Says what clap says, and where words come from that nobody has typed.
fn give_up(error: &Error, merged: &Merged) -> ! {
    if error.use_stderr() && !merged.added.is_empty() {
        // If even standard error is closed, there is nobody left to tell.
        let _ = error.print();
        let file = merged.file.as_deref().unwrap_or(Path::new(""));
        output::note(format_args!(
            "{} has added {}",
            file.display(),
            merged.added.join(" ")
        ));
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// A command line with what a file has added to it.
struct Merged {
    words: Vec<OsString>,
    added: Vec<String>,
    file: Option<PathBuf>,
}

fn merge(typed: Vec<OsString>) -> anyhow::Result<Merged> {
    let all = Args::command();
    let mut merged = Merged {
        words: typed,
        added: Vec::new(),
        file: None,
    };
    // What is missing may be in the file, and what is wrong is said later; help is given without a file.
    let lenient = all.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from(&merged.words) else {
        return Ok(merged);
    };
    let Some(called) = Called::of(&matches, &all) else {
        return Ok(merged);
    };
    if APART.contains(&called.path[0]) {
        return Ok(merged);
    }
    let named = named(matches.get_one::<PathBuf>("config").map(PathBuf::as_path));
    let Some(path) = place(named.as_deref()) else {
        return Ok(merged);
    };
    let file = File::read(&path, &all)?;
    for (setting, long) in called.taken(&file) {
        merged.added.extend(words(setting, long));
    }
    let at = called.position(&merged.words);
    let added: Vec<OsString> = merged.added.iter().map(OsString::from).collect();
    merged.words.splice(at..at, added);
    merged.file = Some(path);
    Ok(merged)
}

/// A setting as it would be typed.
fn words(setting: &Setting, long: &str) -> Vec<String> {
    match &setting.given {
        Given::Switch(true) => vec![format!("--{long}")],
        Given::Switch(false) => Vec::new(),
        Given::Values(values) => {
            let typed = |value: &String| format!("--{long}={value}");
            values.iter().map(typed).collect()
        }
    }
}

/// What the command line, or else the environment, says of the file.
fn named(typed: Option<&Path>) -> Option<PathBuf> {
    let outside = || variable(VARIABLE).map(PathBuf::from);
    typed.map(Path::to_owned).or_else(outside)
}

/// The file to read, if there is one: the one that was named, or the usual one where it is there.
fn place(named: Option<&Path>) -> Option<PathBuf> {
    match named {
        Some(named) if named == Path::new(NONE) => None,
        Some(named) => Some(named.to_owned()),
        None => usual_place().filter(|path| path.exists()),
    }
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Where the file is unless somebody says otherwise; nowhere without a home.
fn usual_place() -> Option<PathBuf> {
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(folder.join("hatebeam/config.toml"))
}

/// The command that was typed, `runs show` for instance.
struct Called<'a> {
    path: Vec<&'a str>,
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl<'a> Called<'a> {
    /// The last of the commands that were typed; `None` if there is none.
    fn of(matches: &'a ArgMatches, all: &'a Command) -> Option<Called<'a>> {
        let (mut path, mut command, mut below) = (Vec::new(), all, matches);
        while let Some((name, matches)) = below.subcommand() {
            command = command.find_subcommand(name)?;
            below = matches;
            path.push(name);
        }
        (!path.is_empty()).then_some(Called {
            path,
            command,
            matches: below,
        })
    }

    /// Whether somebody has said this himself, on the command line or in the environment.
    fn is_said(&self, id: &clap::Id) -> bool {
        let known = self.matches.try_contains_id(id.as_str()).unwrap_or(false);
        let source = known
            .then(|| self.matches.value_source(id.as_str()))
            .flatten();
        matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
    }

    /// What the command takes from a file: what nobody has said, and what does not stand against something
    /// that somebody has.
    fn taken<'f>(&self, file: &'f File) -> Vec<(&'f Setting, &'a str)> {
        let mut taken = Vec::new();
        for flag in flags::of(self.command) {
            let Some(setting) = file.setting(&self.path, flag) else {
                continue;
            };
            let opposed = flags::of_all_kinds(self.command).any(|other| {
                let stand_apart = |one, two: &clap::Arg| {
                    let against = self.command.get_arg_conflicts_with(one);
                    against.iter().any(|arg| arg.get_id() == two.get_id())
                };
                self.is_said(other.get_id())
                    && (stand_apart(flag, other) || stand_apart(other, flag))
            });
            let long = flags::name(flag);
            if !self.is_said(flag.get_id()) && !opposed && other_variable(long).is_none() {
                taken.push((setting, long));
            }
        }
        taken
    }

    /// Where in the words the command's own begin.
    fn position(&self, words: &[OsString]) -> usize {
        let mut at = 1;
        for name in &self.path {
            while let Some(word) = words.get(at) {
                // Of what can stand before a command only this takes a word.
                let skipped = if word == "--config" { 2 } else { 1 };
                at += skipped;
                if word == name {
                    break;
                }
            }
        }
        at.min(words.len())
    }
}

/// The variable that is set and says what this flag would.
fn other_variable(long: &str) -> Option<&'static str> {
    let same = OTHER_VARIABLES.iter().find(|(flag, _)| *flag == long);
    let (_, variable) = same?;
    std::env::var_os(variable).map(|_| *variable)
}

/// The file that is named, or the usual one, which has to be there.
fn existing(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = place(named) {
        return Ok(path);
    }
    match (named, usual_place()) {
        (Some(_), _) => bail!("no file is to be read: --config or HATEBEAM_CONFIG says '{NONE}'"),
        (None, Some(path)) => bail!(
            "there is no file {}; `hatebeam config init` makes one",
            path.display()
        ),
        (None, None) => Err(no_home()),
    }
}

fn no_home() -> anyhow::Error {
    anyhow::anyhow!("there is no home folder with a configuration file: name one with --config")
}

/// What is wrong with a file, in one line.
fn summary(path: &Path, problems: &[file::Problem]) -> anyhow::Error {
    let mut text = String::new();
    if let Some(first) = problems.first() {
        let _ = write!(text, "{}:{first}", path.display());
    }
    if let Some(more @ 1..) = problems.len().checked_sub(1) {
        let _ = write!(
            text,
            " (and {more} more: hatebeam config check {})",
            path.display()
        );
    }
    anyhow::Error::msg(text)
}

impl File {
    /// The file, if nothing is wrong with it.
    fn read(path: &Path, all: &Command) -> anyhow::Result<File> {
        let text = file::text(path).with_context(|| path.display().to_string())?;
        File::parse(&text, all).map_err(|problems| summary(path, &problems))
    }
}

#[cfg(test)]
mod tests;
