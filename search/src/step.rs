//! One depth of the beam on one machine: expand, score, drop what cannot survive, merge, select.
//!
//! **Exact, and the same whatever the threads do.** The next frontier is the `width` distinct children
//! that are greatest by score, then by hash, then by packed well; equal wells merge, the greater game
//! score and then the lower hint winning. None of it depends on an order of arrival.
//!
//! **Shards.** A child belongs to the shard its hash names. A shard keeps a table of open addressing
//! small enough for a core's cache; threads hand it children in batches.
//!
//! **The rising floor.** Hashes spread wells evenly, so that of the top `width` a shard holds its share,
//! give or take a few standard deviations. A shard that is full therefore keeps its own greatest (its
//! share, eight standard deviations and 16 more) and drops the rest; the least kept is its floor, below
//! which it takes nothing more.
//! When all is done the exact cut over all shards is known. Should it lie below some floor, something
//! may have been dropped wrongly: the depth is then done again with twice the room (never seen outside
//! the test that forces it). The floors are exact, not sampled, and cost no word between threads.
//!
//! **Memory** is that of the parents (28 bytes a well) and of the tables (some 60 bytes a well of width),
//! whatever the number of children.

use crate::evaluator::{Evaluator, EvaluatorSpec, WeightError};
use crate::node::{Digest, Node, NodeWell};
use hatebeam_game::{Children, Emulator, Well};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The wells of one depth, in parts by hash, each part sorted by packed well.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// How many pieces after the run's first well.
    pub depth: u32,
    /// The wells.
    pub parts: Vec<Vec<Node>>,
}

impl Frontier {
    /// A frontier of these nodes, divided as [`Step::run`] divides them for a width.
    pub fn new(depth: u32, nodes: impl IntoIterator<Item = Node>, width: usize) -> Frontier {
        let count = part_count(width);
        let mut parts = vec![Vec::new(); count];
        for node in nodes {
            parts[shard_of(node.well.hash(), count)].push(node);
        }
        parts.iter_mut().for_each(|part| sort(part));
        Frontier { depth, parts }
    }

    /// How many wells there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Vec::is_empty)
    }

    /// All nodes, part after part.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.parts.iter().flatten()
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
    /// Of those, how many reached a table.
    pub offered: u64,
    /// How often the depth was done again with more room.
    pub repeats: u32,
}

/// Parents that a thread takes at a time.
const CHUNK: usize = 256;
/// Children that are handed to a shard at a time.
const BATCH: usize = 64;
/// Bins that scores are counted in to find the cut.
const BINS: usize = 1 << 16;
/// Wells of width that a shard is made for: its table then fits a second-level cache.
const SHARD_WIDTH: usize = 16_384;

/// A step's settings, used again for every depth.
pub struct Step {
    emulator: Emulator,
    spec: EvaluatorSpec,
    width: usize,
    threads: usize,
    /// Standard deviations of room in a shard.
    sigmas: f64,
}

/// Why a step made no frontier.
#[derive(Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Step {
    /// A step to the best `width` children.
    ///
    /// # Errors
    /// [`WeightError`] if the evaluator's weights cannot be used.
    pub fn new(
        emulator: &Emulator,
        spec: EvaluatorSpec,
        width: usize,
        threads: usize,
    ) -> Result<Step, WeightError> {
        Evaluator::new(emulator, &spec)?;
        Ok(Step {
            emulator: emulator.clone(),
            spec,
            width: width.max(1),
            threads: threads.max(1),
            sigmas: 8.0,
        })
    }

    /// With less room in the shards than is wise, so that a step must be repeated: for tests.
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
        let (shards, cut, stats) = self.gather(frontier, cancel, progress)?;
        let parts = shards.select(self.width, cut, self.threads);
        Ok((Frontier { depth, parts }, stats))
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
        let (shards, cut, stats) = self.gather(&frontier, cancel, progress)?;
        drop(frontier);
        let parts = shards.select(self.width, cut, self.threads);
        Ok((Frontier { depth, parts }, stats))
    }

    /// The shards with all that may survive, and the rank of the last that does.
    fn gather(
        &self,
        frontier: &Frontier,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(Shards, u64, StepStats), Cancelled> {
        let mut stats = StepStats::default();
        let mut sigmas = self.sigmas;
        loop {
            let shards = Shards::new(self.width, sigmas);
            progress.store(0, Ordering::Relaxed);
            let (children, offered) = self.expand(frontier, &shards, cancel, progress)?;
            stats.children = children;
            stats.offered = offered;
            let cut = shards.cut(self.width);
            if !shards.dropped_above(cut) {
                return Ok((shards, cut, stats));
            }
            stats.repeats += 1;
            sigmas = sigmas * 2.0 + 8.0;
        }
    }

    fn expand(
        &self,
        frontier: &Frontier,
        shards: &Shards,
        cancel: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<(u64, u64), Cancelled> {
        let chunks: Vec<&[Node]> = frontier
            .parts
            .iter()
            .flat_map(|p| p.chunks(CHUNK))
            .collect();
        let next = AtomicUsize::new(0);
        let (children, offered) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(chunks.len()) {
                scope.spawn(|| {
                    let mut worker = Worker::new(self, shards);
                    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if cancel.load(Ordering::Relaxed) {
                            return;
                        }
                        worker.expand(chunk);
                        progress.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    }
                    worker.flush_all();
                    children.fetch_add(worker.made, Ordering::Relaxed);
                    offered.fetch_add(worker.offered, Ordering::Relaxed);
                });
            }
        });
        if cancel.load(Ordering::Relaxed) {
            return Err(Cancelled);
        }
        Ok((children.into_inner(), offered.into_inner()))
    }
}

