//! The state of one epoch (a period of a run with a fixed set of workers).
//!
//! Within an epoch, a worker searches one depth after another. It owns some shards (ranges of well hashes). It expands
//! the wells of these shards (the frontier) into candidates for the next depth, and selects the next frontier from the
//! candidates. An attempt is one execution of a depth.

use crate::error::OrderError;
use crate::games::Games;
use crate::lock;
use crate::tables::LocalTables;
use hatebeam_game::{Emulator, Geometry};
use hatebeam_proto::messages::{Expand, Peer, Prepare};
use hatebeam_runs::{RunSpec, Table};
use hatebeam_search::{
    Candidates, Edges, Frontier, MAX_SHARDS, Network, Owner, ShardLayout, gathered_layout,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tracing::Span;

/// Result of a commit: descriptions of the uploaded tables, or the error that prevented the upload.
pub(crate) type Committed = Result<Vec<Table>, OrderError>;

/// The assignment of shards to workers, from this worker's point of view.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) layout: ShardLayout,
    /// Division of the epoch's first frontier into the tables from which it is loaded.
    pub(crate) tables: ShardLayout,
    pub(crate) owners: Arc<Vec<Owner>>,
    /// For each shard, whether this worker owns it.
    pub(crate) owned: Arc<Vec<bool>>,
    pub(crate) peers: Vec<Peer>,
}

impl Assignment {
    /// Returns the assignment in a `prepare` order, from the point of view of the worker `name`. Returns an error if
    /// the assignment is invalid.
    pub(crate) fn of(name: &str, order: &Prepare) -> Result<Assignment, OrderError> {
        let bad = |reason: &str| OrderError::bad_order(reason);
        let (shards, table_shards) = (order.owners.len(), order.table_shards as usize);
        for shards in [shards, table_shards] {
            if !(1..=MAX_SHARDS).contains(&shards) {
                return Err(bad(&format!(
                    "the number of shards is {shards}, but must be 1 to {MAX_SHARDS}"
                )));
            }
        }
        let mut tables = order.tables.iter();
        if let Some(table) = tables.find(|table| table.shard >= order.table_shards) {
            let shard = table.shard;
            return Err(bad(&format!("a table names the unknown shard {shard}")));
        }
        if !order.members.iter().any(|member| member.name == name) {
            return Err(bad(&format!("worker {name} is not a member of the epoch")));
        }
        let width = usize::try_from(order.spec.width);
        let width = width.map_err(|_| bad(&format!("width {} is too large", order.spec.width)))?;
        let (mut peers, mut members) = (Vec::new(), Vec::new());
        for member in &order.members {
            if member.name == name {
                members.push(Owner::Here);
                continue;
            }
            let peer = u16::try_from(peers.len());
            members.push(Owner::Peer(peer.map_err(|_| bad("too many members"))?));
            peers.push(member.clone());
        }
        let owner = |&member: &u32| members.get(member as usize).copied();
        let owners: Option<Vec<Owner>> = order.owners.iter().map(owner).collect();
        let owners = owners.ok_or_else(|| bad("a shard has an unknown owner"))?;
        let owned = owners.iter().map(|owner| *owner == Owner::Here).collect();
        Ok(Assignment {
            layout: ShardLayout::new(width, shards),
            tables: ShardLayout::new(width, table_shards),
            owners: Arc::new(owners),
            owned: Arc::new(owned),
            peers,
        })
    }

    pub(crate) fn shards_here(&self) -> usize {
        self.owned.iter().filter(|here| **here).count()
    }
}

/// The candidates of one attempt at a depth.
#[derive(Clone)]
struct Attempt {
    depth: u32,
    number: u32,
    candidates: Arc<Candidates>,
    /// `None` if the run ignores the loop rule.
    edges: Option<Arc<Edges>>,
}

pub(crate) struct Epoch {
    pub(crate) number: u64,
    pub(crate) run: String,
    pub(crate) spec: RunSpec,
    /// The network of the evaluator. This reference keeps the network registered during the epoch.
    pub(crate) network: Option<Arc<Network>>,
    pub(crate) emulator: Emulator,
    pub(crate) assignment: Assignment,
    pub(crate) tables: Arc<dyn LocalTables>,
    /// The games that lead to the frontier. `None` if the run ignores the loop rule.
    pub(crate) games: Option<Games>,
    frontier: Mutex<Arc<Frontier>>,
    attempt: Mutex<Option<Attempt>>,
    commits: Mutex<BTreeMap<u32, oneshot::Receiver<Committed>>>,
    /// Last depth whose frontier was selected from the candidates.
    selected: AtomicU32,
    /// Lock that is held while tables are added to the local cache.
    pub(crate) caching: tokio::sync::Mutex<()>,
    /// Set when the epoch ends, to stop its search threads.
    pub(crate) cancel: AtomicBool,
    /// Handles that abort the streams of the current attempt.
    streams: Mutex<Vec<AbortHandle>>,
    span: Span,
    /// The current depth and its tracing span.
    depth_span: Mutex<Option<(u32, Span)>>,
}

pub(crate) struct NewEpoch {
    pub(crate) number: u64,
    pub(crate) run: String,
    pub(crate) spec: RunSpec,
    pub(crate) network: Option<Arc<Network>>,
    pub(crate) emulator: Emulator,
    pub(crate) assignment: Assignment,
    pub(crate) tables: Arc<dyn LocalTables>,
    pub(crate) games: Option<Games>,
    pub(crate) frontier: Arc<Frontier>,
}

