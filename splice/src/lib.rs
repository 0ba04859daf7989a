//! Finds games of HATETRIS that are longer than given games, among the wells of these games and of detours between them.
//!
//! Long games of one player share most of their wells, but visit them in different orders. So their wells and the
//! moves between them form a graph with cycles, and a game is a path in this graph. HATETRIS does not let a game repeat
//! a well: it excludes each piece of which a lock leaves a well that has occurred, and gives the next one in its order.
//! So a game can be long if it visits many wells, but visits them such that the pieces that it needs are not excluded.
//! The value of a well for such a game depends on the wells visited before, which a beam search with an evaluator does
//! not know.
//!
//! A [`Splicer`] replaces parts of the longest game by longer parts of the others (`crossing`), and improves it by parallel
//! tempering (`tempering`): several walks replace parts of it by other ways (`walk`), millions of times a second. When they find
//! nothing longer, it adds wells to the graph: detours (`detours`) and transplants (`transplants`). While it cannot do this, other
//! walks (`path_walk`, `penalties`) change paths that may break the loop rule, and lead to longer games in large graphs.

mod bound;
mod crossing;
mod detours;
mod graph;
mod path_walk;
mod penalties;
mod prices;
mod tempering;
mod transplants;
mod walk;

pub use graph::MAX_WELLS;

use bound::bound;
use crossing::cross;
use detours::Detours;
use graph::{PIECES, WellGraph};
use hatebeam_game::{Emulator, Well};
use path_walk::Path;
use penalties::PenaltyWalks;
use prices::valuable;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tempering::Tempering;
use thiserror::Error;
use transplants::transplants;
use walk::Walk;

/// Number of tries of each of the eight walks in a step that works well. A thread makes some 1.5 million tries a second.
pub const TRIES: u64 = 1_000_000;

/// Number of steps without a longer game after which the graph grows.
const PATIENCE: u32 = 4;

/// If the graph does not grow after [`PATIENCE`] steps, paths that break rules change in the next ones, but games do in one of this
/// many steps. From 5,170 pieces in a graph of 117,980 wells, 420 seconds of a thread gave 5,305 pieces, and 5,240 if only games changed.
const GAME_STEPS: u32 = 4;

/// [`PATIENCE`] in a large graph without wells that hardly matter, which has more ways to find, and grows slowly. In one of 164,242
/// wells, the first longer game took 100 to 220 steps from 5,210 and 5,330 pieces, and most others followed after less. All these
/// steps changed games; one that changes paths takes three times as long.
const LONG_PATIENCE: u32 = 200;

/// Number of wells in a large graph. A round of transplants also removes wells from it.
const LARGE: usize = 150_000;

/// Watches a step of a [`Splicer`] or its start, and can end it. Closures that return whether the step must end implement it.
pub trait Watch: Sync {
    /// Returns whether the step must end. It is called at least every second, except while the given or found wells become
    /// part of the graph and others are removed from it, which takes some seconds.
    fn is_cancelled(&self) -> bool;

    /// Receives the progress of a round that adds wells to the graph, in which it is called as often as
    /// [`is_cancelled`](Watch::is_cancelled).
    fn progress(&self, progress: RoundProgress) {
        let _ = progress;
    }
}

impl<F: Fn() -> bool + Sync> Watch for F {
    fn is_cancelled(&self) -> bool {
        self()
    }
}

/// Progress of a round that adds wells to the graph. A round has several stages, and searches some wells in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundProgress {
    /// Number of the stage, counted from 1.
    pub stage: usize,
    /// Number of stages of a round.
    pub stages: usize,
    /// Number of wells searched in this stage.
    pub searched: usize,
    /// Number of wells to search in this stage.
    pub wells: usize,
}

/// Error from [`Splicer::new`] and [`Splicer::add`].
#[derive(Debug, Error)]
pub enum SpliceError {
    /// There is no game to begin with.
    #[error("there are no games: give at least one")]
    NoGame,
    /// The wells do not fit into a graph.
    #[error("there are more than {MAX_WELLS} wells: give fewer games or a smaller graph")]
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
    /// Maximum number of times that wells are added to the graph: detours and transplants in turn.
    pub rounds: usize,
    /// Number of tries of each of the eight walks of a step, such as [`TRIES`].
    pub tries: u64,
    /// Seed of the random choices.
    pub seed: u64,
    /// Number of threads. The result does not depend on it.
    pub threads: usize,
}

/// What a step of a [`Splicer`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It searched other ways and made the game longer by this number of pieces, which can be zero.
    Searched(usize),
    /// It added this number of wells to the graph.
    Grew(usize),
    /// It changed nothing, because it was cancelled.
    Cancelled,
}

/// Makes the longest of some games longer.
pub struct Splicer {
    emulator: Emulator,
    graph: WellGraph,
    detours: Detours,
    /// Number of wells of the graph at the beginning or after the last round of transplants.
    transplanted: usize,
    /// The wells of the game, as indices into the graph.
    game: Vec<u32>,
    tempering: Tempering,
    /// The paths that may break rules. They are created when they are first needed.
    paths: Option<PenaltyWalks>,
    random: ChaCha8Rng,
    tries: u64,
    /// Number of rounds left.
    rounds: usize,
    /// Number of steps since the game got longer or the graph grew.
    idle: u32,
    /// Number of such steps after which the graph grows.
    patience: u32,
    tried: u64,
    pool: ThreadPool,
}

