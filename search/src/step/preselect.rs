//! The second cut of a step whose quiescence search is only for the best children.

use super::candidates::{Candidates, is_child};
use super::cut::Cut;
use super::layout::ShardLayout;
use super::pool::on_threads;
use super::{Cancelled, Gathered, Step, lock};
use crate::evaluator::Quiescence;
use crate::node::Node;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Returns the layout of the children that the first cut of a depth keeps. Its shards contain the same hashes as those of
/// `layout`, the layout of the frontier. The two are equal if the quiescence needs only one cut.
pub fn gathered_layout(layout: ShardLayout, quiescence: Quiescence) -> ShardLayout {
    match quiescence.children_per_well() {
        Some(children) => {
            let width = layout.width().saturating_mul(children);
            ShardLayout::new(width, layout.shards())
        }
        None => layout,
    }
}

/// Counters with which [`Step::rescore`] reports its progress.
#[derive(Clone, Copy, Debug)]
pub struct RescoreProgress<'a> {
    /// Number of children that get new scores.
    pub children: &'a AtomicU64,
    /// Number of children that have got their new scores.
    pub rescored: &'a AtomicU64,
}

impl Step {
    /// Removes all children, and returns the survivors of each shard, sorted by packed well.
    pub(super) fn select(
        &self,
        gathered: &Gathered,
        cancel: &AtomicBool,
    ) -> Result<Vec<Vec<Node>>, Cancelled> {
        let Gathered {
            candidates, cut, ..
        } = gathered;
        if self.spec.quiescence.children_per_well().is_none() {
            return Ok(candidates.select(cut, self.threads));
        }
        let (children, rescored) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let progress = RescoreProgress { children, rescored };
        self.rescore(candidates, cut, cancel, progress)?;
        let second = candidates.cut(self.layout.width(), self.threads);
        Ok(candidates.select(&second, self.threads))
    }

    /// Removes the children that do not survive the first cut, and gives the others their scores with quiescence. The
    /// caller must have replaced [`Ties::First`](super::Ties::First) in the cut with the list of the survivors.
    ///
    /// A score with quiescence is not lower than the child's own score. So if no table has dropped a child above the first
    /// cut, none has dropped one above the second.
    ///
    /// # Errors
    /// Returns [`Cancelled`] soon after `cancel` becomes true.
    pub fn rescore(
        &self,
        candidates: &Candidates,
        cut: &Cut,
        cancel: &AtomicBool,
        progress: RescoreProgress<'_>,
    ) -> Result<(), Cancelled> {
        candidates.visit_survivors(cut, |survivors, chunks| {
            progress.rescored.store(0, Ordering::Relaxed);
            progress.children.store(survivors as u64, Ordering::Relaxed);
            let chunks: Vec<Mutex<&mut [Node]>> = chunks.into_iter().map(Mutex::new).collect();
            let next = AtomicUsize::new(0);
            on_threads(self.threads, chunks.len(), || {
                let mut evaluator = self.evaluator();
                let (mut wells, mut lines, mut scores) = (Vec::new(), Vec::new(), Vec::new());
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed))
                    && !cancel.load(Ordering::Relaxed)
                {
                    let mut chunk = lock(chunk);
                    wells.clear();
                    lines.clear();
                    for node in chunk.iter().filter(|node| is_child(node)) {
                        let well = node.well.unpack(self.emulator.geometry());
                        wells.push(well.expect("children are valid for the emulator's geometry"));
                        lines.push(node.lines);
                    }
                    evaluator.score(&wells, &lines, &mut scores);
                    let nodes = chunk.iter_mut().filter(|node| is_child(node));
                    for (node, &score) in nodes.zip(&scores) {
                        node.score = score;
                    }
                    let rescored = wells.len() as u64;
                    progress.rescored.fetch_add(rescored, Ordering::Relaxed);
                }
                lock(&self.evaluators).push(evaluator);
            });
        });
        match cancel.load(Ordering::Relaxed) {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }
}
