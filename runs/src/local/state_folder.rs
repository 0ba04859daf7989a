//! The state folder, which contains the runs of a machine.

use crate::names::{NameError, find_by_name};
use hatebeam_files::{FolderLock, LOCK};
use hatebeam_store::{DEPTHS, MANIFEST, StoreError, StoredHead, list_runs};
use std::fs;
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
        // `list_runs` skips a run that it cannot read, which must not make the name mean a run whose name only begins with
        // it. Opening the run reports the reason, such as a newer format.
        let named = self.runs().join(run);
        if path.file_name() == Some(path.as_os_str()) && named.is_dir() {
            return Ok(named);
        }
        let runs = list_runs(&self.runs())?.runs;
        match find_by_name(&runs, |summary| &summary.name, run) {
            Ok(found) => Ok(found.dir.clone()),
            Err(NameError::Unknown(_)) if path.is_dir() && !run.is_empty() => as_path(),
            Err(error @ NameError::Unknown(_)) => Err(FindError::Unknown {
                runs: self.runs(),
                error,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Locks the folder of a run that is to be removed. No other process can write to the run until the returned value is
    /// dropped. The files of the run may be damaged or missing.
    ///
    /// # Errors
    /// Returns [`StoreError::NoRun`] if the folder is not that of a run, [`StoreError::InUse`] if another process has
    /// the run open for writing, or another error if the lock cannot be taken.
    pub fn lock_for_removal(&self, dir: &Path) -> Result<FolderLock, StoreError> {
        if !self.is_run(dir) {
            let dir = dir.to_owned();
            return Err(StoreError::NoRun { dir });
        }
        Ok(FolderLock::take(dir)?)
    }

    /// Returns whether a folder is that of a run, which may be damaged. Requires more files of a folder elsewhere, because
    /// other programs also have files named `lock`. An interrupted removal may have left an empty folder.
    fn is_run(&self, dir: &Path) -> bool {
        let is_inside = dir.file_name().is_some() && dir.parent() == Some(&self.runs());
        let has_lock = dir.join(LOCK).is_file();
        let has_files = || {
            [MANIFEST, DEPTHS]
                .iter()
                .all(|name| dir.join(name).is_file())
        };
        let is_empty = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
        StoredHead::read(dir).is_ok()
            || (is_inside && (has_lock || is_empty()))
            || (has_lock && has_files())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Geometry;
    use hatebeam_store::RunStore;
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

    #[test]
    fn damaged_runs_can_be_locked_but_not_open_runs_or_other_folders() {
        let root = tempfile::tempdir().unwrap();
        let state = StateFolder::at(root.path()).unwrap();
        let run = state.runs().join("a");
        let elsewhere = root.path().join("b");
        for dir in [&run, &elsewhere] {
            let store = RunStore::create(dir, Geometry::STANDARD, &().into()).unwrap();
            let error = state.lock_for_removal(dir).unwrap_err();
            assert!(matches!(error, StoreError::InUse { .. }), "{error}");
            drop(store);
            let lock = state.lock_for_removal(dir).unwrap();
            let error = RunStore::open(dir).unwrap_err();
            assert!(matches!(error, StoreError::InUse { .. }), "{error}");
            drop(lock);
            fs::write(dir.join(MANIFEST), "").unwrap();
            state.lock_for_removal(dir).unwrap();
            fs::remove_file(dir.join(MANIFEST)).unwrap();
        }
        state.lock_for_removal(&run).unwrap();
        for dir in [
            &elsewhere,
            &state.runs(),
            &state.runs().join(".."),
            root.path(),
        ] {
            fs::write(root.path().join(LOCK), "").unwrap();
            let error = state.lock_for_removal(dir).unwrap_err();
            assert!(matches!(error, StoreError::NoRun { .. }), "{error}");
        }
    }

    #[test]
    fn whole_name_of_unreadable_run_takes_precedence() {
        let root = tempfile::tempdir().unwrap();
        let state = StateFolder::at(root.path()).unwrap();
        RunStore::create(&state.runs().join("ab"), Geometry::STANDARD, &().into()).unwrap();
        assert_eq!(state.find("a").unwrap(), state.runs().join("ab"));
        let unreadable = state.runs().join("a");
        fs::create_dir(&unreadable).unwrap();
        fs::write(unreadable.join(MANIFEST), "").unwrap();
        assert_eq!(state.find("a").unwrap(), unreadable);
    }
}
