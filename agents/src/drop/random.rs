//! The random agent.

use super::{Agent, View};
use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::{Action, ROTATIONS};

/// Agent that picks a rotation uniformly at random, and then a column uniformly at random.
#[derive(Clone, Copy, Debug)]
pub struct RandomAgent;

impl Agent for RandomAgent {
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action {
        let rotation = rng.below(ROTATIONS);
        let width = view.game.set().piece(view.current).rotations()[rotation].width();
        Action {
            rotation: rotation as u8,
            column: rng.below(view.field.width() - width + 1) as u8,
        }
    }
}
