//! A configuration file, read and checked against the commands and their flags.

use super::flags::{self, is_list, is_switch};
use crate::args::Args;
use anyhow::{Context, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// The section for what all commands share.
pub(super) const SHARED: &str = "shared";

/// The longest file that is read. The longest that makes sense has a few hundred lines.
const MAX_BYTES: u64 = 1 << 20;

/// How alike two words are, from 0 to 1, for one to be offered for the other.
const ALIKE: f64 = 0.7;

/// Words in the names of keys that somebody may take for the place of a secret.
const SECRETS: [&str; 4] = ["token", "secret", "password", "access-key"];

/// What a file says of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Switch(bool),
    /// One, or several where the flag can be repeated.
    Values(Vec<String>),
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Switch(on) => write!(f, "{on}"),
            Given::Values(values) => f.write_str(&values.join(", ")),
        }
    }
}

/// A flag in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The command, or [`SHARED`].
    pub(super) section: Vec<String>,
    pub(super) key: String,
    pub(super) given: Given,
    pub(super) line: usize,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) settings: Vec<Setting>,
}

/// The text of a file.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let file = fs::File::open(path).context("the configuration file")?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    ensure!(
        bytes.len() as u64 <= MAX_BYTES,
        "a configuration file of more than {MAX_BYTES} bytes is none"
    );
    String::from_utf8(bytes).context("the configuration file is not UTF-8")
}

impl File {
    /// Reads what is in a file, and checks each value as clap would if it had been typed.
    pub(super) fn parse(text: &str, all: &Command) -> Result<File, Vec<Problem>> {
        let document = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![Problem {
                line: line_of(text, at),
                text: error.message().replace('\n', ", "),
            }]
        })?;
        let mut reader = Reader {
            text,
            commands: flags::commands(all),
            file: File::default(),
            problems: Vec::new(),
        };
        reader.root(document.get_ref(), all);
        reader.problems.sort_by_key(|problem| problem.line);
        if reader.problems.is_empty() {
            reader.file.settings.sort_by_key(|setting| setting.line);
            Ok(reader.file)
        } else {
            Err(reader.problems)
        }
    }

    /// What the file says of a flag of this command: in its own section, or else in the one for all.
    pub(super) fn setting(&self, path: &[&str], flag: &Arg) -> Option<&Setting> {
        let named = |section: &[&str]| {
            self.settings
                .iter()
                .find(|setting| setting.section == section && setting.key == flags::name(flag))
        };
        named(path).or_else(|| named(&[SHARED]).filter(|_| flags::is_shared(flag)))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'a> {
    text: &'a str,
    commands: Vec<(Vec<&'a str>, &'a Command)>,
    file: File,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn wrong(&mut self, at: &Key<'_>, text: String) {
        let line = line_of(self.text, at.span().start);
        self.problems.push(Problem { line, text });
    }

    fn root(&mut self, table: &DeTable<'_>, all: &Command) {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(below) if key.get_ref() == SHARED => self.shared(below),
                DeValue::Table(_) => self.section(&[], all, key, value),
                _ => self.wrong(
                    key,
                    format!(
                        "`{}` stands before the first section; write it below [{SHARED}], or below the \
                         command it is for",
                        key.get_ref()
                    ),
                ),
            }
        }
    }

    fn shared(&mut self, table: &DeTable<'_>) {
        let shared = flags::shared(&self.commands);
        for (key, value) in table {
            let found = shared
                .iter()
                .find(|(_, flag)| flags::name(flag) == key.get_ref());
            match found {
                Some((path, flag)) => {
                    let path = path.clone();
                    self.flag(&[SHARED], &path, flag, key, value);
                }
                None => {
                    let names = shared.iter().map(|(_, flag)| flags::name(flag));
                    let names: Vec<&str> = names.collect();
                    self.unknown(&format!("[{SHARED}]"), key, &names);
                }
            }
        }
    }

    /// A table below a command, or below all of them.
    fn section(&mut self, path: &[&str], above: &Command, key: &Key<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let mut path = path.to_vec();
        path.push(name);
        let known = self.commands.iter().find(|(known, _)| *known == path);
        let (Some((_, command)), DeValue::Table(table)) = (known, value.get_ref()) else {
            let names = above.get_subcommands().map(Command::get_name);
            let mut names: Vec<&str> = names.filter(|name| !super::APART.contains(name)).collect();
            if path.len() == 1 {
                names.push(SHARED);
            }
            let meant = nearest(name, &names).map(|name| {
                let whole = [&path[..path.len() - 1], &[name]].concat();
                format!("; [{}] is meant, perhaps", whole.join("."))
            });
            let text = format!(
                "there is no section [{}]: sections are named as commands{}",
                path.join("."),
                meant.unwrap_or_default()
            );
            return self.wrong(key, text);
        };
        let command = *command;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let flag = flags::of(command).find(|flag| flags::name(flag) == name);
            match (flag, value.get_ref()) {
                (Some(flag), _) => self.flag(&path, &path, flag, key, value),
                (None, DeValue::Table(_)) => self.section(&path, command, key, value),
                (None, _) => {
                    let names: Vec<&str> = flags::of(command).map(flags::name).collect();
                    self.unknown(&format!("[{}]", path.join(".")), key, &names);
                }
            }
        }
    }

    fn unknown(&mut self, section: &str, key: &Key<'_>, names: &[&str]) {
        let name = key.get_ref().as_ref();
        if SECRETS.iter().any(|secret| name.contains(secret)) {
            let text = format!(
                "`{name}`: a secret does not belong into this file. A token goes into a file that only its \
                 owner can read, named by `token-file`, or into the variable HATEBEAM_TOKEN; credentials for \
                 S3 go where AWS's own tools look for them"
            );
            return self.wrong(key, text);
        }
        let meant = match nearest(name, names) {
            Some(meant) => format!("; `{meant}` is meant, perhaps"),
            None if names.is_empty() => "; it holds sections only".to_owned(),
            None => format!("; there are: {}", names.join(", ")),
        };
        self.wrong(key, format!("there is no key `{name}` in {section}{meant}"));
    }

    /// A flag, of `section` in the file and of the command `path`.
    fn flag(
        &mut self,
        section: &[&str],
        path: &[&str],
        flag: &Arg,
        key: &Key<'_>,
        value: &Value<'_>,
    ) {
        let given = given(flag, value.get_ref()).and_then(|given| {
            try_out(path, flag, &given)?;
            Ok(given)
        });
        let name = key.get_ref().as_ref();
        match given {
            Err(reason) => self.wrong(key, format!("`{name}`: {reason}")),
            Ok(given) => self.file.settings.push(Setting {
                section: section.iter().map(ToString::to_string).collect(),
                key: name.to_owned(),
                given,
                line: line_of(self.text, key.span().start),
            }),
        }
    }
}

fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let word = word.replace('_', "-");
    let alike = names
        .iter()
        .map(|name| (strsim::jaro(&word, name), *name))
        .filter(|(alike, _)| *alike > ALIKE);
    alike
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// A value as it would be typed.
fn given(flag: &Arg, value: &DeValue<'_>) -> Result<Given, String> {
    match value {
        DeValue::Boolean(on) if is_switch(flag) => Ok(Given::Switch(*on)),
        _ if is_switch(flag) => Err(format!("it is true or false, and not {}", kind(value))),
        DeValue::Array(list) if is_list(flag) => {
            let values = list.iter().map(|value| scalar(value.get_ref()));
            values.collect::<Result<_, _>>().map(Given::Values)
        }
        value => scalar(value).map(|value| Given::Values(vec![value])),
    }
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => Err(format!("it takes a value, and not {}", kind(other))),
    }
}

fn integer(number: &DeInteger<'_>) -> Result<String, String> {
    i64::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string())
        .map_err(|_| format!("{number} is beyond all numbers"))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// Has clap judge a value as if it had been typed.
fn try_out(path: &[&str], flag: &Arg, given: &Given) -> Result<(), String> {
    let Given::Values(values) = given else {
        return Ok(());
    };
    let typed = format!("--{}", flags::name(flag));
    let mut words = vec!["hatebeam".to_owned()];
    words.extend(path.iter().map(ToString::to_string));
    words.extend(values.iter().map(|value| format!("{typed}={value}")));
    let Err(error) = Args::command().try_get_matches_from(words) else {
        return Ok(());
    };
    let of = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(of)) => of.split(' ').next().unwrap_or_default(),
        _ => "",
    };
    // Anything else comes of what is not typed here.
    let cut_verdict = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    if !cut_verdict || of != typed {
        return Ok(());
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let said = lines.collect::<Vec<_>>().join(" ");
    Err(said.trim_start_matches("error: ").to_owned())
}
