//! The second cut of a step whose quiescence search is only for the best children.

use super::cut::{Cut, rank};
use super::layout::ShardLayout;
use super::pool::on_threads;
use super::{CHUNK, Cancelled, Gathered, Step, lock};
use crate::node::{Node, NodeWell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

impl Step {
    /// Returns the layout of the children that the first cut keeps. Its shards contain the same hashes as those of the
    /// frontier.
    pub(super) fn gathered_layout(&self) -> ShardLayout {
        match self.spec.quiescence.children_per_well() {
            Some(children) => {
                let width = self.layout.width().saturating_mul(children);
                ShardLayout::new(width, self.layout.shards())
            }
            None => self.layout,
        }
    }

    /// Removes all children, and returns the survivors of each shard, sorted by packed well.
    pub(super) fn select(
        &self,
        gathered: &Gathered,
        cancel: &AtomicBool,
    ) -> Result<Vec<Vec<Node>>, Cancelled> {
        let mut shards = gathered.candidates.select(&gathered.cut, self.threads);
        if self.spec.quiescence.children_per_well().is_some() {
            self.rescore(&mut shards, cancel)?;
            keep_best(self.layout.width(), &mut shards);
        }
        Ok(shards)
    }

    /// Gives all nodes their scores with quiescence.
    fn rescore(&self, shards: &mut [Vec<Node>], cancel: &AtomicBool) -> Result<(), Cancelled> {
        let chunks = shards.iter_mut().flat_map(|shard| shard.chunks_mut(CHUNK));
        let chunks: Vec<Mutex<&mut [Node]>> = chunks.map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        on_threads(self.threads.min(chunks.len()), || {
            let mut evaluator = self.evaluator();
            let (mut wells, mut lines, mut scores) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed))
                && !cancel.load(Ordering::Relaxed)
            {
                let mut chunk = lock(chunk);
                wells.clear();
                wells.extend(chunk.iter().map(|node| {
                    let well = node.well.unpack(self.emulator.geometry());
                    well.expect("children are valid for the emulator's geometry")
                }));
                lines.clear();
                lines.extend(chunk.iter().map(|node| node.lines));
                evaluator.score(&wells, &lines, &mut scores);
                for (node, &score) in chunk.iter_mut().zip(&scores) {
                    node.score = score;
                }
            }
            lock(&self.evaluators).push(evaluator);
        });
        if cancel.load(Ordering::Relaxed) {
            return Err(Cancelled);
        }
        Ok(())
    }
}

/// Removes all nodes but the best `width`, and frees their memory. The order of the others stays the same.
fn keep_best(width: usize, shards: &mut [Vec<Node>]) {
    let nodes = || shards.iter().flatten();
    let rank_of = |node: &Node| rank(node.score, node.well.hash());
    let mut ranks: Vec<u64> = nodes().map(rank_of).collect();
    let mut cut = Cut::of_ranks(width, &mut ranks);
    cut.list_ties(|rank| {
        let tied = nodes().filter(|node| rank_of(node) == rank);
        tied.map(|node| node.well).collect::<Vec<NodeWell>>()
    });
    for shard in shards {
        shard.retain(|node| cut.survives(node));
        shard.shrink_to_fit();
    }
}
