//! The agent that Brenman (2014) calls modified rollout, which searches all placements of the current piece and the next
//! piece.

use super::{Agent, Choice, Heuristic, View};
use hatebeam_tetris::drop::{Action, FieldCounts, PaperFeatures};
use hatebeam_tetris::{Field, Rng};

/// Agent that tries every placement of the current piece, followed by every placement of the next piece. The value of
/// such a pair depends on the changes from the field before both moves to the field after them. The agent ignores first
/// moves that lose. If all of them lose, it chooses rotation 0 and column 0.
#[derive(Clone, Debug)]
pub struct TwoPiece {
    heuristic: Heuristic,
    /// Whether the agent adds the heuristic agent's best value for a third move, averaged over all third pieces.
    third: bool,
}

impl TwoPiece {
    /// Creates an agent. If `third` is true, it adds the heuristic agent's best value for a third move, averaged over
    /// all third pieces.
    pub fn new(heuristic: Heuristic, third: bool) -> TwoPiece {
        TwoPiece { heuristic, third }
    }

    fn third_value(&self, view: &View<'_>, field: &Field, lost: bool, rng: &mut Rng) -> f64 {
        let pieces = view.game.set().len();
        let before = FieldCounts::of(field);
        let sum: f64 = (0..pieces)
            .map(|piece| {
                let (_, action) = self.heuristic.best(view.game, field, piece, rng);
                let mut drop = view.game.drop(field, piece, action);
                drop.lost |= lost;
                f64::from(self.heuristic.value(&PaperFeatures::new(&before, &drop)))
            })
            .sum();
        sum / pieces as f64
    }
}

impl Agent for TwoPiece {
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action {
        let game = view.game;
        let before = FieldCounts::of(&view.field);
        let mut choice = Choice::default();
        for &action in game.distinct_actions(view.current) {
            let first = game.drop(&view.field, view.current, action);
            if first.lost {
                continue;
            }
            for &answer in game.distinct_actions(view.next) {
                let second = game.drop(&first.field, view.next, answer);
                let lines = first.lines + second.lines;
                let after = FieldCounts::of(&second.field);
                let features = PaperFeatures::between(&before, &after, lines, second.lost);
                let mut value = f64::from(self.heuristic.value(&features));
                if self.third {
                    value += self.third_value(view, &second.field, second.lost, rng);
                }
                let count =
                    game.multiplicity(view.current, action) * game.multiplicity(view.next, answer);
                choice.offer(value as f32, action, count, rng);
            }
        }
        let lost = Action {
            rotation: 0,
            column: 0,
        };
        choice.best().map_or(lost, |(_, action)| action)
    }
}
