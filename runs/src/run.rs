//! A run from depth to depth: step, commit, and so on until no child is alive.
//!
//! The commit of a depth is written while the next one is searched, and must be done before that one's
//! commit begins: the search is at most one depth ahead of the disk. A depth counts once its record is
//! on the disk; whatever happens, at most the depth after the last record is searched again.

use crate::end::EndReason;
use crate::limits::{Limits, Usage};
use crate::record::record_of;
use crate::retention::Retention;
use crate::spec::{RunSpec, SpecError, StartingPosition};
use hatebeam_game::Emulator;
use hatebeam_search::{Cancelled, Frontier, Node, NodeWell, ShardLayout, Step, WeightError};
use hatebeam_store::{DepthRecord, RunStore, StoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How a run is searched. Nothing here changes a frontier.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of threads that search and that write.
    pub threads: usize,
    /// Limits of the run. The cost limit does not apply: a run on one machine has no price.
    pub limits: Limits,
}

/// Who is told how a search goes on. All calls come from the thread that searches.
pub trait Observer {
    /// A depth is begun: that many wells are expanded, and `expanded` counts them as it goes.
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>);
    /// A depth is committed.
    fn committed(&mut self, record: &DepthRecord);
    /// The wells of a depth turned out to be damaged: the search goes back behind it.
    fn damaged(&mut self, depth: u32, error: &StoreError);
}

/// What a run meets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The weights cannot be used.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another run lies in the folder.
    #[error("the run in {dir} has another specification: {theirs}, not {ours}")]
    OtherSpec {
        /// The folder.
        dir: String,
        /// What lies there.
        theirs: String,
        /// What was asked for.
        ours: String,
    },
    /// What lies in the folder is no specification that this version knows.
    #[error("the run in {dir} has a specification that cannot be read")]
    UnreadableSpec {
        /// The folder.
        dir: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A run, open for searching.
#[derive(Debug)]
pub struct Run {
    spec: RunSpec,
    start: StartingPosition,
    emulator: Emulator,
    keep: Retention,
    store: RunStore,
}

/// What a run's manifest holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersistedSpec {
    search: RunSpec,
    keep: Retention,
}

impl Run {
    /// Opens the run in `dir`, or makes it where there is none. Without a `keep` it is what it was
    /// when the run was made, or all.
    ///
    /// # Errors
    /// [`RunError::OtherSpec`] if another run lies there; else what checking the specification and
    /// opening the store may meet.
    pub fn open_or_create(
        dir: &Path,
        spec: &RunSpec,
        keep: Option<Retention>,
    ) -> Result<Run, RunError> {
        spec.check()?;
        let store = match RunStore::open(dir) {
            Err(StoreError::NoRun { .. }) => {
                let said = PersistedSpec {
                    search: spec.clone(),
                    keep: keep.unwrap_or(Retention::All),
                };
                let said = serde_json::to_value(said).map_err(|source| unreadable(dir, source))?;
                RunStore::create(dir, spec.emulator()?.geometry(), &said)?
            }
            store => store?,
        };
        let run = Run::of_store(store, keep)?;
        if run.spec != *spec {
            return Err(RunError::OtherSpec {
                dir: dir.display().to_string(),
                theirs: serde_json::to_string(&run.spec).unwrap_or_default(),
                ours: serde_json::to_string(spec).unwrap_or_default(),
            });
        }
        Ok(run)
    }

    /// Opens the run in `dir`; `keep` as for [`Run::open_or_create`].
    ///
    /// # Errors
    /// As for [`Run::open_or_create`], and [`StoreError::NoRun`].
    pub fn open(dir: &Path, keep: Option<Retention>) -> Result<Run, RunError> {
        Run::of_store(RunStore::open(dir)?, keep)
    }

