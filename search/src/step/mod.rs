//! One depth of a beam search: expands wells, scores their children, drops children that cannot
//! survive, merges duplicates and selects the survivors.
//!
//! **Exact and deterministic.** The next frontier (the wells kept at one depth) contains the
//! `width` best distinct children. They are ordered by score, then by the lower half of the hash
//! (greater values first), then by packed well (smaller ones first). If several children have equal
//! wells, the step keeps the child with the most lines (rows cleared), and among those the child
//! with the lowest parent hint (the lowest byte of the parent's hash). The result does not depend on
//! the order in which threads or machines deliver children.
//!
//! **Shards and tables.** The hash of a child selects its shard, and a table within the shard. A
//! table is a hash table with open addressing that fits into the cache of a core. Threads insert
//! children in batches. Children whose shard is on another machine are sent there through a
//! [`ChildSink`].
//!
//! **Rising floors.** A rank is a score with its tie-break. The hash distributes wells evenly,
//! so each table contains its share of the best `width` wells, plus or minus a few standard
//! deviations. A full table therefore keeps only its best wells (its share plus eight standard
//! deviations plus 16 wells) and drops the rest. The lowest rank that it keeps is its floor: from
//! then on, it rejects children with lower ranks. After the last child, the step finds the
//! exact [cut](CutSearch), the lowest rank with which a child survives. If the cut is below the floor
//! of a table, the table may have dropped a survivor. The depth is then repeated with more than
//! twice as many standard deviations. Such a repeat has been observed only in tests that force it.
//!
//! **Estimated floors.** All floors may begin with an [estimate](RecentCuts::floor) of the cut, so
//! that most children are rejected early. If the estimate is above the cut, the depth is repeated
//! without the estimate.
//!
//! **Two cuts.** With [`Quiescence::FirstOfBest`](crate::Quiescence::FirstOfBest), the first cut keeps three children for
//! each well of the width, by their own scores. These get scores with quiescence, and a second cut keeps the best `width` of
//! them.
//!
//! **Memory.** The parents take 28 bytes per well, and the tables take about 60 bytes per well of
//! the width, or three times as much with two cuts. The memory does not depend on the number of children.

mod batches;
mod candidates;
mod cut;
mod estimate;
mod expander;
mod layout;
mod loops;
mod pool;
mod preselect;

pub use batches::buffer_bytes;
pub use candidates::{Candidates, SortBuffer};
pub use cut::{CountQuery, Cut, CutSearch, DIGITS, DigitCounts, Ties};
pub use estimate::{RecentCuts, estimated_floor};
pub use layout::{MAX_SHARDS, MIN_SHARD_WELLS, MIN_SHARDS, SHARD_WELLS, ShardLayout, TABLE_WELLS};
pub use loops::{Edges, Loops, Origin};
pub use preselect::{RescoreProgress, gathered_layout};

use crate::evaluator::{Evaluator, EvaluatorError, EvaluatorSpec};
use crate::node::{Digest, Node};
use crate::past::Past;
use crate::record::ChangedPiece;
use expander::Expander;
use hatebeam_game::Emulator;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The wells kept at one depth, divided into shards by hash. Each shard is sorted by packed well.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// Number of pieces placed so far.
    pub depth: u32,
    /// The nodes of each shard. The shards on other machines are empty.
    pub shards: Vec<Vec<Node>>,
}

impl Frontier {
    /// Creates a frontier from nodes in any order.
    pub fn new(depth: u32, nodes: impl IntoIterator<Item = Node>, layout: ShardLayout) -> Frontier {
        let mut shards = vec![Vec::new(); layout.shards()];
        for node in nodes {
            shards[layout.shard_of(&node.well)].push(node);
        }
        shards.iter_mut().for_each(|shard| sort(shard));
        Frontier { depth, shards }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// Returns whether the frontier has no nodes.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(Vec::is_empty)
    }

