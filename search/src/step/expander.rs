//! The expansion of parents on one thread.

use super::batches::Batches;
use super::candidates::{Candidate, Candidates};
use super::cut::rank;
use super::loops::{LoopWorker, Origin};
use super::{Cancelled, Exchange, Owner, REMOTE_BATCH, Step, StepStats, Targets};
use crate::evaluator::Evaluator;
use crate::node::{Node, NodeWell};
use hatebeam_game::{Children, Emulator, Well};

/// Number of tables below which a thread reads the floors of all tables once per chunk of parents.
/// With more tables, it reads them less often, so that the cost remains negligible.
const TABLES_PER_FLOOR_CHECK: usize = 4096;

/// Children for a peer.
#[derive(Clone, Default)]
struct Outgoing {
    children: Vec<Node>,
    /// The origin of each child. Empty unless the depth applies the loop rule.
    origins: Vec<Origin>,
}

/// The state of one thread of an expansion.
pub(super) struct Expander<'a> {
    emulator: &'a Emulator,
    pub(super) evaluator: Evaluator,
    /// Whether the children keep their own scores, because the quiescence search follows for the best of them.
    by_own_scores: bool,
    candidates: &'a Candidates,
    exchange: Option<Exchange<'a>>,
    loops: Option<LoopWorker<'a>>,
    children: Children,
    wells: Vec<Well>,
    lines: Vec<u16>,
    hints: Vec<u8>,
    /// The origin of each child. Empty unless the depth applies the loop rule.
    origins: Vec<Origin>,
    scores: Vec<i32>,
    /// The children for the tables of this process.
    batches: Batches,
    /// The current batch for each peer.
    outgoing: Vec<Outgoing>,
    /// Score below which all tables reject a child.
    floor: i32,
    /// Number of chunks until the next update of `floor`.
    chunks_to_floor_check: usize,
    pub(super) stats: StepStats,
}

impl<'a> Expander<'a> {
    pub(super) fn new(step: &'a Step, targets: Targets<'a>) -> Expander<'a> {
        let Targets {
            candidates,
            exchange,
            loops,
        } = targets;
        let peers = exchange.map_or(0, |exchange| usize::from(exchange.peers));
        Expander {
            emulator: &step.emulator,
            evaluator: step.evaluator(),
            by_own_scores: step.spec.quiescence.children_per_well().is_some(),
            candidates,
            exchange,
            loops: loops.map(LoopWorker::new),
            children: Children::new(),
            wells: Vec::new(),
            lines: Vec::new(),
            hints: Vec::new(),
            origins: Vec::new(),
            scores: Vec::new(),
            batches: Batches::new(
                candidates.layout(),
                exchange.map(|exchange| exchange.owners),
            ),
            outgoing: vec![Outgoing::default(); peers],
            floor: i32::MIN,
            chunks_to_floor_check: 0,
            stats: StepStats::default(),
        }
    }

    /// Expands parents. `first` is the index of the first parent in the frontier of all shards, for the loop rule.
    pub(super) fn expand(&mut self, first: u32, parents: &[Node]) -> Result<(), Cancelled> {
        let geometry = self.emulator.geometry();
        let layout = self.candidates.layout();
        if self.chunks_to_floor_check == 0 {
            self.floor = self.candidates.min_score();
            self.chunks_to_floor_check = 1 + layout.tables() / TABLES_PER_FLOOR_CHECK;
        }
        self.chunks_to_floor_check -= 1;
        // Thirty-two parents have about 450 children: enough to fill vector registers, and few
        // enough to fit into the L1 cache.
        for (firsts, parents) in (first..).step_by(32).zip(parents.chunks(32)) {
            self.generate(firsts, parents);
            self.stats.children += self.wells.len() as u64;
            let (floor, scores) = (self.floor, &mut self.scores);
            let (wells, lines) = (&self.wells, &self.lines);
            if self.by_own_scores {
                self.evaluator.score_own_from(floor, wells, lines, scores);
            } else {
                self.evaluator.score_from(floor, wells, lines, scores);
            }
            for index in 0..self.wells.len() {
                let score = self.scores[index];
                if score < floor {
                    continue;
                }
                let well = NodeWell::pack(geometry, &self.wells[index]);
                let hash = well.hash();
                let table = layout.table_of(hash);
                if !self.candidates.accepts(table, rank(score, hash)) {
                    continue;
                }
                let node = Node {
                    score,
                    well,
                    lines: self.lines[index],
                    hint: self.hints[index],
                };
                let shard = table / layout.tables_per_shard();
                if let Some(exchange) = self.exchange
                    && let Owner::Peer(peer) = exchange.owners[shard]
                {
                    let batch = &mut self.outgoing[usize::from(peer)];
                    batch.children.push(node);
                    batch.origins.extend(self.origins.get(index));
                    if batch.children.len() == REMOTE_BATCH {
                        self.send(exchange, peer)?;
                    }
                    continue;
                }
                if let Some(loops) = &mut self.loops {
                    loops.add(shard, &node, self.origins[index]);
                }
                let child = Candidate { node, hash };
                let offered = self.batches.push(self.candidates, table, child);
                self.stats.offered += offered as u64;
            }
        }
        Ok(())
    }

    /// Replaces the contents of the buffers with the children of these parents. For `first`, see
    /// [`Expander::expand`].
    #[inline]
    fn generate(&mut self, first: u32, parents: &[Node]) {
        let geometry = self.emulator.geometry();
        self.wells.clear();
        self.lines.clear();
        self.hints.clear();
        self.origins.clear();
        for (index, parent) in (first..).zip(parents) {
            let well = parent
                .well
                .unpack(geometry)
                .expect("wells in a frontier are valid for the emulator's geometry");
            let hint = well.hash() as u8;
            let mild = self.emulator.expand(&well, &mut self.children);
            let piece = self.loops.as_mut().map(|loops| {
                loops.apply_rule(self.emulator, index, &well, mild, &mut self.children)
            });
            self.wells.extend_from_slice(self.children.wells());
            let cleared = self.children.lines().iter();
            let lines = cleared.map(|&more| parent.lines.saturating_add(u16::from(more)));
            self.lines.extend(lines);
            self.hints.resize(self.wells.len(), hint);
            if let Some(piece) = piece {
                let origin = Origin {
                    parent: index,
                    piece,
                };
                self.origins.resize(self.wells.len(), origin);
            }
        }
    }

    fn send(&mut self, exchange: Exchange<'_>, peer: u16) -> Result<(), Cancelled> {
        let batch = &mut self.outgoing[usize::from(peer)];
        self.stats.sent += batch.children.len() as u64;
        exchange.sink.send(peer, &batch.children, &batch.origins)?;
        batch.children.clear();
        batch.origins.clear();
        Ok(())
    }

    pub(super) fn flush_all(&mut self) -> Result<(), Cancelled> {
        self.stats.offered += self.batches.offer_all(self.candidates) as u64;
        if let Some(loops) = &mut self.loops {
            loops.flush();
        }
        if let Some(exchange) = self.exchange {
            for peer in 0..exchange.peers {
                if !self.outgoing[usize::from(peer)].children.is_empty() {
                    self.send(exchange, peer)?;
                }
            }
        }
        Ok(())
    }
}
