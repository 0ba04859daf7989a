//! Text and JSON for the result of a run, and for its depths (numbers of placed pieces).

use hatebeam_game::Well;
use hatebeam_report::{bytes, count, duration};
use hatebeam_runs::{EndReason, Run, SearchResult, Start, end_in_words};
use hatebeam_store::DepthRecord;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The JSON object for the result of a run.
#[derive(Debug, Serialize)]
pub struct ResultView<'a> {
    run: &'a str,
    end: EndReason,
    /// Number of rows cleared in the best game; `None` if the game could not be reconstructed from the stored wells.
    best_lines: Option<u32>,
    pieces: Option<u32>,
    depth: u32,
    digest: &'a str,
    /// The best game in Base2048.
    replay: Option<&'a str>,
    /// File with the best game in Base2048.
    pub replay_file: Option<PathBuf>,
    /// Files with the best game: the replay, its keys as letters, every well, a picture, and a report.
    files: Vec<PathBuf>,
    /// The number, counted from 1, of the first piece that HATETRIS replaces in the search's best game, because a well is
    /// repeated. The reported game then ends earlier or is another one. `None` if HATETRIS replaces no piece.
    pub parted_at: Option<usize>,
    /// Number of children, summed over all depths.
    children: u64,
    /// Search time in seconds.
    seconds: f64,
    /// Time to reconstruct the best game, in seconds.
    replay_seconds: f64,
    peak_rss_bytes: Option<u64>,
    stored_bytes: u64,
    folder: &'a Path,
}

impl<'a> ResultView<'a> {
    /// Returns the JSON object for the result of the run in `folder`.
    pub fn new(result: &'a SearchResult, folder: &'a Path) -> ResultView<'a> {
        let game = result.game.as_ref();
        let files = result.files_in(folder);
        ResultView {
            run: &result.run,
            end: result.end,
            best_lines: game.map(|game| game.lines),
            pieces: game.map(|game| game.pieces),
            depth: result.depth,
            digest: &result.digest,
            replay: game.map(|game| game.replay.as_str()),
            replay_file: files.first().cloned(),
            files,
            parted_at: game.and_then(|game| game.parted_at),
            children: result.children,
            seconds: result.seconds,
            replay_seconds: game.map_or(0.0, |game| game.seconds),
            peak_rss_bytes: result.peak_rss_bytes,
            stored_bytes: result.stored_bytes,
            folder,
        }
    }

    /// Returns a human-readable description of the result.
    pub fn text(&self, run: &Run) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<9} {value}\n"));
        let given = match run.spec().start {
            Start::Well { .. } => " from the given well",
            _ => "",
        };
        line(
            "score",
            &match (self.best_lines, self.pieces) {
                (Some(lines), Some(pieces)) => {
                    let pieces = count(u64::from(pieces), "piece");
                    format!("{lines} in {pieces}, played by the exact rules{given}")
                }
                _ => format!(
                    "{} (no replay, because too few depths are kept)",
                    run.best_lines()
                ),
            },
        );
        let end = end_in_words(Some(self.end));
        line("depth", &format!("{}: {end}", self.depth));
        line("digest", self.digest);
        line("children", &self.children.to_string());
        let (search, replay) = (time(self.seconds), time(self.replay_seconds));
        line(
            "time",
            &format!("{search}, and {replay} to read the game back"),
        );
        if let Some(peak) = self.peak_rss_bytes {
            line("memory", &bytes(peak));
        }
        line("stored", &bytes(self.stored_bytes));
        line("folder", &self.folder.display().to_string());
        if let Some(file) = &self.replay_file {
            line("replay", &file.display().to_string());
        }
        let is_page = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "html");
        if let Some(page) = self.files.iter().find(is_page) {
            line("report", &page.display().to_string());
        }
        if let Some(replay) = &self.replay {
            text.push_str(&format!("\n{}\n{replay}\n", picture(run)));
        }
        text
    }
}

/// Returns a picture of the best well at the depth with the most rows cleared. If there are several such depths, chooses
/// the greatest depth.
fn picture(run: &Run) -> String {
    let geometry = run.store().geometry();
    let depths = run.store().depths().iter();
    let best = depths.max_by_key(|record| (record.best_lines, record.depth));
    let well = best.and_then(|record| Well::from_hex(geometry, &record.best_well).ok());
    well.map_or_else(String::new, |well| well.picture(geometry))
}

/// The JSON object for a depth: its record, and values that are calculated from the record.
#[derive(Debug, Serialize)]
pub struct DepthView<'a> {
    #[serde(flatten)]
    record: &'a DepthRecord,
    /// Number of wells, which the record calls `count`.
    wells: u64,
    children_per_second: f64,
    /// Cost of the depth; `None` on one machine, where costs are not calculated.
    #[serde(skip_serializing_if = "Option::is_none")]
    dollars: Option<f64>,
}

impl<'a> DepthView<'a> {
    /// Returns the JSON object for a depth. `dollars` is its cost, if the cost is known.
    pub fn new(record: &'a DepthRecord, dollars: Option<f64>) -> DepthView<'a> {
        DepthView {
            record,
            wells: record.count,
            children_per_second: children_per_second(record),
            dollars,
        }
    }
}

pub(crate) fn children_per_second(record: &DepthRecord) -> f64 {
    record.children as f64 / record.seconds.max(1e-9)
}

/// Formats a time in seconds.
pub(crate) fn time(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds.clamp(0.0, 1e12));
    duration(time.unwrap_or_default())
}

/// Appends a table with a row for each depth.
pub fn depth_table<'a>(text: &mut String, records: impl Iterator<Item = &'a DepthRecord>) {
    text.push_str(
        "\n depth       wells   lines       best     median        cut  Mchild/s     bytes      time\n",
    );
    for record in records {
        let kept = if record.kept {
            bytes(record.bytes)
        } else {
            "-".to_owned()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>6}  {:>10}  {:>6}  {:>9}  {:>9}  {:>9}  {:>8.2}  {kept:>8}  {:>8}",
            record.depth,
            record.count,
            record.best_lines,
            record.best_eval,
            record.median_eval,
            record.worst_eval,
            children_per_second(record) / 1e6,
            time(record.seconds),
        );
    }
}
