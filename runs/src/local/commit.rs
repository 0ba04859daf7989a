//! The commit of a depth, on a thread of its own.

use super::search::Observer;
use crate::retention::Retention;
use hatebeam_search::{DepthRecord, Frontier, Node};
use hatebeam_store::{RunStore, StoreError};
use std::sync::Arc;
use std::thread::JoinHandle;
use tracing::Span;

/// How depths are committed.
#[derive(Clone, Copy)]
pub(super) struct CommitSettings {
    pub(super) threads: usize,
    pub(super) keep: Retention,
}

/// A commit, which owns the store until it is finished.
pub(super) enum Commit {
    /// A thread is writing.
    Writing(Writing),
    /// Nothing is being written.
    Done(Box<RunStore>),
}

/// A commit that a thread is writing.
pub(super) struct Writing {
    thread: JoinHandle<(RunStore, Result<DepthRecord, StoreError>)>,
    /// Span of the depth.
    span: Span,
}

impl Commit {
    /// Returns a store in which nothing is being written.
    pub(super) fn done(store: RunStore) -> Commit {
        Commit::Done(Box::new(store))
    }

    /// Begins the commit of a frontier, whose record the thread computes.
    #[allow(
        clippy::disallowed_methods,
        reason = "a run on one machine is not simulated"
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

    /// Waits for the commit and reports it. Returns the store.
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

/// Commits a depth, and drops the tables of the one before if the retention rule does not keep them.
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
    // Up to now the run could have been resumed from the depth before.
    if let Some(before) = depth.checked_sub(1)
        && before >= first
        && !settings.keep.keeps(before, first)
    {
        store.drop_tables(before)?;
    }
    Ok(store.depths().last().cloned().unwrap_or(record))
}
