//! The wells that a search has reached, as a graph in which equal wells are one node.
//!
//! The memory is reserved when the graph is created and never grows.

use hatebeam_search::NodeWell;
use std::collections::HashMap;
use std::collections::VecDeque;

/// Marker for an edge whose child is not a node yet.
const NONE: u32 = u32::MAX;
/// Number of edges for which there is room, for each node. In games, a well has about 15 children.
const EDGES: usize = 16;
/// Bytes of the hash map for each node: a key, an index and a control byte in a map that is at least half full after
/// its number of buckets is rounded up to a power of two.
const INDEX_BYTES: usize = 2 * (size_of::<(NodeWell, u32)>() + 1);
/// Scratch space of [`Graph::keep_reachable`] for each node: three indexes and a flag.
const SCRATCH_BYTES: usize = 3 * size_of::<u32>() + 1;
/// Memory for each node with its edges.
const NODE_BYTES: usize =
    size_of::<Node>() + EDGES * size_of::<Edge>() + INDEX_BYTES + SCRATCH_BYTES;

/// A well and the results of the iterations that passed through it. A return is what an iteration gained after this
/// well.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) well: NodeWell,
    pub(super) visits: u32,
    /// Sum of the returns of all visits.
    pub(super) sum: f64,
    /// Greatest return that is known from this well.
    pub(super) best: f64,
    /// Whether all continuations are in the graph up to their ends, so `best` is the maximum.
    pub(super) solved: bool,
    /// Whether the edges are in the graph.
    pub(super) expanded: bool,
    first_edge: u32,
    edges: u16,
}

/// A placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    child: u32,
    pub(super) visits: u32,
    /// Index of the child in the list that the emulator returns.
    pub(super) place: u16,
    /// Number of lines that the placement clears.
    pub(super) lines: u8,
}

impl Edge {
    pub(super) fn new(place: u16, lines: u8) -> Edge {
        Edge {
            child: NONE,
            visits: 0,
            place,
            lines,
        }
    }

    /// Returns the child's index, unless the child is not a node yet.
    pub(super) fn child(&self) -> Option<u32> {
        (self.child != NONE).then_some(self.child)
    }
}

pub(super) struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    index: HashMap<NodeWell, u32>,
    max_nodes: usize,
    max_edges: usize,
}

impl Graph {
    /// Creates an empty graph that takes at most `bytes` bytes, but has room for at least two nodes.
    pub(super) fn new(bytes: u64) -> Graph {
        let room = usize::try_from(bytes).unwrap_or(usize::MAX) / NODE_BYTES;
        let max_nodes = room.clamp(2, NONE as usize / EDGES);
        // The number of buckets is a power of two, of which at most 7/8 are used.
        let buckets = (2 * max_nodes).next_power_of_two() / 2;
        let max_nodes = max_nodes.min((buckets / 8 * 7).max(2));
        Graph {
            nodes: Vec::with_capacity(max_nodes),
            edges: Vec::with_capacity(max_nodes * EDGES),
            index: HashMap::with_capacity(max_nodes),
            max_nodes,
            max_edges: max_nodes * EDGES,
        }
    }

    /// Returns the reserved memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let slot = size_of::<(NodeWell, u32)>() + 1;
        self.nodes.capacity() * size_of::<Node>()
            + self.edges.capacity() * size_of::<Edge>()
            + (self.index.capacity() * 8 / 7).next_power_of_two() * slot
            + self.nodes.capacity() * SCRATCH_BYTES
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Returns the range of a node's edges, for [`Graph::edge`].
    pub(super) fn edges(&self, node: u32) -> std::ops::Range<u32> {
        let node = self.node(node);
        node.first_edge..node.first_edge + u32::from(node.edges)
    }

    pub(super) fn edge(&self, edge: u32) -> &Edge {
        &self.edges[edge as usize]
    }

    pub(super) fn edge_mut(&mut self, edge: u32) -> &mut Edge {
        &mut self.edges[edge as usize]
    }

