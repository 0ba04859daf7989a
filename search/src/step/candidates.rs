//! The children of one depth that may survive, in tables by hash.

use super::cut::{CountQuery, Cut, CutSearch, DIGIT_VALUES, Ties, rank, score_of};
use super::layout::ShardLayout;
use super::{lock, sort};
use crate::node::{Node, NodeWell};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A child on its way to its table.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) node: Node,
    pub(super) hash: u64,
}

/// The children of one depth that may survive: those of the shards that are here, and of the others the
/// floors alone.
pub struct Candidates {
    layout: ShardLayout,
    tables: Vec<Mutex<Table>>,
    floors: Vec<AtomicU64>,
}

impl Candidates {
    /// None yet. Eight `sigmas` of room are enough, unless [`Candidates::dropped_above`] says otherwise.
    pub fn new(layout: ShardLayout, sigmas: f64) -> Candidates {
        let (count, room) = (layout.tables(), layout.room(sigmas));
        Candidates {
            layout,
            tables: (0..count).map(|_| Mutex::new(Table::new(room))).collect(),
            floors: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Bytes that their tables take.
    pub fn bytes(&self) -> u64 {
        let bytes = |table: &Mutex<Table>| (lock(table).slots.len() * size_of::<Node>()) as u64;
        self.tables.iter().map(bytes).sum()
    }

    /// How they are divided.
    pub fn layout(&self) -> ShardLayout {
        self.layout
    }

    /// Whether a child of this rank may still survive in a table.
    #[inline]
    pub(super) fn takes(&self, table: usize, rank: u64) -> bool {
        rank >= self.floors[table].load(Ordering::Relaxed)
    }

    pub(super) fn offer(&self, at: usize, batch: &[Candidate]) {
        let mut table = lock(&self.tables[at]);
        table.insert_all(batch);
        self.floors[at].store(table.floor, Ordering::Relaxed);
    }

    /// Takes children that were made elsewhere. What a batch is sorted into is kept in `sorted`.
    pub fn offer_nodes(&self, nodes: &[Node], sorted: &mut SortBuffer) {
        sorted.0.clear();
        sorted.0.extend(nodes.iter().map(|&node| {
            let hash = node.well.hash();
            (self.layout.table_of(hash), Candidate { node, hash })
        }));
        sorted.0.sort_unstable_by_key(|(table, _)| *table);
        for group in sorted.0.chunk_by(|a, b| a.0 == b.0) {
            let at = group[0].0;
            let mut table = lock(&self.tables[at]);
            table.touch(group.iter().map(|(_, candidate)| candidate.hash));
            for (_, candidate) in group {
                table.insert(candidate);
            }
            self.floors[at].store(table.floor, Ordering::Relaxed);
        }
    }

    /// The rank below which nothing survives in a shard. It only rises.
    pub fn floor(&self, shard: usize) -> u64 {
        let each = self.layout.tables_a_shard();
        let floors = &self.floors[shard * each..(shard + 1) * each];
        let floors = floors.iter().map(|floor| floor.load(Ordering::Relaxed));
        floors.min().unwrap_or(0)
    }

    /// Takes note of the floor of a shard that is elsewhere.
    pub fn raise_floor(&self, shard: usize, floor: u64) {
        let each = self.layout.tables_a_shard();
        for here in &self.floors[shard * each..(shard + 1) * each] {
            here.fetch_max(floor, Ordering::Relaxed);
        }
    }

    /// The least score that some shard still takes. It only rises.
    pub(super) fn least_score(&self) -> i32 {
        let floors = self.floors.iter();
        let floors = floors.map(|floor| floor.load(Ordering::Relaxed));
        score_of(floors.min().unwrap_or(0))
    }

    /// How many children are here.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| lock(table).len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the children for the search for the cut: [`DIGIT_VALUES`] counts.
    pub fn count(&self, query: CountQuery, threads: usize) -> Vec<u64> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut counts = vec![0; DIGIT_VALUES];
            while let Some(table) = self.tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                for node in lock(table).nodes() {
                    if let Some(digit) = query.digit(rank(node.score, node.well.hash())) {
                        counts[digit] += 1;
                    }
                }
            }
            counts
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut counts = work();
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                counts
                    .iter_mut()
                    .zip(other)
                    .for_each(|(sum, more)| *sum += more);
            }
            counts
        })
    }

    /// The cut, where all children are here.
    pub(super) fn cut(&self, threads: usize) -> Cut {
        let mut search = CutSearch::new(self.layout.width());
        while let Some(query) = search.query() {
            search.answer(&self.count(query, threads));
        }
        let mut cut = search.cut();
        if let Ties::First(count) = cut.ties {
            let mut tied = self.tied(cut.rank);
            tied.sort_unstable();
            tied.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            cut.ties = Ties::Listed(tied);
        }
        cut
    }

    /// The wells here of this very rank, in no order.
    pub fn tied(&self, cut: u64) -> Vec<NodeWell> {
        let mut tied = Vec::new();
        for table in &self.tables {
            let table = lock(table);
            let of_the_rank = table
                .nodes()
                .filter(|node| rank(node.score, node.well.hash()) == cut);
            tied.extend(of_the_rank.map(|node| node.well));
        }
        tied
    }

    /// Whether a table dropped something that the cut would have let live. (With a cut of 0, whether
    /// anything was dropped.) The depth must then be done again with more room.
    pub fn dropped_above(&self, cut: u64) -> bool {
        let mut floors = self.floors.iter();
        floors.any(|floor| floor.load(Ordering::Relaxed) > cut)
    }

    /// Takes the survivors out, by shard, each shard sorted by packed well; the rest goes. With
    /// [`Ties::First`] all ties survive.
    pub fn select(&self, cut: &Cut, threads: usize) -> Vec<Vec<Node>> {
        let (shards, each) = (self.layout.shards(), self.layout.tables_a_shard());
        let survives = |node: &Node| {
            let rank = rank(node.score, node.well.hash());
            rank > cut.rank
                || rank == cut.rank
                    && match &cut.ties {
                        Ties::Listed(these) => these.binary_search(&node.well).is_ok(),
                        Ties::All | Ties::First(_) => true,
                    }
        };
        let results: Vec<Mutex<Vec<Node>>> = (0..shards).map(|_| Mutex::new(Vec::new())).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, shards) {
                scope.spawn(|| {
                    loop {
                        let shard = next.fetch_add(1, Ordering::Relaxed);
                        if shard >= shards {
                            return;
                        }
                        let mine = &self.tables[shard * each..(shard + 1) * each];
                        // Counted first: a vector that grows takes up to three times the memory.
                        let count_in =
                            |table: &Mutex<Table>| lock(table).nodes().filter(survives).count();
                        let mut nodes = Vec::with_capacity(mine.iter().map(count_in).sum());
                        for table in mine {
                            let mut table = lock(table);
                            nodes.extend(table.nodes().filter(survives));
                            // Freed as soon as it was read.
                            table.slots = Vec::new();
                            table.len = 0;
                        }
                        sort(&mut nodes);
                        *lock(&results[shard]) = nodes;
                    }
                });
            }
        });
        results
            .into_iter()
            .map(|shard| {
                shard
                    .into_inner()
                    .unwrap_or_else(|poison| poison.into_inner())
            })
            .collect()
    }
}

