//! Parallel tempering of a game.
//!
//! Several walks change copies of the game at the same time. They differ in the chance that a change can lose pieces: a walk with a
//! low chance stays near the longest games, and one with a high chance gets far away from them. After some tries, neighbouring
//! walks exchange their games with the probability of the Metropolis criterion: long games move to the walks with low chances, and
//! games that are stuck move to those with high ones. Annealing, in which the chance of each walk falls, gets stuck earlier: with
//! the games of `examples/own-games.txt`, without detours and with one thread, 60 seconds gave games of 2,396 and 2,526 pieces.
//!
//! Changes of one part of a game hardly depend on its other parts. But each walk is longest in some parts while others are short
//! by chance. So the longest game regularly takes the parts in which the other games are longer.

use crate::Watch;
use crate::crossing::cross;
use crate::graph::WellGraph;
use crate::walk::{LOSS, Walk};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rayon::prelude::*;

/// For each walk, the chance that a change can lose five pieces, in percent.
const CHANCES: [u32; WALKS] = [12, 18, 24, 29, 34, 39, 44, 50];

/// Number of walks. It does not depend on the number of threads, so the result does not, either.
pub(crate) const WALKS: usize = 8;

/// Number of tries of each walk between two exchanges.
const BATCH: u64 = 10_000;

/// Number of batches between two times that the longest game takes longer parts of the others. With 45,000 wells and games of 4,600
/// pieces, this takes 30 milliseconds, and the batches take two seconds of a thread.
const CROSSING: u64 = 25;

/// The games of all walks.
pub(crate) struct Tempering {
    /// The games, that of the walk with the lowest chance first.
    games: [Vec<u32>; WALKS],
    /// Number of exchanges so far.
    exchanges: u64,
}

/// Result of [`Tempering::step`].
pub(crate) struct Tempered {
    /// The longest game of all walks during the step; the last one of several.
    pub(crate) longest: Vec<u32>,
    /// Number of tries of all walks.
    pub(crate) tried: u64,
}

impl Tempering {
    /// Begins with a game.
    pub(crate) fn new(game: &[u32]) -> Tempering {
        Tempering {
            games: std::array::from_fn(|_| game.to_vec()),
            exchanges: 0,
        }
    }

    /// Gives a longer game to the walk with the lowest chance.
    pub(crate) fn begin_with(&mut self, game: &[u32]) {
        self.games[0] = game.to_vec();
    }

    /// Returns all games.
    pub(crate) fn games_mut(&mut self) -> &mut [Vec<u32>] {
        &mut self.games
    }

    /// Makes this number of tries with each walk. If `watch` ends the step, makes fewer.
    pub(crate) fn step(
        &mut self,
        graph: &WellGraph,
        tries: u64,
        random: &mut ChaCha8Rng,
        watch: &dyn Watch,
    ) -> Tempered {
        let mut walks = self.games.each_ref().map(|game| {
            let walk = Walk::new(graph, game, random.next_u64());
            walk.expect("all games of walks are valid")
        });
        let mut left = tries;
        let mut longest = Vec::new();
        while left > 0 && !watch.is_cancelled() {
            let batch = BATCH.min(left);
            let run = |(walk, percent): (&mut Walk<'_>, &u32)| {
                walk.run(batch, (u64::from(*percent) << 32).div_ceil(100) as u32);
            };
            walks.par_iter_mut().zip(&CHANCES).for_each(run);
            left -= batch;
            self.exchange(&mut walks, random);
            if left == 0 || (left / BATCH).is_multiple_of(CROSSING) {
                let crossed = crossed(graph, &walks, &longest);
                if crossed.len() > longest.len().max(walks[0].game().len()) {
                    let walk = Walk::new(graph, &crossed, random.next_u64());
                    walks[0] = walk.expect("crossed games are valid");
                }
                longest = crossed;
            }
        }
        self.games = walks.each_ref().map(|walk| walk.game().to_vec());
        Tempered {
            longest: longest_of(&walks, &longest).to_vec(),
            tried: (tries - left) * WALKS as u64,
        }
    }

    /// Lets each second pair of neighbouring walks exchange their games.
    fn exchange(&mut self, walks: &mut [Walk<'_>; WALKS], random: &mut ChaCha8Rng) {
        let first = (self.exchanges % 2) as usize;
        for low in (first..WALKS - 1).step_by(2) {
            let lengths = [low, low + 1].map(|walk| walks[walk].game().len());
            // A walk with the chance c has a game of n pieces with a probability proportional to c^(-n / 5). So if the
            // exchange makes the game of the walk with the low chance shorter, its probability has a factor for each five
            // pieces: the ratio of the chances.
            let ratio = (u64::from(CHANCES[low]) << 32) / u64::from(CHANCES[low + 1]);
            let shorter = lengths[0].saturating_sub(lengths[1]).div_ceil(LOSS);
            if (0..shorter).all(|_| u64::from(random.next_u32()) < ratio) {
                walks.swap(low, low + 1);
            }
        }
        self.exchanges += 1;
    }
}

/// Returns the longest game of the walks and `longest`. Of equally long games, a current one has changed most.
fn longest_of<'a>(walks: &'a [Walk<'_>; WALKS], longest: &'a [u32]) -> &'a [u32] {
    let games = walks.iter().flat_map(|walk| [walk.longest(), walk.game()]);
    std::iter::once(longest)
        .chain(games)
        .max_by_key(|game| game.len())
        .unwrap_or_default()
}

/// Returns the longest game of the walks and `longest`, with longer parts of the others.
fn crossed(graph: &WellGraph, walks: &[Walk<'_>; WALKS], longest: &[u32]) -> Vec<u32> {
    let mut game = longest_of(walks, longest).to_vec();
    for other in walks.iter().flat_map(|walk| [walk.longest(), walk.game()]) {
        cross(graph, &mut game, other);
    }
    game
}
