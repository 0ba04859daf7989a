//! Tests that check the help texts and the configuration file against the definition of the command line.

use clap::error::ErrorKind;
use clap::{Arg, Command};
use hatebeam_config::{File, SHARED, commands, flags_of, is_shared, is_switch};
use std::ffi::OsString;

/// Returns all commands with their full names.
fn all_commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut pending = vec![("hatebeam".to_owned(), hatebeam::command())];
    while let Some((name, command)) = pending.pop() {
        for subcommand in command.get_subcommands() {
            let name = format!("{name} {}", subcommand.get_name());
            pending.push((name, subcommand.clone()));
        }
        found.push((name, command));
    }
    found
}

/// Splits a shell command line into words.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (_, letter) => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the words of the first `hatebeam` command in a shell command line, up to a redirection.
fn arguments(line: &str) -> Vec<String> {
    let words = words(line);
    let mut parts = words.split(|word| word == "|" || word == "&&");
    let is_program = |part: &&[String]| part.first().is_some_and(|word| word == "hatebeam");
    let part = parts.find(is_program).unwrap_or_default();
    let is_argument = |word: &&String| !matches!(word.as_str(), "<" | ">" | ">>");
    part.iter().take_while(is_argument).cloned().collect()
}

#[test]
fn every_help_text_has_valid_examples() {
    for (name, command) in all_commands() {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let (_, examples) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{name} has no examples"));
        assert!(examples.contains(&name), "{name}: {examples}");
        // The text before the examples may also contain commands.
        let lines = help.lines().filter(|line| line.starts_with("  "));
        for line in lines.filter(|line| line.contains("hatebeam ")) {
            let parsed = hatebeam::command().try_get_matches_from(arguments(line));
            assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn help_paragraphs_have_no_hard_line_breaks() {
    let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
    for (name, command) in all_commands() {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            assert!(!(is_text(pair[0]) && is_text(pair[1])), "{name}: {pair:?}");
        }
    }
}

#[test]
fn indented_lines_of_help_are_not_wrapped() {
    for (name, command) in all_commands() {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        // Commands must not be broken, because users copy them.
        let indented = |line: &&str| line.starts_with(' ') && !line.contains("hatebeam ");
        for line in help.lines().filter(indented) {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// Returns a valid value of a flag as TOML, and the command-line argument that sets the flag to this value.
fn sample(all: &Command, path: &[&str], flag: &Arg) -> (String, String) {
    let name = flag.get_long().unwrap();
    if is_switch(flag) {
        return ("true".to_owned(), format!("--{name}"));
    }
    let possible = flag.get_possible_values();
    let possible = possible.iter().map(|value| value.get_name().to_owned());
    let others = [
        "4",
        "100",
        "0.5",
        "127.0.0.1:0",
        "http://127.0.0.1:1",
        "AES256",
        "all",
        "name",
        "3/5/2",
        "IJLOSTZ",
    ];
    let accepts = |value: &String| {
        let typed = format!("--{name}={value}");
        let program = std::iter::once("hatebeam");
        let words = program.chain(path.iter().copied()).chain([typed.as_str()]);
        // Ignores errors of other kinds, such as missing required flags.
        let parsed = all.clone().try_get_matches_from(words);
        !parsed.is_err_and(|error| {
            let kind = error.kind();
            matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation)
        })
    };
    let value = possible.chain(others.map(str::to_owned)).find(accepts);
    let value = value.unwrap_or_else(|| {
        panic!("{path:?} --{name}: no sample value is valid; add one to the list")
    });
    (format!("{value:?}"), format!("--{name}={value}"))
}

#[test]
fn configuration_file_accepts_every_flag_of_every_command() {
    let all = hatebeam::command();
    let mut tested = 0;
    for (path, command) in commands(&all) {
        for flag in flags_of(command) {
            let name = flag.get_long().unwrap();
            assert!(command.find_subcommand(name).is_none(), "{path:?} {name}");
            let (value, word) = sample(&all, &path, flag);
            let own = path.join(".");
            let shared = is_shared(flag).then_some(SHARED);
            for section in [Some(own.as_str()), shared].into_iter().flatten() {
                let text = format!("[{section}]\n{name} = {value}\n");
                let file = File::parse(&text, &all).unwrap();
                let program = std::iter::once("hatebeam").chain(path.iter().copied());
                let merged = file.add_to(&all, program.map(OsString::from).collect());
                assert_eq!(merged.added, [word.as_str()], "{text}");
                tested += 1;
            }
        }
    }
    assert!(tested > 100, "{tested}");
    assert!(all.find_subcommand(SHARED).is_none());
}
