//! The games that lead to a stored frontier, for the loop rule.

use hatebeam_search::{Node, NodeWell, Past};
use std::collections::BTreeMap;

/// A search for the games that lead to the nodes of a frontier, from their depth back to the start. The games meet after some
/// dozens of depths, so at nearly all depths there is one node.
pub(crate) struct PastSearch {
    depth: u32,
    /// The ancestors at `depth`.
    nodes: Vec<Node>,
    /// The depths after `depth`, the last one first.
    layers: Vec<Layer>,
}

/// The wells of a depth that lead to the frontier.
struct Layer {
    wells: Vec<NodeWell>,
    /// For each well, the index of its parent at the previous depth.
    parents: Vec<u32>,
}

impl PastSearch {
    /// Begins with all nodes of the frontier at `depth`.
    pub(crate) fn new(depth: u32, nodes: Vec<Node>) -> PastSearch {
        PastSearch {
            depth,
            nodes,
            layers: Vec::new(),
        }
    }

    /// Returns the depth of the ancestors whose parents [`PastSearch::add`] expects.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns these ancestors.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Adds the parents of the ancestors, in the same order.
    pub(crate) fn add(&mut self, parents: &[Node]) {
        let distinct: BTreeMap<NodeWell, Node> = parents
            .iter()
            .map(|parent| (parent.well, *parent))
            .collect();
        let indices: BTreeMap<NodeWell, u32> = distinct.keys().copied().zip(0..).collect();
        self.layers.push(Layer {
            wells: self.wells(),
            parents: parents.iter().map(|parent| indices[&parent.well]).collect(),
        });
        self.nodes = distinct.into_values().collect();
        self.depth -= 1;
    }

    /// Returns the wells of the ancestors.
    pub(crate) fn wells(&self) -> Vec<NodeWell> {
        self.nodes.iter().map(|node| node.well).collect()
    }

    /// Returns the games, given those that lead to the current ancestors.
    pub(crate) fn after(self, mut past: Past) -> Past {
        for layer in self.layers.into_iter().rev() {
            past.push(layer.wells, layer.parents);
        }
        past
    }
}