/// A child on its way to its shard.
#[derive(Clone, Copy)]
struct Candidate {
    node: Node,
    hash: u64,
}

/// One thread's part of an expansion.
struct Worker<'a> {
    emulator: &'a Emulator,
    evaluator: Evaluator,
    shards: &'a Shards,
    children: Children,
    wells: Vec<Well>,
    game_scores: Vec<u16>,
    hints: Vec<u8>,
    scores: Vec<i32>,
    out: Vec<Vec<Candidate>>,
    /// No shard takes a child of a lesser score any more.
    floor: i32,
    made: u64,
    offered: u64,
}

impl<'a> Worker<'a> {
    fn new(step: &'a Step, shards: &'a Shards) -> Worker<'a> {
        Worker {
            emulator: &step.emulator,
            evaluator: Evaluator::new(&step.emulator, &step.spec)
                .expect("the weights were checked when the step was made"),
            shards,
            children: Children::new(),
            wells: Vec::new(),
            game_scores: Vec::new(),
            hints: Vec::new(),
            scores: Vec::new(),
            out: vec![Vec::with_capacity(BATCH); shards.all.len()],
            floor: i32::MIN,
            made: 0,
            offered: 0,
        }
    }

    fn expand(&mut self, parents: &[Node]) {
        let geometry = self.emulator.geometry();
        self.floor = self.shards.least_score();
        // Thirty-two parents have some 450 children: enough for full vectors, little enough for the
        // nearest cache.
        for parents in parents.chunks(32) {
            self.wells.clear();
            self.game_scores.clear();
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
                let scores = lines.map(|&lines| parent.game_score.saturating_add(u16::from(lines)));
                self.game_scores.extend(scores);
                self.hints.resize(self.wells.len(), hint);
            }
            self.made += self.wells.len() as u64;
            let (floor, scores) = (self.floor, &mut self.scores);
            self.evaluator
                .score_from(floor, &self.wells, &self.game_scores, scores);
            for index in 0..self.wells.len() {
                let well = NodeWell::pack(geometry, &self.wells[index]);
                let hash = well.hash();
                let score = self.scores[index];
                let shard = self.shards.of(hash);
                if rank(score, hash) < self.shards.floors[shard].load(Ordering::Relaxed) {
                    continue;
                }
                let node = Node {
                    score,
                    well,
                    game_score: self.game_scores[index],
                    hint: self.hints[index],
                };
                self.out[shard].push(Candidate { node, hash });
                if self.out[shard].len() == BATCH {
                    self.flush(shard);
                }
            }
        }
    }

    fn flush(&mut self, shard: usize) {
        self.offered += self.out[shard].len() as u64;
        self.shards.offer(shard, &self.out[shard]);
        self.out[shard].clear();
    }

    fn flush_all(&mut self) {
        for shard in 0..self.out.len() {
            self.flush(shard);
        }
    }
}

/// How the greatest are told: by score, then by hash.
fn rank(score: i32, hash: u64) -> u64 {
    u64::from(score as u32 ^ 1 << 31) << 32 | (hash & 0xffff_ffff)
}

