//! Conclusion of a search: reading back and saving the best game.

use super::{Run, RunError, SaveError, SearchResult};
use crate::end::EndReason;
use crate::read_back::{BestGame, GameError, GameSearch};
use hatebeam_report::GameFile;
use hatebeam_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::SystemTime;
use thiserror::Error;

/// Parameters of [`Run::conclude`].
#[derive(Clone, Copy, Debug)]
pub struct SearchEnd<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// The reason why the search ended. If it was interrupted, no game is read back.
    pub end: EndReason,
    /// Time at which the search ended.
    pub now: SystemTime,
    /// Number of threads for repairing damaged tables.
    pub threads: usize,
    /// Stops the repair when set to true.
    pub cancel: &'a AtomicBool,
    /// Counter that is set to each depth that reading the best game back reaches, from the last to the first.
    pub progress: &'a Arc<AtomicU32>,
    /// Peak memory of the process, if known.
    pub peak_memory: Option<u64>,
}

/// The reason why a search has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConcludeError {
    /// The best game cannot be read back.
    #[error(transparent)]
    Game(#[from] GameError),
    /// The damaged tables cannot be repaired.
    #[error(transparent)]
    Repair(#[from] RunError),
    /// The best game cannot be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The run has no committed depth.
    #[error("the run has no committed depth")]
    Empty,
}

/// Outcome of reading the best game back.
enum ReadBack {
    Game(Box<BestGame>),
    /// The retention rule has dropped tables that the game needs.
    Dropped,
    /// The search or the repair was cancelled.
    Interrupted,
}

impl Run {
    /// Reads the best game back, saves its files and returns the result. If tables are damaged or missing, repairs the
    /// run first. Calls `warn` with a message for each problem that does not prevent a result.
    ///
    /// If `cancel` stops the repair, the result is [`EndReason::Interrupted`] and has no game. The search that is resumed
    /// then repairs the remaining depths.
    ///
    /// # Errors
    /// Returns a [`ConcludeError`] if the game cannot be read back or saved, if the repair fails, or if the run has no
    /// committed depth.
    pub fn conclude(
        &mut self,
        search: &SearchEnd<'_>,
        warn: &mut (dyn FnMut(String) + Send),
    ) -> Result<SearchResult, ConcludeError> {
        let SearchEnd { name, now, .. } = *search;
        let started = super::search::now();
        let read_back = match search.end {
            EndReason::Interrupted => ReadBack::Interrupted,
            _ => self.read_back(search, warn)?,
        };
        let mut skip = |file: &GameFile, error: StoreError| {
            warn(format!("cannot write {}: {error}", file.name));
        };
        let (end, game) = match &read_back {
            ReadBack::Game(game) => {
                let took = started.elapsed();
                let saved = self.save_game(name, game, search.end, took, now, &mut skip)?;
                (search.end, Some(saved))
            }
            ReadBack::Dropped => (search.end, None),
            ReadBack::Interrupted => (EndReason::Interrupted, None),
        };
        let result = self.summarize(name, end, game, search.peak_memory);
        result.ok_or(ConcludeError::Empty)
    }

    /// Reads the best game back, and repairs the run first if tables are damaged or missing.
    fn read_back(
        &mut self,
        search: &SearchEnd<'_>,
        warn: &mut (dyn FnMut(String) + Send),
    ) -> Result<ReadBack, ConcludeError> {
        let best_game = |run: &Run| {
            let mut game = GameSearch::best(run).with_progress(search.progress);
            game.resume(run)
        };
        let mut game = best_game(self);
        let problem = match &game {
            Err(GameError::Store(StoreError::DamagedDepth { .. })) => Some("are damaged"),
            Err(error) if error.is_dropped() && self.missing().next().is_some() => {
                Some("are missing")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            warn(format!(
                "cannot read the best game back, because tables {problem}; repairing the run"
            ));
            self.repair(search.threads, search.cancel)?;
            if search.cancel.load(Ordering::Relaxed) {
                return Ok(ReadBack::Interrupted);
            }
            game = best_game(self);
        }
        match game {
            Err(error) if error.is_dropped() => Ok(ReadBack::Dropped),
            game => Ok(ReadBack::Game(Box::new(game?))),
        }
    }
}
