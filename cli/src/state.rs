//! Arguments that select the state folder and a run in it.

use anyhow::{Context, bail};
use hatebeam_runs::{Run, StateFolder};
use std::path::{Path, PathBuf};

/// The argument that selects the state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StateArgs {
    /// Folder for runs and replays [default: $XDG_STATE_HOME/hatebeam, or else ~/.local/state/hatebeam]
    #[arg(long, value_name = "DIR", env = "HATEBEAM_STATE")]
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

    pub(crate) fn open_read_only(&self) -> anyhow::Result<Run> {
        let dir = self.dir()?;
        Run::open_read_only(&dir).with_context(|| dir.display().to_string())
    }
}

/// Returns the name of the run in this folder.
pub(crate) fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
