//! A step of a search that applies or ignores the loop rule, and the games that lead to a stored frontier.

use super::Run;
use crate::past::PastSearch;
use crate::spec::LoopRule;
use hatebeam_game::Backward;
use hatebeam_search::{Cancelled, Frontier, NextDepth, Node, Past, Step};
use hatebeam_store::{StoreError, in_parallel, parent_of};
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
    /// Returns the games that lead to a stored frontier, or `None` if the run ignores the loop rule.
    pub(super) fn past(
        &self,
        frontier: &Frontier,
        threads: usize,
    ) -> Result<Option<Past>, StoreError> {
        if self.spec.loops == LoopRule::Ignore {
            return Ok(None);
        }
        let mut search = PastSearch::new(frontier.depth, frontier.nodes().copied().collect());
        while search.depth() > self.start.depth() {
            let parents = self.parents(search.depth(), search.nodes(), threads)?;
            search.add(&parents);
        }
        let start = Past::new(self.emulator.geometry(), &self.start.wells);
        Ok(Some(search.after(start)))
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
