//! Games played key by key, and playback of whole replays.
//!
//! [`Game`] follows the rules exactly: a blocked `D` locks the piece, any other blocked key does
//! nothing, and a game that is over ignores all keys. [`play`] plays a whole key sequence and
//! records a [`Turn`] for each piece.
//!
//! A replay contains neither its pieces nor its enemy. Against another enemy, the same keys result
//! in a different game, which usually ends early or has a low score. [`better_enemy`] guesses the
//! enemy of a replay.

use crate::emulator::{Children, Emulator};
use crate::enemy::{Enemy, EnemyState};
use crate::piece::Piece;
use crate::rules::{Board, Key, Position, Rules};
use crate::well::{Geometry, Well, WellError};

/// Maximum number of padding keys at the end of a replay. An encoding may add one, and converting the
/// replay to another encoding may add a second one.
pub(crate) const PADDING: usize = 2;

/// A game that is in progress or over.
#[derive(Clone, Debug)]
pub struct Game {
    emulator: Emulator,
    enemy: EnemyState,
    /// Scratch buffer for the enemy.
    children: Children,
    board: Board,
    piece: Piece,
    position: Position,
    score: u32,
    pieces: usize,
    over: bool,
}

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pressed {
    /// The piece moved or turned.
    Moved,
    /// The key had no effect because a wall or a filled cell blocks the piece.
    Blocked,
    /// The piece was locked in its position.
    Locked {
        /// Number of lines cleared, each worth one point.
        lines: u8,
        /// Whether the lock ended the game. If not, the next piece has entered the well.
        over: bool,
    },
    /// The key had no effect because the game was already over.
    Over,
}

impl Game {
    /// Starts a game in the empty well. The first piece has already entered it.
    pub fn new(geometry: Geometry, rules: Rules, enemy: Enemy) -> Game {
        Game::start(geometry, rules, enemy, &Well::EMPTY)
    }

    /// Starts a game in `well`. The enemy remembers no earlier wells.
    ///
    /// # Errors
    /// Returns an error if [`Well::check`] rejects the well.
    pub fn from_well(
        geometry: Geometry,
        rules: Rules,
        enemy: Enemy,
        well: &Well,
    ) -> Result<Game, WellError> {
        well.check(geometry)?;
        Ok(Game::start(geometry, rules, enemy, well))
    }

    fn start(geometry: Geometry, rules: Rules, enemy: Enemy, well: &Well) -> Game {
        let emulator = Emulator::new(geometry, rules);
        let mut enemy = EnemyState::new(enemy);
        let mut children = Children::new();
        let piece = enemy.next_piece(&emulator, well, &mut children);
        Game {
            emulator,
            enemy,
            children,
            board: Board::new(geometry, well),
            piece,
            position: Position::spawn(geometry),
            score: 0,
            pieces: 1,
            over: false,
        }
    }

    /// Presses a key.
    pub fn press(&mut self, key: Key) -> Pressed {
        if self.over {
            return Pressed::Over;
        }
        let next = self.position.moved(key);
        if self.board.is_free(self.piece, next) {
            self.position = next;
            Pressed::Moved
        } else if key == Key::Down {
            self.lock()
        } else {
            Pressed::Blocked
        }
    }

    /// Locks the piece in its position. Unless the game is over, the next piece enters the well.
    fn lock(&mut self) -> Pressed {
        let lock = self
            .board
            .lock(self.piece, self.position, self.emulator.rules());
        self.board = lock.board;
        self.score += u32::from(lock.lines);
        self.over = lock.over;
        if !lock.over {
            let well = self.board.well();
            self.piece = self
                .enemy
                .next_piece(&self.emulator, &well, &mut self.children);
            self.position = Position::spawn(self.board.geometry());
            self.pieces += 1;
        }
        Pressed::Locked {
            lines: lock.lines,
            over: lock.over,
        }
    }

    /// Returns the enemy that chooses the pieces.
    pub fn enemy(&self) -> Enemy {
        self.enemy.enemy()
    }

    /// Returns the locked cells, including cells above the bar (the line four rows below the top).
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the locked cells below the bar. Unless the game is over, no other cells are locked.
    pub fn well(&self) -> Well {
        self.board.well()
    }

    /// Returns the current piece, or the piece that ended the game.
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Returns the position of the current piece. If the game is over, returns the position in which
    /// the last piece was locked.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the number of lines cleared so far.
    pub fn score(&self) -> u32 {
        self.score
    }

