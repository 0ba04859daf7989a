//! The search of a run on one machine, depth by depth, until every game is over or a limit is reached.
//!
//! Depths are collected in [groups](GroupLimits). A separate thread commits a group while the next depths are
//! searched. A commit waits for the previous one, so the search is at most two groups and one depth ahead of the
//! disk. A group is committed when its records are on disk, so a crash loses only the depths after the last record.

use super::commit::{CommitSettings, Committer, SearchedDepth};
use super::past::advance;
use super::{GroupLimits, Run, RunError, SearchResult};
use crate::end::EndReason;
use crate::limits::{Limits, Usage};
use crate::record::record_of;
use crate::spec::LoopRule;
use hatebeam_search::{Cancelled, DepthRecord, Fingerprint, Frontier, Node, RecentCuts, Step};
use hatebeam_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Settings of a search. They never change which wells the search keeps.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of threads for searching and for writing.
    pub threads: usize,
    /// Limits of the run. The cost limit is ignored, because a run on one machine has no price.
    pub limits: Limits,
    /// Limits of a group of depths that are committed together.
    pub group: GroupLimits,
}

/// Receives the progress of a search. Each method ignores it by default. All calls come from the thread that runs the search.
pub trait Observer {
    /// Called when the search of a depth begins, with the number of wells to expand and the counter of the expanded ones.
    fn begun(&mut self, _depth: u32, _parents: u64, _expanded: &Arc<AtomicU64>) {}
    /// Called after a depth has been committed.
    fn committed(&mut self, _record: &DepthRecord) {}
    /// Called when the stored wells of a depth are damaged. The search then continues from an earlier depth.
    fn damaged(&mut self, _depth: u32, _error: &StoreError) {}
    /// Called with the result of the run or the reason for its failure. [`Run::search`] does not call this method;
    /// the caller of [`Run::search`] does.
    fn ended(&mut self, _result: Result<&SearchResult, &str>) {}
}

/// Ignores the progress.
impl Observer for () {}

/// Measures the time that a run takes, including the time before it was resumed.
struct Clock {
    before: Duration,
    started: Instant,
    last_depth: Duration,
}

#[allow(
    clippy::disallowed_methods,
    reason = "single-machine runs are never simulated, so they may read the real clock"
)]
pub(super) fn now() -> Instant {
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

    fn usage(&self, frontier: &Frontier) -> Usage {
        let lines = frontier.nodes().map(|node| node.lines);
        Usage {
            depth: frontier.depth,
            best_lines: lines.max().unwrap_or(0),
            time: self.before + self.started.elapsed(),
            depth_time: self.last_depth,
            ..Usage::default()
        }
    }
}

impl Run {
    /// Continues the search after the last committed depth. If `cancel` becomes true or an error occurs, the
    /// committed depths remain, and the run can be opened and searched again.
    ///
    /// # Errors
    /// Returns [`RunError::Spec`] if the run began with another search algorithm. Returns another error if a depth cannot be
    /// committed, for example because of [`StoreError::DiskFull`]. Damaged wells at the last depth are not an error, because
    /// the search continues from the last intact depth.
    pub fn search(
        mut self,
        settings: &Settings,
        cancel: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(Run, EndReason), RunError> {
        self.spec.check_search(&Fingerprint::current())?;
        let threads = settings.threads.max(1);
        let step = Step::new(&self.emulator, self.spec.evaluator, self.layout(), threads)?;
        let mut frontier = Arc::new(self.last_frontier(threads, observer)?);
        // The rule is stored before it drops the first tables, so that these never count as missing.
        self.store_keep()?;
        // The loop rule needs the games that lead to the frontier, which a repair that was stopped may have left without
        // tables.
        if self.spec.loops == LoopRule::Exact && self.missing().next().is_some() {
            self.repair(threads, cancel)?;
            if cancel.load(Ordering::Relaxed) {
                return Ok((self, EndReason::Interrupted));
            }
        }
        let mut past = self.past(&frontier, threads)?;
        let commit_settings = CommitSettings {
            threads,
            keep: self.keep,
            group: settings.group,
            geometry: self.emulator.geometry(),
        };
        let mut clock = Clock::start(self.store.depths());
        let width = self.spec.width;
        let mut cuts = RecentCuts::default();
        for record in self.store.depths() {
            cuts.add(record.count, record.worst_eval, width);
        }
        let mut committer = Committer::new(self.store, commit_settings);
        let end = loop {
            if let Some(limit) = settings.limits.exceeded_by(&clock.usage(&frontier)) {
                break limit;
            }
            let (depth, begun) = (frontier.depth + 1, now());
            let expanded = Arc::new(AtomicU64::new(0));
            observer.begun(depth, frontier.len() as u64, &expanded);
            let span = tracing::info_span!("depth", depth);
            let floor = cuts.floor();
            let searched =
                span.in_scope(|| advance(&step, frontier, &mut past, floor, cancel, &expanded));
            let searched = match searched {
                Ok(searched) if !searched.frontier.is_empty() => searched,
                Ok(_) => break EndReason::Over,
                Err(Cancelled) => break EndReason::Interrupted,
            };
            let next = Arc::new(searched.frontier);
            let ended = now();
            clock.last_depth = ended.duration_since(begun);
            let worst_eval = next.nodes().map(|node| node.score).min().unwrap_or(0);
            cuts.add(next.len() as u64, worst_eval, width);
            frontier = Arc::clone(&next);
            let searched = SearchedDepth {
                frontier: next,
                children: searched.stats.children,
                changed: searched.changed,
                begun,
                took: clock.last_depth,
                span,
            };
            committer = committer.add(searched, ended, observer)?;
        };
        self.store = committer.finish(observer)?;
        Ok((self, end))
    }

    /// Returns the frontier from which the search continues, and drops depths whose wells are damaged.
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
                    // The search cannot resume from this depth. It cannot resume from a later depth either, because the
                    // tables of later depths are not stored.
                    self.store.drop_tables(depth)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // No depth is intact, so the search starts from the beginning.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{RunSpec, WellSpec};
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, MAX_LINES, Quiescence};

    #[test]
    fn run_ends_before_a_game_exceeds_the_maximum_number_of_lines() {
        let settings = Settings {
            threads: 2,
            limits: Limits {
                max_depth: Some(300),
                ..Limits::default()
            },
            group: GroupLimits::default(),
        };
        let mut spec = RunSpec::new(
            200,
            EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off),
        );
        // Games in this well never end.
        spec.well = WellSpec {
            columns: 4,
            rows: 4,
            ..spec.well
        };
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::open_or_create(dir.path(), &spec, None).unwrap();
        run.start.lines = MAX_LINES - 20;
        for _ in 0..2 {
            let (searched, end) = run
                .search(&settings, &AtomicBool::new(false), &mut ())
                .unwrap();
            assert_eq!(end, EndReason::MaxLines);
            let depths = searched.store.depths();
            let lines: Vec<u16> = depths.iter().map(|depth| depth.best_lines).collect();
            let (last, before) = lines.split_last().unwrap();
            assert!((MAX_LINES - 3..=MAX_LINES).contains(last), "{lines:?}");
            assert!(
                before.iter().all(|&lines| lines <= MAX_LINES - 4),
                "{lines:?}"
            );
            assert!(depths.iter().all(|depth| depth.count > 0));
            // A search of the ended run adds no depth.
            run = searched;
        }
    }
}
