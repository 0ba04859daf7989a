//! `hatebeam config`: what is in the file, whether it can be, and a file to begin with.

use super::file::{self, File, Given, SHARED};
use super::{example, existing, flags, no_home, other_variable, place, usual_place};
use crate::args::Args;
use crate::output::{self, Failure};
use anyhow::{Context, bail};
use clap::{Arg, Command, CommandFactory, Subcommand};
use hatebeam_store::write_whole;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const CONFIG_EXAMPLES: &str = "\
The file is ~/.config/hatebeam/config.toml, or what --config or HATEBEAM_CONFIG names. It is TOML: a section
for each command, whose keys are the command's flags, and [shared] for what an environment variable can say
as well, for all commands that heed it. The command line wins over the environment, the environment over the
file, and a command's own section over [shared]. EventKind is not known is an error.

  [shared]
  store = \"s3://bucket/hatebeam\"
  coordinator = \"https://10.0.0.1:7800\"
  [worker]
  threads = 8

Examples:
  hatebeam config init
  hatebeam config check
  hatebeam config show worker";

const CHECK_EXAMPLES: &str = "\
Every value is cut_verdict as if it had been typed. The exit code is 1 if something is wrong.

With --json one object: file, ok, problems (each with line and text), settings (each with section, key, value,
from, line, variable).

Examples:
  hatebeam config check
  hatebeam config check deploy/config.toml --json";

const SHOW_EXAMPLES: &str = "\
Without a command it is all that is not as it is by default; with one it is all that the command can be told.

With --json one array of settings, each with section, key, value, from (file, environment, default, unset),
line, variable.

Examples:
  hatebeam config show
  hatebeam config show coordinator
  hatebeam config show runs show --json";

const PATH_EXAMPLES: &str = "\
Examples:
  hatebeam config path";

const INIT_EXAMPLES: &str = "\
All that the file can say is in it, each with what it means, and nothing of it in force until the # before it
is taken away. No file that is there is written over.

Examples:
  hatebeam config init
  hatebeam config init --stdout | less
  hatebeam config init --config ./config.toml";

/// What to do about the configuration file.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the file, and tell what comes of it
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Tell what commands would be told, and where it comes from
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Tell which file is read
    #[command(after_help = PATH_EXAMPLES)]
    Path,
    /// Write a file with all that it can say, commented out
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// The file [default: the one that is read]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The command
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct InitArgs {
    /// Print it rather than write it
    #[arg(long)]
    stdout: bool,
}

/// Runs `hatebeam config`, about the file that `--config` or the environment names.
pub(crate) fn config(args: &ConfigArgs, typed: Option<&Path>) -> anyhow::Result<()> {
    let named = super::named(typed);
    let named = named.as_deref();
    match &args.command {
        ConfigCommand::Check(args) => check(args, named),
        ConfigCommand::Show(args) => show(args, named),
        ConfigCommand::Path => path(named),
        ConfigCommand::Init(args) => init(args, named),
    }
}

/// What a flag comes to.
#[derive(Debug, Serialize)]
struct Row {
    section: String,
    key: String,
    value: Option<String>,
    /// `file`, `environment`, `default` or `unset`.
    from: &'static str,
    line: Option<usize>,
    variable: Option<String>,
}

impl Row {
    fn of(section: &[&str], flag: &Arg, setting: Option<&file::Setting>) -> Row {
        let mut row = Row {
            section: section.join(" "),
            key: flags::name(flag).to_owned(),
            value: default_of(flag),
            from: "default",
            line: setting.map(|setting| setting.line),
            variable: None,
        };
        if let Some((variable, value)) = said_outside(flag) {
            (row.from, row.value, row.variable) = ("environment", Some(value), Some(variable));
        } else if let Some(setting) = setting {
            (row.from, row.value) = ("file", Some(setting.given.to_string()));
        } else if row.value.is_none() {
            row.from = "unset";
        }
        row
    }

    /// Where it comes from, in words.
    fn origin(&self) -> String {
        match (self.from, &self.variable, self.line) {
            ("environment", Some(variable), Some(line)) => {
                format!("{variable}, which wins over line {line}")
            }
            ("environment", Some(variable), None) => variable.clone(),
            ("file", _, Some(line)) => format!("line {line}"),
            (from, ..) => from.to_owned(),
        }
    }
}

/// What the environment says of a flag, and in which variable.
fn said_outside(flag: &Arg) -> Option<(String, String)> {
    if let Some(variable) = other_variable(flags::name(flag)) {
        // What it holds is secret.
        return Some((variable.to_owned(), "(not shown)".to_owned()));
    }
    let variable = flag.get_env()?;
    let value = std::env::var_os(variable)?;
    let text = |os: &std::ffi::OsStr| os.to_string_lossy().into_owned();
    Some((text(variable), text(&value)))
}

