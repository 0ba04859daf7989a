//! A step of a search that applies or ignores the loop rule, and the games that lead to a stored frontier.

use super::Run;
use crate::past::{GamesWork, PastSearch, parents_of_all};
use crate::spec::LoopRule;
use hatebeam_search::{Cancelled, Frontier, NextDepth, Past, Step};
use hatebeam_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

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
        let work = GamesWork::new(threads);
        let mut search = PastSearch::new(frontier.depth, frontier.nodes().copied().collect());
        while search.depth() > self.start.depth() {
            let (depth, nodes) = (search.depth(), search.nodes());
            let parents = parents_of_all(&self.store, &self.emulator, depth, nodes, &work)?;
            search.add(&parents);
        }
        let start = Past::new(self.emulator.geometry(), &self.start.wells);
        Ok(Some(search.after(start)))
    }
}
