//! The search for ways: from random places, near faults, and along other paths.

use super::{Arrival, Guide, Limits, Passed, PathWalk};
use crate::graph::PIECES;
use crate::walk::{MAX_GAIN, NO_PLACE, VISITS};

/// Factor by which a try that begins near a fault can replace more pieces than others.
const NEAR_FAULTS: usize = 8;

/// One in this many tries begins near a fault.
const FAULT_ODDS: usize = 4;

/// Maximum numbers of pieces before a fault at which a try begins.
const BEFORE: [usize; 3] = [0, 6, 30];

/// Maximum number of pieces of the random way to a well that excludes a piece.
const MAX_CHAIN: usize = 8;

/// Highest rank of a piece on such a way.
const MAX_CHAIN_RANK: usize = 1;

/// Minimum numbers of pieces for which a try follows the path of another walk.
const GUIDED: [usize; 8] = [0, 0, 0, 0, 0, 0, 100, 400];

/// Maximum number of pieces for which a try follows the path of another walk.
const MAX_GUIDED: usize = 800;

/// Maximum number of wells in which a try looks for one where the other path leaves this one.
const MAX_COMMON: usize = 200;

impl PathWalk<'_> {
    /// Searches a way from a random place or near a fault. Returns the place at which it comes back.
    pub(super) fn find(&mut self, mut limits: Limits) -> Option<usize> {
        let mut visits = VISITS[self.below(VISITS.len())];
        let mut well = None;
        let last = self.path.wells.len() - 1;
        if self.total > 0 && self.below(FAULT_ODDS) == 0 {
            limits.last *= NEAR_FAULTS;
            limits.wells = limits.last + MAX_GAIN;
            let fault = self.random_fault();
            if self.below(2) == 0 {
                well = Some(self.enter_excluder(fault, limits)?);
            } else {
                self.way.from = self.place_before(fault).min(last - 1);
            }
        } else {
            self.way.from = self.below(last - 1);
        }
        let well = well.unwrap_or(self.path.wells[self.way.from]);
        limits.last = (self.way.from + limits.last).min(last);
        let faults = self.way.faults.iter().sum();
        self.search(well, limits, faults, &mut visits)
    }

    /// Returns the place of a random well with faults.
    fn random_fault(&mut self) -> usize {
        let index = self.below(self.faulty.len());
        let well = self.faulty[index];
        self.places[well as usize] as usize
    }

    /// Returns a random place shortly before a fault, or before the well that excludes the piece used there.
    fn place_before(&mut self, fault: usize) -> usize {
        let well = self.path.wells[fault];
        let rank = usize::from(self.path.ranks[fault]);
        let visited = |child: &u32| self.places[*child as usize] <= fault as u32;
        let excluder = if rank < PIECES {
            let mut children = self.graph.children(well, rank).iter();
            children.find(|child| visited(child))
        } else {
            None
        };
        let place = match excluder {
            Some(&child) => (self.places[child as usize] as usize).saturating_sub(1),
            None => fault,
        };
        let before = BEFORE[self.below(BEFORE.len())];
        place.saturating_sub(self.below(before + 1))
    }

    /// Begins the way with a random way to a well that excludes a piece that the enemy prefers in the well of a fault. Returns
    /// this well.
    fn enter_excluder(&mut self, fault: usize, limits: Limits) -> Option<u32> {
        let well = self.path.wells[fault];
        let rank = self.below(usize::from(self.path.ranks[fault]).max(1));
        let children = self.graph.children(well, rank);
        if children.is_empty() {
            return None;
        }
        let excluder = children[self.below(children.len())];
        let mut chain = Vec::with_capacity(MAX_CHAIN);
        let mut first = excluder;
        while self.places[first as usize] == NO_PLACE {
            if chain.len() == MAX_CHAIN {
                return None;
            }
            let origins = self.graph.origins(first);
            let known = origins.partition_point(|origin| origin.rank() <= MAX_CHAIN_RANK);
            if known == 0 {
                return None;
            }
            let origin = origins[self.below(known)];
            chain.push(Arrival {
                well: first,
                rank: origin.rank() as u8,
            });
            first = origin.well() as u32;
        }
        let from = self.places[first as usize] as usize;
        if chain.is_empty() || from >= fault {
            return None;
        }
        self.way.from = from;
        let mut well = first;
        let mut faults = 0;
        for &next in chain.iter().rev() {
            if self.places[next.well as usize] != NO_PLACE {
                return None;
            }
            let here = self.faults_of(well, next.rank, |at| at <= from as u32);
            faults += here;
            if faults > limits.faults {
                return None;
            }
            self.enter(next, here);
            well = next.well;
        }
        Some(excluder)
    }

    /// Follows the path of another walk from a place at which it leaves this one, for a random number of pieces, to a well at
    /// which it arrives at this one. Returns the place of this well.
    pub(super) fn follow(&mut self, guide: &Guide, limits: Limits) -> Option<usize> {
        let least = GUIDED[self.below(GUIDED.len())];
        let first = self.below(self.path.wells.len() - 1);
        let places = first..(first + MAX_COMMON).min(self.path.wells.len() - 1);
        let leaves = |&place: &usize| {
            let next = guide.next(self.path.wells[place]);
            next.is_some_and(|next| next.well != self.path.wells[place + 1])
        };
        let from = places.into_iter().find(leaves)?;
        self.way.from = from;
        let mut well = self.path.wells[from];
        let mut last = from;
        let mut is_common = false;
        for pieces in 0..MAX_GUIDED {
            let next = guide.next(well)?;
            let faults = self.faults_of(well, next.rank, |at| at <= from as u32);
            let place = self.places[next.well as usize];
            if place != NO_PLACE {
                let to = place as usize;
                if to <= from {
                    return None;
                }
                let arrives = !is_common || self.path.wells[to - 1] != well;
                if arrives && to > last && pieces >= least {
                    self.way.ranks.push(next.rank);
                    self.way.faults.push(faults);
                    return self.can_end_at(to, limits).then_some(to);
                }
                last = last.max(to);
                self.passed.push(Passed {
                    well: next.well,
                    place,
                });
            }
            is_common = place != NO_PLACE;
            self.enter(next, faults);
            well = next.well;
        }
        None
    }

    /// Adds a well to the way. `faults` is the number of faults in the last well before.
    fn enter(&mut self, next: Arrival, faults: u8) {
        self.way.ranks.push(next.rank);
        self.way.faults.push(faults);
        self.way.wells.push(next.well);
        self.places[next.well as usize] = 0;
    }

    /// Continues the way, depth first, with the children of its last well. `faults` is the number of faults of the way. Returns
    /// the place at which it comes back.
    fn search(&mut self, well: u32, limits: Limits, faults: u8, visits: &mut u32) -> Option<usize> {
        *visits = visits.checked_sub(1)?;
        let from = self.way.from as u32;
        let graph = self.graph;
        let mut preferred = 0;
        for rank in 0..PIECES {
            let children = graph.children(well, rank);
            let mut places = children.iter().map(|&child| self.places[child as usize]);
            let is_excluded = places.any(|place| place <= from);
            let here = preferred + u8::from(is_excluded);
            if here <= 1 && faults + here <= limits.faults {
                self.way.ranks.push(rank as u8);
                self.way.faults.push(here);
                let to = self.search_children(children, limits, faults + here, visits);
                if to.is_some() {
                    return to;
                }
                self.way.ranks.pop();
                self.way.faults.pop();
            }
            preferred += u8::from(!is_excluded);
            if preferred > 1 || faults + preferred > limits.faults {
                break;
            }
        }
        None
    }

    /// Continues the way with these children of its last well.
    fn search_children(
        &mut self,
        children: &[u32],
        limits: Limits,
        faults: u8,
        visits: &mut u32,
    ) -> Option<usize> {
        let first = if children.len() > 1 {
            self.below(children.len())
        } else {
            0
        };
        for &child in children[first..].iter().chain(&children[..first]) {
            let place = self.places[child as usize];
            if place != NO_PLACE {
                let to = place as usize;
                if to > self.way.from && to <= limits.last && self.can_end_at(to, limits) {
                    return Some(to);
                }
                continue;
            }
            if self.way.wells.len() == limits.wells {
                continue;
            }
            self.places[child as usize] = 0;
            self.way.wells.push(child);
            if let Some(to) = self.search(child, limits, faults, visits) {
                return Some(to);
            }
            self.way.wells.pop();
            self.places[child as usize] = NO_PLACE;
        }
        None
    }
}
