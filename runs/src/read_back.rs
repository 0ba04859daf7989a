//! The best game of a run: read back by look-ups, continued to its end, and played by the exact rules.

use crate::spec::StartingPosition;
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, EnemyState, Game, Key, PathError, Pressed, Well,
    WellError, replay_of_wells,
};
use hatebeam_search::{DepthRecord, NodeWell};
use hatebeam_store::{Lookup, PathSearch, StoreError};
use std::cmp::Reverse;
use thiserror::Error;

/// A searched run whose games can be read back.
pub trait ReadableRun {
    /// Type of the store of its wells.
    type Store: Lookup;
    /// Returns the store of its wells.
    fn store(&self) -> &Self::Store;
    /// Returns the emulator of its geometry and rules.
    fn emulator(&self) -> &Emulator;
    /// Returns the game up to the start of the search.
    fn start(&self) -> &StartingPosition;
}

/// A game that was played by the exact rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestGame {
    /// Number of lines, including those before the start of the run if the start is a replay.
    pub score: u32,
    /// The wells from the first of the game (of the search, if the start is a well) to the last before its end.
    pub wells: Vec<Well>,
    /// The keys up to the end of the game.
    pub keys: Vec<Key>,
    /// Depth whose best well the game leads through.
    pub depth: u32,
    /// Number of look-ups that reading back took.
    pub lookups: u64,
    /// Number of the piece, from 1, that HATETRIS changes in a better game because a well was repeated. The beam does
    /// not know that rule.
    pub parted_at: Option<usize>,
}

/// Why a game cannot be read back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GameError {
    /// The run has no depth.
    #[error("the run has no depth yet")]
    Nothing,
    /// A look-up failed.
    #[error("cannot read the best game back")]
    Store(#[from] StoreError),
    /// The wells do not form a game.
    #[error("cannot play the wells of the best game")]
    Path(#[from] PathError),
    /// A record contains no valid well.
    #[error("cannot read the best well of depth {depth}")]
    Well {
        /// The depth.
        depth: u32,
        /// The error of the well.
        source: WellError,
    },
    /// The exact rules give another score: a bug in this program.
    #[error("the game should have {expected} lines, but has {found} when it is played")]
    Score {
        /// Score of the search.
        expected: u32,
        /// Score by the rules.
        found: u32,
    },
    /// The game does not end.
    #[error("the best game does not end within {0} more pieces")]
    NoEnd(usize),
}

impl GameError {
    /// Returns whether the retention rule dropped tables that the game needs.
    pub fn is_dropped(&self) -> bool {
        matches!(
            self,
            GameError::Store(StoreError::Dropped { .. } | StoreError::TooMany { .. })
        )
    }
}

/// Maximum number of pieces that are added to end a game: a well has room for far fewer.
const MAX_ENDING: usize = 1000;

/// Reads back the best game of a run: the one with the most lines, then with the greatest depth.
///
/// # Errors
/// [`GameError`]; see [`GameError::is_dropped`].
pub fn best_game(run: &impl ReadableRun) -> Result<BestGame, GameError> {
    GameSearch::best(run).resume(run)
}

/// Reads back the game through the best well of a depth, continued to its end. If HATETRIS changes a piece of it, the game
/// is the one up to that piece.
///
/// # Errors
/// [`GameError`]; [`StoreError::NoDepth`] inside if there is no such depth.
pub fn game_through(run: &impl ReadableRun, depth: u32) -> Result<BestGame, GameError> {
    GameSearch::through(run, depth)?.resume(run)
}

/// A search for a game of a run. It keeps its progress when a look-up fails, like [`PathSearch`].
#[derive(Debug)]
pub struct GameSearch {
    /// Depths whose best wells are candidates, the best one last.
    candidates: Vec<DepthRecord>,
    /// Whether the game may be one that HATETRIS cuts short.
    allow_cut: bool,
    /// Path to the best well of the last candidate.
    path: Option<PathSearch>,
    parted_at: Option<usize>,
    /// Best game that HATETRIS cuts short by changing a piece, up to that piece.
    cut: Option<CutGame>,
}

#[derive(Debug)]
struct CutGame {
    wells: Vec<Well>,
    depth: u32,
    lookups: u64,
}

impl GameSearch {
    /// Returns a search for the best game of a run.
    pub fn best(run: &impl ReadableRun) -> GameSearch {
        let mut candidates = run.store().depths().to_vec();
        candidates.sort_by_key(|record| (record.best_lines, record.depth));
        GameSearch {
            candidates,
            allow_cut: false,
            path: None,
            parted_at: None,
            cut: None,
        }
    }

    /// Returns a search for the game through the best well of a depth.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`].
    pub fn through(run: &impl ReadableRun, depth: u32) -> Result<GameSearch, StoreError> {
        let mut records = run.store().depths().iter();
        let record = records.find(|record| record.depth == depth);
        let record = record.ok_or(StoreError::NoDepth { depth })?;
        Ok(GameSearch {
            candidates: vec![record.clone()],
            allow_cut: true,
            path: None,
            parted_at: None,
            cut: None,
        })
    }

    /// Starts the search, or continues it after an error.
    ///
    /// # Errors
    /// [`GameError`].
    pub fn resume(&mut self, run: &impl ReadableRun) -> Result<BestGame, GameError> {
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
                self.path = Some(path_search(run, depth, &well));
            }
            let Some(path) = &mut self.path else {
                continue;
            };
            let GameTo { wells, lookups, .. } = resume_path(run, path)?;
            self.path = None;
            self.candidates.pop();
            let Some(piece) = loops_at(run, &wells) else {
                return self.finish(
                    run,
                    CutGame {
                        wells,
                        depth,
                        lookups,
                    },
                );
            };
            self.parted_at = self.parted_at.or(Some(piece));
            let cut = CutGame {
                wells: wells[..piece].to_vec(),
                depth: (piece - 1) as u32,
                lookups,
            };
            let first = run.start().depth() as usize;
            let is_better = self
                .cut
                .as_ref()
                .is_none_or(|best| score_of(run, &best.wells) < score_of(run, &cut.wells));
            if self.allow_cut || piece > first && is_better {
                self.cut = Some(cut);
            }
        }
        match self.cut.take() {
            Some(cut) => self.finish(run, cut),
            None => Err(GameError::Nothing),
        }
    }

    /// Continues the game to its end and plays it.
    fn finish(&self, run: &impl ReadableRun, game: CutGame) -> Result<BestGame, GameError> {
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
            lookups: game.lookups,
            parted_at: self.parted_at,
        })
    }
}

