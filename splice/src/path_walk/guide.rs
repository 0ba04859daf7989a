//! Paths that the tries of other walks can follow.

use super::{Arrival, Path};
use crate::walk::NO_PLACE;

/// A path of another walk, which tries can follow.
pub(crate) struct Guide {
    path: Path,
    /// For each well of the graph, its place in the path, or [`NO_PLACE`].
    places: Vec<u32>,
}

impl Guide {
    /// Creates a guide without a path in a graph of so many wells.
    pub(crate) fn new(wells: usize) -> Guide {
        Guide {
            path: Path::default(),
            places: vec![NO_PLACE; wells],
        }
    }

    /// Replaces the path.
    pub(crate) fn set(&mut self, path: &Path) {
        for &well in &self.path.wells {
            self.places[well as usize] = NO_PLACE;
        }
        self.path.clone_from(path);
        for (place, &well) in self.path.wells.iter().enumerate() {
            self.places[well as usize] = place as u32;
        }
    }

    /// Returns the next well after a well of the path.
    pub(super) fn next(&self, well: u32) -> Option<Arrival> {
        let place = self.places[well as usize];
        if place == NO_PLACE {
            return None;
        }
        let place = place as usize;
        Some(Arrival {
            well: *self.path.wells.get(place + 1)?,
            rank: self.path.ranks[place],
        })
    }
}
