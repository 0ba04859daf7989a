//! The result of a run on one machine, and the files of its best game.

use super::{REPLAYS, Run};
use crate::end::{EndReason, end_in_words};
use crate::game_result::GameResult;
use crate::read_back::{BestGame, best_game};
use crate::show::ShowError;
use crate::spec::SpecError;
use hatebeam_files::write_whole;
use hatebeam_game::{Encoding, encode};
use hatebeam_report::{
    Facts, FileSink, GameFile, GameFiles, Scores, date, page, save_files_blocking, with_causes,
};
use hatebeam_store::{RunStore, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// Maximum number of scores in a report's histogram. If a depth has more wells, their scores are sampled evenly.
const MAX_SCORES: usize = 5_000_000;

/// Result of a run on one machine, as stored in its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchResult {
    /// Name of the run.
    pub run: String,
    /// The reason why the search ended.
    pub end: EndReason,
    /// Last committed depth.
    pub depth: u32,
    /// Digest of the last frontier.
    pub digest: String,
    /// The best game, if it was read back.
    pub game: Option<GameResult>,
    /// Number of children, summed over the depths.
    pub children: u64,
    /// Time spent searching, in seconds.
    pub seconds: f64,
    /// Peak memory of the process, if known.
    pub peak_rss_bytes: Option<u64>,
    /// Size of the run on disk, in bytes.
    pub stored_bytes: u64,
}

impl SearchResult {
    /// Returns the paths of the best game's files in the run's folder. The first path is the replay.
    pub fn files_in(&self, folder: &Path) -> Vec<PathBuf> {
        let files = self.game.iter().flat_map(|game| &game.files);
        files.map(|file| folder.join(file)).collect()
    }
}

/// Returns the result of the run in `store` if the run has ended. Returns `None` for a result that this version cannot
/// read, and for one that is not of the last committed depth, so that the run can be resumed: the result may be older than
/// a continued search, or records may be lost.
pub fn result_of(store: &RunStore) -> Option<SearchResult> {
    let result = store.result().and_then(parsed)?;
    let last = store.depths().last()?;
    (result.depth == last.depth).then_some(result)
}

/// Parses a stored result. Returns `None` if this version cannot read it.
pub(super) fn parsed(value: &Value) -> Option<SearchResult> {
    let current = serde_json::from_value(value.clone()).ok();
    current.or_else(|| from_format_1(value))
}

/// Parses a result of format 1. That format has the game's fields at the top level and absolute file paths.
fn from_format_1(value: &Value) -> Option<SearchResult> {
    #[derive(Deserialize)]
    struct Flat {
        run: String,
        end: EndReason,
        best_score: Option<u32>,
        pieces: Option<u32>,
        depth: u32,
        digest: String,
        replay: Option<String>,
        #[serde(default)]
        files: Vec<PathBuf>,
        parted_at: Option<usize>,
        children: u64,
        seconds: f64,
        replay_seconds: f64,
        peak_rss_bytes: Option<u64>,
        stored_bytes: u64,
        folder: PathBuf,
    }
    let flat: Flat = serde_json::from_value(value.clone()).ok()?;
    let relative = |file: &PathBuf| {
        let file = file.strip_prefix(&flat.folder).unwrap_or(file);
        file.display().to_string()
    };
    let game = match (flat.best_score, flat.pieces, flat.replay) {
        (Some(lines), Some(pieces), Some(replay)) => Some(GameResult {
            lines,
            pieces,
            replay,
            lookups: 0,
            seconds: flat.replay_seconds,
            depth: 0,
            ended_ms: 0,
            files: flat.files.iter().map(relative).collect(),
            parted_at: flat.parted_at,
        }),
        _ => None,
    };
    Some(SearchResult {
        run: flat.run,
        end: flat.end,
        depth: flat.depth,
        digest: flat.digest,
        game,
        children: flat.children,
        seconds: flat.seconds,
        peak_rss_bytes: flat.peak_rss_bytes,
        stored_bytes: flat.stored_bytes,
    })
}

/// The reason why a game's files cannot be saved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The keys of the game cannot be played to create its film, which contains every key and well.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// A file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The folder `replays` of a run, as a destination for files.
struct Folder<'a> {
    path: PathBuf,
    skip: &'a mut (dyn FnMut(&GameFile, StoreError) + Send),
}

impl FileSink for Folder<'_> {
    type Error = StoreError;

    async fn save(&mut self, file: &GameFile) -> Result<(), StoreError> {
        let path = self.path.join(&file.name);
        write_whole(&path, file.text.as_bytes()).map_err(StoreError::io(&path))
    }

    fn skip(&mut self, file: &GameFile, error: StoreError) {
        (self.skip)(file, error);
    }
}