/// What an attempt at a depth begins with.
pub(crate) struct BegunAttempt {
    /// The frontier to expand.
    pub(crate) frontier: Arc<Frontier>,
    /// Empty tables for the children.
    pub(crate) candidates: Arc<Candidates>,
    /// An empty collection of edges. `None` if the run ignores the loop rule.
    pub(crate) edges: Option<Arc<Edges>>,
}

impl Epoch {
    /// Creates an epoch. Its orders are traced in the current span.
    pub(crate) fn new(new: NewEpoch) -> Epoch {
        Epoch {
            number: new.number,
            run: new.run,
            spec: new.spec,
            network: new.network,
            emulator: new.emulator,
            assignment: new.assignment,
            tables: new.tables,
            games: new.games,
            selected: AtomicU32::new(new.frontier.depth),
            frontier: Mutex::new(new.frontier),
            attempt: Mutex::default(),
            commits: Mutex::default(),
            caching: tokio::sync::Mutex::default(),
            cancel: AtomicBool::new(false),
            streams: Mutex::default(),
            span: Span::current(),
            depth_span: Mutex::default(),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.emulator.geometry()
    }

    /// Whether the epoch has ended. No manifest lists tables that are uploaded after that.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Ends the epoch. Stops its search threads, including those that are waiting for a stalled peer.
    pub(crate) fn end(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        lock(&self.streams)
            .drain(..)
            .for_each(|stream| stream.abort());
    }

    /// Replaces the streams of the last attempt with those of a new attempt. [`end`](Epoch::end) aborts the new
    /// streams.
    pub(crate) fn set_streams(&self, streams: Vec<AbortHandle>) {
        *lock(&self.streams) = streams;
        if self.is_over() {
            self.end();
        }
    }

    /// Returns the tracing span shared by all orders of a depth.
    pub(crate) fn span_of(&self, depth: u32) -> Span {
        let mut current = lock(&self.depth_span);
        match &*current {
            Some((of, span)) if *of == depth => span.clone(),
            _ => {
                let span = tracing::info_span!(parent: &self.span, "depth", depth);
                *current = Some((depth, span.clone()));
                span
            }
        }
    }

    pub(crate) fn frontier(&self) -> Arc<Frontier> {
        lock(&self.frontier).clone()
    }

    /// Begins an attempt at a depth. Returns an error if the order is not for the next depth, or if its attempt is not newer
    /// than the current one.
    pub(crate) fn begin_attempt(&self, order: Expand) -> Result<BegunAttempt, OrderError> {
        let frontier = self.frontier();
        if frontier.depth.checked_add(1) != Some(order.depth) {
            return Err(OrderError::bad_order(format!(
                "cannot expand to depth {}: the frontier is at depth {}",
                order.depth, frontier.depth
            )));
        }
        let mut attempt = lock(&self.attempt);
        if let Some(last) = attempt.as_ref()
            && (last.depth, last.number) >= (order.depth, order.attempt)
        {
            return Err(OrderError::superseded(format!(
                "attempt {} at depth {} is over: the current attempt is {} at depth {}",
                order.attempt, order.depth, last.number, last.depth
            )));
        }
        let layout = gathered_layout(self.assignment.layout, self.spec.evaluator.quiescence);
        let candidates = Arc::new(Candidates::new(layout, order.sigmas));
        candidates.raise_floors(order.floor);
        let edges = self.games.as_ref();
        let edges = edges.map(|_| Arc::new(Edges::new(layout.shards())));
        *attempt = Some(Attempt {
            depth: order.depth,
            number: order.attempt,
            candidates: Arc::clone(&candidates),
            edges: edges.clone(),
        });
        Ok(BegunAttempt {
            frontier,
            candidates,
            edges,
        })
    }

    /// Returns the edges of the current attempt, or `None` if the run ignores the loop rule.
    pub(crate) fn edges(&self) -> Option<Arc<Edges>> {
        let attempt = lock(&self.attempt);
        attempt.as_ref().and_then(|attempt| attempt.edges.clone())
    }

    /// Returns the candidates of the current attempt. Returns an error if the current attempt is not at `depth`.
    pub(crate) fn candidates(&self, depth: u32) -> Result<Arc<Candidates>, OrderError> {
        let attempt = lock(&self.attempt);
        match &*attempt {
            Some(attempt) if attempt.depth == depth => Ok(Arc::clone(&attempt.candidates)),
            _ => Err(OrderError::bad_order(format!(
                "depth {depth} is not the current depth"
            ))),
        }
    }

    pub(crate) fn candidate_bytes(&self) -> u64 {
        let attempt = lock(&self.attempt).clone();
        attempt.map_or(0, |attempt| attempt.candidates.bytes())
    }

    /// Drops the frontier and this epoch's reference to the candidates. Otherwise the frontier, the candidates and the
    /// next frontier would be in memory at the same time.
    pub(crate) fn begin_selection(&self) {
        *lock(&self.attempt) = None;
        *lock(&self.frontier) = Arc::default();
    }

    /// Sets the new frontier. Returns a sender for the result of the frontier's commit.
    pub(crate) fn finish_selection(&self, frontier: &Arc<Frontier>) -> oneshot::Sender<Committed> {
        let depth = frontier.depth;
        *lock(&self.frontier) = Arc::clone(frontier);
        let (done, commit) = oneshot::channel();
        lock(&self.commits).insert(depth, commit);
        self.selected.fetch_max(depth, Ordering::Relaxed);
        done
    }

    /// Takes the receiver for the result of a depth's commit. Returns `None` if there is no commit of this depth, or if
    /// the receiver was already taken.
    pub(crate) fn take_commit(&self, depth: u32) -> Option<oneshot::Receiver<Committed>> {
        lock(&self.commits).remove(&depth)
    }

    pub(crate) fn selected(&self) -> u32 {
        self.selected.load(Ordering::Relaxed)
    }
}
