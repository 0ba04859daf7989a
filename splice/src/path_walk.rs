//! A walk through the paths of a graph that may break rules, in small random changes.
//!
//! A path is a game except for its faults. It has one fault in a well for each piece that the enemy prefers there to the piece
//! that the path uses and that is not excluded, and one if the piece that it uses is excluded. A fault costs a penalty in pieces, so
//! a walk accepts faults for longer paths, and removes them later by other ways. A path without faults is a game.

use crate::graph::{PIECES, WellGraph};
use crate::walk::{MAX_GAIN, NO_PLACE, SPANS, VISITS, below};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Factor by which a try that begins near a fault can replace more pieces than others.
const NEAR_FAULTS: usize = 8;

/// The chance that a change can cost a piece more, in units of 2⁻³²: 65.4 %. So a change can cost five pieces in 12 % of all tries.
const CHANCE: u32 = ((654_u64 << 32) / 1000) as u32;

/// Maximum numbers of faults of a way.
const WAY_FAULTS: [u8; 4] = [0, 0, 1, 2];

/// Penalty above which ways have no faults.
const HIGH_PENALTY: u32 = 50;

/// Maximum number of faults in later wells that a way is assumed to remove. It ends the count of the others early.
const MAX_REMOVED: i32 = 2;

/// One in this many tries begins near a fault.
const FAULT_ODDS: usize = 4;

/// One in this many tries follows the path of another walk.
const GUIDE_ODDS: usize = 8;

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

/// The wells of a path, and for each of them the rank of the piece that the path uses there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) wells: Vec<u32>,
    pub(crate) ranks: Vec<u8>,
}

/// A path of another walk, which tries can follow.
pub(crate) struct Guide {
    path: Path,
    /// For each well of the graph, its place in the path, or [`NO_PLACE`].
    places: Vec<u32>,
}

/// A path in a graph, while it changes.
pub(crate) struct PathWalk<'a> {
    graph: &'a WellGraph,
    path: Path,
    /// For each well of the path, the number of its faults.
    faults: Vec<u8>,
    /// The number of all faults.
    total: u32,
    /// The wells with faults.
    faulty: Vec<u32>,
    /// For each well of the graph, its place in the path, 0 if it is on the way, or else [`NO_PLACE`].
    places: Vec<u32>,
    /// An upper bound for the ranks of the path.
    highest: u8,
    way: Way,
    /// The wells that the way has in common with the part of the path that it replaces, and their places there.
    passed: Vec<Passed>,
    /// The wells after the way in which the number of faults changes.
    recounts: Vec<Recount>,
    /// For each well of the graph, the last recount in which its faults were counted.
    counted: Vec<u32>,
    /// The number of recounts.
    count: u32,
    /// The longest game with more than `most` pieces that has not been taken.
    longest: Option<Path>,
    /// The number of pieces of the longest game so far.
    most: usize,
    random: ChaCha8Rng,
}

/// A way that leaves the path.
#[derive(Default)]
struct Way {
    /// The place of the well with which it begins.
    from: usize,
    /// The wells after that.
    wells: Vec<u32>,
    /// The ranks of the pieces in the first well and in each of `wells`, and the number of faults there.
    ranks: Vec<u8>,
    faults: Vec<u8>,
}

/// A well, and the rank of the piece that leads to it.
#[derive(Clone, Copy)]
struct Arrival {
    well: u32,
    rank: u8,
}

/// A well of the path that is also on the way, and its place in the path.
struct Passed {
    well: u32,
    place: u32,
}

/// A well of the path, and its number of faults after a change.
struct Recount {
    well: u32,
    faults: u8,
}

/// Limits of the search for a way.
#[derive(Clone, Copy)]
struct Limits {
    /// Last place at which the way can come back to the path.
    last: usize,
    /// Maximum number of wells of the way.
    wells: usize,
    /// Maximum number of faults of the way.
    faults: u8,
    /// What the change can cost in pieces.
    cost: i32,
    penalty: i32,
}

