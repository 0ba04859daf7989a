//! Commits of depths on a separate thread. A commit writes the record of each depth, and its tables (files that contain
//! its wells) if the retention rule keeps them.

use super::search::Observer;
use crate::record::record_of;
use crate::retention::Retention;
use hatebeam_game::Geometry;
use hatebeam_search::{ChangedPiece, DepthRecord, Frontier, Node};
use hatebeam_store::{NewDepth, RunStore, StoreError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::Span;

/// Limits of a group of depths that are committed together. A commit waits about ten milliseconds for the disk. The search
/// of a narrow depth takes only a small part of this time, so depths are collected until they reach one of these limits.
/// The limits never change which wells the search keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// Time since the search of the group's first depth began.
    pub time: Duration,
    /// Number of depths.
    pub depths: usize,
    /// Memory of the wells, in bytes.
    pub bytes: usize,
}

impl Default for GroupLimits {
    /// Returns limits of one second, 4096 depths and 16 MiB.
    fn default() -> GroupLimits {
        GroupLimits {
            time: Duration::from_secs(1),
            depths: 4096,
            bytes: 16 << 20,
        }
    }
}

/// A depth that has been searched.
pub(super) struct SearchedDepth {
    pub(super) frontier: Arc<Frontier>,
    pub(super) children: u64,
    /// Wells of the previous depth in which the loop rule changes the piece.
    pub(super) changed: Vec<ChangedPiece>,
    /// Time at which the search of the depth began.
    pub(super) begun: Instant,
    /// Duration of the search.
    pub(super) took: Duration,
    pub(super) span: Span,
}

/// Depths that have been searched and whose commit has not begun.
#[derive(Default)]
pub(super) struct Group {
    depths: Vec<SearchedDepth>,
    bytes: usize,
}

impl Group {
    pub(super) fn push(&mut self, depth: SearchedDepth) {
        self.bytes += depth.frontier.len() * size_of::<Node>();
        self.depths.push(depth);
    }

    fn is_full(&self, limits: &GroupLimits, now: Instant) -> bool {
        let Some(first) = self.depths.first() else {
            return false;
        };
        self.depths.len() >= limits.depths
            || self.bytes >= limits.bytes
            || now.duration_since(first.begun) >= limits.time
    }
}

#[derive(Clone, Copy)]
pub(super) struct CommitSettings {
    pub(super) threads: usize,
    pub(super) keep: Retention,
    pub(super) group: GroupLimits,
    pub(super) geometry: Geometry,
}

/// Collects depths in groups and commits them on a separate thread.
pub(super) struct Committer {
    settings: CommitSettings,
    group: Group,
    commit: Commit,
}

impl Committer {
    pub(super) fn new(store: RunStore, settings: CommitSettings) -> Committer {
        Committer {
            settings,
            group: Group::default(),
            commit: Commit::Done(Box::new(store)),
        }
    }

    /// Adds the next depth. If the group is full at the time `now`, waits for the previous commit and starts the next
    /// one. Reports committed depths to `observer`.
    pub(super) fn add(
        self,
        depth: SearchedDepth,
        now: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Committer, StoreError> {
        let Committer {
            settings,
            mut group,
            mut commit,
        } = self;
        group.push(depth);
        let is_full = group.is_full(&settings.group, now);
        if is_full || commit.is_finished() {
            commit = Commit::Done(Box::new(commit.finish(observer)?));
        }
        if is_full {
            commit = commit.begin(std::mem::take(&mut group), settings);
        }
        Ok(Committer {
            settings,
            group,
            commit,
        })
    }

    /// Commits all depths, reports them to `observer` and returns the store.
    pub(super) fn finish(self, observer: &mut dyn Observer) -> Result<RunStore, StoreError> {
        let store = self.commit.finish(observer)?;
        if self.group.depths.is_empty() {
            return Ok(store);
        }
        let commit = Commit::Done(Box::new(store)).begin(self.group, self.settings);
        commit.finish(observer)
    }
}

/// A commit in progress, or the store if no commit is in progress.
enum Commit {
    /// A thread owns the store and writes depths.
    Writing(Writing),
    Done(Box<RunStore>),
}

struct Writing {
    thread: JoinHandle<(RunStore, Result<Vec<DepthRecord>, StoreError>)>,
    /// Tracing spans of the depths.
    spans: Vec<Span>,
}

impl Commit {
    /// Returns whether the commit can be finished without waiting.
    fn is_finished(&self) -> bool {
        match self {
            Commit::Writing(writing) => writing.thread.is_finished(),
            Commit::Done(_) => true,
        }
    }

