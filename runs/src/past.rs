//! The games that lead to a stored frontier, for the loop rule.

use hatebeam_game::{Backward, Emulator, Geometry};
use hatebeam_search::{DepthRecord, Node, NodeWell, Past};
use hatebeam_store::{Changes, Lookup, StoreError, in_parallel, parent_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of wells whose parents a thread looks up at a time.
const CHUNK: usize = 64;

/// Execution of a search for the games that lead to a frontier.
#[derive(Clone, Debug)]
pub struct GamesWork {
    /// Number of threads to use. The games do not depend on it.
    pub threads: usize,
    /// Counter to which the number of wells whose parents were found is added.
    pub found: Arc<AtomicU64>,
    /// Cancels the search when it is set.
    pub cancel: Arc<AtomicBool>,
}

impl GamesWork {
    /// Creates the parameters of a search that nothing cancels.
    pub fn new(threads: usize) -> GamesWork {
        GamesWork {
            threads,
            found: Arc::default(),
            cancel: Arc::default(),
        }
    }
}

/// A run whose changed pieces at one depth are in memory.
struct AtDepth<'a, L> {
    store: &'a L,
    depth: u32,
    changes: Arc<Changes>,
}

impl<L: Lookup> Lookup for AtDepth<'_, L> {
    fn geometry(&self) -> Geometry {
        self.store.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        self.store.depths()
    }

    fn changes(&self, depth: u32) -> Result<Arc<Changes>, StoreError> {
        match depth == self.depth {
            true => Ok(Arc::clone(&self.changes)),
            false => self.store.changes(depth),
        }
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        self.store.multi_get(depth, wells)
    }
}

/// Returns the parents of nodes at a depth, in the order of the nodes. If the search is cancelled, some are missing.
///
/// # Errors
/// Returns the errors of [`parent_of`].
pub(crate) fn parents_of_all<L: Lookup + Sync>(
    store: &L,
    emulator: &Emulator,
    depth: u32,
    nodes: &[Node],
    work: &GamesWork,
) -> Result<Vec<Node>, StoreError> {
    let store = AtDepth {
        store,
        depth,
        changes: store.changes(depth)?,
    };
    let backward = Backward::new(emulator);
    let chunks: Vec<&[Node]> = nodes.chunks(CHUNK).collect();
    let parents = in_parallel(work.threads, chunks.len(), |index| {
        if work.cancel.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let mut backward = backward.clone();
        let parent = |node| parent_of(&store, &mut backward, depth, node);
        let parents: Result<Vec<Node>, _> = chunks[index].iter().map(parent).collect();
        let parents = parents?;
        work.found
            .fetch_add(parents.len() as u64, Ordering::Relaxed);
        Ok(parents)
    })?;
    Ok(parents.into_iter().flatten().collect())
}

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
