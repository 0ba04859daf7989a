//! The best of several actions; ties are broken uniformly.

use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::Action;

/// Collects values of actions and keeps one of the best, uniformly among equal ones.
#[derive(Clone, Copy, Debug)]
pub struct Choice<V> {
    best: Option<(V, Action)>,
    ties: usize,
}

impl<V: PartialOrd + Copy> Choice<V> {
    /// Creates a choice among no actions.
    pub const fn new() -> Choice<V> {
        Choice {
            best: None,
            ties: 0,
        }
    }

    /// Offers an action that stands for `count` equal ones.
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

    /// Returns the best value and its action.
    pub fn best(&self) -> Option<(V, Action)> {
        self.best
    }
}

impl<V: PartialOrd + Copy> Default for Choice<V> {
    fn default() -> Choice<V> {
        Choice::new()
    }
}
