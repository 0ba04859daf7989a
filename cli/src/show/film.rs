//! A replay as a film: how things stood after any number of its keys.

use hatebeam_game::{Board, Geometry, Key, Piece, Placement, Position, Record};

/// A replay that was played, to be looked at key by key and in any order.
#[derive(Debug)]
pub(crate) struct Film {
    geometry: Geometry,
    keys: Vec<Key>,
    record: Record,
}

/// How things stand at one moment of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The locked cells.
    pub(crate) board: Board,
    /// The piece under way; `None` if the game is over.
    pub(crate) falling: Option<Placement>,
    /// The piece under way, or the one that ended the game.
    pub(crate) piece: Piece,
    /// That piece's number, from 1.
    pub(crate) number: usize,
    /// Pieces in the whole replay.
    pub(crate) pieces: usize,
    /// Lines cleared so far.
    pub(crate) score: u32,
    /// Keys pressed so far.
    pub(crate) keys: usize,
    /// Keys in the whole replay.
    pub(crate) all_keys: usize,
}

impl Film {
    pub(crate) fn new(geometry: Geometry, keys: Vec<Key>, record: Record) -> Film {
        Film {
            geometry,
            keys,
            record,
        }
    }

    /// The last moment: the number of keys used.
    pub(crate) fn end(&self) -> usize {
        self.record.keys_used
    }

    /// How many wells there are to see: one before each piece, and one after the last if that ended
    /// the game.
    pub(crate) fn wells(&self) -> usize {
        self.record.turns.len() + usize::from(self.record.over)
    }

    /// The moment at which well `number` (from 1) can be seen: its piece has just come in. Numbers
    /// out of range are taken to be the nearest one in it.
    pub(crate) fn moment_of(&self, number: usize) -> usize {
        let turn = self.record.turns.get(number.max(1) - 1);
        turn.map_or(self.end(), |turn| turn.first_key)
    }

    /// The number of the well that can be seen after `keys` keys.
    pub(crate) fn well_at(&self, keys: usize) -> usize {
        if self.record.over && keys >= self.end() {
            return self.wells();
        }
        self.record
            .turns
            .partition_point(|turn| turn.first_key <= keys)
    }

    /// How things stand after `keys` keys.
    pub(crate) fn frame(&self, keys: usize) -> Frame {
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

    /// Where keys take a piece that has just come in; none of them locks it.
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

    /// The game of nine pieces dropped where they come in, and two keys more than it takes.
    pub(crate) fn nine_drops() -> Film {
        let keys = vec![Key::Down; 92];
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        Film::new(Geometry::STANDARD, keys, record)
    }

    #[test]
    fn every_frame_is_that_of_the_game_played() {
        let letters = "LLLDDDDDDDDDDDDDDDDDDRRUDDDDDDDDDDDDDDDDDUULDDD";
        let keys: Vec<Key> = letters
            .chars()
            .map(|c| Key::from_letter(c).unwrap())
            .collect();
        let (rules, enemy) = (Rules::default(), Enemy::Lovetris);
        let record = play(Geometry::STANDARD, rules, enemy, &keys);
        let film = Film::new(Geometry::STANDARD, keys.clone(), record);
        let mut game = hatebeam_game::Game::new(Geometry::STANDARD, rules, enemy);
        for moment in 0..=keys.len() {
            let frame = film.frame(moment);
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
    fn the_last_frame_of_a_finished_game_has_no_piece_under_way() {
        let film = nine_drops();
        let frame = film.frame(usize::MAX);
        assert_eq!(
            (frame.falling, frame.number, frame.keys, frame.all_keys),
            (None, 9, 90, 92)
        );
        assert_ne!(frame.board.rows()[3], 0);
        assert_eq!(
            (film.wells(), film.well_at(90), film.well_at(89)),
            (10, 10, 9)
        );
    }

    #[test]
    fn wells_and_moments_belong_together() {
        let film = nine_drops();
        for number in 1..=film.wells() {
            assert_eq!(film.well_at(film.moment_of(number)), number);
        }
        assert_eq!((film.moment_of(0), film.moment_of(99)), (0, 90));
    }
}
