//! A depth-limited expectimax search over the two known pieces and every possible third piece.

use super::controller::{Controller, ControllerWeights};
use super::{Agent, View};
use hatebeam_tetris::drop::{Action, DropGame};
use hatebeam_tetris::{Field, Rng};

/// Agent that considers the best placements of the current piece and, after each of them, the best placements of the
/// next piece. The value of such a pair is the sum of the values of both placements and the expected value of the best
/// third placement, where all third pieces are equally likely. Values are added because some features, such as the
/// landing height, depend on one move alone.
#[derive(Clone, Debug)]
pub struct Expectimax {
    controller: Controller,
    first: usize,
    second: usize,
}

/// Value of a lost position.
const LOST: f64 = -1e9;

impl Expectimax {
    /// Creates an agent that considers the best `first` placements of the current piece and, after each of them, the
    /// best `second` placements of the next piece. Each number is at least 1: 0 counts as 1.
    pub fn new(weights: ControllerWeights, first: usize, second: usize) -> Expectimax {
        Expectimax {
            controller: Controller::new(weights),
            first: first.max(1),
            second: second.max(1),
        }
    }

    /// Returns the mean, over all pieces, of the value of the piece's best placement.
    fn expected(&self, game: &DropGame, field: &Field) -> f64 {
        let pieces = game.set().len();
        let sum: f64 = (0..pieces)
            .map(|piece| {
                let actions = game.distinct_actions(piece).iter();
                let values =
                    actions.map(|&action| self.controller.value(game, field, piece, action).0);
                values.fold(LOST, f64::max)
            })
            .sum();
        sum / pieces as f64
    }
}

impl Agent for Expectimax {
    fn choose(&mut self, view: &View<'_>, _rng: &mut Rng) -> Action {
        let game = view.game;
        let mut best = (f64::NEG_INFINITY, game.distinct_actions(view.current)[0]);
        let placements = |field: &Field, piece: usize, count: usize| {
            let mut best = Vec::new();
            for placement in self.controller.placements(game, field, piece) {
                placement.insert_into(&mut best, count);
            }
            best
        };
        for first in placements(&view.field, view.current, self.first) {
            let answers = placements(&first.field, view.next, self.second);
            let answer = answers
                .iter()
                .map(|second| second.value + self.expected(game, &second.field));
            let value = first.value + answer.fold(LOST, f64::max);
            if value > best.0 {
                best = (value, first.action);
            }
        }
        best.1
    }
}
