//! Commits of depths on a separate thread.

use super::search::Observer;
use crate::retention::Retention;
use hatebeam_search::{DepthRecord, Frontier, Node};
use hatebeam_store::{RunStore, StoreError};
use std::sync::Arc;
use std::thread::JoinHandle;
use tracing::Span;

/// Settings for committing depths.
#[derive(Clone, Copy)]
pub(super) struct CommitSettings {
    pub(super) threads: usize,
    pub(super) keep: Retention,
}

/// A commit. It owns the store until it is finished.
pub(super) enum Commit {
    /// A thread is writing the depth.
    Writing(Writing),
    /// Nothing is being written.
    Done(Box<RunStore>),
}

/// A commit in progress.
pub(super) struct Writing {
    thread: JoinHandle<(RunStore, Result<DepthRecord, StoreError>)>,
    /// Tracing span of the depth.
    span: Span,
}

impl Commit {
    /// Wraps a store to which nothing is being written.
    pub(super) fn done(store: RunStore) -> Commit {
        Commit::Done(Box::new(store))
    }

    /// Starts a thread that computes the record of a frontier and commits the depth.
    #[allow(
        clippy::disallowed_methods,
        reason = "single-machine runs are never simulated, so they may start threads"
    )]
    pub(super) fn begin(
        mut store: RunStore,
        span: Span,
        frontier: Arc<Frontier>,
        settings: CommitSettings,
        record: impl FnOnce(&Frontier) -> DepthRecord + Send + 'static,
    ) -> Commit {
        let inside = span.clone();
        let thread = std::thread::spawn(move || {
            let _inside = inside.enter();
            let committed = commit(&mut store, record(&frontier), &frontier, settings);
            (store, committed)
        });
        Commit::Writing(Writing { thread, span })
    }

    /// Waits until the commit is finished, reports the depth to `observer`, and returns the store.
    pub(super) fn finish(self, observer: &mut dyn Observer) -> Result<RunStore, StoreError> {
        let Writing { thread, span } = match self {
            Commit::Writing(writing) => writing,
            Commit::Done(store) => return Ok(*store),
        };
        let (store, committed) = thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let record = committed?;
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
        observer.committed(&record);
        Ok(store)
    }
}

/// Commits a depth. Then drops the tables of the previous depth if the retention rule does not keep them.
fn commit(
    store: &mut RunStore,
    record: DepthRecord,
    frontier: &Frontier,
    settings: CommitSettings,
) -> Result<DepthRecord, StoreError> {
    let depth = record.depth;
    let shards: Vec<&[Node]> = frontier.shards.iter().map(Vec::as_slice).collect();
    store.commit(record.clone(), &shards, settings.threads)?;
    let first = store.depths().first().map_or(depth, |first| first.depth);
    // Before this commit, resuming the run would have needed the previous depth.
    if let Some(before) = depth.checked_sub(1)
        && before >= first
        && !settings.keep.keeps(before, first)
    {
        store.drop_tables(before)?;
    }
    Ok(store.depths().last().cloned().unwrap_or(record))
}
