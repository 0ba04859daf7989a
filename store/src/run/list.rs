//! Listing the runs in a folder.

use super::DEPTHS;
use super::manifest::Manifest;
use crate::error::StoreError;
use crate::records::Records;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A run that [`list_runs`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's folder.
    pub dir: PathBuf,
    /// The folder's name.
    pub name: String,
    /// Number of committed depths.
    pub depths: usize,
    /// Whether the run's manifest contains a [result](super::RunStore::finish).
    pub finished: bool,
}

/// A run that [`list_runs`] cannot read.
#[derive(Debug)]
pub struct UnreadableRun {
    /// The run's folder.
    pub dir: PathBuf,
    /// The reason, such as a format that only newer versions of this program support.
    pub error: StoreError,
}

/// The runs in a folder.
#[derive(Debug, Default)]
pub struct RunList {
    /// The readable runs, sorted by name.
    pub runs: Vec<RunSummary>,
    /// The unreadable runs, sorted by path.
    pub unreadable: Vec<UnreadableRun>,
}

/// Returns the runs in a folder. The list is empty if the folder does not exist.
///
/// # Errors
/// Returns [`StoreError::Io`] if the folder exists but cannot be read.
pub fn list_runs(root: &Path) -> Result<RunList, StoreError> {
    let mut list = RunList::default();
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(list),
        entries => entries.map_err(StoreError::io(root))?,
    };
    for entry in entries {
        let dir = entry.map_err(StoreError::io(root))?.path();
        match summary(&dir) {
            Ok(run) => list.runs.push(run),
            Err(StoreError::NoRun { .. }) => {}
            Err(error) => list.unreadable.push(UnreadableRun { dir, error }),
        }
    }
    list.runs.sort_by(|a, b| a.name.cmp(&b.name));
    list.unreadable.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(list)
}

fn summary(dir: &Path) -> Result<RunSummary, StoreError> {
    let (manifest, _) = Manifest::read(dir)?;
    let records = Records::read(&dir.join(DEPTHS))?;
    let name = dir.file_name().unwrap_or_default();
    Ok(RunSummary {
        dir: dir.to_path_buf(),
        name: name.to_string_lossy().into_owned(),
        depths: records.list().len(),
        finished: manifest.result.is_some(),
    })
}
