//! The candidates of one depth: children of the previous frontier that may still be among the best.
//! They are divided by hash into shards, each owned by one machine, and a shard is divided into tables.
//!
//! The *rank* of a child is its score with a tie-break. The *cut* is the lowest rank with which a child
//! survives.

use super::cut::{CountQuery, Cut, CutSearch, DigitCounts, rank, score_of};
use super::layout::ShardLayout;
use super::pool::on_threads;
use super::{into_inner, lock, sort};
use crate::node::{MAX_LINES, Node, NodeWell};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of children whose ranks are collected to find the cut.
const MAX_SORTED: usize = 1 << 16;

/// Maximum number of slots in a chunk of [`Candidates::visit_survivors`], few enough for all threads to have work in a
/// narrow beam.
const VISITED_SLOTS: usize = 256;

/// A child with the hash of its well.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) node: Node,
    pub(super) hash: u64,
}

/// The children of one depth that may still be among the best: the tables that contain them, and the
/// floor (lowest accepted rank) of each table. If a shard is on another machine, its tables here stay
/// empty, and their floors are the last known ones.
pub struct Candidates {
    layout: ShardLayout,
    tables: Vec<Mutex<Table>>,
    floors: Vec<AtomicU64>,
    /// Number of slots of all tables. It is counted here because a lock of a table can be held for minutes.
    slots: AtomicUsize,
}

impl Candidates {
    /// Creates empty tables. Each has room for its share of the width plus `sigmas` standard deviations
    /// of that share. Eight standard deviations are enough in practice, but the caller must check this
    /// with [`Candidates::dropped_above`].
    pub fn new(layout: ShardLayout, sigmas: f64) -> Candidates {
        let (count, room) = (layout.tables(), layout.room(sigmas));
        Candidates {
            layout,
            tables: (0..count).map(|_| Mutex::new(Table::new(room))).collect(),
            floors: (0..count).map(|_| AtomicU64::new(0)).collect(),
            slots: AtomicUsize::new(0),
        }
    }

    /// Raises the floors of all tables to at least `floor`, an estimate of the cut. Call this method
    /// before adding children.
    pub fn raise_floors(&self, floor: u64) {
        for (table, known) in self.tables.iter().zip(&self.floors) {
            let mut table = lock(table);
            table.floor = table.floor.max(floor);
            known.fetch_max(floor, Ordering::Relaxed);
        }
    }

    /// Returns the size of the tables in bytes. Does not wait for other threads.
    pub fn bytes(&self) -> u64 {
        (self.slots.load(Ordering::Relaxed) * size_of::<Node>()) as u64
    }

    /// Returns the division of the candidates into shards and tables.
    pub fn layout(&self) -> ShardLayout {
        self.layout
    }

    #[inline]
    pub(super) fn accepts(&self, table: usize, rank: u64) -> bool {
        rank >= self.floors[table].load(Ordering::Relaxed)
    }

    pub(super) fn offer(&self, at: usize, batch: &[Candidate]) {
        self.insert(at, |table| table.insert_all(batch));
    }

    /// Inserts children into a table. Then updates the table's floor and the number of slots.
    #[inline]
    fn insert(&self, at: usize, insert: impl FnOnce(&mut Table)) {
        let mut table = lock(&self.tables[at]);
        let before = table.slots.len();
        insert(&mut table);
        self.floors[at].store(table.floor, Ordering::Relaxed);
        let grown = table.slots.len() - before;
        if grown > 0 {
            self.slots.fetch_add(grown, Ordering::Relaxed);
        }
    }

    /// Offers children from other machines to the tables. A caller can reuse `buffer` to avoid
    /// allocations.
    pub fn offer_nodes(&self, nodes: &[Node], buffer: &mut SortBuffer) {
        buffer.0.clear();
        buffer.0.extend(nodes.iter().map(|&node| {
            let hash = node.well.hash();
            (self.layout.table_of(hash), Candidate { node, hash })
        }));
        buffer.0.sort_unstable_by_key(|(table, _)| *table);
        for group in buffer.0.chunk_by(|a, b| a.0 == b.0) {
            self.insert(group[0].0, |table| {
                table.touch(group.iter().map(|(_, candidate)| candidate.hash));
                for (_, candidate) in group {
                    table.insert(candidate);
                }
            });
        }
    }

    /// Returns the lowest floor of a shard's tables. It never decreases.
    pub fn floor(&self, shard: usize) -> u64 {
        let tables = self.layout.tables_per_shard();
        let floors = &self.floors[shard * tables..(shard + 1) * tables];
        let floors = floors.iter().map(|floor| floor.load(Ordering::Relaxed));
        floors.min().unwrap_or(0)
    }

