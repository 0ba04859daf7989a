//! Repair of damaged depths.

use super::{Run, RunError};
use hatebeam_search::{Cancelled, DepthRecord, Frontier, Node, Step};
use hatebeam_store::StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

impl Run {
    /// Reads all tables, and searches the wells of damaged depths again, each from the last whole depth before it, or
    /// from the start. Returns the repaired depths. If `cancel` becomes true, the others are left for the next call.
    ///
    /// # Errors
    /// [`StoreError::BadRecord`] if the wells do not match the record; errors of reading and writing.
    pub fn repair(&mut self, threads: usize, cancel: &AtomicBool) -> Result<Vec<u32>, RunError> {
        let damaged = self.damaged()?;
        // All of them first: RocksDB reads adjacent tables when it ingests one.
        for depth in &damaged {
            self.store.drop_tables(*depth)?;
        }
        let mut repaired = Vec::new();
        let mut frontier: Option<Frontier> = None;
        for depth in damaged {
            let from = match frontier.take() {
                Some(before) => before,
                None => self.whole_before(depth)?,
            };
            let Some(made) = self.advance(from, depth, threads, cancel)? else {
                break;
            };
            let shards: Vec<&[Node]> = made.shards.iter().map(Vec::as_slice).collect();
            self.store.restore(depth, &shards, threads)?;
            tracing::info!(depth, "repaired depth");
            repaired.push(depth);
            // If the next depth is whole, it is nearer to the next damaged one.
            let next = depth.checked_add(1);
            let next_is_damaged = next.is_some_and(|next| !self.is_kept(next));
            frontier = next_is_damaged.then_some(made);
        }
        Ok(repaired)
    }

    fn is_kept(&self, depth: u32) -> bool {
        let mut records = self.store.depths().iter();
        records.any(|record| record.depth == depth && record.kept)
    }

    /// Returns the depths that are damaged, or missing although the retention rule keeps them.
    fn damaged(&self) -> Result<BTreeSet<u32>, RunError> {
        let mut damaged = BTreeSet::new();
        for (depth, error) in self.store.verify() {
            match error {
                StoreError::DamagedDepth { .. } => damaged.insert(depth),
                error => return Err(error.into()),
            };
        }
        let depths = self.store.depths();
        let first = depths.first().map_or(0, |record| record.depth);
        let is_missing =
            |record: &&DepthRecord| !record.kept && self.keep.keeps(record.depth, first);
        damaged.extend(depths.iter().filter(is_missing).map(|record| record.depth));
        Ok(damaged)
    }

    /// Returns the last whole frontier before a depth.
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

    /// Searches to a depth. Returns `None` if that was cancelled.
    fn advance(
        &self,
        mut frontier: Frontier,
        to: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Option<Frontier>, RunError> {
        let step = Step::new(&self.emulator, self.spec.evaluator, self.layout(), threads)?;
        while frontier.depth < to {
            let next = step.advance(Arc::new(frontier), cancel, &AtomicU64::new(0));
            frontier = match next {
                Ok((next, _)) => next,
                Err(Cancelled) => return Ok(None),
            };
        }
        Ok(Some(frontier))
    }
}