    /// Opens the run in `dir` for reading only, while another process may be searching it.
    ///
    /// # Errors
    /// As for [`Run::open`].
    pub fn open_read_only(dir: &Path) -> Result<Run, RunError> {
        Run::of_store(RunStore::open_read_only(dir)?, None)
    }

    fn of_store(store: RunStore, keep: Option<Retention>) -> Result<Run, RunError> {
        let said: PersistedSpec = serde_json::from_value(store.spec().clone())
            .map_err(|source| unreadable(store.dir(), source))?;
        Ok(Run {
            start: said.search.check()?,
            emulator: said.search.emulator()?,
            spec: said.search,
            keep: keep.unwrap_or(said.keep),
            store,
        })
    }

    /// Which wells stay on the disk.
    pub fn keep(&self) -> Retention {
        self.keep
    }

    /// What is searched.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// The game up to where the search begins.
    pub fn start(&self) -> &StartingPosition {
        &self.start
    }

    /// The emulator of its geometry and rules.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Where it is kept.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    /// Where it is kept.
    pub fn store_mut(&mut self) -> &mut RunStore {
        &mut self.store
    }

    /// Searches on from the last committed depth. What was committed when `cancel` becomes true, or
    /// when an error comes up, stays committed; the run can be opened and searched on.
    ///
    /// # Errors
    /// What committing may meet, such as [`StoreError::DiskFull`]. Damaged wells of the last depth
    /// are no error: the depth is searched again, from the last one that is whole.
    pub fn search(
        mut self,
        settings: &Settings,
        cancel: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(Run, EndReason), RunError> {
        let threads = settings.threads.max(1);
        let step = Step::new(&self.emulator, self.spec.evaluator, self.layout(), threads)?;
        let mut frontier = Arc::new(self.head(threads, observer)?);
        let mut commit: Option<Commit> = None;
        let records = self.store.depths();
        let before = seconds(records.iter().map(|record| record.seconds).sum());
        let mut last = seconds(records.last().map_or(0.0, |record| record.seconds));
        let mut store = Some(self.store);
        let started = Instant::now();
        let end = loop {
            let usage = Usage {
                depth: frontier.depth,
                time: before + started.elapsed(),
                depth_time: last,
                ..Usage::default()
            };
            if let Some(limit) = settings.limits.exceeded_by(&usage) {
                break limit;
            }
            let begun = Instant::now();
            let expanded = Arc::new(AtomicU64::new(0));
            observer.begun(frontier.depth + 1, frontier.len() as u64, &expanded);
            let span = tracing::info_span!("depth", depth = frontier.depth + 1);
            let next = span.in_scope(|| step.advance(frontier, cancel, &expanded));
            if let Some(commit) = commit.take() {
                store = Some(commit.finish(observer)?);
            }
            let (next, stats) = match next {
                Ok(next) => next,
                Err(Cancelled) => break EndReason::Interrupted,
            };
            if next.is_empty() {
                break EndReason::Over;
            }
            let Some(free) = store.take() else {
                unreachable!("the commit before it was finished");
            };
            frontier = Arc::new(next);
            let geometry = self.emulator.geometry();
            last = begun.elapsed();
            let (seconds, children) = (last.as_secs_f64(), stats.children);
            commit = Some(Commit::begin(
                (free, span),
                Arc::clone(&frontier),
                (threads, self.keep),
                move |frontier| record_of(geometry, frontier, children, seconds),
            ));
        };
        if let Some(commit) = commit {
            store = Some(commit.finish(observer)?);
        }
        let Some(store) = store else {
            unreachable!("the last commit was finished");
        };
        self.store = store;
        Ok((self, end))
    }

    /// The frontier to search on from. Depths with damaged wells are given up.
    fn head(&mut self, threads: usize, observer: &mut dyn Observer) -> Result<Frontier, RunError> {
        loop {
            let kept = |record: &&DepthRecord| record.kept;
            let Some(depth) = self.store.depths().iter().rfind(kept).map(|r| r.depth) else {
                break;
            };
            match self.store.load(depth) {
                Ok(nodes) => {
                    if self
                        .store
                        .depths()
                        .last()
                        .is_some_and(|last| last.depth > depth)
                    {
                        self.store.truncate(depth)?;
                    }
                    return Ok(Frontier::new(depth, nodes, self.layout()));
                }
                Err(error @ StoreError::DamagedDepth { .. }) => {
                    tracing::warn!(depth, %error, "the wells of a depth are damaged");
                    observer.damaged(depth, &error);
                    // Its tables no longer count, and then neither does anything after it.
                    self.store.drop_tables(depth)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Nothing is there, or nothing whole: from the start.
        if !self.store.depths().is_empty() {
            self.store.clear()?;
        }
        let frontier = self.first();
        let geometry = self.emulator.geometry();
        let shards: Vec<&[Node]> = frontier.shards.iter().map(Vec::as_slice).collect();
        let record = record_of(geometry, &frontier, 0, 0.0);
        self.store.commit(record, &shards, threads)?;
        Ok(frontier)
    }

    /// All of a frontier is here.
    pub(crate) fn layout(&self) -> ShardLayout {
        ShardLayout::local(usize::try_from(self.spec.width).unwrap_or(usize::MAX))
    }

    /// The frontier that the search begins with.
    pub(crate) fn first(&self) -> Frontier {
        let node = Node {
            score: 0,
            well: NodeWell::pack(self.emulator.geometry(), self.start.well()),
            lines: self.start.lines,
            hint: 0,
        };
        Frontier::new(self.start.depth(), [node], self.layout())
    }
}

/// The duration that a record has in seconds.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn unreadable(dir: &Path, source: serde_json::Error) -> RunError {
    RunError::UnreadableSpec {
        dir: dir.display().to_string(),
        source,
    }
}

/// A commit under way on a thread of its own, which has the store meanwhile.
struct Commit {
    thread: JoinHandle<(RunStore, Result<DepthRecord, StoreError>)>,
    /// Of the depth that is committed.
    span: tracing::Span,
}

impl Commit {
    fn begin(
        (mut store, span): (RunStore, tracing::Span),
        frontier: Arc<Frontier>,
        (threads, keep): (usize, Retention),
        record: impl FnOnce(&Frontier) -> DepthRecord + Send + 'static,
    ) -> Commit {
        let inside = span.clone();
        let thread = std::thread::spawn(move || {
            let _inside = inside.enter();
            let record = record(&frontier);
            let shards: Vec<&[Node]> = frontier.shards.iter().map(Vec::as_slice).collect();
            let committed = commit(&mut store, record, &shards, threads, keep);
            (store, committed)
        });
        Commit { thread, span }
    }

    fn finish(self, observer: &mut dyn Observer) -> Result<RunStore, StoreError> {
        let (store, committed) = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let record = committed?;
        let _inside = self.span.enter();
        tracing::info!(
            depth = record.depth,
            wells = record.count,
            points = record.best_lines,
            best = record.best_eval,
            median = record.median_eval,
            cut = record.worst_eval,
            children = record.children,
            seconds = record.seconds,
            bytes = record.bytes,
            digest = record.digest,
            "depth committed"
        );
        observer.committed(&record);
        Ok(store)
    }
}

fn commit(
    store: &mut RunStore,
    record: DepthRecord,
    shards: &[&[Node]],
    threads: usize,
    keep: Retention,
) -> Result<DepthRecord, StoreError> {
    let depth = record.depth;
    store.commit(record.clone(), shards, threads)?;
    let first = store.depths().first().map_or(depth, |first| first.depth);
    // Resuming can do without the depth before only now.
    if let Some(before) = depth.checked_sub(1)
        && before >= first
        && !keep.keeps(before, first)
    {
        store.drop_tables(before)?;
    }
    Ok(store.depths().last().cloned().unwrap_or(record))
}