    /// Raises the floors of a shard on another machine to at least `floor`, so that this process sends
    /// fewer children to that machine.
    pub fn raise_floor(&self, shard: usize, floor: u64) {
        let tables = self.layout.tables_per_shard();
        for known in &self.floors[shard * tables..(shard + 1) * tables] {
            known.fetch_max(floor, Ordering::Relaxed);
        }
    }

    /// Returns the lowest score that any table still accepts. It never decreases.
    pub(super) fn min_score(&self) -> i32 {
        let floors = self.floors.iter();
        let floors = floors.map(|floor| floor.load(Ordering::Relaxed));
        score_of(floors.min().unwrap_or(0))
    }

    /// Returns the wells of all tables with the index of their table, in ascending order.
    #[cfg(test)]
    pub(super) fn wells_by_table(&self) -> Vec<(usize, NodeWell)> {
        let of_table = |(index, table): (usize, &Mutex<Table>)| {
            let table = lock(table);
            let wells = table.nodes().map(|node| (index, node.well));
            wells.collect::<Vec<_>>()
        };
        let mut wells: Vec<_> = self.tables.iter().enumerate().flat_map(of_table).collect();
        wells.sort_unstable();
        wells
    }

    /// Returns the number of children in the tables.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| lock(table).len).sum()
    }

    /// Returns whether the tables are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the children that match `query`, by digit. The query comes from a [`CutSearch`].
    pub fn count(&self, query: CountQuery, threads: usize) -> DigitCounts {
        let next = AtomicUsize::new(0);
        let sum = Mutex::new(DigitCounts::default());
        on_threads(threads, self.tables.len(), || {
            let mut counts = DigitCounts::default();
            while let Some(table) = self.tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                for node in lock(table).nodes() {
                    if let Some(digit) = query.digit(rank(node.score, node.well.hash())) {
                        counts.add(digit, 1);
                    }
                }
            }
            lock(&sum).merge(&counts);
        });
        into_inner(sum)
    }

    /// Finds the cut with which `width` children survive. All shards must be in this process.
    pub(super) fn cut(&self, width: usize, threads: usize) -> Cut {
        let mut cut = if self.len() <= MAX_SORTED {
            self.cut_of_few(width)
        } else {
            let mut search = CutSearch::new(width);
            while let Some(query) = search.query() {
                search.answer(&self.count(query, threads));
            }
            search.cut()
        };
        cut.list_ties(|rank| self.tied(rank));
        cut
    }

    /// Finds the cut by collecting all ranks. With few children, this is faster than
    /// [`CutSearch`], which counts them in four rounds on several threads.
    fn cut_of_few(&self, width: usize) -> Cut {
        let mut ranks: Vec<u64> = Vec::with_capacity(self.len());
        for table in &self.tables {
            let table = lock(table);
            ranks.extend(table.nodes().map(|node| rank(node.score, node.well.hash())));
        }
        Cut::of_ranks(width, &mut ranks)
    }

    /// Returns the wells in the tables whose rank is exactly `cut`, in any order.
    pub fn tied(&self, cut: u64) -> Vec<NodeWell> {
        let mut tied = Vec::new();
        for table in &self.tables {
            let table = lock(table);
            let at_cut = table
                .nodes()
                .filter(|node| rank(node.score, node.well.hash()) == cut);
            tied.extend(at_cut.map(|node| node.well));
        }
        tied
    }

    /// Returns whether a table may have dropped a child whose rank is at or above `cut`. If so, the
    /// depth must be repeated without an estimated floor or with more room.
    pub fn dropped_above(&self, cut: u64) -> bool {
        let mut floors = self.floors.iter();
        floors.any(|floor| floor.load(Ordering::Relaxed) > cut)
    }

    /// Removes the children that do not survive, and passes the number of the others and all slots of the tables, in
    /// chunks, to `visit`. The tables must get no more children, because an insertion would not find equal children beyond a
    /// removed one.
    pub(super) fn visit_survivors(&self, cut: &Cut, visit: impl FnOnce(usize, Vec<&mut [Node]>)) {
        let mut tables: Vec<MutexGuard<'_, Table>> = self.tables.iter().map(lock).collect();
        let mut survivors = 0;
        for table in &mut tables {
            let mut left = 0;
            for node in table.slots.iter_mut().filter(|node| is_child(node)) {
                match cut.survives(node) {
                    true => left += 1,
                    false => node.lines = FREE,
                }
            }
            table.len = left;
            survivors += left;
        }
        let slots = tables.iter_mut();
        let chunks = slots.flat_map(|table| table.slots.chunks_mut(VISITED_SLOTS));
        visit(survivors, chunks.collect());
    }

    /// Removes all children and returns the survivors of each shard, sorted by packed well.
    ///
    /// The caller must replace [`Ties::First`](super::Ties::First) with the list of the survivors: this method treats it like
    /// [`Ties::All`](super::Ties::All).
    pub fn select(&self, cut: &Cut, threads: usize) -> Vec<Vec<Node>> {
        let (shards, tables) = (self.layout.shards(), self.layout.tables_per_shard());
        let survives = |node: &Node| cut.survives(node);
        let select_shard = |tables: &[Mutex<Table>]| {
            // Counting the survivors first saves memory: a growing vector needs up to three times as
            // much.
            let count_in = |table: &Mutex<Table>| lock(table).nodes().filter(survives).count();
            let mut nodes = Vec::with_capacity(tables.iter().map(count_in).sum());
            for table in tables {
                let mut table = lock(table);
                nodes.extend(table.nodes().filter(survives));
                // Free the memory before the next table is read.
                let freed = std::mem::take(&mut table.slots).len();
                self.slots.fetch_sub(freed, Ordering::Relaxed);
                table.len = 0;
            }
            sort(&mut nodes);
            nodes
        };
        let results: Vec<Mutex<Vec<Node>>> = (0..shards).map(|_| Mutex::new(Vec::new())).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = results.get(shard) else {
                    return;
                };
                *lock(result) = select_shard(&self.tables[shard * tables..(shard + 1) * tables]);
            }
        };
        on_threads(threads, shards, work);
        results.into_iter().map(into_inner).collect()
    }
}

