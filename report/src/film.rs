//! A game as a film: every well, every piece, and the piece's position after each key.
//!
//! A program that plays a film's JSON does not need to know the rules. For each turn, it draws the well and then the
//! piece at each position of `path`. The bar is a line four rows below the top. A piece that comes to rest above the bar
//! ends the game. Row 0 is the topmost row, and column 0 is the leftmost.

use hatebeam_game::{
    Encoding, Enemy, Game, Geometry, Key, Placement, Pressed, ROWS_ABOVE_BAR, ReplayError, Rules,
    decode, encode,
};
use serde::Serialize;
use thiserror::Error;

/// Maximum number of keys in a film. The longest known game against HATETRIS has 9,309 pieces. A film uses about a
/// hundred bytes of memory per key.
pub const MAX_KEYS: usize = 1 << 18;

/// A recorded game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Film {
    /// Name of the enemy, which chooses the pieces.
    pub enemy: &'static str,
    /// Number of columns of the well.
    pub width: usize,
    /// Number of rows below the bar.
    pub height: usize,
    /// Number of rows above the bar.
    pub above: usize,
    /// Number of rows cleared.
    pub score: u32,
    /// Number of pieces given.
    pub pieces: usize,
    /// Number of keys up to the end of the game. Later keys, such as the padding of an encoding, are not counted.
    pub keys: usize,
    /// Whether the game is over.
    pub over: bool,
    /// Keys in Base2048, the text format of the original game.
    pub base2048: String,
    /// Turns in order, one per piece.
    pub turns: Vec<FilmTurn>,
    /// Rows at the end of the film in the hex format of wells, including the rows above the bar.
    pub end: String,
}

/// One piece of a film, from its appearance until it locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilmTurn {
    /// Number of the piece, counted from 1.
    pub number: usize,
    /// Letter of the piece.
    pub piece: char,
    /// Number of rows cleared before this piece.
    pub score: u32,
    /// Well before this piece, in the format of [`Well::to_hex`](hatebeam_game::Well::to_hex).
    pub well: String,
    /// Letters of the keys pressed for this piece. The last key locks the piece, unless the replay ends earlier.
    pub keys: String,
    /// Cells of the piece as `[column, row]`, at the start of the turn and after each key that did not lock the piece.
    /// If the piece is locked, the last entry is its resting place.
    pub path: Vec<[[i32; 2]; 4]>,
    /// Number of rows that this piece clears.
    pub lines: u8,
}

/// Error for a replay from which no film can be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilmError {
    /// The replay cannot be decoded.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The replay has more than [`MAX_KEYS`] keys.
    #[error("the replay has {0} keys: it can have at most {MAX_KEYS}")]
    TooLong(usize),
}

impl Film {
    /// Plays a replay in any encoding, starting with the empty well, by the default rules.
    ///
    /// # Errors
    /// Returns an error if the replay cannot be decoded or is too long.
    pub fn of(replay: &str, enemy: Enemy, geometry: Geometry) -> Result<Film, FilmError> {
        let (keys, _) = decode(replay)?;
        Film::of_game(Game::new(geometry, Rules::default(), enemy), &keys)
    }

    /// Plays these keys in a game that has just begun. Keys after the end of the game are ignored.
    ///
    /// # Errors
    /// Returns [`FilmError::TooLong`] if there are more than [`MAX_KEYS`] keys.
    pub fn of_game(mut game: Game, keys: &[Key]) -> Result<Film, FilmError> {
        if keys.len() > MAX_KEYS {
            return Err(FilmError::TooLong(keys.len()));
        }
        let mut turns = vec![FilmTurn::begin(&game)];
        let mut used = 0;
        for &key in keys {
            if game.is_over() {
                break;
            }
            used += 1;
            let pressed = game.press(key);
            if let Some(turn) = turns.last_mut() {
                turn.press(&game, key, pressed);
            }
            if let Pressed::Locked { over: false, .. } = pressed {
                turns.push(FilmTurn::begin(&game));
            }
        }
        let geometry = game.board().geometry();
        Ok(Film {
            enemy: game.enemy().name(),
            width: geometry.width(),
            height: geometry.height(),
            above: ROWS_ABOVE_BAR,
            score: game.score(),
            pieces: game.pieces(),
            keys: used,
            over: game.is_over(),
            base2048: encode(&keys[..used], Encoding::Base2048),
            turns,
            end: rows_to_hex(geometry, game.board().rows()),
        })
    }
}

impl FilmTurn {
    fn begin(game: &Game) -> FilmTurn {
        FilmTurn {
            number: game.pieces(),
            piece: game.piece().letter(),
            score: game.score(),
            well: game.well().to_hex(game.board().geometry()),
            keys: String::new(),
            path: vec![cells(game)],
            lines: 0,
        }
    }

    /// Records the effect of a key.
    fn press(&mut self, game: &Game, key: Key, pressed: Pressed) {
        self.keys.push(key.letter());
        match pressed {
            Pressed::Locked { lines, .. } => self.lines = lines,
            _ => self.path.push(cells(game)),
        }
    }
}

