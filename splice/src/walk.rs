//! A walk through the games of a graph, in small random changes.
//!
//! A try takes a random well of the game and searches a random way from it, through wells that the game does not visit, to a
//! later well of the game. The enemy may give other pieces in later wells then, because the way excludes a piece there or the
//! game no longer does. Each of these places is repaired by another way. If the new game is valid and longer, equally long, or a
//! little shorter, it replaces the game.

use crate::graph::{PIECES, WellGraph};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Place of a well that is not in the game.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// Maximum numbers of pieces that a try replaces. Nearly all gains replace less than 25, but longer parts sometimes gain
/// where shorter ones do not.
pub(crate) const SPANS: [usize; 4] = [10, 25, 60, 150];

/// Maximum numbers of wells that a try visits, one of which is chosen at random. In a large graph (197,015 wells), a well visited
/// leads to a longer game two to six times as often with 200 as with 2,000. In small graphs, some ways need 2,000.
pub(crate) const VISITS: [u32; 8] = [50, 100, 200, 50, 100, 200, 500, 2000];

/// Maximum number of pieces by which a way can be longer than the part that it replaces. More have never been found.
pub(crate) const MAX_GAIN: usize = 25;

/// One in this many tries may repair the game. The others only take ways after which the enemy gives the same pieces as before,
/// and search longer for them. Without repairs, 60 seconds of tempering gave games of 2,376 and 2,341 pieces instead of 2,526 and
/// 2,471 (`examples/own-games.txt` without detours, one thread, two seeds).
const REPAIR_ODDS: usize = 2;

/// Maximum number of repairs of a try. At most one in a hundred changes has one, and hardly any has more than three.
const MAX_REPAIRS: usize = 8;

/// Maximum number of wells in which the enemy gives another piece because of one way.
const MAX_BROKEN: usize = 4;

/// Number of pieces that the game may have lost before the last repair, in addition to those that it can lose in all.
const SLACK: usize = 20;

/// Number of pieces of which a game can lose multiples: in a well of 10 columns, two ways with the same ends differ by a
/// multiple of five pieces.
pub(crate) const LOSS: usize = 5;

/// A game in a graph, while it changes.
pub(crate) struct Walk<'a> {
    graph: &'a WellGraph,
    game: Vec<u32>,
    /// The longest game so far.
    longest: Vec<u32>,
    /// For each well of the graph, its place in the game, or [`NO_PLACE`].
    places: Vec<u32>,
    /// For each well of the game, the rank of the piece that the enemy gives there.
    ranks: Vec<u8>,
    way: Way,
    /// For each well of the graph, whether the way contains it.
    on_way: Vec<bool>,
    /// Wells of the game in which the enemy may give another piece than before, because of the changes in `changes`.
    broken: Vec<u32>,
    /// The changes of the current try.
    changes: Vec<Change>,
    random: ChaCha8Rng,
}

/// A part of the game between two places, and the ranks from the first place on.
struct Change {
    from: usize,
    to: usize,
    wells: Vec<u32>,
    ranks: Vec<u8>,
}

/// A way that leaves the game.
#[derive(Default)]
struct Way {
    /// The place of the well with which it begins.
    from: usize,
    /// The wells after that.
    wells: Vec<u32>,
    /// The ranks of the pieces in the first well and in each of `wells`.
    ranks: Vec<u8>,
}

/// Limits of the search for a way.
#[derive(Clone, Copy)]
struct Limits {
    /// Last place at which the way can come back to the game.
    last: usize,
    /// Number of pieces that the game can lose.
    loss: usize,
    /// Maximum number of wells of the way.
    wells: usize,
    /// Maximum number of wells of the game after the way in which the enemy gives another piece.
    broken: usize,
}

