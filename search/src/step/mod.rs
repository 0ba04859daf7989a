//! One depth of the beam: expand, score, drop what cannot survive, merge, select.
//!
//! **Exact, and the same whatever the threads or machines do.** The next frontier is the `width` distinct
//! children that are greatest by score, then by hash, then by packed well; equal wells merge, the greater
//! game score and then the lower hint winning. None of it depends on an order of arrival.
//!
//! **Shards and tables.** A child belongs to the shard its hash names, and there to a table of open
//! addressing small enough for a core's cache; threads hand it children in batches. Children of shards
//! that are elsewhere go there through an [`ChildSink`].
//!
//! **The rising floor.** Hashes spread wells evenly, so that of the top `width` a table holds its share,
//! give or take a few standard deviations. A table that is full therefore keeps its own greatest (its
//! share, eight standard deviations and 16 more) and drops the rest; the least kept is its floor, below
//! which it takes nothing more.
//! When all is done the exact [cut](CutSearch) over all tables is found. Should it lie below some floor,
//! something may have been dropped wrongly: the depth is then done again with twice the room (never seen
//! outside the test that forces it). The floors are exact, not sampled, and cost no word between threads.
//!
//! **Memory** is that of the parents (28 bytes a well) and of the tables (some 60 bytes a well of width),
//! whatever the number of children.

mod candidates;
mod cut;
mod layout;

pub use candidates::{Candidates, SortBuffer};
pub use cut::{CountQuery, Cut, CutSearch, DIGIT_VALUES, DIGITS, Ties};
pub use layout::{MAX_SHARDS, MIN_SHARDS, SHARD_WELLS, ShardLayout, TABLE_WELLS};

use crate::evaluator::{Evaluator, EvaluatorSpec, WeightError};
use crate::node::{Digest, Node, NodeWell};
use candidates::Candidate;
use cut::rank;
use hatebeam_game::{Children, Emulator, Well};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The wells of one depth, in shards by hash, each sorted by packed well.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// How many pieces after the run's first well.
    pub depth: u32,
    /// The wells of each shard; none of a shard that is elsewhere.
    pub shards: Vec<Vec<Node>>,
}

impl Frontier {
    /// A frontier of these nodes.
    pub fn new(depth: u32, nodes: impl IntoIterator<Item = Node>, layout: ShardLayout) -> Frontier {
        let mut shards = vec![Vec::new(); layout.shards()];
        for node in nodes {
            shards[layout.shard_of(&node.well)].push(node);
        }
        shards.iter_mut().for_each(|shard| sort(shard));
        Frontier { depth, shards }
    }

    /// How many wells there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(Vec::is_empty)
    }

    /// All nodes, shard after shard.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.shards.iter().flatten()
    }

    /// The digest of all nodes.
    pub fn digest(&self) -> Digest {
        Digest::of(self.nodes())
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepStats {
    /// Distinct children of each parent, added up over the parents.
    pub children: u64,
    /// Of those, how many reached a table here.
    pub offered: u64,
    /// Of those, how many were sent elsewhere.
    pub sent: u64,
    /// How often the depth was done again with more room.
    pub repeats: u32,
}

/// Parents that a thread takes at a time.
const CHUNK: usize = 256;
/// Children that are handed to a shard at a time.
const BATCH: usize = 64;
/// Children that are sent to a peer at a time.
pub const REMOTE_BATCH: usize = 256;
/// Chunks after which a thread looks again for the least floor of all, for each that many tables: the
/// look then costs nothing beside the work.
const TABLES_A_LOOK: usize = 4096;

/// Who has a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process.
    Here,
    /// The peer of this number.
    Peer(u16),
}

/// The way to the shards that are elsewhere.
pub trait ChildSink: Sync {
    /// Hands children to a peer, and waits while it has its hands full.
    ///
    /// # Errors
    /// [`Cancelled`] if the peer cannot be reached any more: the depth is lost.
    fn send(&self, peer: u16, children: &[Node]) -> Result<(), Cancelled>;
}

/// Where the children go whose shard is not here.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// Who has each shard.
    pub owners: &'a [Owner],
    /// The way to them.
    pub sink: &'a dyn ChildSink,
    /// How many peers there are.
    pub peers: u16,
}

/// A step's settings, used again for every depth.
pub struct Step {
    emulator: Emulator,
    spec: EvaluatorSpec,
    layout: ShardLayout,
    threads: usize,
    /// Standard deviations of room in a table.
    sigmas: f64,
}

/// The standard deviations of room that a table has at first.
pub const DEFAULT_SIGMAS: f64 = 8.0;

