//! The commands and flags that a configuration file can contain.

use crate::EXCLUDED;
use clap::{Arg, ArgAction, Command};

/// Returns the commands that can have a section, each with its path. A command precedes its subcommands.
pub fn commands(all: &Command) -> Vec<(Vec<&str>, &Command)> {
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), all)];
    while let Some((path, command)) = pending.pop() {
        // The order is reversed, because `pop` returns the last pending command.
        let subcommands: Vec<_> = command.get_subcommands().collect();
        for subcommand in subcommands.into_iter().rev() {
            let mut path: Vec<&str> = path.clone();
            path.push(subcommand.get_name());
            if !EXCLUDED.contains(&path[0]) {
                pending.push((path, subcommand));
            }
        }
        if !path.is_empty() {
            found.push((path, command));
        }
    }
    found
}

/// Returns the flags of a command that a file can contain: all except help, version and global flags.
pub fn flags_of(command: &Command) -> impl Iterator<Item = &Arg> {
    arguments_of(command).filter(|arg| arg.get_long().is_some())
}

/// Returns the flags that [`flags_of`] returns, and the positional arguments of the command.
pub(crate) fn arguments_of(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| {
        let is_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !is_help && !arg.is_global_set()
    };
    command.get_arguments().filter(is_own)
}

/// Returns the name of a flag without the dashes.
pub(crate) fn name(flag: &Arg) -> &str {
    flag.get_long().unwrap_or_default()
}

/// Returns whether the section `[shared]` can contain a flag: the flag must have an environment variable.
pub fn is_shared(flag: &Arg) -> bool {
    flag.get_env().is_some()
}

/// Returns the flags that `[shared]` can contain, each with the path of the first command that has the flag.
pub(crate) fn shared<'a>(commands: &[(Vec<&'a str>, &'a Command)]) -> Vec<(Vec<&'a str>, &'a Arg)> {
    let mut found: Vec<(Vec<&str>, &Arg)> = Vec::new();
    for (path, command) in commands {
        for flag in flags_of(command).filter(|flag| is_shared(flag)) {
            if found.iter().all(|(_, other)| name(other) != name(flag)) {
                found.push((path.clone(), flag));
            }
        }
    }
    found
}

/// Returns whether a flag takes no value.
pub fn is_switch(flag: &Arg) -> bool {
    !flag.get_action().takes_values()
}

/// Returns whether a flag can be repeated.
pub(crate) fn is_list(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::Append)
}