    /// Returns the node of a well, or adds it. Returns `None` if the graph is full.
    pub(super) fn node_of(&mut self, well: NodeWell) -> Option<u32> {
        if let Some(&node) = self.index.get(&well) {
            return Some(node);
        }
        if self.nodes.len() == self.max_nodes {
            return None;
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node {
            well,
            visits: 0,
            sum: 0.0,
            best: 0.0,
            solved: false,
            expanded: false,
            first_edge: 0,
            edges: 0,
        });
        self.index.insert(well, node);
        Some(node)
    }

    pub(super) fn set_child(&mut self, edge: u32, child: u32) {
        self.edges[edge as usize].child = child;
    }

    /// Returns whether there is room for the edges of another node.
    pub(super) fn has_room(&self, edges: usize) -> bool {
        self.edges.len() + edges <= self.max_edges
    }

    /// Adds the edges of a node. There must be [room](Graph::has_room).
    pub(super) fn expand(&mut self, node: u32, edges: &[Edge]) {
        assert!(self.has_room(edges.len()), "the caller checks the room");
        let first_edge = self.edges.len() as u32;
        self.edges.extend_from_slice(edges);
        let node = self.node_mut(node);
        node.expanded = true;
        node.first_edge = first_edge;
        node.edges = edges.len() as u16;
    }

    /// Removes all nodes that cannot be reached from `root`, and those farthest from it until the graph is at most half
    /// full. A node that loses a child is not expanded any more, but keeps its results. Returns the new index of `root`.
    pub(super) fn keep_reachable(&mut self, root: u32) -> u32 {
        let mut moved = self.reachable(root);
        // The edges move to the front in their order, so that no edge is overwritten before it is moved.
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        order.retain(|&node| moved[node as usize] && self.nodes[node as usize].expanded);
        order.sort_unstable_by_key(|&node| self.nodes[node as usize].first_edge);
        let mut end = 0;
        for node in order {
            let range = self.edges(node);
            let mut edges = range.clone().filter_map(|edge| self.edge(edge).child());
            let is_kept = edges.all(|child| moved[child as usize]);
            let kept = &mut self.nodes[node as usize];
            kept.first_edge = end;
            if is_kept {
                let range = range.start as usize..range.end as usize;
                self.edges.copy_within(range.clone(), end as usize);
                end += range.len() as u32;
            } else {
                kept.expanded = false;
                kept.solved = false;
                kept.edges = 0;
            }
        }
        self.edges.truncate(end as usize);
        self.renumber(&moved);
        moved.truncate(root as usize);
        moved.iter().filter(|&&kept| kept).count() as u32
    }

    /// Returns for each node whether it can be reached from `root` and is among the nearest nodes that fill half of the
    /// graph.
    fn reachable(&self, root: u32) -> Vec<bool> {
        let limit = (self.max_nodes / 2).max(1);
        let mut kept = vec![false; self.nodes.len()];
        let mut count = 1;
        kept[root as usize] = true;
        let mut waiting = VecDeque::from([root]);
        while let Some(node) = waiting.pop_front() {
            for edge in self.edges(node) {
                let Some(child) = self.edge(edge).child() else {
                    continue;
                };
                if !kept[child as usize] && count < limit {
                    kept[child as usize] = true;
                    count += 1;
                    waiting.push_back(child);
                }
            }
        }
        kept
    }

    /// Removes nodes, and changes all indexes of nodes accordingly.
    fn renumber(&mut self, kept: &[bool]) {
        let mut count = 0;
        let new = kept.iter().map(|&kept| {
            count += u32::from(kept);
            count.wrapping_sub(1)
        });
        let new: Vec<u32> = new.collect();
        for edge in self.edges.iter_mut().filter(|edge| edge.child != NONE) {
            edge.child = new[edge.child as usize];
        }
        let mut index = 0;
        self.nodes.retain(|_| {
            index += 1;
            kept[index - 1]
        });
        self.index.clear();
        let nodes = self.nodes.iter().zip(0..);
        self.index
            .extend(nodes.map(|(node, index)| (node.well, index)));
    }
}
