//! A game played key by key, and replays played to their end.
//!
//! [`Game`] follows the rules to the letter: a key that cannot be done does nothing, `D` that cannot
//! be done locks the piece, and a game that is over takes no keys. [`play`] puts a whole key
//! sequence through one and writes down what happened, a [`Turn`] for each piece.
//!
//! A replay does not say which pieces it was played with, nor against whom: under another enemy the
//! same keys make another game, usually a short and senseless one. [`better_enemy`] looks for the
//! enemy that was meant.

use crate::emulator::{Children, Emulator};
use crate::enemy::{Enemy, EnemyState};
use crate::piece::Piece;
use crate::rules::{Board, Key, Position, Rules};
use crate::well::{Geometry, Well, WellError};

/// A game in progress, or over.
#[derive(Clone, Debug)]
pub struct Game {
    emulator: Emulator,
    enemy: EnemyState,
    /// Room for the enemy to work in.
    children: Children,
    board: Board,
    piece: Piece,
    position: Position,
    score: u32,
    pieces: usize,
    over: bool,
}

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pressed {
    /// The piece moved or turned.
    Moved,
    /// Nothing: there is a wall or a filled cell in the way.
    Blocked,
    /// The piece was locked where it was.
    Locked {
        /// Lines cleared, each worth one point.
        lines: u8,
        /// Whether that ended the game. If not, the next piece has come in.
        over: bool,
    },
    /// Nothing: the game was over already.
    Over,
}

impl Game {
    /// A game from the empty well on. The first piece is in.
    pub fn new(geometry: Geometry, rules: Rules, enemy: Enemy) -> Game {
        Game::start(geometry, rules, enemy, &Well::EMPTY)
    }

    /// A game from another well on, which is the first that the enemy remembers.
    ///
    /// # Errors
    /// The well is no live well of the geometry (see [`Well::check`]).
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

    /// Locks the piece where it is and brings in the next one, if the game goes on.
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

    /// Who chooses the pieces.
    pub fn enemy(&self) -> Enemy {
        self.enemy.enemy()
    }

    /// The locked cells, those above the bar included.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The locked cells below the bar: all of them, unless the game is over.
    pub fn well(&self) -> Well {
        self.board.well()
    }

    /// The piece under way; the one that ended the game, if it is over.
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Where that piece is; where it was locked, if the game is over.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Lines cleared so far.
    pub fn score(&self) -> u32 {
        self.score
    }

    /// Pieces given so far, the one under way included.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Whether the game is over.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

/// A piece of a game that has been played: how things stood when it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The well it came into.
    pub well: Well,
    /// The piece.
    pub piece: Piece,
    /// Lines cleared before it.
    pub score: u32,
    /// How many keys were used before it: the index of its first key.
    pub first_key: usize,
}

/// What became of a key sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Against whom it was played.
    pub enemy: Enemy,
    /// All pieces given, in order. The last one was not locked, unless the game is over.
    pub turns: Vec<Turn>,
    /// The board at the end. If the game is over, cells above the bar are among its cells.
    pub board: Board,
    /// Lines cleared.
    pub score: u32,
    /// Keys pressed until the game was over, or all of them.
    pub keys_used: usize,
    /// Keys left when the game was over. One or two are normal: encodings pad, and a replay that
    /// was converted is padded again.
    pub keys_unused: usize,
    /// Whether the game is over.
    pub over: bool,
}

impl Record {
    /// The pieces given, in order.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Piece> + '_ {
        self.turns.iter().map(|turn| turn.piece)
    }

    /// The wells they came into: what [`replay_of_wells`](crate::replay_of_wells) makes a replay of.
    pub fn wells(&self) -> impl ExactSizeIterator<Item = Well> + '_ {
        self.turns.iter().map(|turn| turn.well)
    }

    /// Whether the game ends just where the keys do, but for two keys of padding. A record is a
    /// proper finished game then; the keys of one game hardly ever do so against another enemy.
    pub fn is_finished(&self) -> bool {
        self.over && self.keys_unused <= 2
    }

    /// The number, from 1, of the first piece that differs from the other record's.
    pub fn first_difference(&self, other: &Record) -> Option<usize> {
        self.pieces()
            .zip(other.pieces())
            .position(|(a, b)| a != b)
            .map(|index| index + 1)
    }
}

/// Plays keys from the empty well until they or the game end. A record takes 64 bytes a piece.
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

/// Looks for an enemy under whom the keys of `record` make more sense than they do there: the game
/// is finished (see [`Record::is_finished`]) where it was not, or has more lines with neither
/// finished. Of several the best, and of equals the first, is given; [`Record::first_difference`] then
/// tells at which piece the two games part.
///
/// It is a guess: a finished record is never doubted, and few keys tell little.
pub fn better_enemy(
    geometry: Geometry,
    rules: Rules,
    record: &Record,
    keys: &[Key],
) -> Option<Record> {
    let sense = |record: &Record| (record.is_finished(), record.score);
    if record.is_finished() {
        return None;
    }
    let others = Enemy::ALL
        .into_iter()
        .filter(|&enemy| enemy != record.enemy);
    others
        .map(|enemy| play(geometry, rules, enemy, keys))
        .filter(|other| sense(other) > sense(record))
        .reduce(|best, other| {
            if sense(&other) > sense(&best) {
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
    fn keys_move_until_something_is_in_the_way() {
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
    fn a_full_row_scores() {
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
    fn a_game_that_is_over_takes_no_keys() {
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
    fn a_game_does_not_start_in_a_dead_well() {
        let full = Well::from_rows([1023; 16]);
        let start =
            |well| Game::from_well(STANDARD, Rules::default(), Enemy::Mild, well).map(|_| ());
        assert_eq!(start(&full), Err(WellError::FullRow { row: 1 }));
    }

    #[test]
    fn a_record_tells_what_happened() {
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
    fn another_enemy_is_found_where_it_makes_more_sense() {
        // Nine S on top of each other end a game of 90 keys; S and Z in turn take other keys.
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
