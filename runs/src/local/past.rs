//! A step of a search that applies or ignores the loop rule, and the games that lead to a stored frontier.

use super::Run;
use crate::spec::LoopRule;
use hatebeam_game::Backward;
use hatebeam_search::{Cancelled, Frontier, NextDepth, Node, NodeWell, Past, Step};
use hatebeam_store::{StoreError, in_parallel, parent_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Number of wells whose parents a thread looks up at a time.
const CHUNK: usize = 256;

/// Searches a depth. `past` contains the games that lead to the frontier if the run applies the loop rule. See
/// [`Step::advance`].
pub(super) fn advance(
    step: &Step,
    frontier: Arc<Frontier>,
    past: &mut Option<Past>,
    floor: Option<u64>,
    cancel: &AtomicBool,
    progress: &AtomicU64,
) -> Result<NextDepth, Cancelled> {
    if let Some(past) = past {
        return step.advance_exact(&frontier, past, floor, cancel, progress);
    }
    let (frontier, stats) = step.advance(frontier, floor, cancel, progress)?;
    Ok(NextDepth {
        frontier,
        stats,
        changed: Vec::new(),
    })
}

impl Run {
    /// Returns the games that lead to a stored frontier, or `None` if the run ignores the loop rule. The games meet after
    /// some dozens of depths, so nearly all depths need one lookup.
    pub(super) fn past(
        &self,
        frontier: &Frontier,
        threads: usize,
    ) -> Result<Option<Past>, StoreError> {
        if self.spec.loops == LoopRule::Ignore {
            return Ok(None);
        }
        let mut layers: Vec<(Vec<NodeWell>, Vec<u32>)> = Vec::new();
        let mut nodes: Vec<Node> = frontier.nodes().copied().collect();
        for depth in (self.start.depth() + 1..=frontier.depth).rev() {
            let parents = self.parents(depth, &nodes, threads)?;
            let distinct: BTreeMap<NodeWell, Node> = parents
                .iter()
                .map(|parent| (parent.well, *parent))
                .collect();
            let indices: BTreeMap<NodeWell, u32> = distinct.keys().copied().zip(0..).collect();
            layers.push((
                nodes.iter().map(|node| node.well).collect(),
                parents.iter().map(|parent| indices[&parent.well]).collect(),
            ));
            nodes = distinct.into_values().collect();
        }
        let mut past = Past::new(self.emulator.geometry(), &self.start.wells);
        for (wells, parents) in layers.into_iter().rev() {
            past.push(wells, parents);
        }
        Ok(Some(past))
    }

    /// Returns the parents of nodes at a depth.
    fn parents(&self, depth: u32, nodes: &[Node], threads: usize) -> Result<Vec<Node>, StoreError> {
        let backward = Backward::new(&self.emulator);
        let chunks: Vec<&[Node]> = nodes.chunks(CHUNK).collect();
        let parents = in_parallel(threads, chunks.len(), |index| {
            let mut backward = backward.clone();
            let parent = |node| parent_of(&self.store, &mut backward, depth, node);
            chunks[index]
                .iter()
                .map(parent)
                .collect::<Result<Vec<Node>, _>>()
        })?;
        Ok(parents.into_iter().flatten().collect())
    }
}
