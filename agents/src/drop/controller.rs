//! One-piece controllers, which are agents from the literature that consider only the current piece.

use super::{Agent, View};
use hatebeam_tetris::drop::{Action, BCTS_NAMES, ControllerFeatures, Drop, DropGame};
use hatebeam_tetris::{Field, Rng};

/// Weights of the nine features in the order of [`BCTS_NAMES`]. The value of an action is the weighted sum of its
/// features, and greater values are better.
pub type ControllerWeights = [f64; BCTS_NAMES.len()];

/// Dellacherie's weights from 2003, which were set by hand.
pub const DELLACHERIE: ControllerWeights = [-1.0, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0];
/// Weights of El-Tetris.
pub const EL_TETRIS: ControllerWeights = [
    -4.500158825082766,
    3.4181268101392694,
    -3.2178882868487753,
    -9.348695305445199,
    -7.899265427351652,
    -3.3855972247263626,
    0.0,
    0.0,
    0.0,
];
/// Weights of BCTS (DU), by Thiery and Scherrer, 2009.
pub const BCTS: ControllerWeights = [
    -12.63, 6.60, -9.22, -19.77, -13.08, -10.49, -1.61, -24.04, 0.0,
];
/// Weights of DT-10, by Gabillon et al., 2013.
pub const DT_10: ControllerWeights = [-2.18, 2.42, -2.17, -3.31, 0.95, -2.22, -0.81, -9.65, 1.27];
/// Weights of DT-20, by Gabillon et al., 2013.
pub const DT_20: ControllerWeights = [-2.68, 1.38, -2.41, -6.32, 2.03, -2.71, -0.43, -9.48, 0.89];

/// Agent that chooses the action with the greatest value. Among actions with equal values, it chooses the first. It
/// chooses a losing action only if every action loses.
#[derive(Clone, Debug)]
pub struct Controller {
    weights: ControllerWeights,
}

/// A field, and the action and the value that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) value: f64,
    pub(super) action: Action,
    pub(super) field: Field,
}

impl Ranked {
    /// Inserts the element into a list of the best `count` elements, best first. Among elements with equal values, the
    /// first one inserted comes first.
    pub(super) fn insert_into(self, best: &mut Vec<Ranked>, count: usize) {
        let at = best.partition_point(|other| other.value >= self.value);
        if at < count {
            best.truncate(count - 1);
            best.insert(at, self);
        }
    }
}

impl Controller {
    /// Creates a controller with these weights.
    pub fn new(weights: ControllerWeights) -> Controller {
        Controller { weights }
    }

    /// Returns the value and the result of an action. A losing action has the value −∞.
    pub(super) fn value(
        &self,
        game: &DropGame,
        field: &Field,
        piece: usize,
        action: Action,
    ) -> (f64, Drop) {
        let drop = game.drop(field, piece, action);
        if drop.lost {
            return (f64::NEG_INFINITY, drop);
        }
        let turned = &game.set().piece(piece).rotations()[usize::from(action.rotation)];
        let features = ControllerFeatures::new(&drop, turned).array();
        let value = features
            .iter()
            .zip(&self.weights)
            .map(|(feature, weight)| feature * weight)
            .sum();
        (value, drop)
    }

    /// Returns the placements of a piece that do not lose the game.
    pub(super) fn placements(
        &self,
        game: &DropGame,
        field: &Field,
        piece: usize,
    ) -> impl Iterator<Item = Ranked> {
        game.distinct_actions(piece)
            .iter()
            .map(move |&action| {
                let (value, drop) = self.value(game, field, piece, action);
                Ranked {
                    value,
                    action,
                    field: drop.field,
                }
            })
            .filter(|placement| placement.value > f64::NEG_INFINITY)
    }
}

impl Agent for Controller {
    fn choose(&mut self, view: &View<'_>, _rng: &mut Rng) -> Action {
        let actions = view.game.distinct_actions(view.current);
        let mut best = (f64::NEG_INFINITY, actions[0]);
        for &action in actions {
            let (value, _) = self.value(view.game, &view.field, view.current, action);
            if value > best.0 {
                best = (value, action);
            }
        }
        best.1
    }
}
