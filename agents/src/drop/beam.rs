//! A beam search over all known pieces.

use super::controller::{Controller, ControllerWeights, Ranked};
use super::{Agent, View};
use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::Action;

/// Agent that places all known pieces one after the other and keeps the best fields after each of them. A field has the
/// sum of the values of all placements that lead to it, because some features, such as the landing height, depend on
/// one move alone. If no field survives all known pieces, the best of those that survive longest decides.
#[derive(Clone, Debug)]
pub struct Beam {
    controller: Controller,
    width: usize,
}

impl Beam {
    /// Creates an agent that keeps `width` different fields after each piece. A width of 0 counts as 1.
    pub fn new(weights: ControllerWeights, width: usize) -> Beam {
        Beam {
            controller: Controller::new(weights),
            width: width.max(1),
        }
    }

    /// Inserts a field into the best `self.width` different fields, which are sorted by value.
    fn insert(&self, beam: &mut Vec<Ranked>, child: Ranked) {
        // The beam is narrow, so a linear search is fast enough.
        if let Some(at) = beam.iter().position(|other| other.field == child.field) {
            if beam[at].value >= child.value {
                return;
            }
            beam.remove(at);
        }
        child.insert_into(beam, self.width);
    }
}

impl Agent for Beam {
    fn choose(&mut self, view: &View<'_>, _rng: &mut Rng) -> Action {
        let (controller, game) = (&self.controller, view.game);
        let mut beam = Vec::new();
        for child in controller.placements(game, &view.field, view.current) {
            self.insert(&mut beam, child);
        }
        for &piece in std::iter::once(&view.next).chain(view.later) {
            let mut children = Vec::new();
            for parent in &beam {
                for child in controller.placements(game, &parent.field, piece) {
                    let child = Ranked {
                        value: parent.value + child.value,
                        action: parent.action,
                        ..child
                    };
                    self.insert(&mut children, child);
                }
            }
            if children.is_empty() {
                break;
            }
            beam = children;
        }
        let lost = game.distinct_actions(view.current)[0];
        beam.first().map_or(lost, |best| best.action)
    }
}