impl<'a> Walk<'a> {
    /// Creates a walk along a game.
    ///
    /// # Errors
    /// Returns the number of pieces after which a well of the game does not follow by the piece that HATETRIS gives.
    pub(crate) fn new(graph: &'a WellGraph, game: &[u32], seed: u64) -> Result<Walk<'a>, usize> {
        let mut walk = Walk {
            graph,
            game: game.to_vec(),
            longest: game.to_vec(),
            places: vec![NO_PLACE; graph.len()],
            ranks: Vec::new(),
            way: Way::default(),
            on_way: vec![false; graph.len()],
            broken: Vec::new(),
            changes: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
        };
        for (place, &well) in game.iter().enumerate() {
            walk.places[well as usize] = place as u32;
            let rank = walk.rank(well, place);
            let next = game.get(place + 1);
            let follows = |next| rank < PIECES && graph.children(well, rank).contains(next);
            if next.is_some_and(|next| !follows(next)) {
                return Err(place);
            }
            walk.ranks.push(rank as u8);
        }
        Ok(walk)
    }

    /// Returns, for each well of the game, the rank of the piece that the enemy gives there, or [`PIECES`] if all are excluded.
    pub(crate) fn ranks(&self) -> &[u8] {
        &self.ranks
    }

    /// Returns the longest game so far.
    pub(crate) fn longest(&self) -> &[u32] {
        &self.longest
    }

    /// Returns the game.
    pub(crate) fn game(&self) -> &[u32] {
        &self.game
    }

    /// Tries to change the game, this number of times. The chance that a try can lose five pieces is in units of 2⁻³²; the
    /// chance that it can lose ten is the square of this, and so on.
    pub(crate) fn run(&mut self, tries: u64, chance: u32) {
        // Shorter games have no part that could change.
        if self.game.len() < 3 {
            return;
        }
        for _ in 0..tries {
            self.attempt(chance);
            if self.game.len() > self.longest.len() {
                self.longest.clone_from(&self.game);
            }
        }
    }

    /// Searches a way from a random place. The chance of each further loss is in units of 2⁻³².
    fn attempt(&mut self, chance: u32) {
        let span = SPANS[self.below(SPANS.len())];
        let visits = VISITS[self.below(VISITS.len())];
        let from = self.below(self.game.len() - 2);
        let mut loss = 0;
        while self.random.next_u32() < chance {
            loss += LOSS;
        }
        let repairs = if self.below(REPAIR_ODDS) == 0 {
            MAX_REPAIRS
        } else {
            0
        };
        self.change(from, span, visits, loss, repairs);
    }

    /// Replaces a part of the game that begins at the place `from` by a way, and up to `repairs` later parts if the enemy gives
    /// other pieces there. The game loses at most `loss` pieces, or does not change.
    fn change(&mut self, from: usize, span: usize, visits: u32, loss: usize, repairs: usize) {
        let least = self.game.len().saturating_sub(loss);
        self.changes.clear();
        self.broken.clear();
        let mut place = Some(from);
        for repair in 0..=repairs {
            let Some(from) = place else { break };
            let limits = Limits {
                last: (from + span).min(self.game.len() - 1),
                loss: self.game.len() + if repairs > 0 { SLACK } else { 0 } - least,
                wells: span + MAX_GAIN,
                broken: if repair < repairs { MAX_BROKEN } else { 0 },
            };
            let Some(to) = self.find(from, limits, visits) else {
                break;
            };
            self.take(to);
            place = self.first_broken();
        }
        if place.is_some() && !self.changes.is_empty() || self.game.len() < least {
            self.undo();
        }
    }

    /// Searches a way from a place. Returns the place at which it comes back.
    fn find(&mut self, from: usize, limits: Limits, mut visits: u32) -> Option<usize> {
        self.way.from = from;
        self.way.wells.clear();
        self.way.ranks.clear();
        let to = self.search(self.game[from], limits, &mut visits);
        for &well in &self.way.wells {
            self.on_way[well as usize] = false;
        }
        to
    }

    /// Returns the first place at which the enemy gives another piece than before.
    fn first_broken(&mut self) -> Option<usize> {
        let mut broken = std::mem::take(&mut self.broken);
        broken.retain(|&well| {
            let place = self.places[well as usize];
            place != NO_PLACE
                && self.rank(well, place as usize) != usize::from(self.ranks[place as usize])
        });
        let places = broken.iter().map(|&well| self.places[well as usize]);
        let first = places.min().map(|place| place as usize);
        self.broken = broken;
        first
    }

    /// Continues the way, depth first, with the children of its last well. Returns the place at which it comes back.
    fn search(&mut self, well: u32, limits: Limits, visits: &mut u32) -> Option<usize> {
        *visits = visits.checked_sub(1)?;
        let rank = self.rank(well, self.way.from);
        if rank == PIECES {
            return None;
        }
        self.way.ranks.push(rank as u8);
        let children = self.graph.children(well, rank);
        let first = if children.len() > 1 {
            self.below(children.len())
        } else {
            0
        };
        for &child in children[first..].iter().chain(&children[..first]) {
            let place = self.places[child as usize];
            if place != NO_PLACE {
                if self.can_end_at(place as usize, limits) {
                    return Some(place as usize);
                }
                continue;
            }
            if self.way.wells.len() == limits.wells {
                continue;
            }
            self.on_way[child as usize] = true;
            self.way.wells.push(child);
            if let Some(to) = self.search(child, limits, visits) {
                return Some(to);
            }
            self.way.wells.pop();
            self.on_way[child as usize] = false;
        }
        self.way.ranks.pop();
        None
    }

    /// Returns whether the game can continue at this place after the way.
    fn can_end_at(&mut self, to: usize, limits: Limits) -> bool {
        let from = self.way.from;
        to > from
            && to <= limits.last
            && (to > from + 1 || !self.way.wells.is_empty())
            && self.way.wells.len() + limits.loss + from + 1 >= to
            && self.keeps_ranks_from(to, limits.broken)
    }

    /// Returns whether the enemy gives the same pieces as before in all but at most `most` wells of the game from this place
    /// on, and adds these to the broken wells.
    fn keeps_ranks_from(&mut self, to: usize, most: usize) -> bool {
        let known = self.broken.len();
        let mut broken = std::mem::take(&mut self.broken);
        let rank_at = |well: usize| {
            let place = self.places[well] as usize;
            (to..self.game.len()).contains(&place).then(|| {
                let rank = usize::from(self.ranks[place]);
                (place, rank)
            })
        };
        let mut is_ok = |well: usize, keeps: bool| {
            if !keeps {
                broken.push(well as u32);
            }
            broken.len() <= known + most
        };
        // A new well must not exclude a piece that the game needs.
        let excludes_none = self.way.wells.iter().all(|&new| {
            let mut origins = self.graph.origins(new).iter();
            origins.all(|origin| {
                let keeps = rank_at(origin.well()).is_none_or(|(_, rank)| rank != origin.rank());
                is_ok(origin.well(), keeps)
            })
        });
        // The pieces that an old well excluded must stay excluded by other wells.
        let keeps = excludes_none
            && self.game[self.way.from + 1..to].iter().all(|&old| {
                let mut origins = self.graph.origins(old).iter();
                origins.all(|origin| {
                    let later = rank_at(origin.well());
                    let keeps = later.is_none_or(|(place, rank)| {
                        origin.rank() >= rank
                            || self.excludes(origin.well(), origin.rank(), place, to)
                    });
                    is_ok(origin.well(), keeps)
                })
            });
        if !keeps {
            broken.truncate(known);
        }
        self.broken = broken;
        keeps
    }

    /// Returns whether a piece of a later well is excluded in the game that goes along the way to the place `to`.
    fn excludes(&self, well: usize, rank: usize, place: usize, to: usize) -> bool {
        let mut children = self.graph.children(well as u32, rank).iter();
        children.any(|&child| {
            let before = self.places[child as usize] as usize;
            self.on_way[child as usize] || before <= self.way.from || (to..=place).contains(&before)
        })
    }

    /// Returns the rank of the piece that the enemy gives in a well after the game up to `place` and the way, or [`PIECES`]
    /// if all pieces are excluded. Then the enemy gives one of them nevertheless, but games in a graph end there.
    fn rank(&self, well: u32, place: usize) -> usize {
        let is_past = |&child: &u32| {
            self.places[child as usize] as usize <= place || self.on_way[child as usize]
        };
        (0..PIECES)
            .find(|&rank| !self.graph.children(well, rank).iter().any(is_past))
            .unwrap_or(PIECES)
    }

    /// Replaces the part of the game before the place `to` by the way.
    fn take(&mut self, to: usize) {
        let Way { from, wells, ranks } = std::mem::take(&mut self.way);
        let change = self.replace(from, to, &wells, &ranks);
        self.changes.push(change);
        self.way = Way { from, wells, ranks };
    }

    /// Takes back all changes of the current try.
    fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            self.replace(change.from, change.to, &change.wells, &change.ranks);
        }
    }

    /// Replaces the part of the game between two places. Returns the change that takes this back.
    fn replace(&mut self, from: usize, to: usize, wells: &[u32], ranks: &[u8]) -> Change {
        for &well in &self.game[from + 1..to] {
            self.places[well as usize] = NO_PLACE;
        }
        let old = Change {
            from,
            to: from + 1 + wells.len(),
            wells: self
                .game
                .splice(from + 1..to, wells.iter().copied())
                .collect(),
            ranks: self.ranks.splice(from..to, ranks.iter().copied()).collect(),
        };
        let moved = if old.to == to { to } else { self.game.len() };
        for place in from + 1..moved {
            self.places[self.game[place] as usize] = place as u32;
        }
        old
    }

    fn below(&mut self, count: usize) -> usize {
        below(&mut self.random, count)
    }
}