/// The room to do a depth again with that needed more.
pub fn retry_sigmas(sigmas: f64) -> f64 {
    sigmas * 2.0 + DEFAULT_SIGMAS
}

/// Why a step made no frontier.
#[derive(Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Step {
    /// A step to the best children, as many as the layout's width.
    ///
    /// # Errors
    /// [`WeightError`] if the evaluator's weights cannot be used.
    pub fn new(
        emulator: &Emulator,
        spec: EvaluatorSpec,
        layout: ShardLayout,
        threads: usize,
    ) -> Result<Step, WeightError> {
        Evaluator::new(emulator, &spec)?;
        Ok(Step {
            emulator: emulator.clone(),
            spec,
            layout,
            threads: threads.max(1),
            sigmas: DEFAULT_SIGMAS,
        })
    }

    /// With less room in the tables than is wise, so that a step must be repeated: for tests.
    #[doc(hidden)]
    pub fn with_sigmas(mut self, sigmas: f64) -> Step {
        self.sigmas = sigmas;
        self
    }

    /// The next frontier.
    ///
    /// # Errors
    /// [`Cancelled`] soon after `cancel` becomes true.
    ///
    /// # Panics
    /// If the frontier holds bytes that are no well of the emulator's geometry.
    pub fn run(
        &self,
        frontier: &Frontier,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Frontier, StepStats), Cancelled> {
        let depth = frontier.depth + 1;
        let (candidates, cut, stats) = self.gather(frontier, cancel, progress)?;
        let shards = candidates.select(&cut, self.threads);
        Ok((Frontier { depth, shards }, stats))
    }

    /// The same; the frontier is let go before the next one is made, so that the two need not be in
    /// memory at once.
    ///
    /// # Errors
    /// As for [`Step::run`].
    pub fn advance(
        &self,
        frontier: Arc<Frontier>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Frontier, StepStats), Cancelled> {
        let depth = frontier.depth + 1;
        let (candidates, cut, stats) = self.gather(&frontier, cancel, progress)?;
        drop(frontier);
        let shards = candidates.select(&cut, self.threads);
        Ok((Frontier { depth, shards }, stats))
    }

    /// All that may survive, and the cut.
    fn gather(
        &self,
        frontier: &Frontier,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Candidates, Cut, StepStats), Cancelled> {
        let mut repeats = 0;
        let mut sigmas = self.sigmas;
        loop {
            let candidates = Candidates::new(self.layout, sigmas);
            progress.store(0, Ordering::Relaxed);
            let stats = self.expand(frontier, &candidates, None, cancel, progress)?;
            let cut = candidates.cut(self.threads);
            if !candidates.dropped_above(cut.rank) {
                return Ok((candidates, cut, StepStats { repeats, ..stats }));
            }
            repeats += 1;
            sigmas = retry_sigmas(sigmas);
        }
    }

    /// Makes the children of a frontier. Those of the shards that are here go among the candidates, the
    /// others through the exchange; without one all shards are here.
    ///
    /// # Errors
    /// [`Cancelled`] soon after `cancel` becomes true, or because the sink says so.
    ///
    /// # Panics
    /// If the frontier holds bytes that are no well of the emulator's geometry.
    pub fn expand(
        &self,
        frontier: &Frontier,
        candidates: &Candidates,
        exchange: Option<Exchange<'_>>,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<StepStats, Cancelled> {
        let chunks: Vec<&[Node]> = frontier
            .shards
            .iter()
            .flat_map(|shard| shard.chunks(CHUNK))
            .collect();
        let next = AtomicUsize::new(0);
        let lost = AtomicBool::new(false);
        let total = Mutex::new(StepStats::default());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(chunks.len()) {
                scope.spawn(|| {
                    let mut worker = Worker::new(self, candidates, exchange);
                    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if cancel.load(Ordering::Relaxed) || lost.load(Ordering::Relaxed) {
                            return;
                        }
                        if worker.expand(chunk).is_err() {
                            lost.store(true, Ordering::Relaxed);
                            return;
                        }
                        progress.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    }
                    if worker.flush_all().is_err() {
                        lost.store(true, Ordering::Relaxed);
                    }
                    let mut total = lock(&total);
                    total.children += worker.stats.children;
                    total.offered += worker.stats.offered;
                    total.sent += worker.stats.sent;
                });
            }
        });
        if cancel.load(Ordering::Relaxed) || lost.load(Ordering::Relaxed) {
            return Err(Cancelled);
        }
        Ok(total
            .into_inner()
            .unwrap_or_else(|poison| poison.into_inner()))
    }
}

