//! Random access to a replay: the state of the game after any number of keys.

use hatebeam_game::{Board, Geometry, Key, Piece, Placement, Position, Record};

/// A played replay, whose states can be accessed in any order. A *moment* is the number of keys pressed so far.
#[derive(Debug)]
pub struct Timeline {
    geometry: Geometry,
    keys: Vec<Key>,
    record: Record,
}

/// The state of a game after a number of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The locked cells.
    pub board: Board,
    /// The falling piece, or `None` if the game is over.
    pub falling: Option<Placement>,
    /// The falling piece, or the piece that ended the game.
    pub piece: Piece,
    /// Position of `piece` in the game, counted from 1.
    pub number: usize,
    /// Number of pieces in the whole replay.
    pub pieces: usize,
    /// Number of rows cleared so far.
    pub score: u32,
    /// Number of keys pressed so far.
    pub keys: usize,
    /// Number of keys in the whole replay.
    pub all_keys: usize,
}

impl Timeline {
    /// Creates the timeline of a replay. `record` must be the result of playing `keys`.
    pub fn new(geometry: Geometry, keys: Vec<Key>, record: Record) -> Timeline {
        Timeline {
            geometry,
            keys,
            record,
        }
    }

    /// Returns the last moment, which is the number of keys that the game uses.
    pub fn end(&self) -> usize {
        self.record.keys_used
    }

    /// Returns the number of wells. There is one well before each piece, and one after the last piece if that piece
    /// ended the game.
    pub fn wells(&self) -> usize {
        self.record.turns.len() + usize::from(self.record.over)
    }

    /// Returns the moment at which the piece in the well with this number appears. Wells are counted from 1, and 0 is
    /// treated as 1. If `number` is greater than the number of pieces, returns the last moment.
    pub fn moment_of(&self, number: usize) -> usize {
        let turn = self.record.turns.get(number.max(1) - 1);
        turn.map_or(self.end(), |turn| turn.first_key)
    }

    /// Returns the number of the well at the moment `keys`, counted from 1.
    pub fn well_at(&self, keys: usize) -> usize {
        if self.record.over && keys >= self.end() {
            return self.wells();
        }
        self.record
            .turns
            .partition_point(|turn| turn.first_key <= keys)
    }

    /// Returns the state of the game at the moment `keys`, or at the last moment if `keys` is greater.
    pub fn frame(&self, keys: usize) -> Frame {
        let keys = keys.min(self.end());
        let number = self.well_at(keys).min(self.record.turns.len());
        let turn = &self.record.turns[number - 1];
        let mut frame = Frame {
            board: Board::new(self.geometry, &turn.well),
            falling: None,
            piece: turn.piece,
            number,
            pieces: self.record.turns.len(),
            score: turn.score,
            keys,
            all_keys: self.keys.len(),
        };
        if self.record.over && keys == self.end() {
            frame.board = self.record.board;
            frame.score = self.record.score;
        } else {
            let pressed = &self.keys[turn.first_key..keys];
            frame.falling = Some(self.moved(&frame.board, turn.piece, pressed));
        }
        frame
    }

    /// Returns the placement of a falling piece after `keys`. None of the keys may lock the piece.
    fn moved(&self, board: &Board, piece: Piece, keys: &[Key]) -> Placement {
        let mut position = Position::spawn(self.geometry);
        for &key in keys {
            let next = position.moved(key);
            if board.is_free(piece, next) {
                position = next;
            }
        }
        Placement { piece, position }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hatebeam_game::{Enemy, Rules, play};

    /// Returns a game of nine pieces that drop straight down, with two more keys after the end of the game.
    pub(crate) fn nine_drops() -> Timeline {
        let keys = vec![Key::Down; 92];
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        Timeline::new(Geometry::STANDARD, keys, record)
    }

    #[test]
    fn frames_equal_states_of_the_played_game() {
        let letters = "LLLDDDDDDDDDDDDDDDDDDRRUDDDDDDDDDDDDDDDDDUULDDD";
        let keys: Vec<Key> = letters
            .chars()
            .map(|c| Key::from_letter(c).unwrap())
            .collect();
        let (rules, enemy) = (Rules::default(), Enemy::Lovetris);
        let record = play(Geometry::STANDARD, rules, enemy, &keys);
        let timeline = Timeline::new(Geometry::STANDARD, keys.clone(), record);
        let mut game = hatebeam_game::Game::new(Geometry::STANDARD, rules, enemy);
        for moment in 0..=keys.len() {
            let frame = timeline.frame(moment);
            let falling = frame.falling.unwrap();
            assert_eq!(
                (&frame.board, frame.number),
                (game.board(), game.pieces()),
                "{moment}"
            );
            assert_eq!(
                (falling.piece, falling.position),
                (game.piece(), game.position())
            );
            if let Some(&key) = keys.get(moment) {
                game.press(key);
            }
        }
        assert!(game.pieces() > 2);
    }

    #[test]
    fn last_frame_of_a_finished_game_has_no_falling_piece() {
        let timeline = nine_drops();
        let frame = timeline.frame(usize::MAX);
        assert_eq!(
            (frame.falling, frame.number, frame.keys, frame.all_keys),
            (None, 9, 90, 92)
        );
        assert_ne!(frame.board.rows()[3], 0);
        assert_eq!(
            (timeline.wells(), timeline.well_at(90), timeline.well_at(89)),
            (10, 10, 9)
        );
    }

    #[test]
    fn well_at_inverts_moment_of() {
        let timeline = nine_drops();
        for number in 1..=timeline.wells() {
            assert_eq!(timeline.well_at(timeline.moment_of(number)), number);
        }
        assert_eq!((timeline.moment_of(0), timeline.moment_of(99)), (0, 90));
    }
}
