//! Where runs are kept: a folder with `runs/`, a folder a run, and `replays/`, what removed runs had found.

use anyhow::{Context, bail};
use hatebeam_runs::{NameError, find_by_name};
use hatebeam_store::list_runs;
use std::path::{Path, PathBuf};

/// Where runs are kept.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StateArgs {
    /// The folder that runs and replays are kept in [default: ~/.local/state/hatebeam]
    #[arg(long, value_name = "DIR", env = "HATEBEAM_STATE")]
    state: Option<PathBuf>,
}

/// The folder that runs and replays are kept in.
#[derive(Debug, Clone)]
pub(crate) struct State {
    root: PathBuf,
}

impl StateArgs {
    /// The folder, which need not exist.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        let root = match &self.state {
            Some(dir) if dir.as_os_str().is_empty() => bail!("--state names no folder"),
            Some(dir) => dir.clone(),
            None => default_root()?,
        };
        // RocksDB and messages are to name files that mean the same from anywhere.
        let root = std::path::absolute(&root)
            .with_context(|| format!("the state folder {}", root.display()))?;
        Ok(State { root })
    }
}

fn default_root() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = variable("XDG_STATE_HOME") {
        return Ok(PathBuf::from(dir).join("hatebeam"));
    }
    let Some(home) = variable("HOME") else {
        bail!("there is no home folder to keep runs in: name a folder with --state");
    };
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

    /// The folder of a run: by its name or the beginning of it, or by its path.
    pub(crate) fn find(&self, run: &str) -> anyhow::Result<PathBuf> {
        let path = Path::new(run);
        if run.contains(std::path::MAIN_SEPARATOR) && path.is_dir() {
            return std::path::absolute(path).with_context(|| run.to_owned());
        }
        let runs = list_runs(&self.runs());
        match find_by_name(&runs, |summary| &summary.name, run) {
            Ok(found) => Ok(found.dir.clone()),
            Err(NameError::Unknown(_)) if path.is_dir() && !run.is_empty() => {
                std::path::absolute(path).with_context(|| run.to_owned())
            }
            Err(error @ NameError::Unknown(_)) => bail!(
                "{error} in {}; `hatebeam runs` lists them",
                self.runs().display()
            ),
            Err(error) => Err(error.into()),
        }
    }
}