fn score_of(rank: u64) -> i32 {
    ((rank >> 32) as u32 ^ 1 << 31) as i32
}

fn shard_of(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

/// Parts of a frontier of this width: a table on disk each.
fn part_count(width: usize) -> usize {
    if width < 4096 { 1 } else { 8 }
}

fn sort(nodes: &mut [Node]) {
    nodes.sort_unstable_by_key(|node| {
        let bytes = &node.well.0;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        (word(0), word(8), word(12))
    });
}

struct Shards {
    all: Vec<Mutex<Table>>,
    floors: Vec<AtomicU64>,
}

impl Shards {
    fn new(width: usize, sigmas: f64) -> Shards {
        // A multiple of the parts, so that a shard lies in one part.
        let parts = part_count(width);
        let count = parts * (width / parts / SHARD_WIDTH).max(if parts == 1 { 1 } else { 2 });
        let share = width as f64 / count as f64;
        let room = if count == 1 {
            width
        } else {
            ((share + sigmas * share.sqrt() + 16.0) as usize).min(width)
        };
        Shards {
            all: (0..count).map(|_| Mutex::new(Table::new(room))).collect(),
            floors: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn of(&self, hash: u64) -> usize {
        shard_of(hash, self.all.len())
    }

    fn offer(&self, shard: usize, batch: &[Candidate]) {
        let mut table = lock(&self.all[shard]);
        for candidate in batch {
            table.insert(candidate);
        }
        self.floors[shard].store(table.floor, Ordering::Relaxed);
    }

    /// The least score that some shard still takes. It only rises.
    fn least_score(&self) -> i32 {
        let floors = self
            .floors
            .iter()
            .map(|floor| floor.load(Ordering::Relaxed));
        score_of(floors.min().unwrap_or(0))
    }

    /// The rank of the last that survives; 0 if all do.
    fn cut(&self, width: usize) -> u64 {
        let total: usize = self.all.iter().map(|table| lock(table).len).sum();
        // Just as many as wanted may be what is left of more: then there is a cut.
        if total < width {
            return 0;
        }
        let each_score = |take: &mut dyn FnMut(i32)| {
            for table in &self.all {
                lock(table).nodes().for_each(|node| take(node.score));
            }
        };
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        each_score(&mut |score| (low, high) = (low.min(score), high.max(score)));
        // Counted in bins by score, so that no list of all ranks is needed but of one bin's.
        let span = (i64::from(high) - i64::from(low) + 1) as u64;
        let bin_of = |score: i32| {
            let offset = (i64::from(score) - i64::from(low)) as u64;
            (offset * BINS as u64 / span) as usize
        };
        let mut bins = vec![0usize; BINS];
        each_score(&mut |score| bins[bin_of(score)] += 1);
        let mut above = 0;
        let mut bin = BINS - 1;
        while above + bins[bin] < width {
            above += bins[bin];
            bin -= 1;
        }
        let mut ranks = Vec::with_capacity(bins[bin]);
        for table in &self.all {
            let table = lock(table);
            let inside = table.nodes().filter(|node| bin_of(node.score) == bin);
            ranks.extend(inside.map(|node| rank(node.score, node.well.hash())));
        }
        let at = ranks.len() - (width - above);
        *ranks.select_nth_unstable(at).1
    }

    /// Whether a shard dropped something that the cut would have let live. (With a cut of 0, whether
    /// anything was dropped.)
    fn dropped_above(&self, cut: u64) -> bool {
        self.floors
            .iter()
            .any(|floor| floor.load(Ordering::Relaxed) > cut)
    }

    /// The survivors, each part sorted.
    fn select(self, width: usize, cut: u64, threads: usize) -> Vec<Vec<Node>> {
        // Those of the cut's own rank are nearly always one; if more, the first by packed well.
        let mut above = 0;
        let mut tied = Vec::new();
        for table in &self.all {
            for node in lock(table).nodes() {
                match rank(node.score, node.well.hash()).cmp(&cut) {
                    std::cmp::Ordering::Greater => above += 1,
                    std::cmp::Ordering::Equal => tied.push(node.well),
                    std::cmp::Ordering::Less => {}
                }
            }
        }
        tied.sort_unstable();
        tied.truncate(width - above.min(width));
        let parts = part_count(width);
        let tables: Vec<_> = self
            .all
            .into_iter()
            .map(|table| Mutex::new(Some(table)))
            .collect();
        let each = tables.len() / parts;
        let results: Vec<Mutex<Vec<Node>>> = (0..parts).map(|_| Mutex::new(Vec::new())).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(parts) {
                scope.spawn(|| {
                    loop {
                        let part = next.fetch_add(1, Ordering::Relaxed);
                        if part >= parts {
                            return;
                        }
                        let mine = &tables[part * each..(part + 1) * each];
                        let survives = |node: &Node| {
                            let rank = rank(node.score, node.well.hash());
                            rank > cut || rank == cut && tied.binary_search(&node.well).is_ok()
                        };
                        // Counted first: a vector that grows takes up to three times the memory.
                        let count_in = |table: &Mutex<Option<Mutex<Table>>>| {
                            let table = lock(table);
                            let table = table.as_ref().map(lock);
                            table.map_or(0, |table| table.nodes().filter(survives).count())
                        };
                        let mut nodes = Vec::with_capacity(mine.iter().map(count_in).sum());
                        for table in mine {
                            // Each table is freed as soon as it was read.
                            let Some(table) = lock(table).take() else {
                                continue;
                            };
                            nodes.extend(lock(&table).nodes().filter(survives));
                        }
                        sort(&mut nodes);
                        *lock(&results[part]) = nodes;
                    }
                });
            }
        });
        results
            .into_iter()
            .map(|part| {
                part.into_inner()
                    .unwrap_or_else(|poison| poison.into_inner())
            })
            .collect()
    }
}

/// A lock that nobody can leave broken: what panicked while holding it ends the step anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Marks a slot nobody is in: no game scores so much.
const FREE: u16 = u16::MAX;

/// The best of one shard: open addressing, whole wells compared.
struct Table {
    slots: Vec<Node>,
    len: usize,
    /// Wells kept when it is full.
    room: usize,
    /// Full with so many.
    limit: usize,
    /// Ranks below it are refused.
    floor: u64,
}

impl Table {
    fn new(room: usize) -> Table {
        Table {
            slots: Vec::new(),
            len: 0,
            room,
            limit: room + room / 2 + 64,
            floor: 0,
        }
    }

    fn nodes(&self) -> impl Iterator<Item = Node> {
        self.slots
            .iter()
            .filter(|node| node.game_score != FREE)
            .copied()
    }

    fn slot(&self, hash: u64) -> usize {
        // Bits that neither name the shard nor break ties: the tables fill evenly even where the tie
        // decides who stays.
        (((hash >> 16 & 0xffff_ffff) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn insert(&mut self, candidate: &Candidate) {
        if rank(candidate.node.score, candidate.hash) < self.floor {
            return;
        }
        if self.slots.is_empty() || self.len * 4 >= self.slots.len() * 3 {
            self.make_room();
            if rank(candidate.node.score, candidate.hash) < self.floor {
                return;
            }
        }
        let node = &candidate.node;
        let mut at = self.slot(candidate.hash);
        loop {
            let here = &mut self.slots[at];
            if here.game_score == FREE {
                *here = *node;
                self.len += 1;
                return;
            }
            if here.well == node.well {
                let better = node.game_score > here.game_score
                    || node.game_score == here.game_score && node.hint < here.hint;
                if better {
                    *here = *node;
                }
                return;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// Grows, as far as it may; then drops the least.
    #[cold]
    fn make_room(&mut self) {
        let most = self.limit * 4 / 3 + 4;
        let mut kept: Vec<Node> = self.nodes().collect();
        let mut size = self.slots.len();
        if size < most {
            size = (size * 2).clamp(64, most);
            if size * 2 > most {
                size = most;
            }
        } else {
            let mut ranks: Vec<u64> = kept.iter().map(|n| rank(n.score, n.well.hash())).collect();
            let at = ranks.len() - self.room.min(ranks.len());
            let floor = *ranks.select_nth_unstable(at).1;
            self.floor = floor;
            kept.retain(|n| rank(n.score, n.well.hash()) >= floor);
        }
        let free = Node {
            score: 0,
            well: NodeWell::default(),
            game_score: FREE,
            hint: 0,
        };
        self.slots.clear();
        self.slots.reserve_exact(size);
        self.slots.resize(size, free);
        self.len = kept.len();
        for node in &kept {
            let mut at = self.slot(node.well.hash());
            while self.slots[at].game_score != FREE {
                at = (at + 1) % size;
            }
            self.slots[at] = *node;
        }
    }
}
