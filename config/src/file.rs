//! Reading a configuration file and checking it against the commands and their flags.

use crate::EXCLUDED;
use crate::error::{ConfigError, Problem};
use crate::flags::{self, commands, flags_of, is_list, is_shared, is_switch};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Name of the section for flags of all commands.
pub const SHARED: &str = "shared";

/// Maximum size of a file in bytes. A file with every flag has only a few hundred lines.
const MAX_BYTES: u64 = 1 << 20;

/// Similarity, from 0 to 1, above which an error for an unknown name suggests a known name.
const MIN_SIMILARITY: f64 = 0.7;

/// Words that mark an unknown key as the name of a secret.
const SECRETS: [&str; 4] = ["token", "secret", "password", "access-key"];

/// The value of a flag in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Switch(bool),
    /// One value, or several values of a flag that can be repeated.
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

/// An entry in a file: a flag and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path of the command, or [`SHARED`].
    pub(crate) section: Vec<String>,
    pub(crate) key: String,
    pub(crate) given: Given,
    pub(crate) line: usize,
}

/// A valid configuration file.
#[derive(Debug, Default)]
pub struct File {
    pub(crate) entries: Vec<Entry>,
}

impl File {
    /// Reads a file and checks it against the command line `all`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or contains an error.
    pub fn read(path: &Path, all: &Command) -> Result<File, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        let mut limited = file.take(MAX_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ConfigError::TooLong {
                path: path.to_owned(),
                limit: MAX_BYTES,
            });
        }
        let text = String::from_utf8(bytes).map_err(|_| ConfigError::NotText(path.to_owned()))?;
        File::parse(&text, all).map_err(|problems| ConfigError::Invalid {
            path: path.to_owned(),
            problems,
        })
    }

    /// Parses the text of a file. Checks each value by the rules that clap uses for the command line `all`.
    ///
    /// # Errors
    /// Returns all errors in the file, sorted by line.
    pub fn parse(text: &str, all: &Command) -> Result<File, Vec<Problem>> {
        let document = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![Problem {
                line: line_of(text, at),
                text: error.message().replace('\n', ", "),
            }]
        })?;
        let mut reader = Reader {
            text,
            all,
            commands: commands(all),
            file: File::default(),
            problems: Vec::new(),
        };
        reader.root(document.get_ref());
        reader.problems.sort_by_key(|problem| problem.line);
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        reader.file.entries.sort_by_key(|entry| entry.line);
        Ok(reader.file)
    }

    /// Returns the entry for a flag of the command `path` from the command's section, or else from [`SHARED`].
    pub(crate) fn entry(&self, path: &[&str], flag: &Arg) -> Option<&Entry> {
        let in_section = |section: &[&str]| {
            self.entries
                .iter()
                .find(|entry| entry.section == section && entry.key == flags::name(flag))
        };
        in_section(path).or_else(|| in_section(&[SHARED]).filter(|_| is_shared(flag)))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// State of the parser.
struct Reader<'a> {
    text: &'a str,
    all: &'a Command,
    commands: Vec<(Vec<&'a str>, &'a Command)>,
    file: File,
    problems: Vec<Problem>,
}

/// A section, and the command whose flags it can contain.
struct Section<'p> {
    /// The path of the section in the file.
    path: &'p [&'p str],
    /// The path of the command whose definition is used to check the values.
    command: &'p [&'p str],
}

