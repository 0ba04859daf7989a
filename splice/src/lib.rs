//! Finds games of HATETRIS that are longer than given games, among the wells of these games.
//!
//! Long games of one player share most of their wells, but visit them in different orders. So their wells and the
//! moves between them form a graph with cycles, and a game is a path in this graph. HATETRIS does not let a game repeat
//! a well: it excludes each piece of which a lock leaves a well that has occurred, and gives the next one in its order.
//! So a game can be long if it visits many wells, but visits them such that the pieces that it needs are not excluded.
//! The value of a well for such a game depends on the wells visited before, which a beam search with an evaluator does
//! not know.
//!
//! The graph contains the wells of games and of short detours between them. A [`Splicer`] improves the longest game step
//! by step: it takes out a random part, searches a beam of paths for another way to the rest, and keeps the new game if it
//! is valid and at least as long. Games of equal length are kept, too, because they lead to others that are longer.

mod beam;
mod estimate;
mod graph;
mod marks;

pub use graph::MAX_WELLS;

use beam::{Beam, Detour, Part};
use graph::WellGraph;
use hatebeam_game::{Emulator, Well};
use marks::Marks;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::atomic::AtomicBool;
use thiserror::Error;

/// Number of parts that one step searches. It does not depend on the number of threads, so the result does not, either.
const PARTS: usize = 16;

/// Mean numbers of pieces in a part. Short parts take milliseconds and long ones a second.
const LENGTHS: [usize; 7] = [10, 30, 60, 120, 250, 500, 1000];

/// Error from [`Splicer::new`].
#[derive(Debug, Error)]
pub enum SpliceError {
    /// There is no game to begin with.
    #[error("there are no games: give at least one")]
    NoGame,
    /// The wells of the games and their detours do not fit into a graph.
    #[error(
        "the games and their detours have more than {MAX_WELLS} wells: give fewer games or fewer rounds"
    )]
    TooManyWells,
    /// Each piece in a well of the longest game can repeat a well.
    #[error(
        "the longest game is not a game against HATETRIS, or all pieces are excluded after piece {0}"
    )]
    Excluded(usize),
    /// The system started too few threads.
    #[error("cannot start the threads of the search")]
    Threads(#[from] ThreadPoolBuildError),
}

/// Settings of a [`Splicer`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of rounds that add the detours of one or two wells that lead from a well of the graph to another one.
    pub rounds: usize,
    /// Seed of the random choices.
    pub seed: u64,
    /// Number of threads. The result does not depend on it.
    pub threads: usize,
}

/// Makes the longest of some games longer.
pub struct Splicer {
    graph: WellGraph,
    /// The wells of the game, as indices into the graph.
    game: Vec<u32>,
    /// The rank of the piece in the last well, which stays the same, because not every piece can end the game.
    last: usize,
    random: ChaCha8Rng,
    /// A random number for each well, with which sets of wells are told apart.
    keys: Vec<u64>,
    tried: u64,
    pool: ThreadPool,
}

impl Splicer {
    /// Creates a splicer for games against HATETRIS. Each game is the list of its wells, beginning with the well of the
    /// first piece.
    ///
    /// # Errors
    /// Returns [`SpliceError`] if there are no games or too many wells, if the longest game is invalid, or if the threads
    /// cannot start.
    pub fn new(
        emulator: &Emulator,
        games: &[Vec<Well>],
        settings: Settings,
    ) -> Result<Splicer, SpliceError> {
        let longest = games.iter().rev().max_by_key(|game| game.len());
        let longest = longest
            .filter(|game| !game.is_empty())
            .ok_or(SpliceError::NoGame)?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(settings.threads)
            .build()?;
        let graph = pool.install(|| WellGraph::new(emulator, games, settings.rounds))?;
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        let game: Vec<u32> = longest.iter().filter_map(|well| graph.find(well)).collect();
        Ok(Splicer {
            last: last_rank(&graph, &game).map_err(SpliceError::Excluded)?,
            game,
            keys: (0..graph.len()).map(|_| random.next_u64()).collect(),
            random,
            graph,
            tried: 0,
            pool,
        })
    }

    /// Returns the number of wells in the graph.
    pub fn graph_wells(&self) -> usize {
        self.graph.len()
    }

    /// Returns the wells of the game.
    pub fn wells(&self) -> Vec<Well> {
        self.game
            .iter()
            .map(|&well| self.graph.well(well))
            .collect()
    }

    /// Returns the number of pieces of the game.
    pub fn pieces(&self) -> usize {
        self.game.len()
    }

    /// Returns the number of parts for which another way was searched.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Searches other ways for 16 random parts, and returns the number of pieces gained. If `cancel` becomes true, only the
    /// parts that were searched before count.
    pub fn advance(&mut self, cancel: &AtomicBool) -> usize {
        let before = self.game.len();
        if before < 3 {
            return 0;
        }
        let parts: Vec<Part> = (0..PARTS).map(|_| self.random_part()).collect();
        let (graph, keys, game) = (&self.graph, &self.keys, &self.game);
        let search = |part| Beam::new(graph, keys, game, part).search(cancel);
        let detours: Vec<Option<Detour>> = self
            .pool
            .install(|| parts.into_par_iter().map(search).collect());
        self.tried += PARTS as u64;
        for detour in detours.into_iter().flatten() {
            self.take(&detour);
        }
        self.game.len() - before
    }

    /// Returns a random part of the game.
    fn random_part(&mut self) -> Part {
        let mean = LENGTHS[self.random_below(LENGTHS.len())];
        let length = (1 + mean / 2 + self.random_below(mean)).min(self.game.len() - 2);
        let first = self.random_below(self.game.len() - 1 - length);
        Part {
            first,
            next: first + 1 + length,
            salt: self.random.next_u64() | 1,
        }
    }

    fn random_below(&mut self, count: usize) -> usize {
        ((u128::from(self.random.next_u64()) * count as u128) >> 64) as usize
    }

    /// Replaces the part between the first and the last well of a detour, if the game is then valid and not shorter. The
    /// game may have changed since the detour was found.
    fn take(&mut self, detour: &Detour) {
        let place = |well| self.game.iter().position(|&other| other == well);
        let (Some(from), Some(to)) = (place(detour.from), place(detour.to)) else {
            return;
        };
        if to <= from || detour.wells.len() < to - from - 1 {
            return;
        }
        let parts = [&self.game[..=from], &detour.wells, &self.game[to..]];
        let game = parts.concat();
        if last_rank(&self.graph, &game) == Ok(self.last) {
            self.game = game;
        }
    }
}

/// Returns the rank of the piece in the last well of a game, or the number of pieces after which a well does not follow by
/// the piece that HATETRIS gives.
fn last_rank(graph: &WellGraph, game: &[u32]) -> Result<usize, usize> {
    let mut marks = Marks::new(graph.len());
    for (pieces, &well) in game.iter().enumerate() {
        marks.enter(graph, well);
        let next = game.get(pieces + 1);
        if next.is_some_and(|next| !marks.children(graph, well).contains(next)) {
            return Err(pieces);
        }
    }
    Ok(game.last().map_or(0, |&well| marks.rank(well)))
}