    /// Returns an iterator over all nodes, shard by shard.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.shards.iter().flatten()
    }

    /// Returns the digest of all nodes.
    pub fn digest(&self) -> Digest {
        Digest::of(self.nodes())
    }
}

/// Statistics of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepStats {
    /// Total number of children of all parents. Equal children of the same parent count once.
    pub children: u64,
    /// Number of children offered to tables in this process.
    pub offered: u64,
    /// Number of children sent to peers.
    pub sent: u64,
    /// Number of times the depth was repeated without an estimated floor or with more room.
    pub repeats: u32,
}

/// Number of parents that a thread claims at a time.
const CHUNK: usize = 256;
/// Number of children that a thread sends to a peer at a time.
pub const REMOTE_BATCH: usize = 256;

/// The owner of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process.
    Here,
    /// The peer with this index.
    Peer(u16),
}

/// A connection to the machines that own the other shards.
pub trait ChildSink: Sync {
    /// Sends children to a peer. Blocks while the peer is busy. `origins` contains one element for each child if the depth
    /// applies the loop rule, and is empty otherwise.
    ///
    /// # Errors
    /// Returns [`Cancelled`] if the peer is unreachable. The depth then fails.
    fn send(&self, peer: u16, children: &[Node], origins: &[Origin]) -> Result<(), Cancelled>;
}

/// The division of shards between this process and its peers, and the connection to the peers.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// The owner of each shard.
    pub owners: &'a [Owner],
    /// The sink for children whose shards are owned by peers.
    pub sink: &'a dyn ChildSink,
    /// Number of peers.
    pub peers: u16,
}

/// The result of a depth.
#[derive(Debug)]
pub struct NextDepth {
    /// The next frontier.
    pub frontier: Frontier,
    /// Statistics of the step.
    pub stats: StepStats,
    /// Wells of the previous frontier in which the loop rule changes the piece, in ascending order. Empty if the
    /// depth does not apply the loop rule.
    pub changed: Vec<ChangedPiece>,
}

/// The children of a depth after the expansion.
struct Gathered {
    candidates: Candidates,
    cut: Cut,
    stats: StepStats,
    /// The edges, if the depth applies the loop rule.
    edges: Option<Edges>,
}

/// The destinations of the children of an expansion.
#[derive(Clone, Copy)]
pub struct Targets<'a> {
    /// The tables of this process.
    pub candidates: &'a Candidates,
    /// The peers that own the other shards, or `None` if all shards are in this process.
    pub exchange: Option<Exchange<'a>>,
    /// The past and the collector of edges, if the depth applies the loop rule.
    pub loops: Option<Loops<'a>>,
}

/// One step of a beam search, with settings that are the same at every depth.
pub struct Step {
    emulator: Emulator,
    spec: EvaluatorSpec,
    layout: ShardLayout,
    threads: usize,
    /// Room of a table in addition to its share of the width, in standard deviations.
    sigmas: f64,
    /// Idle evaluators. They are kept because their buffers and caches are useful at the next depth.
    evaluators: Mutex<Vec<Evaluator>>,
}

/// Room of a table in addition to its share of the width, in standard deviations of the share. This value
/// applies to the first attempt at a depth.
pub const DEFAULT_SIGMAS: f64 = 8.0;

/// Returns the number of standard deviations for the next attempt at a depth if `sigmas` was too small.
pub fn retry_sigmas(sigmas: f64) -> f64 {
    sigmas * 2.0 + DEFAULT_SIGMAS
}

