//! Learning the weights of [`Learned`] from games: temporal-difference learning, in which the value of each board
//! moves towards the points of the next move plus the value of the board after it. The rate of every weight follows from
//! the errors of this weight (temporal coherence): it stays high while the errors have the same sign.

use super::learned::{PATTERN_VERSION, header, write_patterns};
use super::{GameRules, Learned, Widths};
use hatebeam_files::{FolderLock, FolderLockError, sealed, unsealed, write_whole};
use hatebeam_tetris::nes::{
    Board, PATTERN_WEIGHTS, PATTERNS, Patterns, Score, board_value, discounted, patterns,
};
use hatebeam_tetris::{Piece, Rng};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// First bytes of a file with the state of learning.
const STATE_MAGIC: [u8; 8] = *b"HBNESLRN";
/// Version of the state. It also increases with [`PATTERN_VERSION`], because a state contains weights of patterns.
const STATE_VERSION: u32 = PATTERN_VERSION + 1;
/// Name of the file with the state of learning.
const STATE_FILE: &str = "learning.bin";
/// Name of the file with the learned weights.
pub const LEARNED_FILE: &str = "patterns.bin";
/// Number of games between two writes of the state.
const GAMES_PER_SAVE: u64 = 500;

/// Extent of learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningSettings {
    /// Seed of the pieces.
    pub seed: u64,
    /// Number of games.
    pub games: u64,
}

impl LearningSettings {
    /// Settings with which the weights of the program were learned.
    pub const BUILT_IN: LearningSettings = LearningSettings {
        seed: 1,
        games: 170_000,
    };
}

/// Mean results of several games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearningProgress {
    /// Number of all games played.
    pub games: u64,
    /// Mean score of the last games.
    pub mean: u64,
    /// Percentage of the last games that were complete.
    pub complete_percent: u64,
}

impl fmt::Display for LearningProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "game {}: mean score {}, {} % complete",
            self.games, self.mean, self.complete_percent
        )
    }
}

/// Error for files of learned weights, and for learning that cannot be resumed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LearningError {
    /// A file cannot be read or written.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// Another process uses the folder.
    #[error("{} is used by another process: wait until it ends, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The file is damaged, or has another format or another version.
    #[error("{} is damaged or was written by another version: learn again in another folder", .0.display())]
    Format(PathBuf),
    /// The folder contains the state of learning with other settings.
    #[error("{} was learned with other settings: use seed {seed} and at least {games} games", path.display())]
    Settings {
        /// Path of the state.
        path: PathBuf,
        /// Seed of the state.
        seed: u64,
        /// Number of games in the state.
        games: u64,
    },
}

