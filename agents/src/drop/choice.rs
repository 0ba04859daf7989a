//! Selection of the best action. Ties are broken uniformly at random.

use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::Action;

/// Selects the action with the greatest value, and breaks ties uniformly at random.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<V> {
    best: Option<(V, Action)>,
    ties: usize,
}

impl<V: PartialOrd + Copy> Choice<V> {
    /// Adds an action, which counts as `count` actions when ties are broken.
    pub fn offer(&mut self, value: V, action: Action, count: usize, rng: &mut Rng) {
        match self.best {
            Some((best, _)) if value < best => {}
            Some((best, _)) if value == best => {
                self.ties += count;
                if rng.below(self.ties) < count {
                    self.best = Some((value, action));
                }
            }
            _ => {
                self.best = Some((value, action));
                self.ties = count;
            }
        }
    }

    /// Returns the best value and its action, or `None` if no action has been added.
    pub fn best(&self) -> Option<(V, Action)> {
        self.best
    }
}