/// Scratch space for [`Candidates::offer_nodes`].
#[derive(Default)]
pub struct SortBuffer(Vec<(usize, Candidate)>);

/// The value of [`Node::lines`] that marks a free slot. Searches end before a game clears this many lines.
const FREE: u16 = MAX_LINES + 1;

/// Returns whether a slot contains a child.
pub(super) fn is_child(slot: &Node) -> bool {
    slot.lines != FREE
}

/// A hash table with open addressing for the best children in one range of hashes. Lookups compare
/// whole wells, not only their hashes.
struct Table {
    slots: Vec<Node>,
    len: usize,
    /// Number of children that a full table keeps when it drops the rest.
    room: usize,
    /// The table drops no child while it contains at most this many.
    limit: usize,
    /// Lowest rank that the table accepts.
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
        self.slots.iter().filter(|node| is_child(node)).copied()
    }

    fn slot(&self, hash: u64) -> usize {
        // The slot depends on bits 16 to 47 of the hash, mainly on bit 47 and the bits just below
        // it. The bits near 63 select the shard and the table, and bits 0 to 31 break ties. So the
        // slots of every table fill evenly, even if ties decide which children remain.
        (((hash >> 16 & 0xffff_ffff) * self.slots.len() as u64) >> 32) as usize
    }

    /// Reads the slots of these hashes into the processor's cache. The reads do not depend on each
    /// other, so the processor can fetch the slots in parallel.
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

    /// Grows the table. If the table already has its maximum size, drops the children with the lowest
    /// ranks instead.
    #[cold]
    fn make_room(&mut self) {
        let max_size = self.limit * 4 / 3 + 4;
        let mut kept: Vec<Node> = self.nodes().collect();
        let mut size = self.slots.len();
        if size < max_size {
            size = (size * 2).clamp(64, max_size);
            if size * 2 > max_size {
                size = max_size;
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

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_SIGMAS, Ties};
    use super::*;

    #[test]
    fn size_is_known_while_survivors_are_visited() {
        let candidates = Candidates::new(ShardLayout::new(10_000, 3), DEFAULT_SIGMAS);
        assert_eq!(candidates.bytes(), 0);
        let node = |number: u16| {
            let mut well = NodeWell::default();
            well.0[..2].copy_from_slice(&number.to_le_bytes());
            Node {
                score: i32::from(number),
                well,
                lines: 0,
                hint: 0,
            }
        };
        let nodes: Vec<Node> = (0..5000).map(node).collect();
        for some in nodes.chunks(1000) {
            candidates.offer_nodes(some, &mut SortBuffer::default());
        }
        let cut = Cut {
            rank: 0,
            ties: Ties::All,
        };
        candidates.visit_survivors(&cut, |survivors, chunks| {
            assert_eq!(survivors, nodes.len());
            let slots: usize = chunks.iter().map(|chunk| chunk.len()).sum();
            assert!(slots > nodes.len());
            assert_eq!(candidates.bytes(), (slots * size_of::<Node>()) as u64);
        });
        candidates.select(&cut, 2);
        assert_eq!(candidates.bytes(), 0);
    }
}
