//! A depth-limited expectimax search over the two known pieces and every possible third piece.

use super::{Agent, Controller, ControllerWeights, View};
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

    /// Returns the `count` placements of a piece with the greatest values, in descending order of value. Each element
    /// consists of the value, the action, and the field after the action. Losing placements are excluded.
    fn best(
        &self,
        game: &DropGame,
        field: &Field,
        piece: usize,
        count: usize,
    ) -> Vec<(f64, Action, Field)> {
        let mut all: Vec<(f64, Action, Field)> = game
            .distinct_actions(piece)
            .iter()
            .map(|&action| {
                let (value, drop) = self.controller.value(game, field, piece, action);
                (value, action, drop.field)
            })
            .filter(|candidate| candidate.0 > f64::NEG_INFINITY)
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(count);
        all
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
        for (value, action, field) in self.best(game, &view.field, view.current, self.first) {
            let answers = self.best(game, &field, view.next, self.second);
            let answer = answers
                .iter()
                .map(|(value, _, field)| value + self.expected(game, field));
            let value = value + answer.fold(LOST, f64::max);
            if value > best.0 {
                best = (value, action);
            }
        }
        best.1
    }
}