    /// Starts a thread that computes the records of the depths and commits them. The previous commit must be done.
    #[allow(
        clippy::disallowed_methods,
        reason = "single-machine runs are never simulated, so they may start threads"
    )]
    fn begin(self, group: Group, settings: CommitSettings) -> Commit {
        let Commit::Done(mut store) = self else {
            unreachable!("the caller finishes the previous commit first");
        };
        let spans: Vec<Span> = group
            .depths
            .iter()
            .map(|depth| depth.span.clone())
            .collect();
        // Log messages of a commit appear in the span of the group's last depth.
        let inside = spans.last().cloned().unwrap_or_else(Span::none);
        let thread = std::thread::spawn(move || {
            let _inside = inside.enter();
            let committed = commit(&mut store, &group.depths, settings);
            (*store, committed)
        });
        Commit::Writing(Writing { thread, spans })
    }

    /// Waits until the commit is finished, reports its depths to `observer`, and returns the store.
    fn finish(self, observer: &mut dyn Observer) -> Result<RunStore, StoreError> {
        let Writing { thread, spans } = match self {
            Commit::Writing(writing) => writing,
            Commit::Done(store) => return Ok(*store),
        };
        let (store, committed) = thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for (record, span) in committed?.iter().zip(spans) {
            let _inside = span.enter();
            tracing::info!(
                depth = record.depth,
                wells = record.count,
                lines = record.best_lines,
                best = record.best_eval,
                median = record.median_eval,
                cut = record.worst_eval,
                children = record.children,
                seconds = record.seconds,
                bytes = record.bytes,
                digest = record.digest,
                "committed depth"
            );
            observer.committed(record);
        }
        Ok(store)
    }
}

/// Commits depths and returns their records. The tables of the last depth are always written, because resuming the run
/// needs them. Drops the tables of the previous commit's last depth with the same write, unless the retention rule keeps them:
/// otherwise, a kill between two writes would leave them for ever.
fn commit(
    store: &mut RunStore,
    depths: &[SearchedDepth],
    settings: CommitSettings,
) -> Result<Vec<DepthRecord>, StoreError> {
    let record = |depth: &SearchedDepth| {
        let seconds = depth.took.as_secs_f64();
        DepthRecord {
            changed: depth.changed.clone(),
            ..record_of(settings.geometry, &depth.frontier, depth.children, seconds)
        }
    };
    let records: Vec<DepthRecord> = depths.iter().map(record).collect();
    let before = store.depths().len();
    let first = store.depths().first().or(records.first());
    let first = first.map_or(0, |record| record.depth);
    let keeps = |depth| settings.keep.keeps(depth, first);
    let last = records.len() - 1;
    let group = records.into_iter().zip(depths).enumerate();
    let group = group.map(|(index, (record, depth))| NewDepth {
        keep: index == last || keeps(record.depth),
        record,
        shards: depth.frontier.shards.iter().map(Vec::as_slice).collect(),
    });
    let previous = store.depths().last().map(|record| record.depth);
    let dropped = previous.filter(|&previous| !keeps(previous));
    store.commit_group(group.collect(), dropped, settings.threads)?;
    Ok(store.depths()[before..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_search::NodeWell;

    fn depth(wells: usize, begun: Instant) -> SearchedDepth {
        let node = Node {
            score: 0,
            well: NodeWell::default(),
            lines: 0,
            hint: 0,
        };
        let frontier = Frontier {
            depth: 1,
            shards: vec![vec![node; wells]],
        };
        SearchedDepth {
            frontier: Arc::new(frontier),
            children: 0,
            changed: Vec::new(),
            begun,
            took: Duration::ZERO,
            span: Span::none(),
        }
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the test needs an arbitrary instant"
    )]
    fn group_is_full_when_it_reaches_any_limit() {
        let start = Instant::now();
        let limits = GroupLimits {
            time: Duration::from_secs(1),
            depths: 3,
            bytes: 10 * size_of::<Node>(),
        };
        let is_full = |wells: &[usize], millis: u64| {
            let mut group = Group::default();
            for &wells in wells {
                group.push(depth(wells, start));
            }
            group.is_full(&limits, start + Duration::from_millis(millis))
        };
        assert!(!is_full(&[], 5000));
        assert!(!is_full(&[1, 1], 999));
        assert!(is_full(&[1, 1], 1000));
        assert!(is_full(&[1, 1, 1], 0));
        assert!(!is_full(&[1, 8], 0));
        assert!(is_full(&[1, 9], 0));
    }
}
