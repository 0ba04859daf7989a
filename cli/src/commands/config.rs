//! `hatebeam config`: check, show and create the configuration file.

use crate::output::{self, Failure};
use anyhow::{Context, bail};
use clap::{Command, Subcommand};
use hatebeam_config::{ConfigError, File, Location, Problem, Setting, commands, example, table};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("config"), arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the configuration file, and print the effective settings
    #[command(after_help = help!("config-check"))]
    Check(CheckArgs),
    /// Print the settings of commands and where each setting comes from
    #[command(after_help = help!("config-show"))]
    Show(ShowArgs),
    /// Print the path of the configuration file
    #[command(after_help = help!("config-path"))]
    Path,
    /// Create a configuration file with every flag, commented out
    #[command(after_help = help!("config-init"))]
    Init(InitArgs),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// File to check [default: the configuration file in use]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Command whose settings to print, such as `runs show` [default: all commands]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct InitArgs {
    /// Print the file instead of writing it
    #[arg(long)]
    stdout: bool,
}

impl ConfigArgs {
    /// Runs the command. `all` is the definition of the whole command line, and `typed` is the file named by `--config`.
    pub(crate) fn run(&self, all: &Command, typed: Option<&Path>) -> anyhow::Result<()> {
        let location = Location::of(typed);
        match &self.command {
            ConfigCommand::Check(args) => args.run(all, &location),
            ConfigCommand::Show(args) => args.run(all, &location),
            ConfigCommand::Path => print_path(&location),
            ConfigCommand::Init(args) => args.run(all, &location),
        }
    }
}

/// The output of `check --json`.
#[derive(Debug, Serialize)]
struct CheckJson<'a> {
    file: &'a Path,
    ok: bool,
    problems: &'a [Problem],
    settings: Vec<Setting>,
}

impl CheckArgs {
    fn run(&self, all: &Command, location: &Location) -> anyhow::Result<()> {
        let path = match &self.file {
            Some(file) => file.clone(),
            None => location.required()?,
        };
        let (file, problems) = match File::read(&path, all) {
            Ok(file) => (file, Vec::new()),
            Err(ConfigError::Invalid { problems, .. }) => (File::default(), problems),
            Err(error) => return Err(error.into()),
        };
        let settings = Setting::in_force(&file, all);
        if self.json {
            output::print_json(&CheckJson {
                file: &path,
                ok: problems.is_empty(),
                problems: &problems,
                settings,
            })?;
        } else if problems.is_empty() {
            output::print(format_args!(
                "{} is valid\n\n{}",
                path.display(),
                table(&settings)
            ))?;
        } else {
            let lines = problems.iter();
            let lines = lines.map(|problem| format!("{}:{problem}\n", path.display()));
            output::print(lines.collect::<String>())?;
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failure::Printed.into())
        }
    }
}

impl ShowArgs {
    fn run(&self, all: &Command, location: &Location) -> anyhow::Result<()> {
        let file = match location.existing() {
            Some(path) => File::read(&path, all)?,
            None => File::default(),
        };
        let mut commands = commands(all);
        let wanted: Vec<&str> = self.command.iter().map(String::as_str).collect();
        if !wanted.is_empty() {
            commands.retain(|(path, _)| *path == wanted);
        }
        if commands.is_empty() {
            bail!(Failure::Usage(format!(
                "'{}' is not a command with settings: `hatebeam --help` lists all commands",
                wanted.join(" ")
            )));
        }
        let mut settings = Vec::new();
        for (path, command) in &commands {
            settings.extend(Setting::of_command(&file, path, command));
        }
        if wanted.is_empty() {
            settings.retain(Setting::is_set);
        }
        if self.json {
            return output::print_json(&settings);
        }
        if settings.is_empty() {
            output::note("all settings have their defaults");
        }
        output::print(table(&settings))
    }
}

fn print_path(location: &Location) -> anyhow::Result<()> {
    let path = location.path()?;
    if !path.exists() {
        output::note("the file does not exist; `hatebeam config init` creates it");
    }
    output::print(format_args!("{}\n", path.display()))
}

impl InitArgs {
    fn run(&self, all: &Command, location: &Location) -> anyhow::Result<()> {
        let text = example(all);
        if self.stdout {
            return output::print(text);
        }
        let path = location.path()?;
        if path.exists() {
            bail!(
                "{} already exists: remove it, or print a new file with `hatebeam config init --stdout`",
                path.display()
            );
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        }
        output::write_file(&path, text.as_bytes())?;
        output::print(format_args!("{}\n", path.display()))
    }
}
