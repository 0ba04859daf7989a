//! Reading back the best game of a run. Lookups in the stored tables find the wells of the game. Then pieces are added
//! until the game is over, and the game is played by the exact rules.

use crate::spec::{LoopRule, StartingPosition};
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, EnemyState, Game, Geometry, Key, PathError, Pressed,
    Rules, Well, WellError, replay_of_wells,
};
use hatebeam_search::{DepthRecord, NodeWell};
use hatebeam_store::{Lookup, PathSearch, StoreError};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use thiserror::Error;

/// A searched run whose games can be read back.
pub trait ReadableRun {
    /// Type of the store that contains the run's wells.
    type Store: Lookup;
    /// Returns the store that contains the run's wells.
    fn store(&self) -> &Self::Store;
    /// Returns the emulator for the run's geometry and rules.
    fn emulator(&self) -> &Emulator;
    /// Returns the game up to the start of the search.
    fn start(&self) -> &StartingPosition;
    /// Returns whether the search applied the loop rule.
    fn loops(&self) -> LoopRule;
}

/// A game that has been verified by the exact rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestGame {
    /// Number of rows cleared. If the run starts from a replay, this includes the rows cleared before the start.
    pub score: u32,
    /// The wells from the start of the game to the last well before the game ends. If the run starts from a well, so
    /// does the game.
    pub wells: Vec<Well>,
    /// The keys of the whole game.
    pub keys: Vec<Key>,
    /// Depth whose best well the game passes through.
    pub depth: u32,
    /// Number of lookups needed to read the game back, which includes those for games that HATETRIS cuts short.
    pub lookups: u64,
    /// If the beam search found a better game that HATETRIS does not allow: the number, counted from 1, of the piece that
    /// HATETRIS replaces in that game because a well is repeated. `None` if the search applied this rule.
    pub parted_at: Option<usize>,
}

/// The reason why a game cannot be read back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GameError {
    /// The run has no committed depth.
    #[error("the run has no committed depth yet, so it has no game")]
    Nothing,
    /// A lookup failed.
    #[error("cannot read the best game back")]
    Store(#[from] StoreError),
    /// No sequence of keys leads through the wells of the game.
    #[error("cannot play the wells of the best game")]
    Path(#[from] PathError),
    /// The best well in a depth's record is invalid.
    #[error("cannot read the best well of depth {depth}")]
    Well {
        /// The depth.
        depth: u32,
        /// Description of the problem.
        source: WellError,
    },
    /// The game does not end or clears fewer rows than expected when it is played by the exact rules. This
    /// indicates a bug in this program.
    #[error("the game should clear {expected} lines, but clears {found} when it is played")]
    Score {
        /// Rows cleared according to the search.
        expected: u32,
        /// Rows cleared according to the rules.
        found: u32,
    },
    /// The game does not end within the maximum number of additional pieces.
    #[error("the best game does not end within {0} more pieces")]
    NoEnd(usize),
}

/// A depth whose tables or changed pieces contradict those of the depths before, although they are intact. A faulty worker has
/// found the depth, or it has uploaded other wells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The depth.
    pub depth: u32,
    /// The well in hex that has no parent or is in no table, or `None` if it has a parent, but HATETRIS gives another piece there.
    pub well: Option<String>,
}

impl GameError {
    /// Returns the contradiction between stored depths that caused this error, or `None` if the error has another cause.
    pub fn contradiction(&self) -> Option<Contradiction> {
        match self {
            GameError::Store(
                StoreError::NoWell { depth, well } | StoreError::NoParent { depth, well, .. },
            ) => Some(Contradiction {
                depth: *depth,
                well: Some(well.clone()),
            }),
            // `step` is the 1-based number of the earlier well, which is the depth of the later one.
            GameError::Path(PathError::NoPlacement { step, .. }) => Some(Contradiction {
                depth: u32::try_from(*step).ok()?,
                well: None,
            }),
            _ => None,
        }
    }

    /// Returns whether the retention rule has dropped tables that the game needs.
    pub fn is_dropped(&self) -> bool {
        matches!(
            self,
            GameError::Store(StoreError::Dropped { .. } | StoreError::TooMany { .. })
        )
    }
}

/// Maximum number of pieces that are added until a game is over.
const MAX_ENDING: usize = 1000;

