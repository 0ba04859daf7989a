//! The rollout agent from Brenman's paper (2014).

use super::{Agent, Choice, Heuristic, View};
use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::{Action, FieldCounts, PaperFeatures};

/// Agent that simulates random futures after each action. In a future, the heuristic agent plays the known next piece
/// and then random pieces. The agent adds the discounted values of these moves, averaged over the futures, to the
/// value of the action.
#[derive(Clone, Debug)]
pub struct Rollout {
    heuristic: Heuristic,
    futures: usize,
    moves: usize,
    discount: f64,
}

impl Rollout {
    /// Creates an agent that simulates `futures` futures (at least 1) of `moves` moves after each action. The value
    /// of the n-th move is multiplied by the n-th power of `discount`.
    pub fn new(heuristic: Heuristic, futures: usize, moves: usize, discount: f64) -> Rollout {
        Rollout {
            heuristic,
            futures: futures.max(1),
            moves,
            discount,
        }
    }

    fn value(&self, view: &View<'_>, action: Action, rng: &mut Rng) -> f64 {
        let game = view.game;
        let first = game.drop(&view.field, view.current, action);
        let before = FieldCounts::of(&view.field);
        let own = f64::from(self.heuristic.value(&PaperFeatures::new(&before, &first)));
        let mut sum = 0.0;
        for _ in 0..self.futures {
            let (mut field, mut lost, mut piece) = (first.field, first.lost, view.next);
            let mut factor = 1.0;
            for _ in 0..self.moves {
                factor *= self.discount;
                let (_, action) = self.heuristic.best(game, &field, piece, rng);
                let mut drop = game.drop(&field, piece, action);
                // Like the paper's program, continue a lost game and count every later move as a loss.
                drop.lost |= lost;
                let features = PaperFeatures::new(&FieldCounts::of(&field), &drop);
                sum += factor * f64::from(self.heuristic.value(&features));
                (field, lost) = (drop.field, drop.lost);
                piece = rng.below(game.set().len());
            }
        }
        own + sum / self.futures as f64
    }
}

impl Agent for Rollout {
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action {
        let mut choice = Choice::default();
        for &action in view.game.distinct_actions(view.current) {
            let value = self.value(view, action, rng);
            let count = view.game.multiplicity(view.current, action);
            choice.offer(value, action, count, rng);
        }
        choice.best().expect("every piece has an action").1
    }
}
