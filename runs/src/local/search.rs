//! The search of a run on one machine, from depth to depth until no child is alive.
//!
//! A thread writes the commit of a depth during the search of the next one. The next commit waits for it: the search is
//! at most one depth ahead of the disk. A depth counts once its record is on disk, so that a crash loses at most the
//! depth after the last record.

use super::commit::{Commit, CommitSettings};
use super::{Run, RunError, SearchResult};
use crate::end::EndReason;
use crate::limits::{Limits, Usage};
use crate::record::record_of;
use hatebeam_search::{Cancelled, DepthRecord, Frontier, Node, Step};
use hatebeam_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// How a run is searched. Nothing here changes a frontier.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of threads that search and that write.
    pub threads: usize,
    /// Limits of the run. The cost limit does not apply: a run on one machine has no price.
    pub limits: Limits,
}

/// Receives the progress of a search. All calls come from the thread that searches.
pub trait Observer {
    /// The search of a depth begins: `parents` wells are expanded, and `expanded` counts them in the meantime.
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>);
    /// A depth is committed.
    fn committed(&mut self, record: &DepthRecord);
    /// The wells of a depth are damaged: the search continues from an earlier depth.
    fn damaged(&mut self, depth: u32, error: &StoreError);
    /// The run ended with this result, or failed for this reason. The caller of the search reports it.
    fn ended(&mut self, _result: Result<&SearchResult, &str>) {}
}

/// Measures the time that the run takes, including the time before it was resumed.
struct Clock {
    before: Duration,
    started: Instant,
    last_depth: Duration,
}

#[allow(
    clippy::disallowed_methods,
    reason = "a run on one machine is not simulated"
)]
fn now() -> Instant {
    Instant::now()
}

impl Clock {
    fn start(records: &[DepthRecord]) -> Clock {
        let total: f64 = records.iter().map(|record| record.seconds).sum();
        let last = records.last().map_or(0.0, |record| record.seconds);
        Clock {
            before: Duration::try_from_secs_f64(total).unwrap_or_default(),
            started: now(),
            last_depth: Duration::try_from_secs_f64(last).unwrap_or_default(),
        }
    }

    fn usage(&self, depth: u32) -> Usage {
        Usage {
            depth,
            time: self.before + self.started.elapsed(),
            depth_time: self.last_depth,
            ..Usage::default()
        }
    }
}

impl Run {
    /// Continues the search after the last committed depth. If `cancel` becomes true or an error occurs, the committed
    /// depths remain, and the run can be opened and searched again.
    ///
    /// # Errors
    /// Errors of committing, such as [`StoreError::DiskFull`]. Damaged wells of the last depth are not an error: the
    /// search continues from the last depth that is whole.
    pub fn search(
        mut self,
        settings: &Settings,
        cancel: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(Run, EndReason), RunError> {
        let threads = settings.threads.max(1);
        let step = Step::new(&self.emulator, self.spec.evaluator, self.layout(), threads)?;
        let mut frontier = Arc::new(self.last_frontier(threads, observer)?);
        let commit_settings = CommitSettings {
            threads,
            keep: self.keep,
        };
        let geometry = self.emulator.geometry();
        let mut clock = Clock::start(self.store.depths());
        let mut commit = Commit::done(self.store);
        let end = loop {
            if let Some(limit) = settings.limits.exceeded_by(&clock.usage(frontier.depth)) {
                break limit;
            }
            let (depth, begun) = (frontier.depth + 1, now());
            let expanded = Arc::new(AtomicU64::new(0));
            observer.begun(depth, frontier.len() as u64, &expanded);
            let span = tracing::info_span!("depth", depth);
            let next = span.in_scope(|| step.advance(frontier, cancel, &expanded));
            let store = commit.finish(observer)?;
            let (next, stats) = match next {
                Ok((next, stats)) if !next.is_empty() => (Arc::new(next), stats),
                ended => {
                    commit = Commit::done(store);
                    break match ended {
                        Ok(_) => EndReason::Over,
                        Err(Cancelled) => EndReason::Interrupted,
                    };
                }
            };
            clock.last_depth = begun.elapsed();
            let seconds = clock.last_depth.as_secs_f64();
            let record =
                move |frontier: &Frontier| record_of(geometry, frontier, stats.children, seconds);
            commit = Commit::begin(store, span, Arc::clone(&next), commit_settings, record);
            frontier = next;
        };
        self.store = commit.finish(observer)?;
        Ok((self, end))
    }

    /// Returns the frontier from which the search continues. Drops depths with damaged wells.
    fn last_frontier(
        &mut self,
        threads: usize,
        observer: &mut dyn Observer,
    ) -> Result<Frontier, RunError> {
        while let Some(depth) = self.last_kept() {
            match self.store.load(depth) {
                Ok(nodes) => {
                    let last = self.store.depths().last();
                    if last.is_some_and(|last| last.depth > depth) {
                        self.store.truncate(depth)?;
                    }
                    return Ok(Frontier::new(depth, nodes, self.layout()));
                }
                Err(error @ StoreError::DamagedDepth { .. }) => {
                    tracing::warn!(depth, %error, "found damaged wells");
                    observer.damaged(depth, &error);
                    // Without its tables, neither this depth nor those after it count.
                    self.store.drop_tables(depth)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // No depth is whole.
        if !self.store.depths().is_empty() {
            self.store.clear()?;
        }
        let frontier = self.first()?;
        let shards: Vec<&[Node]> = frontier.shards.iter().map(Vec::as_slice).collect();
        let record = record_of(self.emulator.geometry(), &frontier, 0, 0.0);
        self.store.commit(record, &shards, threads)?;
        Ok(frontier)
    }

    fn last_kept(&self) -> Option<u32> {
        let mut records = self.store.depths().iter();
        records
            .rfind(|record| record.kept)
            .map(|record| record.depth)
    }
}
