//! The result of a run on this machine, as text and as JSON.

use hatebeam_game::Well;
use hatebeam_report::{bytes, count, duration};
use hatebeam_runs::{EndReason, Run, SearchResult, Start, end_in_words};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of a run as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ResultJson<'a> {
    pub(crate) run: &'a str,
    pub(crate) end: EndReason,
    /// Lines of the best game; `None` if it was not read back.
    pub(crate) best_lines: Option<u32>,
    pub(crate) pieces: Option<u32>,
    pub(crate) depth: u32,
    digest: &'a str,
    /// The best game in Base2048.
    pub(crate) replay: Option<&'a str>,
    pub(crate) replay_file: Option<PathBuf>,
    /// Files of the game: the replay, its keys as letters, every well, a picture, a report.
    pub(crate) files: Vec<PathBuf>,
    /// The piece that HATETRIS changed in a better game.
    pub(crate) parted_at: Option<usize>,
    /// Number of children of all depths.
    children: u64,
    /// Seconds of searching.
    seconds: f64,
    /// Seconds that reading the best game back took.
    replay_seconds: f64,
    peak_rss_bytes: Option<u64>,
    stored_bytes: u64,
    folder: &'a Path,
}

impl<'a> ResultJson<'a> {
    /// Returns the result of the run in this folder.
    pub(crate) fn new(result: &'a SearchResult, folder: &'a Path) -> ResultJson<'a> {
        let game = result.game.as_ref();
        let files = game.into_iter().flat_map(|game| &game.files);
        let files: Vec<PathBuf> = files.map(|file| folder.join(file)).collect();
        ResultJson {
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

    /// Describes the result of `run` for people.
    pub(crate) fn text(&self, run: &Run) -> String {
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
                _ => format!("{} (no replay: too few depths are kept)", run.best_lines()),
            },
        );
        let end = end_in_words(Some(self.end));
        line("depth", &format!("{}: {end}", self.depth));
        line("digest", self.digest);
        line("children", &self.children.to_string());
        let time = |seconds: f64| duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)));
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

/// Returns a picture of the well with the most lines, at the depth where it had them.
fn picture(run: &Run) -> String {
    let geometry = run.store().geometry();
    let depths = run.store().depths().iter();
    let best = depths.max_by_key(|record| (record.best_lines, record.depth));
    let well = best.and_then(|record| Well::from_hex(geometry, &record.best_well).ok());
    well.map_or_else(String::new, |well| well.picture(geometry))
}
