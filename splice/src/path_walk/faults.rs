//! The faults of a path, and how they change if a way replaces a part of it.

use super::{Limits, PathWalk, Way};
use crate::graph::PIECES;
use crate::walk::NO_PLACE;

/// Maximum number of faults in later wells that a way is assumed to remove. It ends the count of the others early.
const MAX_REMOVED: i32 = 2;

/// A well of the path, and its number of faults after a change.
pub(super) struct Recount {
    well: u32,
    faults: u8,
}

impl PathWalk<'_> {
    /// Returns whether the path can continue at this place after the way. Then the recounts are those of the change.
    pub(super) fn can_end_at(&mut self, to: usize, limits: Limits) -> bool {
        let from = self.way.from;
        if self.way.wells.is_empty() && to == from + 1 && self.way.ranks[0] == self.path.ranks[from]
        {
            return false;
        }
        let gain = (self.way.wells.len() + from + 1) as i32 - to as i32;
        let sum = |faults: &[u8]| faults.iter().map(|&faults| i32::from(faults)).sum::<i32>();
        let change = sum(&self.way.faults) - sum(&self.faults[from..to]);
        let allowed = (limits.cost + gain).div_euclid(limits.penalty) - change;
        allowed >= -MAX_REMOVED
            && self
                .recount(to, allowed)
                .is_some_and(|later| later <= allowed)
    }

    /// Counts the faults in the later wells for the path along the way to the place `to`. Returns by how much their number
    /// rises, or `None` if this is too much.
    fn recount(&mut self, to: usize, allowed: i32) -> Option<i32> {
        self.recounts.clear();
        self.count += 1;
        let mut change = 0;
        let new = self.way.wells.len();
        for index in 0..new + to - self.way.from - 1 {
            let well = match index.checked_sub(new) {
                None => self.way.wells[index],
                Some(old) => self.path.wells[self.way.from + 1 + old],
            };
            for origin in self.graph.origins(well) {
                if origin.rank() > usize::from(self.highest) {
                    break;
                }
                let place = self.places[origin.well()] as usize;
                if place < to || place == NO_PLACE as usize {
                    continue;
                }
                let rank = self.path.ranks[place];
                if origin.rank() > usize::from(rank) || self.counted[origin.well()] == self.count {
                    continue;
                }
                self.counted[origin.well()] = self.count;
                let (from, to, last) = (self.way.from as u32, to as u32, place as u32);
                let well = origin.well() as u32;
                let faults =
                    self.faults_of(well, rank, |at| at <= from || (to..=last).contains(&at));
                if faults != self.faults[place] {
                    change += i32::from(faults) - i32::from(self.faults[place]);
                    if change > allowed + MAX_REMOVED {
                        return None;
                    }
                    self.recounts.push(Recount { well, faults });
                }
            }
        }
        Some(change)
    }

    /// Returns the number of faults if the path uses the piece with this rank in a well. `is_past` returns whether the path
    /// visits a place before.
    pub(super) fn faults_of(&self, well: u32, rank: u8, is_past: impl Fn(u32) -> bool) -> u8 {
        let is_excluded = |rank| {
            let mut children = self.graph.children(well, rank).iter();
            children.any(|&child| is_past(self.places[child as usize]))
        };
        let rank = usize::from(rank);
        let preferred = (0..rank).filter(|&rank| !is_excluded(rank)).count();
        preferred as u8 + u8::from(rank < PIECES && is_excluded(rank))
    }

    /// Replaces the part of the path before the place `to` by the way.
    pub(super) fn take(&mut self, to: usize) {
        let Way {
            from,
            wells,
            ranks,
            faults,
        } = &self.way;
        let from = *from;
        let old = self.faults[from..to].iter().chain(faults);
        let is_changed = !self.recounts.is_empty() || old.into_iter().any(|&faults| faults > 0);
        for &well in &self.path.wells[from + 1..to] {
            self.places[well as usize] = NO_PLACE;
        }
        let highest = ranks.iter().copied().max().unwrap_or_default();
        self.highest = self.highest.max(highest);
        self.path.wells.splice(from + 1..to, wells.iter().copied());
        self.path.ranks.splice(from..to, ranks.iter().copied());
        self.faults.splice(from..to, faults.iter().copied());
        let end = from + 1 + wells.len();
        let moved = if end == to { to } else { self.path.wells.len() };
        for place in from + 1..moved {
            self.places[self.path.wells[place] as usize] = place as u32;
        }
        for count in &self.recounts {
            self.faults[self.places[count.well as usize] as usize] = count.faults;
        }
        if is_changed {
            self.sum_faults();
        }
    }

    /// Updates the number of all faults and the list of wells with faults.
    pub(super) fn sum_faults(&mut self) {
        self.total = self.faults.iter().map(|&faults| u32::from(faults)).sum();
        self.faulty.clear();
        let wells = self.path.wells.iter().zip(&self.faults);
        let faulty = wells.filter(|(_, faults)| **faults > 0);
        self.faulty.extend(faulty.map(|(&well, _)| well));
    }
}