/// Returns a well with the most lines of a depth.
fn best_well(run: &impl ReadableRun, record: &DepthRecord) -> Result<Well, GameError> {
    let well = Well::from_hex(run.store().geometry(), &record.best_well);
    well.map_err(|source| GameError::Well {
        depth: record.depth,
        source,
    })
}

/// The game to a well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameTo {
    /// The wells from the first (of the search, if the start is a well) to the requested one.
    pub wells: Vec<Well>,
    /// Number of lines.
    pub score: u32,
    /// Number of look-ups.
    pub lookups: u64,
}

/// Reads back the game to a well of a depth, under HATETRIS Mild.
///
/// # Errors
/// As for [`PathSearch::resume`].
pub fn game_to(run: &impl ReadableRun, depth: u32, well: &Well) -> Result<GameTo, StoreError> {
    resume_path(run, &mut path_search(run, depth, well))
}

/// Returns a search for the path to a well of a depth, for [`resume_path`].
pub fn path_search(run: &impl ReadableRun, depth: u32, well: &Well) -> PathSearch {
    PathSearch::new(depth, NodeWell::pack(run.store().geometry(), well))
}

/// Starts or continues a search for a path, and returns the game along it.
///
/// # Errors
/// As for [`PathSearch::resume`].
pub fn resume_path(run: &impl ReadableRun, path: &mut PathSearch) -> Result<GameTo, StoreError> {
    let found = path.resume(run.store(), &mut Backward::new(run.emulator()))?;
    let before = &run.start().wells[..run.start().wells.len() - 1];
    let wells: Vec<Well> = before.iter().copied().chain(found.wells).collect();
    Ok(GameTo {
        score: score_of(run, &wells),
        wells,
        lookups: found.lookups,
    })
}

/// Returns the number of the first piece that HATETRIS changes in this game, because a well is repeated.
fn loops_at(run: &impl ReadableRun, wells: &[Well]) -> Option<usize> {
    let (mut exact, mut mild) = (
        EnemyState::new(Enemy::Hatetris),
        EnemyState::new(Enemy::Mild),
    );
    let mut children = Children::new();
    wells
        .iter()
        .position(|well| {
            exact.next_piece(run.emulator(), well, &mut children)
                != mild.next_piece(run.emulator(), well, &mut children)
        })
        .map(|index| index + 1)
}

/// Returns the lines of a game through these wells: the cells that were placed and are not there any more.
fn score_of(run: &impl ReadableRun, wells: &[Well]) -> u32 {
    let (Some(first), Some(last)) = (wells.first(), wells.last()) else {
        return 0;
    };
    let placed = 4 * (wells.len() as u32 - 1);
    (first.filled() + placed).saturating_sub(last.filled()) / run.store().geometry().width() as u32
}

/// Adds wells until the next piece can end the game. Each placement clears lines if it can, and otherwise makes the stack
/// as high as possible.
///
/// # Errors
/// [`GameError::NoEnd`] if that takes more than a thousand pieces.
pub fn bring_to_end(emulator: &Emulator, wells: &mut Vec<Well>) -> Result<(), GameError> {
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
