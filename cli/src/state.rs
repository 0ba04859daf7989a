//! Arguments that select the state folder and a run in it.

use crate::args::folder_parser;
use anyhow::{Context, anyhow, bail};
use hatebeam_runs::{Run, RunError, StateFolder};
use hatebeam_store::StoreError;
use std::io;
use std::path::{Path, PathBuf};

/// The argument that selects the state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StateArgs {
    /// Folder for runs and replays [default: $XDG_STATE_HOME/hatebeam, or else ~/.local/state/hatebeam]
    #[arg(long, value_name = "DIR", env = "HATEBEAM_STATE", value_parser = folder_parser())]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// Returns the state folder with an absolute path.
    pub(crate) fn state(&self) -> anyhow::Result<StateFolder> {
        let root = match &self.state {
            Some(dir) if dir.as_os_str().is_empty() => {
                bail!("--state is empty: name a folder")
            }
            Some(dir) => dir.clone(),
            None => default_root()?,
        };
        StateFolder::at(&root)
            .with_context(|| format!("cannot use the state folder {}", root.display()))
    }

    /// Returns the arguments that select the run in `dir`, for a command that a message suggests: the run's name and
    /// --state if it was given, or the path of a run outside the state folder.
    pub(crate) fn selecting(&self, dir: &Path) -> String {
        let is_inside = self
            .state()
            .is_ok_and(|state| dir.parent() == Some(&state.runs()));
        match &self.state {
            _ if !is_inside => quoted(dir),
            Some(state) => format!("{} --state {}", name_of(dir), quoted(state)),
            None => name_of(dir),
        }
    }

    /// Converts an error of opening the run in `dir`. If the run is damaged, adds the remedy.
    pub(crate) fn opening_error(&self, error: RunError, dir: &Path) -> anyhow::Error {
        let remedy = match &error {
            RunError::Store(error) if is_damage(error) => Some(damage_remedy(&self.selecting(dir))),
            _ => None,
        };
        let error = anyhow::Error::from(error);
        match remedy {
            Some(remedy) => anyhow!("{error:#}: {remedy}"),
            None => error,
        }
    }
}

/// Returns whether an error of opening a run means that its files are damaged or missing.
pub(crate) fn is_damage(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged { .. } => true,
        StoreError::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
        // RocksDB has no other description of the error.
        StoreError::Db { reason, .. } => ["Corruption", "does not exist", "No such file"]
            .iter()
            .any(|part| reason.contains(part)),
        _ => false,
    }
}

/// Returns the remedy for a damaged run that the arguments `selecting` select.
pub(crate) fn damage_remedy(selecting: &str) -> String {
    format!("restore the file from a backup, or remove the run with `hatebeam runs rm {selecting}`")
}

/// Returns a path as an argument of a command in a shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:+".contains(letter);
    if path.chars().all(is_plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

fn default_root() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = variable("XDG_STATE_HOME") {
        return Ok(PathBuf::from(dir).join("hatebeam"));
    }
    let home =
        variable("HOME").context("HOME is not set: name a folder for the runs with --state")?;
    Ok(PathBuf::from(home).join(".local/state/hatebeam"))
}

/// A run on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct LocalRunArgs {
    /// Name of the run, the beginning of the name, or the path of the run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

impl LocalRunArgs {
    pub(crate) fn dir(&self) -> anyhow::Result<PathBuf> {
        Ok(self.state.state()?.find(&self.run)?)
    }

    /// Converts an error of opening the run. Adds the folder if the error does not name it, and the remedy if the run is damaged.
    pub(crate) fn opening_error(&self, error: RunError, dir: &Path) -> anyhow::Error {
        let names_folder = matches!(
            error,
            RunError::Store(StoreError::NoRun { .. } | StoreError::InUse { .. })
        );
        let error = self.state.opening_error(error, dir);
        match names_folder {
            true => error,
            false => error.context(dir.display().to_string()),
        }
    }

    pub(crate) fn open_read_only(&self) -> anyhow::Result<Run> {
        let dir = self.dir()?;
        let opened = Run::open_read_only(&dir);
        opened.map_err(|error| self.opening_error(error, &dir))
    }
}

/// Returns the name of the run in this folder.
pub(crate) fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selecting(state: Option<&str>, dir: &str) -> String {
        let state = state.map(PathBuf::from);
        StateArgs { state }.selecting(Path::new(dir))
    }

    #[test]
    fn suggested_commands_select_the_run_by_name_and_state_or_by_path() {
        let plain = Some("/data/beam");
        assert_eq!(
            selecting(plain, "/data/beam/runs/a"),
            "a --state /data/beam"
        );
        assert_eq!(selecting(plain, "/other/a"), "/other/a");
        assert_eq!(
            selecting(Some("/it's here"), "/it's here/runs/a"),
            r"a --state '/it'\''s here'"
        );
        let default = default_root().unwrap().join("runs/a");
        assert_eq!(selecting(None, default.to_str().unwrap()), "a");
    }
}