impl Reader<'_> {
    fn report(&mut self, at: &Key<'_>, text: String) {
        let line = line_of(self.text, at.span().start);
        self.problems.push(Problem { line, text });
    }

    fn root(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(table) if key.get_ref() == SHARED => self.shared(table),
                DeValue::Table(_) => self.section(&[], self.all, key, value),
                _ => self.report(
                    key,
                    format!(
                        "`{}` is outside all sections: move it to [{SHARED}] or to the section of its command",
                        key.get_ref()
                    ),
                ),
            }
        }
    }

    fn shared(&mut self, table: &DeTable<'_>) {
        let shared = flags::shared(&self.commands);
        for (key, value) in table {
            let name = key.get_ref();
            let found = shared.iter().find(|(_, flag)| flags::name(flag) == name);
            if let Some((command, flag)) = found {
                let path = &[SHARED][..];
                self.flag(&Section { path, command }, flag, key, value);
            } else {
                let names = shared.iter().map(|(_, flag)| flags::name(flag));
                let names: Vec<&str> = names.collect();
                self.unknown_key(&[SHARED], key, &names);
            }
        }
    }

    /// Reads the section of a subcommand of `above`.
    fn section(&mut self, path: &[&str], above: &Command, key: &Key<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let path = &[path, &[name]].concat()[..];
        let known = self.commands.iter().find(|(known, _)| *known == path);
        let (Some((_, command)), DeValue::Table(table)) = (known, value.get_ref()) else {
            return self.unknown_section(path, above, key);
        };
        let command = *command;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let flag = flags_of(command).find(|flag| flags::name(flag) == name);
            match (flag, value.get_ref()) {
                (Some(flag), _) => {
                    let command = path;
                    self.flag(&Section { path, command }, flag, key, value);
                }
                (None, DeValue::Table(_)) => self.section(path, command, key, value),
                (None, _) => {
                    let names: Vec<&str> = flags_of(command).map(flags::name).collect();
                    self.unknown_key(path, key, &names);
                }
            }
        }
    }

    fn unknown_section(&mut self, path: &[&str], above: &Command, key: &Key<'_>) {
        let names = above.get_subcommands().map(Command::get_name);
        let mut names: Vec<&str> = names.filter(|name| !EXCLUDED.contains(name)).collect();
        if path.len() == 1 {
            names.push(SHARED);
        }
        let similar = most_similar(key.get_ref(), &names).map(|name| {
            let whole = [&path[..path.len() - 1], &[name]].concat();
            format!("; did you mean [{}]?", whole.join("."))
        });
        let text = format!(
            "unknown section [{}]: a section must have the name of a command{}",
            path.join("."),
            similar.unwrap_or_default()
        );
        self.report(key, text);
    }

    fn unknown_key(&mut self, section: &[&str], key: &Key<'_>, names: &[&str]) {
        let name = key.get_ref().as_ref();
        if SECRETS.iter().any(|secret| name.contains(secret)) {
            let text = format!(
                "`{name}`: secrets do not belong in this file. Put a token into a file that only its owner \
                 can read and name that file with `token-file`, or set the variable HATEBEAM_TOKEN; store S3 \
                 credentials where the AWS tools look for them"
            );
            return self.report(key, text);
        }
        let hint = match most_similar(name, names) {
            Some(similar) => format!("; did you mean `{similar}`?"),
            None if names.is_empty() => "; this section can only contain other sections".to_owned(),
            None => format!("; known keys: {}", names.join(", ")),
        };
        let section = section.join(".");
        self.report(key, format!("unknown key `{name}` in [{section}]{hint}"));
    }

    fn flag(&mut self, section: &Section<'_>, flag: &Arg, key: &Key<'_>, value: &Value<'_>) {
        let given = given(flag, value.get_ref()).and_then(|given| {
            check(self.all, section.command, flag, &given)?;
            Ok(given)
        });
        let name = key.get_ref().as_ref();
        match given {
            Err(reason) => self.report(key, format!("`{name}`: {reason}")),
            Ok(given) => self.file.entries.push(Entry {
                section: section.path.iter().map(ToString::to_string).collect(),
                key: name.to_owned(),
                given,
                line: line_of(self.text, key.span().start),
            }),
        }
    }
}

/// Returns the name that is most similar to `word`, if its similarity is above [`MIN_SIMILARITY`].
fn most_similar<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let word = word.replace('_', "-");
    let rated = names.iter().map(|name| (strsim::jaro(&word, name), *name));
    rated
        .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Converts a TOML value to the value of a flag. Returns the reason if the flag cannot have this value.
fn given(flag: &Arg, value: &DeValue<'_>) -> Result<Given, String> {
    match value {
        DeValue::Boolean(on) if is_switch(flag) => Ok(Given::Switch(*on)),
        _ if is_switch(flag) => Err(format!("expects true or false, not {}", kind(value))),
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
        other => Err(format!("expects a value, not {}", kind(other))),
    }
}

fn integer(number: &DeInteger<'_>) -> Result<String, String> {
    i64::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string())
        .map_err(|_| format!("{number} is out of range"))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// Checks the value of a flag: clap parses a command line that contains only this flag.
fn check(all: &Command, path: &[&str], flag: &Arg, given: &Given) -> Result<(), String> {
    let Given::Values(values) = given else {
        return Ok(());
    };
    let typed = format!("--{}", flags::name(flag));
    let mut words = vec![all.get_name().to_owned()];
    words.extend(path.iter().map(ToString::to_string));
    words.extend(values.iter().map(|value| format!("{typed}={value}")));
    let Err(error) = all.clone().try_get_matches_from(words) else {
        return Ok(());
    };
    let about = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(about)) => about.split(' ').next().unwrap_or_default(),
        _ => "",
    };
    // This command line lacks the other flags of the command, so errors about them are ignored.
    let is_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    if !is_value || about != typed {
        return Ok(());
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let text = lines.collect::<Vec<_>>().join(" ");
    Err(text.trim_start_matches("error: ").to_owned())
}