fn default_of(flag: &Arg) -> Option<String> {
    if flags::is_switch(flag) {
        return Some(Given::Switch(false).to_string());
    }
    let values = flag.get_default_values().iter();
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// The rows as a table, each below the command it is for.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let width = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0).min(40);
    let key = width(|row| row.key.chars().count());
    let value = width(|row| row.value.as_ref().map_or(0, |value| value.chars().count()));
    let mut section = None;
    for row in rows {
        if section != Some(&row.section) {
            section = Some(&row.section);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "[{}]", row.section.replace(' ', "."));
        }
        let _ = writeln!(
            text,
            "{:<key$}  {:<value$}  {}",
            row.key,
            row.value.as_deref().unwrap_or(""),
            row.origin()
        );
    }
    text
}

/// What `check --json` prints.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    file: &'a Path,
    ok: bool,
    problems: Vec<ProblemJson<'a>>,
    settings: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct ProblemJson<'a> {
    line: usize,
    text: &'a str,
}

fn check(args: &CheckArgs, named: Option<&Path>) -> anyhow::Result<()> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => existing(named)?,
    };
    let all = Args::command();
    let text = file::text(&path).with_context(|| path.display().to_string())?;
    let (file, problems) = match File::parse(&text, &all) {
        Ok(file) => (file, Vec::new()),
        Err(problems) => (File::default(), problems),
    };
    let settings = in_force(&file, &all);
    if args.json {
        let verdict = Verdict {
            file: &path,
            ok: problems.is_empty(),
            problems: problems
                .iter()
                .map(|problem| ProblemJson {
                    line: problem.line,
                    text: &problem.text,
                })
                .collect(),
            settings,
        };
        output::print(&format_args!("{}\n", serde_json::to_string(&verdict)?))?;
    } else if problems.is_empty() {
        let head = format!("{} is fine\n\n", path.display());
        output::print(&(head + &table(&settings)))?;
    } else {
        let mut text = String::new();
        for problem in &problems {
            let _ = writeln!(text, "{}:{problem}", path.display());
        }
        output::print(&text)?;
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Printed.into()),
    }
}

/// All that a file and the environment say, by section.
fn in_force(file: &File, all: &Command) -> Vec<Row> {
    let commands = flags::commands(all);
    let mut rows = Vec::new();
    for (_, flag) in flags::shared(&commands) {
        let setting = file.setting(&[SHARED], flag);
        rows.push(Row::of(&[SHARED], flag, setting));
    }
    rows.retain(|row| matches!(row.from, "file" | "environment"));
    for (path, command) in &commands {
        for flag in flags::of(command) {
            let own = file.setting(path, flag);
            if let Some(own) = own.filter(|own| own.section != [SHARED]) {
                rows.push(Row::of(path, flag, Some(own)));
            }
        }
    }
    rows
}

fn show(args: &ShowArgs, named: Option<&Path>) -> anyhow::Result<()> {
    let all = Args::command();
    let file = match place(named) {
        Some(path) => File::read(&path, &all)?,
        None => File::default(),
    };
    let mut commands = flags::commands(&all);
    let wanted: Vec<&str> = args.command.iter().map(String::as_str).collect();
    if !wanted.is_empty() {
        commands.retain(|(path, _)| *path == wanted);
    }
    if commands.is_empty() {
        bail!(Failure::Usage(format!(
            "there is no command '{}' that takes settings; `hatebeam --help` lists all",
            wanted.join(" ")
        )));
    }
    let mut rows = Vec::new();
    for (path, command) in &commands {
        rows.extend(flags::of(command).map(|flag| Row::of(path, flag, file.setting(path, flag))));
    }
    if wanted.is_empty() {
        rows.retain(|row| matches!(row.from, "file" | "environment"));
    }
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&rows)?));
    }
    if rows.is_empty() {
        output::note("all is as it is by default");
    }
    output::print(&table(&rows))
}

/// The file, whether it is there or not.
fn target(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match place(named) {
        Some(path) => Ok(path),
        None if named.is_some() => existing(named),
        None => usual_place().ok_or_else(no_home),
    }
}

fn path(named: Option<&Path>) -> anyhow::Result<()> {
    let path = target(named)?;
    if !path.exists() {
        output::note("it is not there; `hatebeam config init` makes it");
    }
    output::print(&format_args!("{}\n", path.display()))
}

fn init(args: &InitArgs, named: Option<&Path>) -> anyhow::Result<()> {
    let text = example::text(&Args::command());
    if args.stdout {
        return output::print(&text);
    }
    let path = target(named)?;
    if path.exists() {
        bail!(
            "{} is there already; `hatebeam config init --stdout` prints what would be in a new one",
            path.display()
        );
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("the folder {}", folder.display()))?;
    }
    write_whole(&path, text.as_bytes())?;
    output::print(&format_args!("{}\n", path.display()))
}