/// Learns weights in a folder, which is locked until the end, and resumes if the folder contains the state of learning.
/// After every 500 games, writes both files and calls `on_save`; learning stops if `on_save` returns `false`. Returns
/// whether all games have been played.
pub fn learn(
    folder: &Path,
    rules: &GameRules,
    settings: &LearningSettings,
    mut on_save: impl FnMut(&LearningProgress) -> bool,
) -> Result<bool, LearningError> {
    let failed = |error| LearningError::Io(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    // Without the lock, two processes would overwrite each other's files.
    let _lock = FolderLock::take(folder).map_err(|error| match error {
        FolderLockError::InUse(path) => LearningError::InUse(path),
        FolderLockError::File(path, error) => LearningError::Io(path, error),
    })?;
    let (path, learned) = (folder.join(STATE_FILE), folder.join(LEARNED_FILE));
    let (mut games, mut learner) = match fs::read(&path) {
        Ok(bytes) => {
            let (games, learner) = Learner::resume(&path, &bytes, settings)?;
            // An interruption between the two files of a save leaves weights that are older than the state, or none.
            write(&learned, &write_patterns(learner.weights()))?;
            (games, learner)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (0, Learner::new()),
        Err(error) => return Err(LearningError::Io(path, error)),
    };
    while games < settings.games {
        let count = GAMES_PER_SAVE.min(settings.games - games);
        let (mut points, mut complete) = (0, 0);
        for _ in 0..count {
            let mut rng = Rng::stream(settings.seed, games);
            let score = learner.play(rules, &mut rng);
            games += 1;
            points += u64::from(score.points);
            complete += u64::from(score.lines >= rules.stop_lines);
        }
        write(&path, &learner.state(games, settings.seed))?;
        write(&learned, &write_patterns(learner.weights()))?;
        let progress = LearningProgress {
            games,
            mean: points / count,
            complete_percent: 100 * complete / count,
        };
        if !on_save(&progress) {
            break;
        }
    }
    Ok(games == settings.games)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), LearningError> {
    write_whole(path, bytes).map_err(|error| LearningError::Io(path.to_owned(), error))
}

/// Weights that are learned from games.
struct Learner {
    /// Search that chooses the moves. Nothing else refers to its weights.
    search: Learned,
    /// Sum of the errors of every weight.
    errors: Vec<f32>,
    /// Sum of the absolute errors of every weight.
    absolute_errors: Vec<f32>,
}

/// Widths of the learner's search, which never looks ahead.
const WIDTHS: Widths = Widths {
    first: 1,
    inner: 1,
    depth: 0,
};

impl Learner {
    /// Creates a learner whose weights are all zero.
    fn new() -> Learner {
        let zeros = vec![0.0; PATTERN_WEIGHTS];
        Learner {
            search: Learned::new(Arc::from(zeros.as_slice()), WIDTHS),
            errors: zeros.clone(),
            absolute_errors: zeros,
        }
    }

    /// Parses the state of learning. Returns the number of games played. Errors contain `path`.
    fn resume(
        path: &Path,
        bytes: &[u8],
        settings: &LearningSettings,
    ) -> Result<(u64, Learner), LearningError> {
        let parsed = || {
            let header = header(STATE_MAGIC, STATE_VERSION);
            let bytes = unsealed(bytes)?.strip_prefix(header.as_slice())?;
            let (numbers, bytes) = bytes.split_first_chunk::<16>()?;
            let (numbers, _) = numbers.as_chunks::<8>();
            let (floats, rest) = bytes.as_chunks::<4>();
            let floats: Vec<f32> = floats
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes))
                .collect();
            let is_valid = floats.len() == 3 * PATTERN_WEIGHTS
                && rest.is_empty()
                && floats.iter().all(|float| float.is_finite());
            is_valid.then(|| ([0, 1].map(|at| u64::from_le_bytes(numbers[at])), floats))
        };
        let ([seed, games], floats) =
            parsed().ok_or_else(|| LearningError::Format(path.to_owned()))?;
        if seed != settings.seed || games > settings.games {
            return Err(LearningError::Settings {
                path: path.to_owned(),
                seed,
                games,
            });
        }
        let (weights, rates) = floats.split_at(PATTERN_WEIGHTS);
        let (errors, absolute_errors) = rates.split_at(PATTERN_WEIGHTS);
        let learner = Learner {
            search: Learned::new(Arc::from(weights), WIDTHS),
            errors: errors.to_vec(),
            absolute_errors: absolute_errors.to_vec(),
        };
        Ok((games, learner))
    }

    /// Returns the state of learning after `games` games.
    fn state(&self, games: u64, seed: u64) -> Vec<u8> {
        let mut bytes = header(STATE_MAGIC, STATE_VERSION);
        for number in [seed, games] {
            bytes.extend(number.to_le_bytes());
        }
        let rates = self.errors.iter().chain(&self.absolute_errors);
        bytes.extend(
            self.weights()
                .iter()
                .chain(rates)
                .flat_map(|float| float.to_le_bytes()),
        );
        sealed(bytes)
    }

    /// Returns the weights.
    fn weights(&self) -> &[f32] {
        self.search.weights()
    }

    /// Plays a game and learns from every move. The player chooses the best placement of the current piece, without
    /// regard to the next piece. Returns the score at the end.
    fn play(&mut self, rules: &GameRules, rng: &mut Rng) -> Score {
        let mut board = Board::empty(rules.rows);
        let mut score = Score::new(rules.start_level);
        let mut before: Option<Patterns> = None;
        let mut piece = draw(rng, None);
        while score.lines < rules.stop_lines {
            if !board.spawns(piece) {
                if let Some(before) = &before {
                    self.correct(before, 0.0);
                }
                break;
            }
            let placement = self.search.best_single(&board, piece);
            let locked = board.lock(piece, placement);
            let patterns = patterns(&locked.board);
            if let Some(before) = &before {
                let rest = board_value(&patterns, self.weights());
                let value = discounted(locked.lines, f64::from(rest));
                self.correct(before, value as f32);
            }
            before = Some(patterns);
            board = locked.board;
            score.add(locked.lines);
            piece = draw(rng, Some(piece));
        }
        score
    }

    /// Moves the value of the board with these patterns towards `value`, the value of the next move.
    fn correct(&mut self, patterns: &Patterns, value: f32) {
        let weights = self.search.weights_mut();
        let weights = weights.expect("only this learner refers to the weights");
        let error = value - board_value(patterns, weights);
        let step = error / PATTERNS as f32;
        for &index in patterns {
            let index = index as usize;
            let absolute = self.absolute_errors[index];
            let rate = if absolute > 0.0 {
                self.errors[index].abs() / absolute
            } else {
                1.0
            };
            weights[index] += rate * step;
            self.errors[index] += error;
            self.absolute_errors[index] = absolute + error.abs();
        }
    }
}

/// Draws the piece after `last` with the probabilities of the article's generator.
fn draw(rng: &mut Rng, last: Option<Piece>) -> Piece {
    let number = rng.below(8);
    match Piece::ALL.get(number) {
        Some(&piece) if Some(piece) != last => piece,
        _ => Piece::ALL[rng.below(7)],
    }
}
