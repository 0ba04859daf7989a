//! The effective value of a flag, and its origin.

use crate::file::{Entry, File, Given, SHARED};
use crate::flags::{self, commands, flags_of, is_switch};
use crate::other_variable;
use clap::{Arg, Command};
use serde::Serialize;
use std::fmt::{self, Write as _};

/// The value that a flag has unless the command line sets it.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// The name of the command, or [`SHARED`].
    pub section: String,
    /// The name of the flag, without the dashes.
    pub key: String,
    /// The value; `None` if the flag is unset and has no default.
    pub value: Option<String>,
    /// The origin of the value.
    pub from: Origin,
    /// The line of the file that sets the flag, even if the environment takes precedence.
    pub line: Option<usize>,
    /// The environment variable that sets the flag.
    pub variable: Option<String>,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
    /// The default of the flag.
    Default,
    /// The flag has no value.
    Unset,
}

impl Setting {
    fn of(section: &[&str], flag: &Arg, entry: Option<&Entry>) -> Setting {
        let default = default_of(flag);
        let mut setting = Setting {
            section: section.join(" "),
            key: flags::name(flag).to_owned(),
            from: match default {
                Some(_) => Origin::Default,
                None => Origin::Unset,
            },
            value: default,
            line: entry.map(|entry| entry.line),
            variable: None,
        };
        if let Some((variable, value)) = in_environment(flag) {
            setting.from = Origin::Environment;
            (setting.value, setting.variable) = (Some(value), Some(variable));
        } else if let Some(entry) = entry {
            setting.from = Origin::File;
            setting.value = Some(entry.given.to_string());
        }
        setting
    }

    /// Returns the settings that the file sets and the shared settings that the environment sets, section by section.
    pub fn in_force(file: &File, all: &Command) -> Vec<Setting> {
        let commands = commands(all);
        let shared = flags::shared(&commands).into_iter();
        let mut settings: Vec<Setting> = shared
            .map(|(_, flag)| Setting::of(&[SHARED], flag, file.entry(&[SHARED], flag)))
            .filter(Setting::is_set)
            .collect();
        for (path, command) in &commands {
            let own = flags_of(command).filter_map(|flag| {
                let entry = file.entry(path, flag)?;
                (entry.section != [SHARED]).then(|| Setting::of(path, flag, Some(entry)))
            });
            settings.extend(own);
        }
        settings
    }

    /// Returns the setting of every flag of a command.
    pub fn of_command(file: &File, path: &[&str], command: &Command) -> Vec<Setting> {
        let of = |flag| Setting::of(path, flag, file.entry(path, flag));
        flags_of(command).map(of).collect()
    }

    /// Returns whether the file or the environment sets the value.
    pub fn is_set(&self) -> bool {
        matches!(self.from, Origin::File | Origin::Environment)
    }
}

/// Formats the origin of the value, such as `line 3`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, &self.variable, self.line) {
            (_, Some(variable), Some(line)) => {
                write!(f, "{variable}, which takes precedence over line {line}")
            }
            (_, Some(variable), None) => f.write_str(variable),
            (Origin::File, None, Some(line)) => write!(f, "line {line}"),
            (Origin::Unset, ..) => f.write_str("unset"),
            _ => f.write_str("default"),
        }
    }
}

/// Returns the environment variable that sets a flag, and the value to show for it.
fn in_environment(flag: &Arg) -> Option<(String, String)> {
    if let Some(variable) = other_variable(flag) {
        // The value is a secret and must not be printed.
        return Some((variable.to_owned(), "(not shown)".to_owned()));
    }
    let variable = flag.get_env()?;
    let value = std::env::var_os(variable)?;
    let text = |os: &std::ffi::OsStr| os.to_string_lossy().into_owned();
    Some((text(variable), text(&value)))
}

fn default_of(flag: &Arg) -> Option<String> {
    if is_switch(flag) {
        return Some(Given::Switch(false).to_string());
    }
    let values = flag.get_default_values().iter();
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// Formats settings as a table, grouped by section.
pub fn table(settings: &[Setting]) -> String {
    let mut text = String::new();
    let length = |text: &str| text.chars().count();
    let keys = settings.iter().map(|setting| length(&setting.key));
    let key = keys.max().unwrap_or(0).min(40);
    let values = settings.iter().filter_map(|setting| setting.value.as_ref());
    let value = values.map(|value| length(value)).max().unwrap_or(0).min(40);
    let mut section = None;
    for setting in settings {
        if section != Some(&setting.section) {
            section = Some(&setting.section);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "[{}]", setting.section.replace(' ', "."));
        }
        let _ = writeln!(
            text,
            "{:<key$}  {:<value$}  {setting}",
            setting.key,
            setting.value.as_deref().unwrap_or("")
        );
    }
    text
}
