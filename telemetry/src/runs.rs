//! The list of runs as text.

use hatebeam_report::bytes;
use hatebeam_runs::{end_in_words, result_of};
use hatebeam_store::RunStore;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// An entry in the list of runs.
#[derive(Debug, Serialize)]
pub struct RunLine {
    /// Name of the run.
    pub run: String,
    /// Reason why the search ended, or the run's state if it has not ended.
    pub end: &'static str,
    /// Last committed depth, or `None` if there is none or the run cannot be opened.
    pub depth: Option<u32>,
    /// Maximum number of rows cleared by a game of the run.
    pub best_lines: u16,
    /// Width of the beam, or `None` if the run cannot be opened.
    pub width: Option<u64>,
    /// Size of the run on disk, in bytes.
    pub stored_bytes: u64,
    /// Folder of the run.
    pub folder: String,
}

impl RunLine {
    /// Returns the list entry for a run. If the run cannot be opened, its `end` is `unreadable`.
    pub fn of(dir: &Path, name: &str) -> RunLine {
        let store = RunStore::open_read_only(dir).ok();
        let depths = store.as_ref().map_or(&[][..], RunStore::depths);
        let lines = depths.iter().map(|record| record.best_lines);
        RunLine {
            run: name.to_owned(),
            end: store.as_ref().map_or("unreadable", end_of),
            depth: depths.last().map(|record| record.depth),
            best_lines: lines.max().unwrap_or(0),
            width: store
                .as_ref()
                .and_then(|store| store.spec()["search"]["width"].as_u64()),
            stored_bytes: store.as_ref().map_or(0, RunStore::stored_bytes),
            folder: dir.display().to_string(),
        }
    }
}

/// Returns the name of the reason why a run's search ended, or the run's state if it has not ended.
pub fn end_of(store: &RunStore) -> &'static str {
    match result_of(store) {
        Some(result) => result.end.name(),
        None => end_in_words(None),
    }
}

/// Returns the list of runs as a table.
pub fn run_table(lines: &[RunLine]) -> String {
    let longest = lines.iter().map(|line| line.run.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:<longest$}  {:>6}  {:>6}  {:>9}  end\n",
        "run", "lines", "depth", "stored"
    );
    for line in lines {
        let depth = line.depth.map_or("-".to_owned(), |depth| depth.to_string());
        let stored = bytes(line.stored_bytes);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<longest$}  {:>6}  {depth:>6}  {stored:>9}  {}",
            line.run, line.best_lines, line.end
        );
    }
    text
}
