//! The edges and changed pieces of a depth that applies the loop rule.

use super::candidates::Candidates;
use super::cut::rank;
use super::pool::on_threads;
use super::{into_inner, lock};
use crate::node::{Node, NodeWell};
use crate::past::Past;
use crate::record::ChangedPiece;
use hatebeam_game::{Children, Emulator, Piece, Well};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Marker for a well whose parent is not known.
const NONE: u32 = u32::MAX;

/// The origin of a child in a depth that applies the loop rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Index of the parent in the newest frontier of the [`Past`].
    pub parent: u32,
    /// The piece that HATETRIS gives in the parent.
    pub piece: Piece,
}

/// An edge from a well of the frontier to a child that a table accepted.
#[derive(Clone, Copy)]
struct Edge {
    child: NodeWell,
    /// Index of the parent in the frontier.
    parent: u32,
    /// The piece of the parent.
    piece: Piece,
    /// Hint of the parent.
    hint: u8,
}

impl Edge {
    fn new(child: &Node, origin: Origin) -> Edge {
        Edge {
            child: child.well,
            parent: origin.parent,
            piece: origin.piece,
            hint: child.hint,
        }
    }
}

/// What an expansion needs to apply the loop rule.
#[derive(Clone, Copy)]
pub struct Loops<'a> {
    /// The games that lead to the frontier.
    pub past: &'a Past,
    /// Collects the edges and the changed pieces.
    pub edges: &'a Edges,
    /// For each shard, the index of its first well in the newest frontier of `past`.
    pub starts: &'a [u32],
}

/// The edges to the children in the tables of this process, and the changed pieces of the parents that it expands.
pub struct Edges {
    /// For each shard of the children, edges from one thread or another process at a time.
    shards: Vec<Mutex<Vec<Vec<Edge>>>>,
    /// The wells of the frontier, by index, in which HATETRIS gives another piece than HATETRIS Mild.
    changed: Mutex<BTreeMap<u32, Piece>>,
}

impl Edges {
    /// Creates an empty collection for children in this number of shards.
    pub fn new(shards: usize) -> Edges {
        Edges {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            changed: Mutex::default(),
        }
    }

    /// Adds the edges to children from another process that the tables accept. `origins` contains one element for each child.
    pub fn add(&self, candidates: &Candidates, children: &[Node], origins: &[Origin]) {
        let layout = candidates.layout();
        let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); self.shards.len()];
        for (child, &origin) in children.iter().zip(origins) {
            let hash = child.well.hash();
            let table = layout.table_of(hash);
            if candidates.accepts(table, rank(child.score, hash)) {
                edges[table / layout.tables_per_shard()].push(Edge::new(child, origin));
            }
        }
        self.add_all(edges);
    }

    fn add_all(&self, edges: Vec<Vec<Edge>>) {
        for (shared, edges) in self.shards.iter().zip(edges) {
            if !edges.is_empty() {
                lock(shared).push(edges);
            }
        }
    }

    /// Returns the wells in which the rule changes the piece, in ascending order of their text. `past` is that of the
    /// expansion.
    pub fn changed(&self, past: &Past) -> Vec<ChangedPiece> {
        let geometry = past.geometry();
        let changed = lock(&self.changed);
        let changed = changed.iter().map(|(&index, &piece)| {
            let well = past.newest()[index as usize].unpack(geometry);
            let well = well.expect("wells in a frontier are valid");
            ChangedPiece::new(geometry, &well, piece)
        });
        let mut changed: Vec<ChangedPiece> = changed.collect();
        changed.sort_unstable();
        changed
    }

    /// Returns the parent of each survivor as an index into the newest frontier of `past`, which is that of the expansion. The
    /// order is that of the survivors, shard by shard. Returns `None` if a survivor has no edge.
    pub fn parents(
        &self,
        past: &Past,
        survivors: &[Vec<Node>],
        threads: usize,
    ) -> Option<Vec<u32>> {
        let results: Vec<Mutex<Vec<u32>>> = survivors.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        on_threads(threads, survivors.len(), || {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = results.get(shard) else {
                    return;
                };
                *lock(result) = parents_of(past, &survivors[shard], &lock(&self.shards[shard]));
            }
        });
        let parents: Vec<u32> = results.into_iter().flat_map(into_inner).collect();
        (!parents.contains(&NONE)).then_some(parents)
    }
}

