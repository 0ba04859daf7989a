//! The heuristic agent from Brenman's paper (2014), which maximizes the weighted sum of six features, with a penalty
//! for losing the game.

use super::{Agent, Choice, View};
use hatebeam_tetris::drop::{Action, DropGame, FieldCounts, PaperFeatures};
use hatebeam_tetris::{Field, Rng};

/// Weights of the first six [`PaperFeatures`]: the number of rows cleared, the changes in holes, blocked cells,
/// aggregate blocked cells and height, and the total height.
pub type PaperWeights = [f64; 6];

/// Brenman's published weights.
pub const PAPER_WEIGHTS: PaperWeights = [0.5114, 0.06141, -0.4613, -0.5912, 0.3666, -0.1948];

/// Penalty that is added to the value of an action that loses the game. Unlike the weights, it is not normalized.
const LOST: f64 = -1000.0;

/// Agent that chooses the action with the greatest value. It breaks ties uniformly at random, and counts rotations with
/// equal shapes as different actions.
#[derive(Clone, Debug)]
pub struct Heuristic {
    weights: PaperWeights,
}

impl Heuristic {
    /// Creates an agent. The weights are divided by their Euclidean length.
    pub fn new(weights: PaperWeights) -> Heuristic {
        let length = weights
            .iter()
            .map(|weight| weight * weight)
            .sum::<f64>()
            .sqrt();
        let length = if length > 0.0 { length } else { 1.0 };
        Heuristic {
            weights: weights.map(|weight| weight / length),
        }
    }

    /// Creates the published agent.
    pub fn published() -> Heuristic {
        Heuristic::new(PAPER_WEIGHTS)
    }

    /// Returns the value of an action with these features. Rounds the value to single precision as the paper's program
    /// does, because the rounding affects ties.
    pub fn value(&self, features: &PaperFeatures) -> f32 {
        self.exact_value(features) as f32
    }

    /// Returns the value of an action with these features in double precision.
    pub fn exact_value(&self, features: &PaperFeatures) -> f64 {
        // The published weights were trained with the features as the paper's program calculates them.
        let features = features.program();
        let mut sum = 0.0;
        for (weight, &feature) in self.weights.iter().zip(&features) {
            sum += weight * f64::from(feature);
        }
        sum + LOST * f64::from(features[6])
    }

    /// Returns the best action for a piece and its value.
    pub(super) fn best(
        &self,
        game: &DropGame,
        field: &Field,
        piece: usize,
        rng: &mut Rng,
    ) -> (f32, Action) {
        let before = FieldCounts::of(field);
        let mut choice = Choice::default();
        for &action in game.distinct_actions(piece) {
            let drop = game.drop(field, piece, action);
            let value = self.value(&PaperFeatures::new(&before, &drop));
            choice.offer(value, action, game.multiplicity(piece, action), rng);
        }
        choice.best().expect("every piece has an action")
    }
}

impl Agent for Heuristic {
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action {
        self.best(view.game, &view.field, view.current, rng).1
    }
}
