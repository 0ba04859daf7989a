//! A walk through the paths of a graph that may break rules, in small random changes.
//!
//! A path is a game except for its faults. It has one fault in a well for each piece that the enemy prefers there to the piece
//! that the path uses and that is not excluded, and one if the piece that it uses is excluded. A fault costs a penalty in pieces, so
//! a walk accepts faults for longer paths, and removes them later by other ways. A path without faults is a game.

mod faults;
mod guide;
mod ways;

pub(crate) use guide::Guide;

use crate::graph::WellGraph;
use crate::walk::{MAX_GAIN, NO_PLACE, SPANS, below};
use faults::Recount;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The chance that a change can cost a piece more, in units of 2⁻³²: 65.4 %. So a change can cost five pieces in 12 % of all tries.
const CHANCE: u32 = ((654_u64 << 32) / 1000) as u32;

/// Maximum numbers of faults of a way.
const WAY_FAULTS: [u8; 4] = [0, 0, 1, 2];

/// Penalty above which ways have no faults.
const HIGH_PENALTY: u32 = 50;

/// One in this many tries follows the path of another walk.
const GUIDE_ODDS: usize = 8;

/// The wells of a path, and for each of them the rank of the piece that the path uses there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) wells: Vec<u32>,
    pub(crate) ranks: Vec<u8>,
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

    fn below(&mut self, count: usize) -> usize {
        below(&mut self.random, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossing::tests::random_games;
    use crate::graph::PIECES;
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
        let game = walk.take_longest().unwrap();
        assert!(game.wells.len() > pieces && Walk::new(&graph, &game.wells, 0).is_ok());
    }
}
