//! One-piece controllers of the literature: linear in nine features.

use super::{Agent, View};
use hatebeam_tetris::drop::{Action, BCTS_NAMES, ControllerFeatures, Drop, DropGame};
use hatebeam_tetris::{Field, Rng};

/// Weights of the features in the order of [`BCTS_NAMES`]. Greater values are better.
pub type ControllerWeights = [f64; BCTS_NAMES.len()];

/// Dellacherie's weights of 2003, set by hand.
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
/// BCTS (DU) of Thiery and Scherrer 2009.
pub const BCTS: ControllerWeights = [
    -12.63, 6.60, -9.22, -19.77, -13.08, -10.49, -1.61, -24.04, 0.0,
];
/// DT-10 of Gabillon and others 2013.
pub const DT_10: ControllerWeights = [-2.18, 2.42, -2.17, -3.31, 0.95, -2.22, -0.81, -9.65, 1.27];
/// DT-20 of Gabillon and others 2013.
pub const DT_20: ControllerWeights = [-2.68, 1.38, -2.41, -6.32, 2.03, -2.71, -0.43, -9.48, 0.89];

/// Takes the action of the greatest value; equal values go to the first action. A losing action is taken only if
/// there is no other.
#[derive(Clone, Debug)]
pub struct Controller {
    weights: ControllerWeights,
}

impl Controller {
    /// Creates a controller.
    pub fn new(weights: ControllerWeights) -> Controller {
        Controller { weights }
    }

    /// Returns the value of an action and its result.
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
