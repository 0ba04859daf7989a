//! The edges and changed pieces of a depth that applies the loop rule.

use super::lock;
use super::pool::on_threads;
use crate::node::{Node, NodeWell};
use crate::past::Past;
use hatebeam_game::{Children, Emulator, Geometry, Piece, Well};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Marker for a well whose parent is not known yet.
const NONE: u32 = u32::MAX;

/// An edge from a well of the frontier to a child that a table accepted.
#[derive(Clone, Copy)]
struct Edge {
    child: NodeWell,
    /// Index of the parent in the frontier.
    parent: u32,
    /// Hint of the parent.
    hint: u8,
}

/// The edges and the changed pieces that all threads find at a depth.
pub(super) struct LoopCollector<'a> {
    past: &'a Past,
    /// For each shard of the children, the edges from each thread.
    edges: Vec<Mutex<Vec<Vec<Edge>>>>,
    changed: Mutex<HashMap<u32, Piece>>,
}

impl<'a> LoopCollector<'a> {
    pub(super) fn new(past: &'a Past, shards: usize) -> LoopCollector<'a> {
        LoopCollector {
            past,
            edges: (0..shards).map(|_| Mutex::default()).collect(),
            changed: Mutex::default(),
        }
    }

    /// Returns the part of the edges and the changed pieces that one thread collects.
    pub(super) fn worker(&'a self) -> LoopWorker<'a> {
        LoopWorker {
            shared: self,
            edges: vec![Vec::new(); self.edges.len()],
            known: Vec::new(),
        }
    }

    /// Returns the edges and the changed pieces of all threads.
    pub(super) fn finish(self) -> FoundEdges {
        let into_inner = |edges: Mutex<Vec<Vec<Edge>>>| {
            edges
                .into_inner()
                .unwrap_or_else(|poison| poison.into_inner())
        };
        FoundEdges {
            shards: self.edges.into_iter().map(into_inner).collect(),
            changed: self
                .changed
                .into_inner()
                .unwrap_or_else(|poison| poison.into_inner()),
        }
    }
}

/// The edges that one thread finds.
pub(super) struct LoopWorker<'a> {
    shared: &'a LoopCollector<'a>,
    /// The edges for each shard of the children.
    edges: Vec<Vec<Edge>>,
    known: Vec<NodeWell>,
}

impl LoopWorker<'_> {
    /// Replaces the children of `mild`, the piece that HATETRIS Mild gives, if HATETRIS gives another piece in
    /// the well with the index `parent`.
    #[inline]
    pub(super) fn apply_rule(
        &mut self,
        emulator: &Emulator,
        parent: u32,
        well: &Well,
        mild: Piece,
        children: &mut Children,
    ) {
        let past = self.shared.past;
        if let Some(piece) = past.piece_by_rule(emulator, parent, children, &mut self.known) {
            if piece != mild {
                lock(&self.shared.changed).insert(parent, piece);
            }
            emulator.children(well, piece, children);
        }
    }

    /// Adds the edge to a child in this shard.
    #[inline]
    pub(super) fn add(&mut self, shard: usize, parent: u32, child: &Node) {
        self.edges[shard].push(Edge {
            child: child.well,
            parent,
            hint: child.hint,
        });
    }

    /// Moves the edges to the collector.
    pub(super) fn flush(&mut self) {
        for (shared, edges) in self.shared.edges.iter().zip(&mut self.edges) {
            if !edges.is_empty() {
                lock(shared).push(std::mem::take(edges));
            }
        }
    }
}

/// The edges and the changed pieces of a depth.
pub(super) struct FoundEdges {
    shards: Vec<Vec<Vec<Edge>>>,
    /// The wells of the frontier, by index, in which HATETRIS gives another piece than HATETRIS Mild.
    pub(super) changed: HashMap<u32, Piece>,
}

impl FoundEdges {
    /// Returns the parent of each survivor as an index into the frontier. The order is that of the survivors,
    /// shard by shard. `frontier` contains the wells of the frontier.
    pub(super) fn parents(
        &self,
        emulator: &Emulator,
        frontier: &[NodeWell],
        survivors: &[Vec<Node>],
        threads: usize,
    ) -> Vec<u32> {
        let results: Vec<Mutex<Vec<u32>>> = survivors.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        on_threads(threads.min(survivors.len()), || {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = results.get(shard) else {
                    return;
                };
                let edges = self.shards[shard].iter().flatten();
                let prefer = |a, b| self.precedes(emulator, frontier, a, b);
                *lock(result) = parents_of(&survivors[shard], edges, prefer);
            }
        });
        let results = results.into_iter().map(|result| {
            result
                .into_inner()
                .unwrap_or_else(|poison| poison.into_inner())
        });
        results.flatten().collect()
    }

    /// Returns whether parent `a` precedes parent `b` of the same child with the same hint: the order is that
    /// of [`Backward::parents`](hatebeam_game::Backward::parents).
    fn precedes(&self, emulator: &Emulator, frontier: &[NodeWell], a: u32, b: u32) -> bool {
        let geometry: Geometry = emulator.geometry();
        let key = |parent: u32| {
            let well = frontier[parent as usize]
                .unpack(geometry)
                .expect("wells in a frontier are valid");
            let piece = self.changed.get(&parent).copied();
            let piece = piece.unwrap_or_else(|| emulator.piece(&well));
            // With the same child, a piece clears more lines if its parent has more cells.
            (well.filled(), piece, well)
        };
        key(a) < key(b)
    }
}

/// Returns the parents of the survivors of a shard. `prefer` returns whether the first of two parents with the
/// same hint precedes the second.
fn parents_of<'a>(
    survivors: &[Node],
    edges: impl Iterator<Item = &'a Edge>,
    prefer: impl Fn(u32, u32) -> bool,
) -> Vec<u32> {
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
    let mut parents = vec![NONE; survivors.len()];
    for edge in edges {
        let index = slots[slot(&slots, &edge.child)];
        if index == NONE || survivors[index as usize].hint != edge.hint {
            continue;
        }
        let parent = &mut parents[index as usize];
        if *parent == NONE || prefer(edge.parent, *parent) {
            *parent = edge.parent;
        }
    }
    parents
}
