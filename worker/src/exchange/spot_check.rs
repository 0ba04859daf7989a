//! Spot checks of the children that other workers send.
//!
//! A child's well is checked to be a well of a shard that is here, and its place in the beam follows from its score. A worker
//! whose memory is faulty, or whose program was changed, could send any score. So one child of each batch is scored again.
//! The children of a peer that fails a check are dropped, and the epoch ends with an error that names the peer.

use crate::lock;
use hatebeam_game::Emulator;
use hatebeam_search::{Evaluator, EvaluatorError, EvaluatorSpec, Frontier, Node};
use std::sync::Mutex;

/// Checks the children of one epoch.
pub(crate) struct SpotCheck {
    emulator: Emulator,
    evaluator: EvaluatorSpec,
    /// Cells of a well at depth 0 plus those that were cleared, if this worker has a well to know them by.
    cells: Option<i64>,
    fault: Mutex<Option<PeerFault>>,
}

/// A peer that has sent a wrong child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerFault {
    /// Its name.
    pub(crate) peer: String,
    /// What is wrong.
    pub(crate) reason: String,
}

/// The child of a batch to check.
pub(super) struct Sample {
    pub(super) from: String,
    pub(super) depth: u32,
    /// Chooses the child: no peer can know which one it will be.
    pub(super) random: u64,
}

/// An evaluator of one stream, and its output.
pub(super) struct Scorer {
    evaluator: Evaluator,
    scores: Vec<i32>,
}

/// Cells of a piece.
const PIECE_CELLS: i64 = 4;

impl SpotCheck {
    /// Makes the checks of an epoch that begins with these wells.
    pub(crate) fn new(
        emulator: &Emulator,
        evaluator: EvaluatorSpec,
        first: &Frontier,
    ) -> SpotCheck {
        let check = SpotCheck {
            emulator: emulator.clone(),
            evaluator,
            cells: None,
            fault: Mutex::default(),
        };
        let node = first.nodes().next();
        SpotCheck {
            cells: node.and_then(|node| check.placed_cells(node, first.depth)),
            ..check
        }
    }

    /// Cells of a well and of its cleared lines without those of `depth` pieces. All wells of a run have the same number.
    fn placed_cells(&self, node: &Node, depth: u32) -> Option<i64> {
        let geometry = self.emulator.geometry();
        let well = node.well.unpack(geometry).ok()?;
        let cleared = i64::from(node.lines) * geometry.width() as i64;
        Some(i64::from(well.filled()) + cleared - PIECE_CELLS * i64::from(depth))
    }

    /// Returns the first fault of a peer.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        lock(&self.fault).clone()
    }

    /// Checks one of the children. Returns false if it is wrong, or if the peer has sent a wrong one before.
    pub(super) fn is_good(
        &self,
        scorer: &mut Option<Scorer>,
        nodes: &[Node],
        sample: &Sample,
    ) -> bool {
        if self.fault().is_some_and(|fault| fault.peer == sample.from) {
            return false;
        }
        let Some(count) = u64::try_from(nodes.len()).ok().filter(|&count| count > 0) else {
            return true;
        };
        let node = &nodes[(sample.random % count) as usize];
        let Some(reason) = self.wrong(scorer, node, sample.depth) else {
            return true;
        };
        tracing::error!(peer = sample.from, reason, "received a wrong child");
        lock(&self.fault).get_or_insert(PeerFault {
            peer: sample.from.clone(),
            reason,
        });
        false
    }

    /// Returns what is wrong with a child of this depth.
    fn wrong(&self, scorer: &mut Option<Scorer>, node: &Node, depth: u32) -> Option<String> {
        let placed = self.placed_cells(node, depth);
        if self.cells.is_some() && placed != self.cells {
            let lines = node.lines;
            return Some(format!(
                "it sent a child whose {lines} lines do not match its cells"
            ));
        }
        let score = match self.score(scorer, node) {
            Ok(score) => score?,
            // The step would have failed in the same way.
            Err(_) => return None,
        };
        (score != node.score).then(|| {
            format!(
                "it sent a child with score {}, which has {score}",
                node.score
            )
        })
    }

    fn score(
        &self,
        scorer: &mut Option<Scorer>,
        node: &Node,
    ) -> Result<Option<i32>, EvaluatorError> {
        let scorer = match scorer {
            Some(scorer) => scorer,
            None => scorer.insert(Scorer {
                evaluator: Evaluator::new(&self.emulator, &self.evaluator)?,
                scores: Vec::new(),
            }),
        };
        let Ok(well) = node.well.unpack(self.emulator.geometry()) else {
            return Ok(None);
        };
        let Scorer { evaluator, scores } = scorer;
        evaluator.score(&[well], &[node.lines], scores);
        Ok(scores.first().copied())
    }
}