/// Error that a step returns if it stops before it has produced a frontier.
#[derive(Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Step {
    /// Creates a step. The number of children that it keeps is the width of the layout.
    ///
    /// # Errors
    /// Returns [`EvaluatorError`] if the evaluator cannot be created.
    pub fn new(
        emulator: &Emulator,
        spec: EvaluatorSpec,
        layout: ShardLayout,
        threads: usize,
    ) -> Result<Step, EvaluatorError> {
        let evaluator = Evaluator::new(emulator, &spec)?;
        Ok(Step {
            evaluators: Mutex::new(vec![evaluator]),
            emulator: emulator.clone(),
            spec,
            layout,
            threads: threads.max(1),
            sigmas: DEFAULT_SIGMAS,
        })
    }

    /// Replaces [`DEFAULT_SIGMAS`]. Tests use a small value to force a step to repeat a depth.
    #[doc(hidden)]
    pub fn with_sigmas(mut self, sigmas: f64) -> Step {
        self.sigmas = sigmas;
        self
    }

    /// Produces the next frontier. `progress` counts the parents that have been expanded.
    ///
    /// # Errors
    /// Returns [`Cancelled`] soon after `cancel` becomes true.
    ///
    /// # Panics
    /// Panics if the frontier contains an invalid well for the emulator's geometry.
    pub fn run(
        &self,
        frontier: &Frontier,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Frontier, StepStats), Cancelled> {
        let depth = frontier.depth + 1;
        let gathered = self.gather(frontier, None, None, cancel, progress)?;
        let shards = self.select(&gathered, cancel)?;
        Ok((Frontier { depth, shards }, gathered.stats))
    }

    /// Like [`Step::run`], but drops `frontier` before it selects the survivors. If the caller holds no
    /// other reference, the two frontiers are never in memory at the same time.
    ///
    /// `floor` is an [estimate](RecentCuts::floor) of the cut. Children below it are rejected before
    /// the more expensive parts of their scores are computed. The estimate does not change the result:
    /// if it is too high, the depth is repeated without it.
    ///
    /// # Errors
    /// Returns [`Cancelled`] soon after `cancel` becomes true.
    ///
    /// # Panics
    /// Panics if the frontier contains an invalid well for the emulator's geometry.
    pub fn advance(
        &self,
        frontier: Arc<Frontier>,
        floor: Option<u64>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Frontier, StepStats), Cancelled> {
        let depth = frontier.depth + 1;
        let gathered = self.gather(&frontier, None, floor, cancel, progress)?;
        drop(frontier);
        let shards = self.select(&gathered, cancel)?;
        Ok((Frontier { depth, shards }, gathered.stats))
    }

    /// Like [`Step::advance`], but applies the loop rule: each well gets the piece that HATETRIS gives in the
    /// game that leads to the well. `past` contains these games, and the step adds the next frontier to it.
    ///
    /// # Errors
    /// Returns [`Cancelled`] soon after `cancel` becomes true. `past` is then unchanged.
    ///
    /// # Panics
    /// Panics if the newest frontier of `past` is not `frontier`, or if the frontier contains an invalid well
    /// for the emulator's geometry.
    pub fn advance_exact(
        &self,
        frontier: &Frontier,
        past: &mut Past,
        floor: Option<u64>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<NextDepth, Cancelled> {
        let wells = frontier.nodes().map(|node| &node.well);
        assert!(wells.eq(past.newest()), "the past leads to the frontier");
        let gathered = self.gather(frontier, Some(past), floor, cancel, progress)?;
        let shards = self.select(&gathered, cancel)?;
        let mut changed = Vec::new();
        if let Some(edges) = gathered.edges {
            let parents = edges.parents(past, &shards, self.threads);
            let parents = parents.expect("each survivor was expanded from a parent");
            changed = edges.changed(past);
            let wells = shards.iter().flatten().map(|node| node.well).collect();
            past.push(wells, parents);
        }
        Ok(NextDepth {
            frontier: Frontier {
                depth: frontier.depth + 1,
                shards,
            },
            stats: gathered.stats,
            changed,
        })
    }

    /// Returns an idle evaluator, or creates one.
    fn evaluator(&self) -> Evaluator {
        lock(&self.evaluators).pop().unwrap_or_else(|| {
            Evaluator::new(&self.emulator, &self.spec)
                .expect("`Step::new` has created an evaluator with this specification")
        })
    }

    /// Collects the children that may survive, and finds the cut. Repeats this until it is certain
    /// that no table has dropped a survivor.
    fn gather(
        &self,
        frontier: &Frontier,
        past: Option<&Past>,
        mut floor: Option<u64>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<Gathered, Cancelled> {
        let mut repeats = 0;
        let mut sigmas = self.sigmas;
        let layout = gathered_layout(self.layout, self.spec.quiescence);
        if layout != self.layout {
            // The estimate is for scores with quiescence.
            floor = None;
        }
        let starts = shard_starts(frontier.shards.iter().map(Vec::len));
        loop {
            let candidates = Candidates::new(layout, sigmas);
            if let Some(floor) = floor {
                candidates.raise_floors(floor);
            }
            progress.store(0, Ordering::Relaxed);
            let past = past.map(|past| (past, Edges::new(layout.shards())));
            let targets = Targets {
                candidates: &candidates,
                exchange: None,
                loops: past.as_ref().map(|(past, edges)| Loops {
                    past,
                    edges,
                    starts: &starts,
                }),
            };
            let stats = self.expand(frontier, targets, cancel, progress)?;
            let cut = candidates.cut(layout.width(), self.threads);
            if !candidates.dropped_above(cut.rank) {
                return Ok(Gathered {
                    candidates,
                    cut,
                    stats: StepStats { repeats, ..stats },
                    edges: past.map(|(_, edges)| edges),
                });
            }
            repeats += 1;
            if floor.take().is_none() {
                sigmas = retry_sigmas(sigmas);
            }
        }
    }

    /// Generates and scores the children of a frontier. Adds children whose shard is in this process to the tables, and
    /// sends all others to peers. `progress` counts the parents that have been expanded.
    ///
    /// # Errors
    /// Returns [`Cancelled`] soon after `cancel` becomes true, or if the sink returns it.
    ///
    /// # Panics
    /// Panics if the frontier contains an invalid well for the emulator's geometry, or if `targets` contains a past that does
    /// not lead to the frontier.
    pub fn expand(
        &self,
        frontier: &Frontier,
        targets: Targets<'_>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<StepStats, Cancelled> {
        let shards = frontier.shards.iter().enumerate();
        let chunks = shards.flat_map(|(shard, nodes)| {
            let start = targets.loops.map_or(0, |loops| loops.starts[shard]);
            (start..).step_by(CHUNK).zip(nodes.chunks(CHUNK))
        });
        let chunks: Vec<(u32, &[Node])> = chunks.collect();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let is_cancelled = || cancel.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let total = Mutex::new(StepStats::default());
        let work = || -> Result<(), Cancelled> {
            let mut expander = Expander::new(self, targets);
            let mut expand = || {
                while let Some(&(first, chunk)) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_cancelled() {
                        return Err(Cancelled);
                    }
                    expander.expand(first, chunk)?;
                    progress.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
                expander.flush_all()
            };
            let expanded = expand();
            // Keep the evaluator even if the step was cancelled. If its network is no longer
            // registered, the next step could not create a new evaluator.
            lock(&self.evaluators).push(expander.evaluator);
            expanded?;
            let mut total = lock(&total);
            total.children += expander.stats.children;
            total.offered += expander.stats.offered;
            total.sent += expander.stats.sent;
            Ok(())
        };
        let run = || {
            if work().is_err() {
                failed.store(true, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(chunks.len()) {
                scope.spawn(run);
            }
            run();
        });
        if is_cancelled() {
            return Err(Cancelled);
        }
        Ok(into_inner(total))
    }
}

/// Returns the index of the first well of each shard in a frontier with these numbers of wells in its shards.
pub fn shard_starts(wells: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let mut start = 0;
    let starts = wells.into_iter().map(|wells| {
        let first = start;
        start += wells as u32;
        first
    });
    starts.collect()
}

fn sort(nodes: &mut [Node]) {
    nodes.sort_unstable_by_key(|node| {
        let bytes = &node.well.0;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        (word(0), word(8), word(12))
    });
}

/// Locks a mutex. Ignores poisoning, because a panic while the lock is held ends the step anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Returns the value of a mutex. Ignores poisoning like [`lock`].
fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
}
