//! The example configuration file, generated from the flags and their help.

use crate::file::SHARED;
use crate::flags::{self, commands, flags_of, is_shared, is_switch};
use clap::{Arg, Command};
use std::fmt::Write as _;
use toml::Value;

/// Maximum line length in columns.
const COLUMNS: usize = 100;

const HEAD: &str = "\
Settings of hatebeam. The command line takes precedence over the environment, and the environment over this file. To set \
a key, remove the # before it. Each value below is the default, or a placeholder in capitals. A section is named after a \
command, and its keys are the flags of that command. `hatebeam config check` checks this file and prints the effective \
settings.";

const SHARED_HEAD: &str = "Flags for every command that reads the flag's environment variable. The section of a command takes precedence.";

/// Returns the text of a configuration file with a commented line for every flag of the program. `all` is the program's
/// command line.
pub fn example(all: &Command) -> String {
    let commands = commands(all);
    let mut text = String::new();
    comment(&mut text, HEAD);
    text.push('\n');
    comment(&mut text, SHARED_HEAD);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{SHARED}]");
    for (_, flag) in flags::shared(&commands) {
        key(&mut text, flag);
    }
    for (path, command) in &commands {
        let own = || flags_of(command).filter(|flag| !is_shared(flag));
        if own().next().is_none() {
            continue;
        }
        text.push('\n');
        let about = command.get_about().map(ToString::to_string);
        comment(&mut text, &about.unwrap_or_default());
        let _ = writeln!(text, "[{}]", path.join("."));
        own().for_each(|flag| key(&mut text, flag));
    }
    text
}

fn key(text: &mut String, flag: &Arg) {
    text.push('\n');
    let help = flag.get_help().map(ToString::to_string);
    comment(text, &help.unwrap_or_default());
    let values = flag.get_possible_values();
    if !values.is_empty() && !is_switch(flag) {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        comment(text, &format!("One of: {}", names.join(", ")));
    }
    let _ = writeln!(text, "#{} = {}", flags::name(flag), value(flag));
}

/// Returns the default of a flag, or a placeholder if it has none, in TOML.
fn value(flag: &Arg) -> String {
    if is_switch(flag) {
        return "false".to_owned();
    }
    let default = flag.get_default_values().first();
    let default = default.map(|value| value.to_string_lossy().into_owned());
    let value = match default {
        Some(number) if number.parse::<i64>().is_ok() => return number,
        Some(text) => Value::String(text),
        None => {
            let names = flag.get_value_names().unwrap_or_default().iter();
            Value::String(names.map(ToString::to_string).collect::<Vec<_>>().join(" "))
        }
    };
    if flags::is_list(flag) {
        format!("[{value}]")
    } else {
        value.to_string()
    }
}

/// Appends text as comment lines, wrapped at [`COLUMNS`] columns.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
