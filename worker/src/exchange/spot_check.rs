//! Spot checks of the children (candidate wells for the next depth) that other workers send.
//!
//! The score of a child determines whether the child stays in the beam. A peer with faulty memory or a modified program
//! could send any score. Therefore, two children of each batch are scored again: a random one, and the one with the highest
//! score, because a single score that is far too high would displace good wells for ever. If a child is wrong, this batch
//! and all later batches of the peer are dropped. The coordinator's next order to count candidates then fails with an error
//! that names all such peers.
//!
//! If the run applies the loop rule, a wrong parent of a child could lead to a wrong piece in a later well. So the origins of
//! the same children are checked, too. That needs the frontier of all workers, so these children are remembered until then.

use crate::lock;
use hatebeam_game::{Emulator, Well};
use hatebeam_runs::CellBalance;
use hatebeam_search::{Evaluator, EvaluatorError, EvaluatorSpec, Node, Origin, Past};
use std::collections::BTreeMap;
use std::sync::Mutex;

pub(crate) struct SpotCheck {
    emulator: Emulator,
    evaluator: EvaluatorSpec,
    balance: CellBalance,
    /// The peers whose check has failed. The value describes the first wrong child of the peer.
    faults: Mutex<BTreeMap<String, String>>,
}

/// Parameters of the check of one batch.
pub(super) struct Sample {
    pub(super) from: String,
    pub(super) depth: u32,
    /// Random number that selects the child, so that a peer cannot predict which child is checked.
    pub(super) random: u64,
}

/// The evaluator of one stream, and a buffer for its output.
pub(super) struct Scorer {
    evaluator: Evaluator,
    scores: Vec<i32>,
}

/// Maximum number of children whose origins are checked in a depth. Each takes about as long as the expansion of a well. With
/// more batches, a random selection of their checked children.
const MAX_SAMPLES: usize = 4096;

/// Children whose origins are to be checked.
#[derive(Default)]
pub(crate) struct OriginSamples(Mutex<Samples>);

#[derive(Default)]
struct Samples {
    /// A random selection of all children that were added, with equal probabilities.
    selected: Vec<OriginSample>,
    /// Number of children that were added.
    added: u64,
}

impl Samples {
    /// Adds a child, or lets it replace another one. `random` is a random number.
    fn add(&mut self, sample: OriginSample, random: u64) {
        self.added += 1;
        if self.selected.len() < MAX_SAMPLES {
            return self.selected.push(sample);
        }
        let at = random % self.added;
        if let Some(replaced) = self.selected.get_mut(at as usize) {
            *replaced = sample;
        }
    }
}

struct OriginSample {
    from: String,
    child: Node,
    origin: Origin,
}

impl OriginSamples {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).selected.len()
    }

    #[cfg(test)]
    pub(super) fn count(&self, child: &Node) -> usize {
        let samples = lock(&self.0);
        let selected = samples.selected.iter();
        selected
            .filter(|sample| sample.child.well == child.well)
            .count()
    }

    /// Adds two children of a batch: those whose scores [`SpotCheck::is_good`] checks.
    pub(super) fn add(&self, nodes: &[Node], origins: &[Origin], sample: &Sample) {
        let mut random = sample.random;
        for at in checked(nodes, sample).into_iter().flatten() {
            // The number selects the child, too, and both children need different numbers.
            random = mix(random);
            let new = OriginSample {
                from: sample.from.clone(),
                child: nodes[at],
                origin: origins[at],
            };
            lock(&self.0).add(new, random);
        }
    }
}

/// Returns a number that appears independent of `random`: the step of the generator SplitMix64.
fn mix(random: u64) -> u64 {
    let number = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Returns the indices of the children of a batch that are checked: that with the highest score and a random one.
fn checked(nodes: &[Node], sample: &Sample) -> [Option<usize>; 2] {
    let best = (0..nodes.len()).max_by_key(|&at| nodes[at].score);
    let random = best.map(|_| (sample.random % nodes.len() as u64) as usize);
    [best, random]
}

impl SpotCheck {
    /// Creates the spot checks of a run whose wells have this balance.
    pub(crate) fn new(
        emulator: &Emulator,
        evaluator: EvaluatorSpec,
        balance: CellBalance,
    ) -> SpotCheck {
        SpotCheck {
            emulator: emulator.clone(),
            evaluator,
            balance,
            faults: Mutex::default(),
        }
    }

    /// Returns the peers whose check has failed, each with a description of its first wrong child.
    pub(crate) fn faults(&self) -> BTreeMap<String, String> {
        lock(&self.faults).clone()
    }

    /// Checks two children of a batch. Returns `false` if one of them is wrong, or if a check of its sender has failed before.
    pub(super) fn is_good(
        &self,
        scorer: &mut Option<Scorer>,
        nodes: &[Node],
        sample: &Sample,
    ) -> bool {
        if lock(&self.faults).contains_key(&sample.from) {
            return false;
        }
        let mut checked = checked(nodes, sample).into_iter().flatten();
        let Some(reason) = checked.find_map(|at| self.wrong(scorer, &nodes[at], sample.depth))
        else {
            return true;
        };
        self.note_fault(&sample.from, reason);
        false
    }

    /// Checks the origins of the samples and removes them. `past` are the games that lead to the parents.
    pub(super) fn check_origins(&self, past: &Past, samples: &OriginSamples) {
        let samples = std::mem::take(&mut *lock(&samples.0)).selected;
        for OriginSample {
            from,
            child,
            origin,
        } in samples
        {
            if !past.is_origin(&self.emulator, &child, origin) {
                let (parent, piece) = (origin.parent, origin.piece.letter());
                let reason = format!(
                    "it sent a child that {piece} does not produce from well {parent} of the frontier"
                );
                self.note_fault(&from, reason);
            }
        }
    }

    fn note_fault(&self, from: &str, reason: String) {
        tracing::error!(peer = from, reason, "received a wrong child");
        lock(&self.faults).entry(from.to_owned()).or_insert(reason);
    }

    /// Returns a description of the error if a child at this depth is wrong.
    fn wrong(&self, scorer: &mut Option<Scorer>, node: &Node, depth: u32) -> Option<String> {
        // Batches with invalid wells are refused before this check.
        let well = node.well.unpack(self.emulator.geometry()).ok()?;
        if !self.balance.holds(&well, node.lines, depth) {
            let lines = node.lines;
            return Some(format!(
                "it sent a child whose {lines} lines do not match its number of cells"
            ));
        }
        let score = match self.score(scorer, &well, node.lines) {
            Ok(score) => score,
            // The evaluator cannot be created. This error need not be reported here, because this worker's own search
            // step fails for the same reason.
            Err(_) => return None,
        };
        (score != node.score).then(|| {
            format!(
                "it sent a child with score {} instead of {score}",
                node.score
            )
        })
    }

    fn score(
        &self,
        scorer: &mut Option<Scorer>,
        well: &Well,
        lines: u16,
    ) -> Result<i32, EvaluatorError> {
        let scorer = match scorer {
            Some(scorer) => scorer,
            None => scorer.insert(Scorer {
                evaluator: Evaluator::new(&self.emulator, &self.evaluator)?,
                scores: Vec::new(),
            }),
        };
        let Scorer { evaluator, scores } = scorer;
        // With `first-of-best`, the quiescence search comes later.
        match evaluator.quiescence().children_per_well() {
            Some(_) => evaluator.score_own_from(i32::MIN, &[*well], &[lines], scores),
            None => evaluator.score(&[*well], &[lines], scores),
        }
        Ok(scores[0])
    }
}
