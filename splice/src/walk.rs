//! Simulated annealing of a game.
//!
//! A try takes a random well of the game and searches a random way from it, through wells that the game does not visit, to a
//! later well of the game. If the new game is valid and longer, equally long, or a little shorter, it replaces the game.

use crate::Watch;
use crate::graph::{PIECES, WellGraph};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Place of a well that is not in the game.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// Maximum numbers of pieces that a try replaces. Nearly all gains replace less than 25, but longer parts sometimes gain
/// where shorter ones do not.
const SPANS: [usize; 4] = [10, 25, 60, 150];

/// Maximum numbers of wells that a try visits. Most tries end earlier.
const VISITS: [u32; 3] = [200, 500, 2000];

/// Maximum number of pieces by which a way can be longer than the part that it replaces. More have never been found.
const MAX_GAIN: usize = 25;

/// Number of tries between two calls of [`Watch::is_cancelled`], and between two looks at the length of the game.
const BATCH: u64 = 1 << 11;

/// Number of pieces of which a game can lose multiples: in a well of 10 columns, two ways with the same ends differ by a
/// multiple of five pieces.
const LOSS: usize = 5;

/// A game in a graph, while it changes.
pub(crate) struct Walk<'a> {
    graph: &'a WellGraph,
    game: Vec<u32>,
    /// For each well of the graph, its place in the game, or [`NO_PLACE`].
    places: Vec<u32>,
    /// For each well of the game, the rank of the piece that the enemy gives there.
    ranks: Vec<u8>,
    way: Way,
    /// For each well of the graph, whether the way contains it.
    on_way: Vec<bool>,
    random: ChaCha8Rng,
}

/// Result of [`Walk::anneal`].
pub(crate) struct Annealed {
    /// The longest game; the last one of several.
    pub(crate) game: Vec<u32>,
    /// Number of tries made.
    pub(crate) tried: u64,
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
}

impl<'a> Walk<'a> {
    /// Creates a walk along a game.
    ///
    /// # Errors
    /// Returns the number of pieces after which a well of the game does not follow by the piece that HATETRIS gives.
    pub(crate) fn new(graph: &'a WellGraph, game: &[u32], seed: u64) -> Result<Walk<'a>, usize> {
        let mut walk = Walk {
            graph,
            game: Vec::new(),
            places: vec![NO_PLACE; graph.len()],
            ranks: Vec::new(),
            way: Way::default(),
            on_way: vec![false; graph.len()],
            random: ChaCha8Rng::seed_from_u64(seed),
        };
        walk.restart(game)?;
        Ok(walk)
    }

    /// Returns, for each well of the game, the rank of the piece that the enemy gives there, or [`PIECES`] if all are excluded.
    pub(crate) fn ranks(&self) -> &[u8] {
        &self.ranks
    }

    /// Anneals the game: the probability that a try can lose five pieces falls from a half to zero, and that it can lose ten
    /// is the square of this. If `watch` ends the step, ends early.
    pub(crate) fn anneal(&mut self, tries: u64, watch: &dyn Watch) -> Annealed {
        let mut best = Annealed {
            game: self.game.clone(),
            tried: 0,
        };
        while best.tried < tries && self.game.len() >= 3 && !watch.is_cancelled() {
            let left = tries - best.tried;
            let chance = (left * (1 << 31) / tries) as u32;
            let batch = BATCH.min(left);
            for _ in 0..batch {
                self.attempt(chance);
            }
            best.tried += batch;
            if self.game.len() >= best.game.len() {
                best.game.clone_from(&self.game);
            }
        }
        best
    }

    /// Replaces the game.
    fn restart(&mut self, game: &[u32]) -> Result<(), usize> {
        self.game = game.to_vec();
        for (place, &well) in game.iter().enumerate() {
            self.places[well as usize] = place as u32;
            let rank = self.rank(well, place);
            let next = game.get(place + 1);
            let follows = |next| rank < PIECES && self.graph.children(well, rank).contains(next);
            if next.is_some_and(|next| !follows(next)) {
                return Err(place);
            }
            self.ranks.push(rank as u8);
        }
        Ok(())
    }

    /// Searches a way from a random place. The chance of each further loss is in units of 2⁻³².
    fn attempt(&mut self, chance: u32) {
        let span = SPANS[self.below(SPANS.len())];
        let mut visits = VISITS[self.below(VISITS.len())];
        let from = self.below(self.game.len() - 2);
        let mut loss = 0;
        while self.random.next_u32() < chance {
            loss += LOSS;
        }
        self.way.from = from;
        self.way.wells.clear();
        self.way.ranks.clear();
        let limits = Limits {
            last: (from + span).min(self.game.len() - 1),
            loss,
            wells: span + MAX_GAIN,
        };
        let to = self.search(self.game[from], limits, &mut visits);
        for &well in &self.way.wells {
            self.on_way[well as usize] = false;
        }
        if let Some(to) = to {
            self.take(to);
        }
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
    fn can_end_at(&self, to: usize, limits: Limits) -> bool {
        let from = self.way.from;
        to > from
            && to <= limits.last
            && (to > from + 1 || !self.way.wells.is_empty())
            && self.way.wells.len() + limits.loss + from + 1 >= to
            && self.keeps_ranks_from(to)
    }

    /// Returns whether the enemy gives the same pieces as before in all wells of the game from this place on.
    fn keeps_ranks_from(&self, to: usize) -> bool {
        let rank_at = |well: usize| {
            let place = self.places[well] as usize;
            (to..self.game.len()).contains(&place).then(|| {
                let rank = usize::from(self.ranks[place]);
                (place, rank)
            })
        };
        // A new well must not exclude a piece that the game needs.
        let excludes_none = self.way.wells.iter().all(|&new| {
            let mut origins = self.graph.origins(new).iter();
            origins
                .all(|origin| rank_at(origin.well()).is_none_or(|(_, rank)| rank != origin.rank()))
        });
        // The pieces that an old well excluded must stay excluded by other wells.
        excludes_none
            && self.game[self.way.from + 1..to].iter().all(|&old| {
                let mut origins = self.graph.origins(old).iter();
                origins.all(|origin| {
                    let later = rank_at(origin.well());
                    later.is_none_or(|(place, rank)| {
                        origin.rank() >= rank
                            || self.excludes(origin.well(), origin.rank(), place, to)
                    })
                })
            })
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
        let Way { from, wells, ranks } = &self.way;
        for &well in &self.game[from + 1..to] {
            self.places[well as usize] = NO_PLACE;
        }
        self.game.splice(from + 1..to, wells.iter().copied());
        self.ranks.splice(*from..to, ranks.iter().copied());
        let moved = if from + 1 + wells.len() == to {
            to
        } else {
            self.game.len()
        };
        for place in from + 1..moved {
            self.places[self.game[place] as usize] = place as u32;
        }
    }

    fn below(&mut self, count: usize) -> usize {
        ((u64::from(self.random.next_u32()) * count as u64) >> 32) as usize
    }
}
