//! Damaged depths in the middle of a run, made anew.

use crate::run::{Run, RunError};
use hatebeam_search::{Cancelled, Frontier, Node, Step};
use hatebeam_store::StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

impl Run {
    /// Reads all that is stored, and makes the wells of damaged depths anew, each from the last depth before
    /// it that is whole, or from the start. Gives the depths that were made anew. If `cancel` becomes true
    /// meanwhile, the others are made the next time.
    ///
    /// # Errors
    /// [`StoreError::BadRecord`] if what comes out is not what was committed; what reading and writing may
    /// meet.
    pub fn repair(&mut self, threads: usize, cancel: &AtomicBool) -> Result<Vec<u32>, RunError> {
        let damaged = self.damaged()?;
        // All of them go first: RocksDB looks into the tables beside one that it takes.
        for depth in &damaged {
            self.store_mut().drop_tables(*depth)?;
        }
        let mut mended = Vec::new();
        let mut frontier: Option<Frontier> = None;
        for depth in damaged {
            let made = match frontier.take() {
                Some(before) => self.advance(before, depth, threads, cancel)?,
                None => self.advance(self.whole_before(depth)?, depth, threads, cancel)?,
            };
            let Some(made) = made else {
                break;
            };
            let shards: Vec<&[Node]> = made.shards.iter().map(Vec::as_slice).collect();
            self.store_mut().restore(depth, &shards, threads)?;
            tracing::info!(depth, "the wells of a damaged depth are made anew");
            mended.push(depth);
            // The next may be far away, and a whole one nearer.
            let next = depth.checked_add(1);
            let is_next = next.is_some_and(|next| !self.is_kept(next));
            frontier = is_next.then_some(made);
        }
        Ok(mended)
    }

    fn is_kept(&self, depth: u32) -> bool {
        let mut records = self.store().depths().iter();
        records.any(|record| record.depth == depth && record.kept)
    }

    /// The depths that are not whole: damaged, or not there though they are to be kept.
    fn damaged(&self) -> Result<BTreeSet<u32>, RunError> {
        let mut damaged = BTreeSet::new();
        for (depth, error) in self.store().verify() {
            match error {
                StoreError::DamagedDepth { .. } => damaged.insert(depth),
                error => return Err(error.into()),
            };
        }
        let depths = self.store().depths();
        let first = depths.first().map_or(0, |record| record.depth);
        let missing = |record: &&hatebeam_store::DepthRecord| {
            !record.kept && self.keep().keeps(record.depth, first)
        };
        damaged.extend(depths.iter().filter(missing).map(|record| record.depth));
        Ok(damaged)
    }

    /// The last whole frontier before a depth.
    fn whole_before(&self, depth: u32) -> Result<Frontier, RunError> {
        let kept = self.store().depths().iter().rev();
        let mut kept = kept.filter(|record| record.kept && record.depth < depth);
        match kept.next() {
            Some(record) => {
                let nodes = self.store().load(record.depth)?;
                Ok(Frontier::new(record.depth, nodes, self.layout()))
            }
            None => Ok(self.first()),
        }
    }

    /// Searches to a depth; none if that was cancelled.
    fn advance(
        &self,
        mut frontier: Frontier,
        to: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Option<Frontier>, RunError> {
        let step = Step::new(
            self.emulator(),
            self.spec().evaluator,
            self.layout(),
            threads,
        )?;
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
