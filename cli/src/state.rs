//! The state folder of this machine. It contains `runs/`, with one folder per run, and `replays/`, with the replays of
//! removed runs.

use anyhow::{Context, bail};
use hatebeam_runs::{NameError, find_by_name};
use hatebeam_store::list_runs;
use std::path::{Path, PathBuf};

/// The argument that selects the state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StateArgs {
    /// Folder for runs and replays [default: ~/.local/state/hatebeam]
    #[arg(long, value_name = "DIR", env = "HATEBEAM_STATE")]
    state: Option<PathBuf>,
}

/// The state folder, which may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct State {
    root: PathBuf,
}

impl StateArgs {
    /// Returns the state folder with an absolute path.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        let root = match &self.state {
            Some(dir) if dir.as_os_str().is_empty() => {
                bail!("--state is empty: name a folder")
            }
            Some(dir) => dir.clone(),
            None => default_root()?,
        };
        // An absolute path makes RocksDB's file names and the messages independent of the current folder.
        let root = std::path::absolute(&root)
            .with_context(|| format!("cannot use the state folder {}", root.display()))?;
        Ok(State { root })
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

impl State {
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    pub(crate) fn replays(&self) -> PathBuf {
        self.root.join("replays")
    }

    /// Returns the folder of a run. `run` is the run's name, the beginning of the name, or the path of the folder.
    pub(crate) fn find(&self, run: &str) -> anyhow::Result<PathBuf> {
        let path = Path::new(run);
        let as_path = || std::path::absolute(path).with_context(|| run.to_owned());
        if run.contains(std::path::MAIN_SEPARATOR) && path.is_dir() {
            return as_path();
        }
        let runs = list_runs(&self.runs()).runs;
        match find_by_name(&runs, |summary| &summary.name, run) {
            Ok(found) => Ok(found.dir.clone()),
            // `list_runs` skips a run that it cannot read. Opening the run reports the reason, such as a newer format.
            Err(NameError::Unknown(_)) if !run.is_empty() && self.runs().join(run).is_dir() => {
                Ok(self.runs().join(run))
            }
            Err(NameError::Unknown(_)) if path.is_dir() && !run.is_empty() => as_path(),
            Err(error @ NameError::Unknown(_)) => bail!(
                "{error} in {}: list the runs with `hatebeam runs`",
                self.runs().display()
            ),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the name of the run in this folder.
pub(crate) fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
