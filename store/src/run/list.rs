//! The runs in a folder.

use super::DEPTHS;
use super::manifest::Manifest;
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
    /// Whether the run has a result.
    pub finished: bool,
}

/// Returns the runs in a folder, sorted by name. Skips folders that contain no readable run.
pub fn list_runs(root: &Path) -> Vec<RunSummary> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut runs: Vec<RunSummary> = entries
        .flatten()
        .filter_map(|entry| {
            let dir = entry.path();
            let (manifest, _) = Manifest::read(&dir).ok()?;
            let records = Records::read(&dir.join(DEPTHS)).ok()?;
            Some(RunSummary {
                name: entry.file_name().to_string_lossy().into_owned(),
                depths: records.list().len(),
                finished: manifest.result.is_some(),
                dir,
            })
        })
        .collect();
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    runs
}