impl Splicer {
    /// Creates a splicer for games against HATETRIS. Each game is the list of its wells, beginning with the well of the
    /// first piece. Its game is the longest of them, with longer parts of the others. If `watch` ends the start, parts of
    /// fewer games are used.
    ///
    /// # Errors
    /// Returns [`SpliceError`] if there are no games or too many wells, if the longest game is invalid, or if the threads
    /// cannot start.
    pub fn new(
        emulator: &Emulator,
        games: &[Vec<Well>],
        settings: Settings,
        watch: &dyn Watch,
    ) -> Result<Splicer, SpliceError> {
        let longest = games.iter().rev().max_by_key(|game| game.len());
        let longest = longest
            .filter(|game| !game.is_empty())
            .ok_or(SpliceError::NoGame)?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(settings.threads)
            .build()?;
        let wells = games.iter().flatten().copied();
        let graph = pool.install(|| WellGraph::new(emulator, wells))?;
        let mut game: Vec<u32> = longest.iter().filter_map(|well| graph.find(well)).collect();
        Walk::new(&graph, &game, 0).map_err(SpliceError::Excluded)?;
        for other in games {
            if watch.is_cancelled() {
                break;
            }
            let other: Vec<u32> = other.iter().filter_map(|well| graph.find(well)).collect();
            cross(&graph, &mut game, &other);
        }
        let transplanted = graph.len();
        Ok(Splicer {
            emulator: emulator.clone(),
            graph,
            detours: Detours::default(),
            transplanted,
            tempering: Tempering::new(&game),
            paths: None,
            game,
            random: ChaCha8Rng::seed_from_u64(settings.seed),
            tries: settings.tries,
            rounds: settings.rounds,
            idle: 0,
            patience: PATIENCE,
            tried: 0,
            pool,
        })
    }

    /// Adds wells to the graph, such as those of the graph of another splicer.
    ///
    /// # Errors
    /// Returns [`SpliceError::TooManyWells`] if some of the wells do not fit. The others are then in the graph.
    pub fn add(&mut self, wells: impl IntoIterator<Item = Well> + Send) -> Result<(), SpliceError> {
        let (emulator, graph) = (&self.emulator, &mut self.graph);
        if self.pool.install(|| graph.grow(emulator, wells)) {
            return Err(SpliceError::TooManyWells);
        }
        self.transplanted = self.graph.len();
        if self.transplanted > LARGE {
            self.patience = LONG_PATIENCE;
        }
        Ok(())
    }

