//! The best game of a run: read back by look-ups, brought to its end, played through the exact rules.

use crate::run::{Run, RunError};
use crate::spec::StartingPosition;
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, EnemyState, Game, Key, PathError, Pressed, Well,
    WellError, replay_of_wells,
};
use hatebeam_search::NodeWell;
use hatebeam_store::{DepthRecord, Lookup, Path, RunStore, StoreError, path_to};
use std::cmp::Reverse;
use thiserror::Error;

/// A run that was searched, as far as games are read back from it.
pub trait ReadableRun {
    /// Where its wells are looked up.
    type Store: Lookup;
    /// Where its wells are looked up.
    fn store(&self) -> &Self::Store;
    /// The emulator of its geometry and rules.
    fn emulator(&self) -> &Emulator;
    /// The game up to where the search begins.
    fn start(&self) -> &StartingPosition;
}

impl ReadableRun for Run {
    type Store = RunStore;

    fn store(&self) -> &RunStore {
        Run::store(self)
    }

    fn emulator(&self) -> &Emulator {
        Run::emulator(self)
    }

    fn start(&self) -> &StartingPosition {
        Run::start(self)
    }
}

/// A game that was played through the exact rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestGame {
    /// Its lines, those before the run's start included where the start is a replay.
    pub score: u32,
    /// The wells, from the first of the game (of the search, where the start is a well) to the last
    /// before its end.
    pub wells: Vec<Well>,
    /// The keys, to the end of the game.
    pub keys: Vec<Key>,
    /// The depth whose best well it leads through.
    pub depth: u32,
    /// How many look-ups the way back took.
    pub lookups: u64,
    /// The piece, from 1, that HATETRIS changes in a better game that was found, because a well came
    /// back: the beam knows nothing of that rule.
    pub parted_at: Option<usize>,
}

/// Why no game can be told.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GameError {
    /// Nothing was searched yet.
    #[error("the run has no depth yet")]
    Nothing,
    /// The store could not answer.
    #[error("the best game cannot be read back")]
    Store(#[from] StoreError),
    /// The run cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The wells make no game.
    #[error("the wells of the best game cannot be played")]
    Path(#[from] PathError),
    /// A record holds no well.
    #[error("the best well of depth {depth} cannot be read")]
    Well {
        /// The depth.
        depth: u32,
        /// What is wrong with it.
        source: WellError,
    },
    /// The exact rules say otherwise: a fault of this program.
    #[error("the game should have {expected} lines and has {found} when it is played")]
    Score {
        /// What the search says.
        expected: u32,
        /// What the rules say.
        found: u32,
    },
    /// The game does not come to an end.
    #[error("the best game finds no end within {0} pieces")]
    NoEnd(usize),
}

/// The most pieces to bring a game to its end: a well has room for far fewer.
const MAX_ENDING: usize = 1000;

/// The best game of a run as far as it was searched: the most lines, then the greatest depth.
///
/// # Errors
/// [`GameError`]; [`StoreError::Dropped`] inside if the wells on the way were not kept.
pub fn best_game(run: &impl ReadableRun) -> Result<BestGame, GameError> {
    let mut records: Vec<&DepthRecord> = run.store().depths().iter().collect();
    records.sort_by_key(|record| Reverse((record.best_lines, record.depth)));
    let mut parted_at = None;
    // The part of a better game before HATETRIS changes a piece.
    let mut held: Option<(Vec<Well>, u32)> = None;
    for record in records {
        let score = u32::from(record.best_lines);
        if let Some((wells, depth)) = &held
            && score_of(run, wells) >= score
        {
            return finish(run, wells.clone(), *depth, 0, parted_at);
        }
        let well = best_well(run, record)?;
        let GameTo { wells, lookups, .. } = game_to(run, record.depth, &well)?;
        match loops_at(run, &wells) {
            None => return finish(run, wells, record.depth, lookups, parted_at),
            Some(piece) => {
                parted_at = parted_at.or(Some(piece));
                let first = run.start().depth() as usize;
                let cut = wells[..piece].to_vec();
                let is_better = held
                    .as_ref()
                    .is_none_or(|(held, _)| score_of(run, held) < score_of(run, &cut));
                if piece > first && is_better {
                    held = Some((cut, (piece - 1) as u32));
                }
            }
        }
    }
    Err(GameError::Nothing)
}

/// The game through the best well of a depth, brought to its end. If HATETRIS changes a piece of it, it is
/// that game up to there.
///
/// # Errors
/// [`GameError`]; [`StoreError::NoDepth`] inside if there is no such depth.
pub fn game_through(run: &impl ReadableRun, depth: u32) -> Result<BestGame, GameError> {
    let mut records = run.store().depths().iter();
    let record = records.find(|record| record.depth == depth);
    let record = record.ok_or(StoreError::NoDepth { depth })?;
    let well = best_well(run, record)?;
    let GameTo {
        mut wells, lookups, ..
    } = game_to(run, depth, &well)?;
    let parted_at = loops_at(run, &wells);
    let depth = match parted_at {
        None => depth,
        Some(piece) => {
            wells.truncate(piece);
            (piece - 1) as u32
        }
    };
    finish(run, wells, depth, lookups, parted_at)
}

/// A well with the most lines of a depth.
fn best_well(run: &impl ReadableRun, record: &DepthRecord) -> Result<Well, GameError> {
    let well = Well::from_hex(run.store().geometry(), &record.best_well);
    well.map_err(|source| GameError::Well {
        depth: record.depth,
        source,
    })
}

/// A game that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameTo {
    /// Its wells, from the first (of the search, where the start is a well) to the one asked for.
    pub wells: Vec<Well>,
    /// Its lines.
    pub score: u32,
    /// How many look-ups it took.
    pub lookups: u64,
}