/// Returns a random number below `count`.
pub(crate) fn below(random: &mut ChaCha8Rng, count: usize) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossing::tests::random_games;
    use crate::tests::own_games;
    use hatebeam_game::{Emulator, Geometry, Rules};
    use proptest::prelude::*;

    /// Compares what a walk knows about its game with a new walk along it.
    #[track_caller]
    fn assert_consistent(walk: &Walk<'_>) {
        let new = Walk::new(walk.graph, &walk.game, 0).expect("the game is valid");
        assert_eq!(walk.ranks, new.ranks);
        assert!(walk.places == new.places && walk.on_way == new.on_way);
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
            let longest = games.iter().max_by_key(|game| game.len()).unwrap();
            let game: Vec<u32> = longest.iter().filter_map(|well| graph.find(well)).collect();
            if let Ok(mut walk) = Walk::new(&graph, &game, seed) {
                for _ in 0..300 {
                    walk.run(1, 1 << 31);
                    assert_consistent(&walk);
                }
                prop_assert!(walk.longest.len() >= game.len());
            }
        }
    }

    /// Games in narrow wells are too short for repairs.
    #[test]
    fn repairs_are_made_and_taken_back() {
        let games = own_games(3);
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let graph = WellGraph::new(&emulator, games.iter().flatten().copied()).unwrap();
        let game: Vec<u32> = games[0]
            .iter()
            .filter_map(|well| graph.find(well))
            .collect();
        let mut walk = Walk::new(&graph, &game, 1).unwrap();
        let (mut repaired, mut taken_back) = (0, 0);
        for _ in 0..100_000 {
            let from = walk.below(walk.game.len() - 2);
            walk.change(from, 25, 200, 10, MAX_REPAIRS);
            let is_repaired = walk.changes.len() > 1;
            let is_taken_back = walk.changes.is_empty() && !walk.broken.is_empty();
            if is_repaired || is_taken_back {
                assert_consistent(&walk);
            }
            repaired += usize::from(is_repaired);
            taken_back += usize::from(is_taken_back);
        }
        assert!(repaired > 10 && taken_back > 10, "{repaired} {taken_back}");
    }
}