/// One thread's part of an expansion.
struct Worker<'a> {
    emulator: &'a Emulator,
    evaluator: Evaluator,
    candidates: &'a Candidates,
    exchange: Option<Exchange<'a>>,
    children: Children,
    wells: Vec<Well>,
    lines: Vec<u16>,
    hints: Vec<u8>,
    scores: Vec<i32>,
    /// For each table here.
    out: Vec<Vec<Candidate>>,
    /// For each peer.
    out_of_here: Vec<Vec<Node>>,
    /// No table takes a child of a lesser score any more.
    floor: i32,
    /// Chunks until the floor is looked for again.
    look_in: usize,
    stats: StepStats,
}

impl<'a> Worker<'a> {
    fn new(
        step: &'a Step,
        candidates: &'a Candidates,
        exchange: Option<Exchange<'a>>,
    ) -> Worker<'a> {
        let peers = exchange.map_or(0, |exchange| usize::from(exchange.peers));
        Worker {
            emulator: &step.emulator,
            evaluator: Evaluator::new(&step.emulator, &step.spec)
                .expect("the weights were checked when the step was made"),
            candidates,
            exchange,
            children: Children::new(),
            wells: Vec::new(),
            lines: Vec::new(),
            hints: Vec::new(),
            scores: Vec::new(),
            out: vec![Vec::new(); candidates.layout().tables()],
            out_of_here: vec![Vec::new(); peers],
            floor: i32::MIN,
            look_in: 0,
            stats: StepStats::default(),
        }
    }

    fn expand(&mut self, parents: &[Node]) -> Result<(), Cancelled> {
        let geometry = self.emulator.geometry();
        let layout = self.candidates.layout();
        if self.look_in == 0 {
            self.floor = self.candidates.least_score();
            self.look_in = 1 + layout.tables() / TABLES_A_LOOK;
        }
        self.look_in -= 1;
        // Thirty-two parents have some 450 children: enough for full vectors, little enough for the
        // nearest cache.
        for parents in parents.chunks(32) {
            self.wells.clear();
            self.lines.clear();
            self.hints.clear();
            for parent in parents {
                let well = parent
                    .well
                    .unpack(geometry)
                    .expect("a frontier holds wells of its geometry");
                let hint = well.hash() as u8;
                self.emulator.expand(&well, &mut self.children);
                self.wells.extend_from_slice(self.children.wells());
                let lines = self.children.lines().iter();
                let scores = lines.map(|&lines| parent.lines.saturating_add(u16::from(lines)));
                self.lines.extend(scores);
                self.hints.resize(self.wells.len(), hint);
            }
            self.stats.children += self.wells.len() as u64;
            let (floor, scores) = (self.floor, &mut self.scores);
            self.evaluator
                .score_from(floor, &self.wells, &self.lines, scores);
            for index in 0..self.wells.len() {
                let well = NodeWell::pack(geometry, &self.wells[index]);
                let hash = well.hash();
                let score = self.scores[index];
                let table = layout.table_of(hash);
                if !self.candidates.takes(table, rank(score, hash)) {
                    continue;
                }
                let node = Node {
                    score,
                    well,
                    lines: self.lines[index],
                    hint: self.hints[index],
                };
                if let Some(exchange) = self.exchange
                    && let Owner::Peer(peer) = exchange.owners[table / layout.tables_a_shard()]
                {
                    let out = &mut self.out_of_here[usize::from(peer)];
                    out.push(node);
                    if out.len() == REMOTE_BATCH {
                        self.send(exchange, peer)?;
                    }
                    continue;
                }
                self.out[table].push(Candidate { node, hash });
                if self.out[table].len() == BATCH {
                    self.flush(table);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self, table: usize) {
        self.stats.offered += self.out[table].len() as u64;
        self.candidates.offer(table, &self.out[table]);
        self.out[table].clear();
    }

    fn send(&mut self, exchange: Exchange<'_>, peer: u16) -> Result<(), Cancelled> {
        let out = &mut self.out_of_here[usize::from(peer)];
        self.stats.sent += out.len() as u64;
        exchange.sink.send(peer, out)?;
        out.clear();
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), Cancelled> {
        for table in 0..self.out.len() {
            if !self.out[table].is_empty() {
                self.flush(table);
            }
        }
        if let Some(exchange) = self.exchange {
            for peer in 0..exchange.peers {
                if !self.out_of_here[usize::from(peer)].is_empty() {
                    self.send(exchange, peer)?;
                }
            }
        }
        Ok(())
    }
}

fn sort(nodes: &mut [Node]) {
    nodes.sort_unstable_by_key(|node| {
        let bytes = &node.well.0;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        (word(0), word(8), word(12))
    });
}

/// A lock that nobody can leave broken: what panicked while holding it ends the step anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