/// Reads back the best game of a run: the one that clears the most rows. If several games clear that many rows, reads back
/// the deepest one.
///
/// # Errors
/// Returns a [`GameError`] if the game cannot be read back; see [`GameError::is_dropped`].
pub fn best_game(run: &impl ReadableRun) -> Result<BestGame, GameError> {
    GameSearch::best(run).resume(run)
}

/// A search for a game of a run. If a lookup fails, the search keeps its progress, as [`PathSearch`] does.
///
/// HATETRIS has a loop rule: it gives a different piece if a well is repeated. If the search ignored this rule and the rule
/// changes a piece of a game that was read back, HATETRIS cuts the game short: only the part before that piece is valid.
#[derive(Debug)]
pub struct GameSearch {
    /// Depths whose best wells are candidates for the last well of the game. They are tried from last to first.
    candidates: Vec<DepthRecord>,
    /// Search for the path to the best well of the last candidate; `None` if the search has not begun.
    path: Option<PathSearch>,
    parted_at: Option<usize>,
    /// The best valid part that was found so far among games that HATETRIS cuts short.
    cut: Option<FoundGame>,
    /// The games that were read back and that HATETRIS cuts short.
    cut_games: CutGames,
    lookups: u64,
    /// Counter that is set to the depth that the search has reached.
    progress: Arc<AtomicU32>,
}

/// A game that was read back, or the valid part of a game that HATETRIS cuts short.
#[derive(Debug)]
struct FoundGame {
    wells: Vec<Well>,
    depth: u32,
}

/// Maximum number of wells in [`CutGames`], which takes about 100 MB. With more, games are only read back further than
/// necessary.
const MAX_CUT_WELLS: usize = 1 << 20;

/// Games that HATETRIS cuts short. Most games of a run begin with the same wells, so most of the next candidates share the
/// valid part of one of these games, and need not be read back to the start. Without this, reading back 2,000 depths of a
/// well with 4 columns took more than ten minutes. One game is not enough: the best wells of neighbouring depths can
/// alternate between two lines of descent.
#[derive(Debug, Default)]
struct CutGames {
    /// For each game, the wells up to that of the piece that HATETRIS changes.
    valid: Vec<Vec<Well>>,
    /// For each depth and well, the index of a game through this well, which may be after the changed piece.
    games: HashMap<(u32, Well), usize>,
    /// Number of wells in `valid`.
    valid_wells: usize,
}

impl CutGames {
    /// Returns the index of a game through this well.
    fn through(&self, depth: u32, well: &Well) -> Option<usize> {
        self.games.get(&(depth, *well)).copied()
    }

    /// Adds a game with this valid part, and the wells with which it ends. `first` is the depth of the first of these.
    fn add(&mut self, valid: &[Well], first: u32, wells: &[Well]) {
        if self.valid_wells + valid.len() + self.games.len() <= MAX_CUT_WELLS {
            self.valid.push(valid.to_vec());
            self.valid_wells += valid.len();
            self.extend(self.valid.len() - 1, first, wells);
        }
    }

    /// Adds wells at consecutive depths to a game.
    fn extend(&mut self, game: usize, first: u32, wells: &[Well]) {
        let room = MAX_CUT_WELLS.saturating_sub(self.valid_wells + self.games.len());
        let wells = (first..).zip(wells).take(room);
        self.games
            .extend(wells.map(|(depth, &well)| ((depth, well), game)));
    }
}

impl GameSearch {
    /// Creates a search for the best game of a run.
    pub fn best(run: &impl ReadableRun) -> GameSearch {
        let mut candidates = run.store().depths().to_vec();
        candidates.sort_by_key(|record| (record.best_lines, record.depth));
        GameSearch::of(candidates)
    }

    /// Creates a search for the game through the best well at a depth. If the loop rule changes a piece before that well, the
    /// game follows the search only up to that piece.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the run has no such depth.
    pub fn through(run: &impl ReadableRun, depth: u32) -> Result<GameSearch, StoreError> {
        let mut records = run.store().depths().iter();
        let record = records.find(|record| record.depth == depth);
        let record = record.ok_or(StoreError::NoDepth { depth })?;
        Ok(GameSearch::of(vec![record.clone()]))
    }

    fn of(candidates: Vec<DepthRecord>) -> GameSearch {
        GameSearch {
            candidates,
            path: None,
            parted_at: None,
            cut: None,
            cut_games: CutGames::default(),
            lookups: 0,
            progress: Arc::default(),
        }
    }

