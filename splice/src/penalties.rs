//! Walks along paths that may break rules, with different penalties.
//!
//! Several walks change copies of a path at the same time. They differ in the penalty for a fault: with a high penalty, the path
//! stays a game, and with a low one, it has many faults and gets much longer. Each walk takes ways from the longest game and from
//! the paths of the next two walks, which have lower penalties, and takes the whole path of the next walk if it costs less.
//! In this way, long paths lose their faults on the way to the first walk, which finds longer games than it could alone.

use crate::Watch;
use crate::graph::WellGraph;
use crate::path_walk::{Guide, Path, PathWalk};
use crate::tempering::Tempered;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rayon::prelude::*;

/// Number of walks. It does not depend on the number of threads, so the result does not, either.
const WALKS: usize = 8;

/// The penalty of each walk for a fault, in pieces.
const PENALTIES: [u32; WALKS] = [100, 75, 58, 46, 37, 30, 23, 16];

/// Number of the following walks from whose paths a walk takes ways.
const GUIDES: usize = 2;

/// Number of tries of each walk until it can take another path.
const BATCH: u64 = 20_000;

/// The paths of all walks.
pub(crate) struct PenaltyWalks {
    /// The paths, that of the walk with the highest penalty first.
    paths: [Path; WALKS],
}

impl PenaltyWalks {
    /// Begins with a game.
    pub(crate) fn new(game: &Path) -> PenaltyWalks {
        PenaltyWalks {
            paths: std::array::from_fn(|_| game.clone()),
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
        game: Path,
        tries: u64,
        random: &mut ChaCha8Rng,
        watch: &dyn Watch,
    ) -> Tempered {
        let mut guides: Vec<Guide> = (0..WALKS).map(|_| Guide::new(graph.len())).collect();
        let mut walks = self.paths.each_ref().map(|path| {
            let seed = random.next_u64();
            PathWalk::new(graph, path.clone(), seed)
        });
        let mut longest = game;
        let mut best = Guide::new(graph.len());
        let mut left = tries;
        while left > 0 && !watch.is_cancelled() {
            let batch = BATCH.min(left);
            left -= batch;
            for (guide, walk) in guides.iter_mut().zip(&walks) {
                guide.set(walk.path());
            }
            best.set(&longest);
            let run = |(number, walk): (usize, &mut PathWalk<'_>)| {
                let next = guides.iter().skip(number + 1).take(GUIDES);
                let guides: Vec<&Guide> = next.chain([&best]).collect();
                walk.run(batch, PENALTIES[number], &guides, longest.wells.len());
            };
            walks.par_iter_mut().enumerate().for_each(run);
            for walk in &mut walks {
                if let Some(game) = walk.take_longest()
                    && game.wells.len() > longest.wells.len()
                {
                    longest = game;
                }
            }
            Self::copy(&mut walks, random);
        }
        self.paths = walks.map(PathWalk::into_path);
        Tempered {
            longest: longest.wells,
            tried: (tries - left) * WALKS as u64,
        }
    }

    /// Gives the path of each walk also to the walk before if it costs less there.
    fn copy(walks: &mut [PathWalk<'_>; WALKS], random: &mut ChaCha8Rng) {
        for number in 1..WALKS {
            let penalty = PENALTIES[number - 1];
            if walks[number].cost(penalty) < walks[number - 1].cost(penalty) {
                walks[number - 1] = walks[number].fork(random.next_u64());
            }
        }
    }
}
