//! Lists the runs in a folder.

use super::DEPTHS;
use super::manifest::Manifest;
use crate::error::StoreError;
use crate::records::Records;
use std::fs;
use std::path::{Path, PathBuf};

/// An entry of [`list_runs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's folder.
    pub dir: PathBuf,
    /// The folder's name.
    pub name: String,
    /// Number of committed depths.
    pub depths: usize,
    /// Whether the run's manifest contains a result, which is written when the search ends.
    pub finished: bool,
}

/// Returns the runs in a folder, sorted by name. Skips runs that cannot be read and logs a warning
/// for each.
pub fn list_runs(root: &Path) -> Vec<RunSummary> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut runs: Vec<RunSummary> = entries
        .flatten()
        .filter_map(|entry| match summary(&entry.path()) {
            Ok(run) => Some(run),
            Err(StoreError::NoRun { .. }) => None,
            Err(error) => {
                tracing::warn!(run = %entry.path().display(), %error, "skipped unreadable run");
                None
            }
        })
        .collect();
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    runs
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
