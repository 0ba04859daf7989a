//! Repair of depths whose tables (files that contain the wells) are damaged.

use super::head::check_search;
use super::past::advance;
use super::{Run, RunError};
use hatebeam_search::{Cancelled, DepthRecord, Frontier, Node, Past, Step};
use hatebeam_store::StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

impl Run {
    /// Reads all tables and recomputes the wells of each damaged depth. The search for a damaged depth starts
    /// from the last intact depth before it, or from the start of the run.
    ///
    /// Returns the repaired depths. If `cancel` becomes true, leaves the remaining damaged depths for the
    /// next call.
    ///
    /// # Errors
    /// Returns [`RunError::Spec`] or [`RunError::Evaluator`] if this program cannot search the run; no table is then
    /// deleted. Returns [`StoreError::BadRecord`] in [`RunError::Store`] if the recomputed wells do not match the
    /// record of their depth, and other errors if tables cannot be read or written.
    pub fn repair(&mut self, threads: usize, cancel: &AtomicBool) -> Result<Vec<u32>, RunError> {
        // This is checked before any table is deleted, because tables cannot be recomputed without the evaluator.
        check_search(&self.spec, &self.emulator)?;
        let damaged = self.damaged()?;
        // Drop the tables of all damaged depths first, because RocksDB reads adjacent tables when it ingests
        // a table, and would fail on a damaged one.
        for depth in &damaged {
            self.store.drop_tables(*depth)?;
        }
        // Depths that share a table with a damaged depth have lost their wells too.
        let damaged: BTreeSet<u32> = self.missing().chain(damaged).collect();
        let mut repaired = Vec::new();
        let mut position: Option<Position> = None;
        for depth in damaged {
            let from = match position.take() {
                Some(before) => before,
                None => {
                    let frontier = self.whole_before(depth)?;
                    let past = self.past(&frontier, threads)?;
                    Position { frontier, past }
                }
            };
            let Some(made) = self.advance(from, depth, threads, cancel)? else {
                break;
            };
            let shards = made.frontier.shards.iter();
            let shards: Vec<&[Node]> = shards.map(Vec::as_slice).collect();
            self.store.restore(depth, &shards, threads)?;
            tracing::info!(depth, "repaired depth");
            repaired.push(depth);
            // If the tables of the next depth are stored, the search for a later damaged depth starts from stored tables
            // instead of this frontier.
            let next = depth.checked_add(1);
            let next_is_damaged = next.is_some_and(|next| !self.is_kept(next));
            position = next_is_damaged.then_some(made);
        }
        Ok(repaired)
    }

    fn is_kept(&self, depth: u32) -> bool {
        let mut records = self.store.depths().iter();
        records.any(|record| record.depth == depth && record.kept)
    }

    /// Returns the depths whose tables are damaged, or missing although the retention rule keeps them.
    fn damaged(&self) -> Result<BTreeSet<u32>, RunError> {
        let mut damaged = BTreeSet::new();
        for (depth, error) in self.store.verify() {
            match error {
                StoreError::DamagedDepth { .. } => damaged.insert(depth),
                error => return Err(error.into()),
            };
        }
        damaged.extend(self.missing());
        Ok(damaged)
    }

    /// Returns the depths that have no tables although the retention rule that [applied to them](Run::keep_at) keeps them.
    pub fn missing(&self) -> impl Iterator<Item = u32> {
        let depths = self.store.depths();
        let first = depths.first().map_or(0, |record| record.depth);
        let is_missing = move |record: &&DepthRecord| {
            !record.kept && self.keep_at(record.depth).keeps(record.depth, first)
        };
        depths.iter().filter(is_missing).map(|record| record.depth)
    }

    /// Returns the last intact frontier (the wells kept at a depth) before `depth`, or the first frontier of the run if no
    /// such frontier is stored.
    fn whole_before(&self, depth: u32) -> Result<Frontier, RunError> {
        let mut records = self.store.depths().iter().rev();
        match records.find(|record| record.kept && record.depth < depth) {
            Some(record) => {
                let nodes = self.store.load(record.depth)?;
                Ok(Frontier::new(record.depth, nodes, self.layout()))
            }
            None => Ok(self.first()?),
        }
    }

    /// Searches to the depth `to`. Returns `None` if the search was cancelled.
    fn advance(
        &self,
        from: Position,
        to: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Option<Position>, RunError> {
        let step = Step::new(&self.emulator, self.spec.evaluator, self.layout(), threads)?;
        let Position {
            mut frontier,
            mut past,
        } = from;
        while frontier.depth < to {
            let progress = AtomicU64::new(0);
            let next = advance(
                &step,
                Arc::new(frontier),
                &mut past,
                None,
                cancel,
                &progress,
            );
            frontier = match next {
                Ok(next) => next.frontier,
                Err(Cancelled) => return Ok(None),
            };
        }
        Ok(Some(Position { frontier, past }))
    }
}

/// A frontier, and the games that lead to it if the run applies the loop rule.
struct Position {
    frontier: Frontier,
    past: Option<Past>,
}