    /// Returns the number of pieces given so far, including the current one.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns whether the game is over.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

/// A piece of a game, with the state of the game when the piece entered the well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The well that the piece entered.
    pub well: Well,
    /// The piece.
    pub piece: Piece,
    /// Number of lines cleared before this piece.
    pub score: u32,
    /// Number of keys used before this piece, which is also the index of its first key.
    pub first_key: usize,
}

/// The result of playing a key sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The enemy that chose the pieces.
    pub enemy: Enemy,
    /// All pieces given, in order. Unless the game is over, the last piece has not been locked.
    pub turns: Vec<Turn>,
    /// The board after the last key used. If the game is over, the board has filled cells above the
    /// bar.
    pub board: Board,
    /// Number of lines cleared.
    pub score: u32,
    /// Number of keys pressed until the game was over, or the number of all keys if it is not over.
    pub keys_used: usize,
    /// Number of keys that remained when the game was over. One or two are normal: an encoding may
    /// add a padding key, and converting the replay to another encoding may add a second one.
    pub keys_unused: usize,
    /// Whether the game is over.
    pub over: bool,
}

impl Record {
    /// Returns the pieces given, in order.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Piece> + '_ {
        self.turns.iter().map(|turn| turn.piece)
    }

    /// Returns the wells that the pieces entered, in order. [`replay_of_wells`](crate::replay_of_wells)
    /// converts them into keys.
    pub fn wells(&self) -> impl ExactSizeIterator<Item = Well> + '_ {
        self.turns.iter().map(|turn| turn.well)
    }

    /// Returns whether the game is over and at most two unused keys remain, which may be padding. Keys
    /// that finish a game against one enemy rarely finish a game against another.
    pub fn is_finished(&self) -> bool {
        self.over && self.keys_unused <= PADDING
    }

    /// Returns the 1-based index of the first piece that differs from the corresponding piece of
    /// `other`. Returns `None` if the pieces are equal up to the end of the shorter game.
    pub fn first_difference(&self, other: &Record) -> Option<usize> {
        self.pieces()
            .zip(other.pieces())
            .position(|(a, b)| a != b)
            .map(|index| index + 1)
    }
}

/// Plays `keys` in the empty well until no keys remain or the game is over. The returned record
/// takes 64 bytes per piece.
pub fn play(geometry: Geometry, rules: Rules, enemy: Enemy, keys: &[Key]) -> Record {
    let mut game = Game::new(geometry, rules, enemy);
    let turn = |game: &Game, first_key| Turn {
        well: game.well(),
        piece: game.piece(),
        score: game.score(),
        first_key,
    };
    let mut turns = vec![turn(&game, 0)];
    let mut keys_used = 0;
    for &key in keys {
        if game.is_over() {
            break;
        }
        keys_used += 1;
        if let Pressed::Locked { over: false, .. } = game.press(key) {
            turns.push(turn(&game, keys_used));
        }
    }
    Record {
        enemy,
        turns,
        board: *game.board(),
        score: game.score(),
        keys_used,
        keys_unused: keys.len() - keys_used,
        over: game.is_over(),
    }
}