impl Run {
    /// Saves the files of the best game in the run's folder, and returns a description of the game for the run's result.
    /// `read_in` is the time spent reading the game back.
    ///
    /// If a file other than the replay cannot be written, calls `skip` and continues.
    ///
    /// # Errors
    /// Returns a [`SaveError`] if the film of the game cannot be created or its replay cannot be written.
    pub(super) fn save_game(
        &self,
        name: &str,
        game: &BestGame,
        end: EndReason,
        read_in: Duration,
        now: SystemTime,
        skip: &mut (dyn FnMut(&GameFile, StoreError) + Send),
    ) -> Result<GameResult, SaveError> {
        let path = self.store.dir().join(REPLAYS);
        std::fs::create_dir_all(&path).map_err(StoreError::io(&path))?;
        let film = self.spec.film(&game.keys)?;
        let facts = self.facts(name, Some(end)).map_err(ShowError::from)?;
        let existing = names_in(&path);
        let existing = existing.iter().map(String::as_str);
        let files = GameFiles::new(film, facts, existing, &date(now)).all();
        let saved = save_files_blocking(&files, &mut Folder { path, skip })?;
        let since = now.duration_since(UNIX_EPOCH);
        Ok(GameResult {
            lines: game.score,
            pieces: game.wells.len() as u32,
            replay: encode(&game.keys, Encoding::Base2048),
            lookups: game.lookups,
            seconds: read_in.as_secs_f64(),
            depth: game.depth,
            ended_ms: since.map_or(0, |since| since.as_millis() as u64),
            files: saved
                .iter()
                .map(|name| format!("{REPLAYS}/{name}"))
                .collect(),
            parted_at: game.parted_at,
        })
    }

    /// Returns the facts about the run for its report. `end` is the reason why the search ended, if it has ended.
    fn facts(&self, name: &str, end: Option<EndReason>) -> Result<Facts, SpecError> {
        let depths = self.store.depths().to_vec();
        let mut facts = self.spec.facts(name, depths, end_in_words(end))?;
        facts.scores = self.scores();
        Ok(facts)
    }

    /// Returns an HTML report with the run's plots, and its best game if the game can be read back.
    ///
    /// # Errors
    /// Returns [`SpecError::Geometry`] if the specification has an invalid geometry.
    pub fn report(&self, name: &str) -> Result<String, SpecError> {
        let facts = self.facts(name, result_of(&self.store).map(|result| result.end))?;
        let film = match best_game(self) {
            Ok(game) => self
                .spec
                .film(&game.keys)
                .map_err(|error| with_causes(&error)),
            Err(error) => Err(with_causes(&error)),
        };
        Ok(page(&facts, film.as_ref().map_err(String::as_str)))
    }

    /// Returns the result of the run so far, or `None` if the run has no depth.
    pub fn summarize(
        &self,
        name: &str,
        end: EndReason,
        game: Option<GameResult>,
        peak_rss_bytes: Option<u64>,
    ) -> Option<SearchResult> {
        let depths = self.store.depths();
        let last = depths.last()?;
        Some(SearchResult {
            run: name.to_owned(),
            end,
            depth: last.depth,
            digest: last.digest.clone(),
            game,
            children: depths.iter().map(|record| record.children).sum(),
            seconds: depths.iter().map(|record| record.seconds).sum(),
            peak_rss_bytes,
            stored_bytes: self.store.stored_bytes(),
        })
    }

    /// Returns the depths that the stored result counts, but whose records are lost, because the end of the file with
    /// the records is damaged. A search finds these depths again.
    pub fn lost(&self) -> Option<RangeInclusive<u32>> {
        let result = self.store.result().and_then(parsed)?;
        let last = self.store.depths().last();
        let first = last.map_or(0, |last| last.depth.saturating_add(1));
        (first <= result.depth).then_some(first..=result.depth)
    }

    /// Stores the result in the run's folder, which marks the run as ended.
    ///
    /// # Errors
    /// Returns an error if the folder's manifest cannot be written.
    pub fn set_result(&mut self, result: &SearchResult) -> Result<(), StoreError> {
        let dir = self.store.dir().to_owned();
        let value = serde_json::to_value(result).map_err(|error| StoreError::Damaged {
            path: dir,
            reason: error.to_string(),
        })?;
        self.store.finish(&value)
    }

    /// Returns the scores of the wells at the depth with the most wells, or the reason why they cannot be read.
    /// If several depths have the most wells, chooses the last one whose tables are kept. Returns `None` if
    /// none of them is kept.
    fn scores(&self) -> Option<Result<Scores, String>> {
        let records = self.store.depths();
        let most = records.iter().map(|record| record.count).max();
        let record = records
            .iter()
            .rfind(|record| record.kept && Some(record.count) == most)?;
        let nodes = match self.store.load(record.depth) {
            Ok(nodes) => nodes,
            Err(error) => return Some(Err(error.to_string())),
        };
        let step = nodes.len().div_ceil(MAX_SCORES).max(1);
        let at_cut = nodes.iter().filter(|node| node.score == record.worst_eval);
        Some(Ok(Scores {
            depth: record.depth,
            count: record.count,
            at_cut: at_cut.count(),
            median: record.median_eval,
            values: nodes.iter().step_by(step).map(|node| node.score).collect(),
        }))
    }
}

/// Returns the names of the files in a folder. A folder that cannot be read counts as empty.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
