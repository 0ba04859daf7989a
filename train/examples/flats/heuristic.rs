//! The graph heuristic, an evaluator that David & Felipe published in 2022
//! (<https://hallofdreams.org/posts/hatetris>). It needs no learning, only statistics of games.
//!
//! The value of a well is the sum over its rows of the row's *clearability*, multiplied by the *permeability* of each
//! pair of neighbouring rows from the top down to the row. The clearability is the probability that a row like this is
//! cleared, and the permeability is the probability that a piece in the upper row continues to the lower row. An
//! empty row has clearability 1.

use crate::clearability::Clearability;
use crate::statistics::{FlatStatistics, Passes, ROWS};
use hatebeam_game::{Geometry, Well};
use hatebeam_search::{Evaluator, SCALE};
use hatebeam_train::Scorer;

/// Number of units of a probability of 1.
const ONE: u32 = 1 << 16;
/// Number of imagined observations of a pair of rows.
const PRIOR: f64 = 4.0;

/// The graph heuristic. It works in integers, so its scores are the same on every machine.
pub(crate) struct FlatHeuristic {
    /// For each row, its clearability in units of 1/[`ONE`].
    clearability: Vec<u32>,
    /// For each pair of an upper and a lower row, its permeability in units of 1/[`ONE`].
    permeability: Vec<u32>,
}

impl FlatHeuristic {
    /// Creates the heuristic from statistics of games.
    pub(crate) fn new(statistics: &FlatStatistics, clearability: Clearability) -> FlatHeuristic {
        let fixed = |probability: f64| (probability * f64::from(ONE)).round() as u32;
        let clearability = clearability.of_rows(statistics);
        let sum = |count: fn(&Passes) -> u32| statistics.passes.values().map(count).sum::<u32>();
        let [passed, stopped] = [sum(|pair| pair.passed), sum(|pair| pair.stopped)];
        let mean = f64::from(passed) / f64::from((passed + stopped).max(1));
        let mut permeability = vec![fixed(mean); ROWS * ROWS];
        for ([upper, lower], pair) in &statistics.passes {
            let [passed, stopped] = [pair.passed, pair.stopped].map(f64::from);
            let share = (passed + PRIOR * mean) / (passed + stopped + PRIOR);
            permeability[usize::from(*upper) * ROWS + usize::from(*lower)] = fixed(share);
        }
        // A piece stops in an empty row only because of the row below.
        permeability[0] = ONE;
        FlatHeuristic {
            clearability: clearability.into_iter().map(fixed).collect(),
            permeability,
        }
    }

    /// Returns the value of a standard well, in units of 2^-16 empty rows.
    pub(crate) fn value(&self, well: &Well) -> i32 {
        let mut above = 0;
        let mut reach = ONE;
        let mut value = 0;
        for &row in well.rows()[..Geometry::STANDARD.height()].iter().rev() {
            let row = usize::from(row);
            let pass = self.permeability[above * ROWS + row];
            reach = multiply(reach, pass);
            value += multiply(reach, self.clearability[row]) as i32;
            above = row;
        }
        value
    }
}

/// Returns the product of two probabilities.
fn multiply(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 16) as u32
}

/// Scores wells by the graph heuristic, alone or added to the score of an evaluator.
pub(crate) struct FlatScorer {
    /// The graph heuristic.
    pub(crate) heuristic: FlatHeuristic,
    /// An evaluator, and the weight of the heuristic's value in units of the weights of `knewjade`.
    pub(crate) base: Option<(Evaluator, i32)>,
}

impl Scorer for FlatScorer {
    fn score(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        match &mut self.base {
            None => {
                out.clear();
                out.extend(wells.iter().map(|well| self.heuristic.value(well)));
            }
            Some((evaluator, weight)) => {
                evaluator.score(wells, lines, out);
                let units = i64::from(*weight) * SCALE as i64;
                for (score, well) in out.iter_mut().zip(wells) {
                    let value = i64::from(self.heuristic.value(well)) * units / i64::from(ONE);
                    *score = score.saturating_add(value as i32);
                }
            }
        }
    }
}