    /// Returns the wells of the graph.
    pub fn graph(&self) -> &[Well] {
        self.graph.wells()
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

    /// Returns an upper bound for the number of pieces of games among the wells of the graph in which HATETRIS gives, in each
    /// well of this game, the same piece as in this game, and in all other wells the piece of HATETRIS Mild. Games with other
    /// excluded pieces can be longer. It takes 0.13 seconds for 53,389 wells.
    pub fn most_pieces(&self) -> usize {
        let mut ranks = vec![0; self.graph.len()];
        let walk = Walk::new(&self.graph, &self.game, 0).expect("all games of a splicer are valid");
        for (&well, &rank) in self.game.iter().zip(walk.ranks()) {
            ranks[well as usize] = rank;
        }
        let next = |well| match usize::from(ranks[well as usize]) {
            PIECES => &[],
            rank => self.graph.children(well, rank),
        };
        bound(&self.graph, self.game[0], next).most
    }

    /// Returns the number of parts for which another way was searched.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Returns whether the next step adds wells to the graph.
    pub fn grows_next(&self) -> bool {
        self.idle >= self.patience && self.rounds > 0 && self.graph.len() < MAX_WELLS
    }

    /// Searches other ways for random parts, eight times the number of [`Settings::tries`], or adds wells to the graph if
    /// several such steps have found nothing, which can take minutes. If `watch` ends the step, longer games that were found
    /// before count, but new wells do not.
    pub fn advance(&mut self, watch: &dyn Watch) -> Step {
        if watch.is_cancelled() {
            return Step::Cancelled;
        }
        if self.grows_next() {
            self.grow(watch)
        } else {
            Step::Searched(self.search(watch))
        }
    }

    /// Searches other ways, and returns the number of pieces gained.
    fn search(&mut self, watch: &dyn Watch) -> usize {
        let breaks_rules = self.idle >= PATIENCE && !self.idle.is_multiple_of(GAME_STEPS);
        let Self { graph, random, .. } = self;
        let (tempering, paths, game, tries) =
            (&mut self.tempering, &mut self.paths, &self.game, self.tries);
        let tempered = self.pool.install(|| {
            if breaks_rules {
                let game = path_of(graph, game);
                let paths = paths.get_or_insert_with(|| PenaltyWalks::new(&game));
                paths.step(graph, game, tries, random, watch)
            } else {
                tempering.step(graph, tries, random, watch)
            }
        });
        self.tried += tempered.tried;
        let gained = tempered.longest.len().saturating_sub(self.game.len());
        if tempered.longest.len() >= self.game.len() {
            self.game = tempered.longest;
        }
        self.idle = if gained > 0 { 0 } else { self.idle + 1 };
        if gained > 0 && breaks_rules {
            self.tempering.begin_with(&self.game);
        } else if gained > 0
            && let Some(paths) = &mut self.paths
        {
            paths.begin_with(path_of(&self.graph, &self.game));
        }
        gained
    }

    /// Adds wells to the graph: transplants after detours, or else detours.
    fn grow(&mut self, watch: &dyn Watch) -> Step {
        let before = self.graph.len();
        let (emulator, graph, detours) = (&self.emulator, &mut self.graph, &mut self.detours);
        let (transplanted, game) = (&mut self.transplanted, &self.game);
        let grown = self.pool.install(|| {
            if *transplanted < before {
                let transplants = transplants(emulator, graph, game, watch)?;
                graph.grow(emulator, transplants);
                *transplanted = graph.len();
            }
            if graph.len() == before {
                let detours = detours.round(emulator, graph, watch)?;
                graph.grow(emulator, detours);
            }
            Some(())
        });
        if grown.is_none() {
            return Step::Cancelled;
        }
        self.idle = 0;
        self.patience = PATIENCE;
        self.rounds -= 1;
        let added = self.graph.len() - before;
        if self.transplanted == self.graph.len() && self.transplanted > LARGE {
            self.prune();
            self.patience = LONG_PATIENCE;
        }
        Step::Grew(added)
    }

    /// Removes the wells from the graph that cannot matter for long games.
    fn prune(&mut self) {
        let mut keep = valuable(&self.graph, self.game[0]);
        let (emulator, graph) = (&self.emulator, &mut self.graph);
        let games = self.tempering.games_mut().iter_mut();
        let paths = self.paths.iter_mut().flat_map(PenaltyWalks::wells_mut);
        let mut games: Vec<&mut Vec<u32>> = games.chain(paths).chain([&mut self.game]).collect();
        for &well in games.iter().flat_map(|game| game.iter()) {
            keep[well as usize] = true;
        }
        let indices = self.pool.install(|| graph.retain(emulator, &keep));
        for well in games.iter_mut().flat_map(|game| game.iter_mut()) {
            *well = indices[&*well];
        }
        self.transplanted = self.graph.len();
        self.detours = Detours::default();
    }
}

/// Returns a game as a path.
fn path_of(graph: &WellGraph, game: &[u32]) -> Path {
    let walk = Walk::new(graph, game, 0).expect("all games of a splicer are valid");
    Path {
        wells: game.to_vec(),
        ranks: walk.ranks().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Enemy, Geometry, Rules, decode, play};

    /// Returns the wells of a game.
    pub(crate) fn wells_of(replay: &str) -> Vec<Well> {
        let (keys, _) = decode(replay.trim()).unwrap();
        let game = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        game.wells().collect()
    }

    /// Returns the wells of the first own games in the examples.
    pub(crate) fn own_games(count: usize) -> Vec<Vec<Well>> {
        let replays = include_str!("../../examples/own-games.txt").lines();
        let replays = replays.filter(|line| !line.starts_with('#')).take(count);
        replays.map(wells_of).collect()
    }

    /// Creates a splicer of eight games that is in a step in which paths break rules.
    fn rule_breaker(threads: usize) -> Splicer {
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let settings = Settings {
            rounds: 1,
            tries: 50_000,
            seed: 1,
            threads,
        };
        let mut splicer = Splicer::new(&emulator, &own_games(8), settings, &|| false).unwrap();
        splicer.patience = PATIENCE + 4;
        splicer.idle = PATIENCE + 1;
        splicer
    }

    #[test]
    fn paths_that_break_rules_make_longer_valid_games() {
        let [mut one, mut three] = [1, 3].map(rule_breaker);
        let pieces = one.pieces();
        let step = one.advance(&|| false);
        assert!(matches!(step, Step::Searched(1..)), "{step:?}");
        assert!(one.pieces() > pieces && one.paths.is_some());
        assert_eq!(three.advance(&|| false), step);
        for _ in 0..6 {
            assert_eq!(one.wells(), three.wells());
            assert!(Walk::new(&one.graph, &one.game, 0).is_ok());
            assert_eq!(one.advance(&|| false), three.advance(&|| false));
        }
    }

    #[test]
    fn pruned_graph_has_the_same_games() {
        let mut splicer = rule_breaker(2);
        splicer.advance(&|| false);
        let (graph, game) = (splicer.graph().len(), splicer.wells());
        splicer.prune();
        assert!(splicer.graph().len() < graph);
        assert_eq!(splicer.wells(), game);
        // All walks continue with valid games, and a round adds wells to the graph that is left.
        while !splicer.grows_next() {
            splicer.advance(&|| false);
        }
        assert!(splicer.pieces() >= game.len());
        assert!(matches!(splicer.advance(&|| false), Step::Grew(1..)));
    }
}
