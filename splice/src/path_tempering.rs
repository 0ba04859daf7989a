//! Parallel tempering of paths that may break rules.
//!
//! Several walks change copies of a path at the same time. They differ in the penalty for a fault: with a high penalty, the path
//! stays a game, and with a low one, it has many faults and gets much longer. Each walk takes ways from the paths of the next two
//! walks, and neighbours exchange their paths with the probability of the Metropolis criterion. So long paths move to
//! the walks with higher penalties while they lose their faults, and the first walk finds longer games than it could alone.

use crate::Watch;
use crate::graph::WellGraph;
use crate::path_walk::{Guide, Level, Path, PathWalk};
use crate::tempering::Tempered;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rayon::prelude::*;

/// Number of walks. It does not depend on the number of threads, so the result does not, either.
const WALKS: usize = 8;

/// A walk has a path with a probability proportional to exp(-weight × cost / 1000), where the cost is the penalties of its faults
/// minus its pieces. With weights of 424, 367, and 322, the chance that a change can cost five pieces is 12, 16, and 20 %.
const LEVELS: [Level; WALKS] = [
    level(424, 100),
    level(424, 55),
    level(424, 36),
    level(424, 27),
    level(424, 21),
    level(424, 17),
    level(367, 17),
    level(322, 19),
];

/// exp(-1 / 1000) in units of 2⁻³².
const STEP: u32 = 4_290_674_475;

/// Number of the following walks from whose paths a walk takes ways.
const GUIDES: usize = 2;

/// Number of tries of each walk between two exchanges.
const BATCH: u64 = 20_000;

/// The paths of all walks.
pub(crate) struct PathTempering {
    /// The paths, that of the walk with the highest penalty first.
    paths: [Path; WALKS],
    /// Number of exchanges so far.
    exchanges: u64,
}

const fn level(weight: u32, penalty: u32) -> Level {
    let mut chance = 1 << 32;
    let mut power = 0;
    while power < weight {
        chance = (chance * STEP as u64) >> 32;
        power += 1;
    }
    Level {
        weight,
        chance: chance as u32,
        penalty,
    }
}

impl PathTempering {
    /// Begins with a game.
    pub(crate) fn new(game: Path) -> PathTempering {
        PathTempering {
            paths: std::array::from_fn(|_| game.clone()),
            exchanges: 0,
        }
    }

    /// Gives a longer game to the walk with the highest penalty.
    pub(crate) fn begin_with(&mut self, game: Path) {
        self.paths[0] = game;
    }

    /// Returns the wells of all paths.
    pub(crate) fn wells_mut(&mut self) -> impl Iterator<Item = &mut Vec<u32>> {
        self.paths.iter_mut().map(|path| &mut path.wells)
    }

    /// Makes this number of tries with each walk. If `watch` ends the step, makes fewer. The longest game of the step is `game`
    /// unless a walk has a longer one.
    pub(crate) fn step(
        &mut self,
        graph: &WellGraph,
        game: &[u32],
        tries: u64,
        random: &mut ChaCha8Rng,
        watch: &dyn Watch,
    ) -> Tempered {
        let mut guides: Vec<Guide> = (0..WALKS).map(|_| Guide::new(graph.len())).collect();
        let mut walks = self.paths.each_ref().map(|path| {
            let seed = random.next_u64();
            PathWalk::new(graph, path.clone(), seed)
        });
        let mut longest = game.to_vec();
        let mut left = tries;
        while left > 0 && !watch.is_cancelled() {
            let batch = BATCH.min(left);
            left -= batch;
            for (guide, walk) in guides.iter_mut().zip(&walks) {
                guide.set(walk.path());
            }
            let guides = &guides;
            let run = |(number, walk): (usize, &mut PathWalk<'_>)| {
                let guides = &guides[number + 1..(number + 1 + GUIDES).min(WALKS)];
                walk.run(batch, LEVELS[number], guides, longest.len());
            };
            walks.par_iter_mut().enumerate().for_each(run);
            for walk in &mut walks {
                if let Some(game) = walk.take_longest()
                    && game.len() > longest.len()
                {
                    longest = game;
                }
            }
            self.exchange(&mut walks, random);
        }
        self.paths = walks.map(PathWalk::into_path);
        Tempered {
            longest,
            tried: (tries - left) * WALKS as u64,
        }
    }

    /// Lets each second pair of neighbouring walks exchange their paths.
    fn exchange(&mut self, walks: &mut [PathWalk<'_>; WALKS], random: &mut ChaCha8Rng) {
        let first = (self.exchanges % 2) as usize;
        for low in (first..WALKS - 1).step_by(2) {
            let rise = |level: &Level, from: &PathWalk<'_>, to: &PathWalk<'_>| {
                i64::from(level.weight) * (to.cost(level.penalty) - from.cost(level.penalty))
            };
            let (one, other) = (&walks[low], &walks[low + 1]);
            let rise = rise(&LEVELS[low], one, other) + rise(&LEVELS[low + 1], other, one);
            if (0..rise).all(|_| random.next_u32() < STEP) {
                walks.swap(low, low + 1);
            }
        }
        self.exchanges += 1;
    }
}