/// The game to a well of a depth, under HATETRIS Mild.
///
/// # Errors
/// What [`path_to`] says.
pub fn game_to(run: &impl ReadableRun, depth: u32, well: &Well) -> Result<GameTo, StoreError> {
    let mut backward = Backward::new(run.emulator());
    let packed = NodeWell::pack(run.store().geometry(), well);
    let Path { wells, lookups } = path_to(run.store(), &mut backward, depth, &packed)?;
    let before = &run.start().wells[..run.start().wells.len() - 1];
    let wells: Vec<Well> = before.iter().copied().chain(wells).collect();
    Ok(GameTo {
        score: score_of(run, &wells),
        wells,
        lookups,
    })
}

/// The number of the first piece that HATETRIS changes in this game, because a well came back.
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

/// The lines of a game that goes through these wells: what was placed and is not there any more.
fn score_of(run: &impl ReadableRun, wells: &[Well]) -> u32 {
    let (Some(first), Some(last)) = (wells.first(), wells.last()) else {
        return 0;
    };
    let placed = 4 * (wells.len() as u32 - 1);
    (first.filled() + placed).saturating_sub(last.filled()) / run.store().geometry().width() as u32
}

/// Brings a game to its end and plays it.
fn finish(
    run: &impl ReadableRun,
    mut wells: Vec<Well>,
    depth: u32,
    lookups: u64,
    parted_at: Option<usize>,
) -> Result<BestGame, GameError> {
    let (geometry, rules) = (run.emulator().geometry(), run.emulator().rules());
    bring_to_end(run.emulator(), &mut wells)?;
    let keys = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true)?;
    let expected = score_of(run, &wells);
    let mut game = Game::from_well(geometry, rules, Enemy::Hatetris, &wells[0])
        .map_err(|source| GameError::Well { depth: 0, source })?;
    let mut ended = false;
    for &key in &keys {
        ended = matches!(game.press(key), Pressed::Locked { over: true, .. });
    }
    let found = game.score();
    if !ended || found < expected {
        return Err(GameError::Score { expected, found });
    }
    Ok(BestGame {
        score: found,
        wells,
        keys,
        depth,
        lookups,
        parted_at,
    })
}

/// Adds wells until the piece that comes can end the game: lines where there are any, else up as
/// steeply as can be.
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