    /// Sets `progress` to each depth that the search reaches on its way from the end of the game to the start.
    #[must_use]
    pub fn with_progress(self, progress: &Arc<AtomicU32>) -> GameSearch {
        GameSearch {
            progress: Arc::clone(progress),
            ..self
        }
    }

    /// Starts the search, or continues it after an error.
    ///
    /// # Errors
    /// Returns a [`GameError`] if the game cannot be read back.
    pub fn resume(&mut self, run: &impl ReadableRun) -> Result<BestGame, GameError> {
        let mut backward = Backward::new(run.emulator());
        while let Some(record) = self.candidates.last() {
            let lines = u32::from(record.best_lines);
            if self
                .cut
                .as_ref()
                .is_some_and(|cut| score_of(run, &cut.wells) >= lines)
            {
                break;
            }
            let depth = record.depth;
            if self.path.is_none() {
                let well = best_well(run, record)?;
                let path = path_search(run, depth, &well);
                self.path = Some(path.with_progress(&self.progress));
            }
            let Some(path) = &mut self.path else {
                continue;
            };
            let games = &self.cut_games;
            let is_known = |depth, well: &Well| games.through(depth, well).is_some();
            let found = path.resume_joining(run.store(), &mut backward, is_known)?;
            self.path = None;
            self.candidates.pop();
            self.lookups += found.lookups;
            let first = found.joined.unwrap_or(run.start().depth());
            let known = self.cut_games.through(first, &found.wells[0]);
            let before = match known.map(|game| (game, &self.cut_games.valid[game])) {
                Some((game, valid)) if first as usize + 1 >= valid.len() => {
                    // HATETRIS changes the same piece of this game.
                    self.cut_games.extend(game, first, &found.wells);
                    continue;
                }
                Some((_, valid)) => &valid[..first as usize],
                None => before_start(run),
            };
            let wells = [before, &found.wells].concat();
            let Some(piece) = loops_at(run, &wells) else {
                return self.finish(run, FoundGame { wells, depth });
            };
            self.parted_at = self.parted_at.or(Some(piece));
            self.consider_cut(run, &wells[..piece]);
            self.cut_games.add(&wells[..piece], first, &found.wells);
        }
        match self.cut.take() {
            Some(cut) => self.finish(run, cut),
            None => Err(GameError::Nothing),
        }
    }

    /// Keeps the valid part of a game that HATETRIS cuts short, if it is the best one so far.
    fn consider_cut(&mut self, run: &impl ReadableRun, wells: &[Well]) {
        let score = |wells: &[Well]| score_of(run, wells);
        let best = self.cut.as_ref();
        if best.is_none_or(|best| score(&best.wells) < score(wells)) {
            self.cut = Some(FoundGame {
                wells: wells.to_vec(),
                depth: (wells.len() - 1) as u32,
            });
        }
    }

    /// Continues the game to its end and plays it by the exact rules.
    fn finish(&self, run: &impl ReadableRun, game: FoundGame) -> Result<BestGame, GameError> {
        let (geometry, rules) = (run.emulator().geometry(), run.emulator().rules());
        let mut wells = game.wells;
        bring_to_end(run.emulator(), &mut wells)?;
        let keys = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true)?;
        let expected = score_of(run, &wells);
        let mut played = Game::from_well(geometry, rules, Enemy::Hatetris, &wells[0])
            .map_err(|source| GameError::Well { depth: 0, source })?;
        let mut ended = false;
        for &key in &keys {
            ended = matches!(played.press(key), Pressed::Locked { over: true, .. });
        }
        let found = played.score();
        if !ended || found < expected {
            return Err(GameError::Score { expected, found });
        }
        Ok(BestGame {
            score: found,
            wells,
            keys,
            depth: game.depth,
            lookups: self.lookups,
            parted_at: self.parted_at,
        })
    }
}

fn best_well(run: &impl ReadableRun, record: &DepthRecord) -> Result<Well, GameError> {
    let well = Well::from_hex(run.store().geometry(), &record.best_well);
    well.map_err(|source| GameError::Well {
        depth: record.depth,
        source,
    })
}

/// The game that leads to a well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameTo {
    /// The wells from the start of the game to the requested well. If the run starts from a well, so does the
    /// game.
    pub wells: Vec<Well>,
    /// Number of rows cleared.
    pub score: u32,
    /// Number of lookups.
    pub lookups: u64,
}