fn cells(game: &Game) -> [[i32; 2]; 4] {
    let placement = Placement {
        piece: game.piece(),
        position: game.position(),
    };
    placement.cells().map(|(x, y)| [x, y])
}

fn rows_to_hex(geometry: Geometry, rows: &[u16]) -> String {
    let digits = geometry.digits_per_row();
    rows.iter().map(|row| format!("{row:0digits$x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RECORD;
    use hatebeam_game::{Well, play};

    fn film(replay: &str) -> Film {
        Film::of(replay, Enemy::Hatetris, Geometry::STANDARD).unwrap()
    }

    /// Computes the rows after a turn in the same way as a program that does not know the rules: it fills the cells at the
    /// end of the path, and removes full rows if no cell of the piece is above the bar.
    fn rows_after(film: &Film, turn: &FilmTurn) -> Vec<u16> {
        let well = Well::from_hex(Geometry::STANDARD, &turn.well).unwrap();
        let mut rows = vec![0; film.above];
        rows.extend(well.rows().iter().rev());
        let rest = turn.path.last().unwrap();
        for &[x, y] in rest {
            assert_eq!(rows[y as usize] >> x & 1, 0, "piece {}", turn.number);
            rows[y as usize] |= 1 << x;
        }
        if rest.iter().all(|&[_, y]| y >= film.above as i32) {
            let full = Geometry::STANDARD.full_row();
            rows.retain(|&row| row != full);
            let cleared = film.above + film.height - rows.len();
            assert_eq!(cleared, usize::from(turn.lines), "piece {}", turn.number);
            rows.splice(0..0, vec![0; cleared]);
        }
        rows
    }

    #[test]
    fn film_of_record_game_is_consistent_from_piece_to_piece() {
        let film = film(RECORD);
        let (keys, _) = decode(RECORD).unwrap();
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        assert_eq!((film.score, film.over), (148, true));
        assert_eq!(film.pieces, record.turns.len());
        assert_eq!(film.turns.len(), film.pieces);
        assert_eq!(film.keys, record.keys_used);
        for (turn, next) in film.turns.iter().zip(&film.turns[1..]) {
            let rows = rows_to_hex(Geometry::STANDARD, &rows_after(&film, turn)[film.above..]);
            assert_eq!(rows, next.well, "after piece {}", turn.number);
            assert_eq!(turn.score + u32::from(turn.lines), next.score);
            assert_eq!(turn.path.len(), turn.keys.len(), "piece {}", turn.number);
        }
        let last = film.turns.last().unwrap();
        let end = rows_to_hex(Geometry::STANDARD, &rows_after(&film, last));
        assert_eq!(end, film.end);
        let letters: String = film.turns.iter().map(|turn| turn.keys.as_str()).collect();
        assert_eq!(letters, encode(&keys[..film.keys], Encoding::Raw));
        // The Base2048 text encodes the same game.
        assert_eq!(self::film(&film.base2048), film);
    }

    #[test]
    fn unlocked_piece_has_one_more_position_than_keys() {
        let film = film("LLU");
        let turn = &film.turns[0];
        assert_eq!((film.over, film.pieces, film.keys), (false, 1, 3));
        assert_eq!((turn.keys.as_str(), turn.path.len()), ("LLU", 4));
        assert_eq!(turn.path[0], [[5, 1], [6, 1], [4, 2], [5, 2]]);
        assert_eq!(turn.path[2], [[3, 1], [4, 1], [2, 2], [3, 2]]);
        assert_eq!(film.end, "0".repeat(60));
    }

    #[test]
    fn film_supports_other_sizes_starting_wells_and_enemies() {
        let geometry = Geometry::new(6, 6).unwrap();
        let well = Well::from_picture(geometry, "#####.\n#.####\n").unwrap();
        let game = Game::from_well(geometry, Rules::default(), Enemy::Lovetris, &well).unwrap();
        let keys = [[Key::Up].as_slice(), &[Key::Right; 4], &[Key::Down; 20]].concat();
        let film = Film::of_game(game, &keys).unwrap();
        assert_eq!((film.width, film.height, film.enemy), (6, 6, "lovetris"));
        assert_eq!(film.turns[0].well, well.to_hex(geometry));
        assert_eq!((film.turns[0].piece, film.turns[0].lines), ('I', 1));
        assert_eq!(film.turns[1].score, 1);
    }

    #[test]
    fn invalid_or_too_long_replays_are_rejected() {
        let of = |text: &str| Film::of(text, Enemy::Hatetris, Geometry::STANDARD);
        assert!(matches!(of(""), Err(FilmError::Replay(_))));
        assert!(matches!(of("no replay!"), Err(FilmError::Replay(_))));
        // Sideways moves never lock the piece, so the game continues.
        let long = "L".repeat(MAX_KEYS + 1);
        let error = of(&long).unwrap_err();
        assert!(matches!(error, FilmError::TooLong(_)));
        assert!(error.to_string().contains("262144"), "{error}");
    }
}
