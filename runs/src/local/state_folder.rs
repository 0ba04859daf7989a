//! The state folder, which contains the runs of a machine.

use crate::names::{NameError, find_by_name};
use hatebeam_store::{StoreError, list_runs};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The state folder of a machine, which need not exist. It contains the folder `runs`, with one folder per run, and the
/// folder `replays`, with the replays of removed runs.
#[derive(Clone, Debug)]
pub struct StateFolder {
    root: PathBuf,
}

/// The reason why the folder of a run cannot be found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FindError {
    /// No run has this name.
    // `error` is not a source, because the message already contains it.
    #[error("{error} in {}: list the runs with `hatebeam runs`", runs.display())]
    Unknown {
        /// The folder that was searched.
        runs: PathBuf,
        /// The error for the name.
        error: NameError,
    },
    /// The name does not identify one run.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The folder of the runs cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    /// The system cannot make the path absolute.
    #[error("{}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl StateFolder {
    /// Returns the state folder at this path. Makes the path absolute, so that RocksDB's file names and the messages do not
    /// depend on the current folder.
    ///
    /// # Errors
    /// Returns an error if the system cannot make the path absolute.
    pub fn at(root: &Path) -> io::Result<StateFolder> {
        let root = std::path::absolute(root)?;
        Ok(StateFolder { root })
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder that contains one folder per run.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Returns the folder for the replays of removed runs.
    pub fn replays(&self) -> PathBuf {
        self.root.join("replays")
    }

    /// Returns the folder of a run. `run` is the run's name, the beginning of the name, or the path of the folder.
    ///
    /// # Errors
    /// Returns a [`FindError`] if `run` does not identify exactly one run.
    pub fn find(&self, run: &str) -> Result<PathBuf, FindError> {
        let path = Path::new(run);
        let as_path = || {
            std::path::absolute(path).map_err(|source| FindError::Path {
                path: path.to_owned(),
                source,
            })
        };
        if run.contains(std::path::MAIN_SEPARATOR) && path.is_dir() {
            return as_path();
        }
        let runs = list_runs(&self.runs())?.runs;
        match find_by_name(&runs, |summary| &summary.name, run) {
            Ok(found) => Ok(found.dir.clone()),
            // `list_runs` skips a run that it cannot read. Opening the run reports the reason, such as a newer format.
            Err(NameError::Unknown(_)) if !run.is_empty() && self.runs().join(run).is_dir() => {
                Ok(self.runs().join(run))
            }
            Err(NameError::Unknown(_)) if path.is_dir() && !run.is_empty() => as_path(),
            Err(error @ NameError::Unknown(_)) => Err(FindError::Unknown {
                runs: self.runs(),
                error,
            }),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn error_for_unknown_run_contains_name_once_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let error = StateFolder::at(dir.path()).unwrap().find("x").unwrap_err();
        let runs = dir.path().join("runs");
        let expected = format!(
            "there is no run \"x\" in {}: list the runs with `hatebeam runs`",
            runs.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_none());
    }
}