impl GameTo {
    /// Returns the keys of the game against HATETRIS, or against HATETRIS Mild if the loop rule changes one of its pieces.
    ///
    /// # Errors
    /// Returns a [`PathError`] if neither of them gives all pieces of the game. This is possible if the search starts from
    /// a replay in which the rule changes a piece.
    pub fn keys(&self, geometry: Geometry, rules: Rules) -> Result<Vec<Key>, PathError> {
        let against = |enemy| replay_of_wells(geometry, rules, enemy, &self.wells, false);
        against(Enemy::Hatetris).or_else(|_| against(Enemy::Mild))
    }
}

/// Reads back the game that leads to a well at a depth, by the rules that the search applied.
///
/// # Errors
/// Returns the same errors as [`PathSearch::resume`].
pub fn game_to(run: &impl ReadableRun, depth: u32, well: &Well) -> Result<GameTo, StoreError> {
    resume_path(run, &mut path_search(run, depth, well))
}

/// Creates a search for the path to a well at a depth, for [`resume_path`].
pub fn path_search(run: &impl ReadableRun, depth: u32, well: &Well) -> PathSearch {
    PathSearch::new(depth, NodeWell::pack(run.store().geometry(), well))
}

/// Starts or continues a search for a path, and returns the game along that path.
///
/// # Errors
/// Returns the same errors as [`PathSearch::resume`].
pub fn resume_path(run: &impl ReadableRun, path: &mut PathSearch) -> Result<GameTo, StoreError> {
    let found = path.resume(run.store(), &mut Backward::new(run.emulator()))?;
    let wells = [before_start(run), &found.wells].concat();
    Ok(GameTo {
        score: score_of(run, &wells),
        wells,
        lookups: found.lookups,
    })
}

/// Returns the wells of the game before the first depth of the search.
fn before_start(run: &impl ReadableRun) -> &[Well] {
    let wells = &run.start().wells;
    &wells[..wells.len() - 1]
}

/// Returns the number, counted from 1, of the first piece of this game for which HATETRIS gives a different piece than the
/// search because a well is repeated. Returns `None` if there is no such piece. The pieces before the start of the search
/// do not count, because they are those of a replay, to which the rule was applied.
fn loops_at(run: &impl ReadableRun, wells: &[Well]) -> Option<usize> {
    if run.loops() == LoopRule::Exact {
        return None;
    }
    let (mut exact, mut mild) = (
        EnemyState::new(Enemy::Hatetris),
        EnemyState::new(Enemy::Mild),
    );
    let mut children = Children::new();
    let first = run.start().depth() as usize;
    wells
        .iter()
        .enumerate()
        .position(|(index, well)| {
            let exact = exact.next_piece(run.emulator(), well, &mut children);
            let mild = mild.next_piece(run.emulator(), well, &mut children);
            exact != mild && index >= first
        })
        .map(|index| index + 1)
}

/// Returns the number of rows that a game through these wells clears, computed from the number of placed cells that are
/// no longer in the last well.
fn score_of(run: &impl ReadableRun, wells: &[Well]) -> u32 {
    let (Some(first), Some(last)) = (wells.first(), wells.last()) else {
        return 0;
    };
    let placed = 4 * (wells.len() as u32 - 1);
    (first.filled() + placed).saturating_sub(last.filled()) / run.store().geometry().width() as u32
}

/// Adds wells until the next piece can end the game and cannot clear rows. Each added piece clears as many rows as
/// possible. If several placements clear that number of rows, the function chooses one with the highest stack.
///
/// # Errors
/// Returns [`GameError::NoEnd`] if a thousand added pieces do not end the game, and [`GameError::Path`] if `wells` is empty.
pub(crate) fn bring_to_end(emulator: &Emulator, wells: &mut Vec<Well>) -> Result<(), GameError> {
    let mut state = EnemyState::new(Enemy::Hatetris);
    let mut children = Children::new();
    for well in wells.iter().take(wells.len().saturating_sub(1)) {
        state.next_piece(emulator, well, &mut children);
    }
    for _ in 0..MAX_ENDING {
        let Some(last) = wells.last() else {
            return Err(PathError::NoWells.into());
        };
        let piece = state.next_piece(emulator, last, &mut children);
        emulator.children(last, piece, &mut children);
        let best = children
            .iter()
            .max_by_key(|(well, lines)| (*lines, well.stack_height(), Reverse(**well)));
        match best {
            Some((well, lines)) if lines > 0 || !children.can_die() => wells.push(*well),
            _ => return Ok(()),
        }
    }
    Err(GameError::NoEnd(MAX_ENDING))
}
