//! Conclusion of a search: reading back and saving the best game.

use super::{Run, RunError, SaveError, SearchResult};
use crate::end::EndReason;
use crate::read_back::{BestGame, GameError, GameSearch};
use hatebeam_report::GameFile;
use hatebeam_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Instant, SystemTime};
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

impl Run {
    /// Reads the best game back, saves its files and returns the result. If tables are damaged, repairs the
    /// run first. Calls `warn` with a message for each problem that does not prevent a result.
    ///
    /// # Errors
    /// Returns a [`ConcludeError`] if the game cannot be read back or saved, if the repair fails, or if the run has no
    /// committed depth.
    pub fn conclude(
        &mut self,
        search: &SearchEnd<'_>,
        warn: &mut (dyn FnMut(String) + Send),
    ) -> Result<SearchResult, ConcludeError> {
        let SearchEnd { name, end, now, .. } = *search;
        let started = clock();
        let game = match end {
            EndReason::Interrupted => None,
            _ => self.readable_game(search, warn)?,
        };
        let mut skip = |file: &GameFile, error: StoreError| {
            warn(format!("cannot write {}: {error}", file.name));
        };
        let game = match &game {
            Some(game) => {
                let took = clock().duration_since(started);
                Some(self.save_game(name, game, end, took, now, &mut skip)?)
            }
            None => None,
        };
        let result = self.summarize(name, end, game, search.peak_memory);
        result.ok_or(ConcludeError::Empty)
    }

    /// Returns the best game, or `None` if the retention rule has dropped tables that it needs.
    fn readable_game(
        &mut self,
        search: &SearchEnd<'_>,
        warn: &mut (dyn FnMut(String) + Send),
    ) -> Result<Option<BestGame>, ConcludeError> {
        let best_game = |run: &Run| {
            let mut game = GameSearch::best(run).with_progress(search.progress);
            game.resume(run)
        };
        let mut game = best_game(self);
        if let Err(error @ GameError::Store(StoreError::DamagedDepth { .. })) = &game {
            warn(format!("{error}; repairing the run"));
            self.repair(search.threads, search.cancel)?;
            game = best_game(self);
        }
        match game {
            Err(error) if error.is_dropped() => Ok(None),
            game => Ok(Some(game?)),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "single-machine runs are never simulated, so they may read the real clock"
)]
fn clock() -> Instant {
    Instant::now()
}