impl Guide {
    /// Creates a guide without a path in a graph of so many wells.
    pub(crate) fn new(wells: usize) -> Guide {
        Guide {
            path: Path {
                wells: Vec::new(),
                ranks: Vec::new(),
            },
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
    fn next(&self, well: u32) -> Option<Arrival> {
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

impl<'a> PathWalk<'a> {
    /// Creates a walk along a path that has as many ranks as wells and whose wells follow one another.
    pub(crate) fn new(graph: &'a WellGraph, path: Path, seed: u64) -> PathWalk<'a> {
        let mut walk = PathWalk {
            graph,
            faults: Vec::new(),
            total: 0,
            faulty: Vec::new(),
            places: vec![NO_PLACE; graph.len()],
            highest: path.ranks.iter().copied().max().unwrap_or_default(),
            way: Way::default(),
            passed: Vec::new(),
            recounts: Vec::new(),
            counted: vec![0; graph.len()],
            count: 0,
            longest: None,
            most: 0,
            path,
            random: ChaCha8Rng::seed_from_u64(seed),
        };
        for (place, &well) in walk.path.wells.iter().enumerate() {
            walk.places[well as usize] = place as u32;
        }
        for (place, (&well, &rank)) in walk.path.wells.iter().zip(&walk.path.ranks).enumerate() {
            let faults = walk.faults_of(well, rank, |at| at <= place as u32);
            walk.faults.push(faults);
        }
        walk.sum_faults();
        walk
    }

    /// Creates another walk along the path.
    pub(crate) fn fork(&self, seed: u64) -> PathWalk<'a> {
        PathWalk::new(self.graph, self.path.clone(), seed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn into_path(self) -> Path {
        self.path
    }

    /// Returns the penalties for all faults minus the number of pieces.
    pub(crate) fn cost(&self, penalty: u32) -> i64 {
        i64::from(self.total) * i64::from(penalty) - self.path.wells.len() as i64
    }

    /// Takes the longest game of the last run, if it had one longer than all known ones.
    pub(crate) fn take_longest(&mut self) -> Option<Path> {
        self.longest.take()
    }

    /// Tries to change the path, this number of times. Keeps the longest game with more than `most` pieces.
    pub(crate) fn run(&mut self, tries: u64, penalty: u32, guides: &[&Guide], most: usize) {
        self.most = self.most.max(most);
        // Shorter paths have no part that could change.
        if self.path.wells.len() < 3 {
            return;
        }
        for _ in 0..tries {
            self.attempt(penalty, guides);
            if self.total == 0 && self.path.wells.len() > self.most {
                self.most = self.path.wells.len();
                self.longest = Some(self.path.clone());
            }
        }
    }

    /// Searches a way from a random place, near a fault, or along another path.
    fn attempt(&mut self, penalty: u32, guides: &[&Guide]) {
        let mut cost = 0;
        while self.random.next_u32() < CHANCE {
            cost += 1;
        }
        let span = SPANS[self.below(SPANS.len())];
        let mut limits = Limits {
            last: span,
            wells: span + MAX_GAIN,
            faults: WAY_FAULTS[self.below(WAY_FAULTS.len())],
            cost,
            penalty: penalty as i32,
        };
        if penalty > HIGH_PENALTY {
            limits.faults = 0;
        }
        self.way.wells.clear();
        self.way.ranks.clear();
        self.way.faults.clear();
        let to = if !guides.is_empty() && self.below(GUIDE_ODDS) == 0 {
            let guide = guides[self.below(guides.len())];
            self.follow(guide, limits)
        } else {
            self.find(limits)
        };
        for &well in &self.way.wells {
            self.places[well as usize] = NO_PLACE;
        }
        for Passed { well, place } in self.passed.drain(..) {
            self.places[well as usize] = place;
        }
        if let Some(to) = to {
            self.take(to);
        }
    }

    /// Searches a way from a random place or near a fault. Returns the place at which it comes back.
    fn find(&mut self, mut limits: Limits) -> Option<usize> {
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
    fn follow(&mut self, guide: &Guide, limits: Limits) -> Option<usize> {
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

    /// Returns whether the path can continue at this place after the way. Then the recounts are those of the change.
    fn can_end_at(&mut self, to: usize, limits: Limits) -> bool {
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
    fn faults_of(&self, well: u32, rank: u8, is_past: impl Fn(u32) -> bool) -> u8 {
        let is_excluded = |rank| {
            let mut children = self.graph.children(well, rank).iter();
            children.any(|&child| is_past(self.places[child as usize]))
        };
        let rank = usize::from(rank);
        let preferred = (0..rank).filter(|&rank| !is_excluded(rank)).count();
        preferred as u8 + u8::from(rank < PIECES && is_excluded(rank))
    }

    /// Replaces the part of the path before the place `to` by the way.
    fn take(&mut self, to: usize) {
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
    fn sum_faults(&mut self) {
        self.total = self.faults.iter().map(|&faults| u32::from(faults)).sum();
        self.faulty.clear();
        let wells = self.path.wells.iter().zip(&self.faults);
        let faulty = wells.filter(|(_, faults)| **faults > 0);
        self.faulty.extend(faulty.map(|(&well, _)| well));
    }

    fn below(&mut self, count: usize) -> usize {
        below(&mut self.random, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossing::tests::random_games;
    use crate::tests::own_games;
    use crate::walk::Walk;
    use hatebeam_game::{Emulator, Geometry, Rules, Well};
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Returns the path of a game, if it is valid.
    fn path_of(graph: &WellGraph, wells: &[Well]) -> Option<Path> {
        let wells: Vec<u32> = wells.iter().filter_map(|well| graph.find(well)).collect();
        let ranks = Walk::new(graph, &wells, 0).ok()?.ranks().to_vec();
        Some(Path { wells, ranks })
    }

    /// Returns the number of faults in each well of a path, by the definition.
    #[track_caller]
    fn count_faults(graph: &WellGraph, path: &Path) -> Vec<u8> {
        let mut visited = HashSet::new();
        let next = path.wells.iter().skip(1).map(Some).chain([None]);
        let mut faults = Vec::new();
        for ((&well, &rank), next) in path.wells.iter().zip(&path.ranks).zip(next) {
            assert!(visited.insert(well), "a well occurs twice");
            if let Some(next) = next {
                assert!(graph.children(well, usize::from(rank)).contains(next));
            }
            let excluded = |rank: u8| {
                let mut children = graph.children(well, usize::from(rank)).iter();
                children.any(|child| visited.contains(child))
            };
            let preferred = (0..rank).filter(|rank| !excluded(*rank)).count() as u8;
            let breaks = usize::from(rank) < PIECES && excluded(rank);
            faults.push(preferred + u8::from(breaks));
        }
        faults
    }

    /// Compares what a walk knows about its path with the definition.
    #[track_caller]
    fn assert_consistent(walk: &PathWalk<'_>) {
        assert_eq!(walk.faults, count_faults(walk.graph, &walk.path));
        let new = PathWalk::new(walk.graph, walk.path.clone(), 0);
        assert!(walk.places == new.places && walk.faulty == new.faulty);
        assert!(walk.total == new.total && walk.highest >= new.highest);
        assert!(walk.ranks_are_given_without_faults());
    }

    impl PathWalk<'_> {
        /// Returns whether the path is a game if it has no faults.
        fn ranks_are_given_without_faults(&self) -> bool {
            let walk = Walk::new(self.graph, &self.path.wells, 0);
            self.total > 0 || walk.is_ok_and(|walk| walk.ranks() == self.path.ranks)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn walk_stays_consistent(
            width in 4..=6_usize,
            height in 4..=8_usize,
            choices in prop::collection::vec(prop::collection::vec(any::<u8>(), 40), 1..12),
            seed: u64,
        ) {
            let (graph, games) = random_games(width, height, &choices);
            let paths: Vec<Path> = games.iter().filter_map(|game| path_of(&graph, game)).collect();
            prop_assume!(!paths.is_empty());
            let mut guide = Guide::new(graph.len());
            for path in &paths {
                guide.set(path);
            }
            let mut walk = PathWalk::new(&graph, paths[0].clone(), seed);
            for _ in 0..300 {
                walk.run(1, 3, &[&guide], 0);
                assert_consistent(&walk);
            }
        }
    }

    /// A path gets longer with faults, and loses some of them when the penalty rises.
    #[test]
    fn faults_come_and_go() {
        let games = own_games(20);
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let graph = WellGraph::new(&emulator, games.iter().flatten().copied()).unwrap();
        let [path, guide] = [0, 1].map(|game| path_of(&graph, &games[game]).unwrap());
        let (pieces, mut other) = (path.wells.len(), Guide::new(graph.len()));
        other.set(&guide);
        let mut walk = PathWalk::new(&graph, path, 1);
        assert_eq!(walk.total, 0);
        let faults = [5, 60].map(|penalty| {
            for _ in 0..80 {
                walk.run(500, penalty, &[&other], pieces);
                assert_consistent(&walk);
            }
            assert!(walk.path.wells.len() > pieces);
            walk.total
        });
        assert!(faults[0] > faults[1], "{faults:?}");
        if let Some(game) = walk.take_longest() {
            assert!(game.wells.len() > pieces && Walk::new(&graph, &game.wells, 0).is_ok());
        }
    }
}
