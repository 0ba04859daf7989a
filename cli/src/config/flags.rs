//! Flags as clap has them: which can be in a file, and what they are called.

use super::APART;
use clap::{Arg, ArgAction, Command};

/// The commands that can have a section, with what they are called from above, themselves before those
/// below them.
pub(super) fn commands(all: &Command) -> Vec<(Vec<&str>, &Command)> {
    let mut found = Vec::new();
    let mut left = vec![(Vec::new(), all)];
    while let Some((path, command)) = left.pop() {
        // The last one is looked at first.
        for below in command.get_subcommands().collect::<Vec<_>>().iter().rev() {
            let mut path: Vec<&str> = path.clone();
            path.push(below.get_name());
            if !APART.contains(&path[0]) {
                left.push((path, *below));
            }
        }
        if !path.is_empty() {
            found.push((path, command));
        }
    }
    found
}

/// The flags of a command that can be in a file: all but those that every command has.
pub(super) fn of(command: &Command) -> impl Iterator<Item = &Arg> {
    of_all_kinds(command).filter(|arg| arg.get_long().is_some())
}

/// The same, and arguments that are no flags.
pub(super) fn of_all_kinds(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| {
        let is_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !is_help && !arg.is_global_set()
    };
    command.get_arguments().filter(is_own)
}

/// What a flag is called, without its dashes.
pub(super) fn name(flag: &Arg) -> &str {
    flag.get_long().unwrap_or_default()
}

/// Whether it is one that `[shared]` can hold.
pub(super) fn is_shared(flag: &Arg) -> bool {
    flag.get_env().is_some()
}

/// The flags that `[shared]` can hold, each as the first command has it that heeds it.
pub(super) fn shared<'a>(commands: &[(Vec<&'a str>, &'a Command)]) -> Vec<(Vec<&'a str>, &'a Arg)> {
    let mut found: Vec<(Vec<&str>, &Arg)> = Vec::new();
    for (path, command) in commands {
        for flag in of(command).filter(|flag| is_shared(flag)) {
            if found.iter().all(|(_, other)| name(other) != name(flag)) {
                found.push((path.clone(), flag));
            }
        }
    }
    found
}

/// Whether a flag is one that takes no value.
pub(super) fn is_switch(flag: &Arg) -> bool {
    !flag.get_action().takes_values()
}

/// Whether it can be given again and again.
pub(super) fn is_list(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::Append)
}