/// What [`Candidates::offer_nodes`] works in.
#[derive(Default)]
pub struct SortBuffer(Vec<(usize, Candidate)>);

/// Marks a slot nobody is in: no game scores so much.
const FREE: u16 = u16::MAX;

/// The best of one part of the hashes: open addressing, whole wells compared.
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
        self.slots.iter().filter(|node| node.lines != FREE).copied()
    }

    fn slot(&self, hash: u64) -> usize {
        // Bits that neither name the shard nor break ties: the tables fill evenly even where the tie
        // decides who stays.
        (((hash >> 16 & 0xffff_ffff) * self.slots.len() as u64) >> 32) as usize
    }

    /// Looks at the slots of these hashes, all at once: the memory of a table that fell out of the cache
    /// is fetched side by side, and not one slot after the other.
    #[inline]
    fn touch(&self, hashes: impl Iterator<Item = u64>) {
        if !self.slots.is_empty() {
            let touched = hashes.fold(0, |sum, hash| sum ^ self.slots[self.slot(hash)].lines);
            black_box(touched);
        }
    }

    fn insert_all(&mut self, batch: &[Candidate]) {
        self.touch(batch.iter().map(|candidate| candidate.hash));
        for candidate in batch {
            self.insert(candidate);
        }
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
            if here.lines == FREE {
                *here = *node;
                self.len += 1;
                return;
            }
            if here.well == node.well {
                let better =
                    node.lines > here.lines || node.lines == here.lines && node.hint < here.hint;
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
            lines: FREE,
            hint: 0,
        };
        self.slots.clear();
        self.slots.reserve_exact(size);
        self.slots.resize(size, free);
        self.len = kept.len();
        for node in &kept {
            let mut at = self.slot(node.well.hash());
            while self.slots[at].lines != FREE {
                at = (at + 1) % size;
            }
            self.slots[at] = *node;
        }
    }
}