/// The edges that one thread finds.
pub(super) struct LoopWorker<'a> {
    loops: Loops<'a>,
    /// The edges for each shard of the children.
    edges: Vec<Vec<Edge>>,
    known: Vec<NodeWell>,
}

impl<'a> LoopWorker<'a> {
    pub(super) fn new(loops: Loops<'a>) -> LoopWorker<'a> {
        LoopWorker {
            loops,
            edges: vec![Vec::new(); loops.edges.shards.len()],
            known: Vec::new(),
        }
    }

    /// Replaces the children of `mild`, the piece that HATETRIS Mild gives, if HATETRIS gives another piece in
    /// the well with the index `parent`. Returns the piece that HATETRIS gives.
    #[inline]
    pub(super) fn apply_rule(
        &mut self,
        emulator: &Emulator,
        parent: u32,
        well: &Well,
        mild: Piece,
        children: &mut Children,
    ) -> Piece {
        let Loops { past, edges, .. } = self.loops;
        let Some(piece) = past.piece_by_rule(emulator, parent, children, &mut self.known) else {
            return mild;
        };
        if piece != mild {
            lock(&edges.changed).insert(parent, piece);
        }
        emulator.children(well, piece, children);
        piece
    }

    /// Adds the edge to a child in this shard.
    #[inline]
    pub(super) fn add(&mut self, shard: usize, child: &Node, origin: Origin) {
        self.edges[shard].push(Edge::new(child, origin));
    }

    /// Moves the edges to the collection.
    pub(super) fn flush(&mut self) {
        let empty = vec![Vec::new(); self.edges.len()];
        let edges = std::mem::replace(&mut self.edges, empty);
        self.loops.edges.add_all(edges);
    }
}

/// Returns whether the first of two edges to the same child from parents with the same hint precedes the second. The order
/// is that of [`Backward::parents`](hatebeam_game::Backward::parents).
fn precedes(past: &Past, a: &Edge, b: &Edge) -> bool {
    let key = |edge: &Edge| {
        let well = past.newest()[edge.parent as usize].unpack(past.geometry());
        let well = well.expect("wells in a frontier are valid");
        // With the same child, a piece clears more lines if its parent has more cells.
        (well.filled(), edge.piece, well)
    };
    key(a) < key(b)
}

/// Returns the parents of the survivors of a shard, or [`NONE`] for survivors without an edge.
fn parents_of(past: &Past, survivors: &[Node], edges: &[Vec<Edge>]) -> Vec<u32> {
    let mask = (2 * survivors.len()).next_power_of_two() - 1;
    let mut slots = vec![NONE; mask + 1];
    let slot = |slots: &[u32], well: &NodeWell| {
        // The upper bits are similar within a shard.
        let mut at = (well.hash() >> 16) as usize & mask;
        while slots[at] != NONE && survivors[slots[at] as usize].well != *well {
            at = (at + 1) & mask;
        }
        at
    };
    for (index, node) in (0..).zip(survivors) {
        let at = slot(&slots, &node.well);
        slots[at] = index;
    }
    let mut best: Vec<Option<&Edge>> = vec![None; survivors.len()];
    for edge in edges.iter().flatten() {
        let index = slots[slot(&slots, &edge.child)];
        if index == NONE || survivors[index as usize].hint != edge.hint {
            continue;
        }
        let best = &mut best[index as usize];
        if best.is_none_or(|best| precedes(past, edge, best)) {
            *best = Some(edge);
        }
    }
    let parents = best
        .iter()
        .map(|edge| edge.map_or(NONE, |edge| edge.parent));
    parents.collect()
}
