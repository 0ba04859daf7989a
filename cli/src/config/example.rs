//! A file to begin with, made of the flags and what their help says.

use super::file::SHARED;
use super::flags;
use clap::{Arg, Command};
use std::fmt::Write as _;
use toml::Value;

/// Columns of a line at most.
const COLUMNS: usize = 100;

const HEAD: &str = "\
EventKind hatebeam is told besides the command line and the environment, which both win over it. Take away the # \
before a key to have it in force; what stands there is the default, or in capitals what to put there. Each key \
is a flag of the command whose section it is in. `hatebeam config check` tells what is wrong, and what comes of it.";

const SHARED_HEAD: &str = "For all commands that know the flag; a command's own section wins.";

/// The whole file.
pub(super) fn text(all: &Command) -> String {
    let commands = flags::commands(all);
    let mut text = String::new();
    remark(&mut text, HEAD);
    text.push('\n');
    remark(&mut text, SHARED_HEAD);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{SHARED}]");
    for (_, flag) in flags::shared(&commands) {
        key(&mut text, flag);
    }
    for (path, command) in &commands {
        let own = || flags::of(command).filter(|flag| !flags::is_shared(flag));
        if own().next().is_none() {
            continue;
        }
        text.push('\n');
        let about = command.get_about().map(ToString::to_string);
        remark(&mut text, &about.unwrap_or_default());
        let _ = writeln!(text, "[{}]", path.join("."));
        own().for_each(|flag| key(&mut text, flag));
    }
    text
}

fn key(text: &mut String, flag: &Arg) {
    text.push('\n');
    let help = flag.get_help().map(ToString::to_string);
    remark(text, &help.unwrap_or_default());
    let values = flag.get_possible_values();
    if !values.is_empty() && !flags::is_switch(flag) {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        remark(text, &format!("One of: {}", names.join(", ")));
    }
    let _ = writeln!(text, "#{} = {}", flags::name(flag), value(flag));
}

/// The default, or what to put there.
fn value(flag: &Arg) -> String {
    if flags::is_switch(flag) {
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
    match flags::is_list(flag) {
        true => format!("[{value}]"),
        false => value.to_string(),
    }
}

/// Lines that begin with a #, none longer than it should be.
fn remark(text: &mut String, words: &str) {
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