/// Plays `keys` against every enemy except that of `record`, and returns the most plausible game.
/// `record` must be the result of playing the same keys. A [finished](Record::is_finished) game is
/// more plausible than an unfinished one. Otherwise, the game with the higher score is more
/// plausible. If several games are equally plausible, returns the first in the order of
/// [`Enemy::ALL`].
///
/// Returns `None` if `record` is finished or if no other game is more plausible. The result is a
/// guess, which is unreliable if there are few keys.
pub fn better_enemy(
    geometry: Geometry,
    rules: Rules,
    record: &Record,
    keys: &[Key],
) -> Option<Record> {
    let plausibility = |record: &Record| (record.is_finished(), record.score);
    if record.is_finished() {
        return None;
    }
    let others = Enemy::ALL
        .into_iter()
        .filter(|&enemy| enemy != record.enemy);
    others
        .map(|enemy| play(geometry, rules, enemy, keys))
        .filter(|other| plausibility(other) > plausibility(record))
        .reduce(|best, other| {
            if plausibility(&other) > plausibility(&best) {
                other
            } else {
                best
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Geometry = Geometry::STANDARD;

    fn keys(letters: &str) -> Vec<Key> {
        letters
            .chars()
            .map(|c| Key::from_letter(c).unwrap())
            .collect()
    }

    fn game(enemy: Enemy) -> Game {
        Game::new(STANDARD, Rules::default(), enemy)
    }

    #[test]
    fn keys_move_piece_until_it_is_blocked() {
        let mut game = game(Enemy::Lovetris);
        assert_eq!(
            game.position(),
            Position {
                orientation: 0,
                x: 3,
                y: 0
            }
        );
        for expected in [
            Pressed::Moved,
            Pressed::Moved,
            Pressed::Moved,
            Pressed::Blocked,
        ] {
            assert_eq!(game.press(Key::Left), expected);
        }
        assert_eq!(game.press(Key::Up), Pressed::Moved);
        assert_eq!(
            game.position(),
            Position {
                orientation: 1,
                x: 0,
                y: 0
            }
        );
        for _ in 0..16 {
            assert_eq!(game.press(Key::Down), Pressed::Moved);
        }
        let before = (game.well(), game.pieces());
        assert_eq!(before, (Well::EMPTY, 1));
        assert_eq!(
            game.press(Key::Down),
            Pressed::Locked {
                lines: 0,
                over: false
            }
        );
        assert_eq!(
            (game.well().filled(), game.pieces(), game.score()),
            (4, 2, 0)
        );
        assert_eq!(game.position(), Position::spawn(STANDARD));
    }

    #[test]
    fn full_row_scores_one_point() {
        let well = Well::from_picture(STANDARD, "######....").unwrap();
        let mut game = Game::from_well(STANDARD, Rules::default(), Enemy::Lovetris, &well).unwrap();
        let all = keys(&format!("RRR{}", "D".repeat(19)));
        let (last, others) = all.split_last().unwrap();
        for &key in others {
            assert_eq!(game.press(key), Pressed::Moved);
        }
        assert_eq!((game.score(), game.well()), (0, well));
        let pressed = game.press(*last);
        assert_eq!(
            pressed,
            Pressed::Locked {
                lines: 1,
                over: false
            }
        );
        assert_eq!(
            (game.score(), game.well(), game.is_over()),
            (1, Well::EMPTY, false)
        );
    }

    #[test]
    fn game_that_is_over_ignores_keys() {
        let mut game = game(Enemy::Mild);
        while !game.is_over() {
            game.press(Key::Down);
        }
        assert_eq!((game.pieces(), game.score()), (9, 0));
        let board = *game.board();
        assert!(board.rows()[3] != 0);
        for key in Key::ALL {
            assert_eq!(game.press(key), Pressed::Over);
        }
        assert_eq!((*game.board(), game.pieces()), (board, 9));
    }

    #[test]
    fn game_does_not_start_in_invalid_well() {
        let full = Well::from_rows([1023; 16]);
        let start =
            |well| Game::from_well(STANDARD, Rules::default(), Enemy::Mild, well).map(|_| ());
        assert_eq!(start(&full), Err(WellError::FullRow { row: 1 }));
    }

    #[test]
    fn record_contains_turns_keys_and_result() {
        let record = play(
            STANDARD,
            Rules::default(),
            Enemy::Mild,
            &keys(&"D".repeat(100)),
        );
        assert_eq!(
            (record.turns.len(), record.score, record.over),
            (9, 0, true)
        );
        assert_eq!((record.keys_used, record.keys_unused), (90, 10));
        assert!(!record.is_finished());
        assert!(record.pieces().all(|piece| piece == Piece::S));
        assert_eq!(record.wells().next(), Some(Well::EMPTY));
        let first_keys: Vec<_> = record.turns.iter().map(|turn| turn.first_key).collect();
        assert_eq!(first_keys, [0, 18, 34, 48, 60, 70, 78, 84, 88]);

        let record = play(
            STANDARD,
            Rules::default(),
            Enemy::Mild,
            &keys(&"D".repeat(91)),
        );
        assert!(record.is_finished());
        let record = play(STANDARD, Rules::default(), Enemy::Mild, &[]);
        assert_eq!(
            (record.turns.len(), record.keys_used, record.over),
            (1, 0, false)
        );
    }

    #[test]
    fn better_enemy_finds_first_enemy_whose_game_is_finished() {
        // Nine S pieces on top of each other end the game after 90 keys. Against LOVETRIS, which
        // gives I pieces, the same keys do not end the game.
        let keys = keys(&"D".repeat(90));
        let claimed = play(STANDARD, Rules::default(), Enemy::Lovetris, &keys);
        assert!(!claimed.is_finished());
        let better = better_enemy(STANDARD, Rules::default(), &claimed, &keys).unwrap();
        assert_eq!(better.enemy, Enemy::Hatetris);
        assert_eq!(better.first_difference(&claimed), Some(1));
        assert_eq!(claimed.first_difference(&claimed), None);
        assert_eq!(
            better_enemy(STANDARD, Rules::default(), &better, &keys),
            None
        );
    }
}
