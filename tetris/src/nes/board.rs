//! The board of Nintendo Tetris, which has 10 columns and 20 visible rows. Some rule sets add two rows above these
//! rows.

use super::placements::Placement;
use super::scoring::frames_per_row;
use super::shapes::shape;
use crate::Piece;
use crate::field::{RowError, parse_rows};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Number of columns.
pub(crate) const WIDTH: usize = 10;
/// Number of visible rows.
pub(crate) const VISIBLE: usize = 20;

/// Rule set for the number of rows on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// 20 rows. No cell of a piece may be above these rows.
    Twenty,
    /// 22 rows: the 20 visible rows, and two rows above them that behave like the visible rows. Pieces spawn in the
    /// same visible row as with the other rule sets.
    TwentyTwo,
    /// The cartridge's rule: pieces may move in two rows above the visible ones, but cells that lock there disappear.
    TwentyPlusTwo,
}

impl Rows {
    /// All rule sets.
    pub const ALL: [Rows; 3] = [Rows::Twenty, Rows::TwentyTwo, Rows::TwentyPlusTwo];

    /// Returns the number of rows above the visible ones.
    pub const fn above(self) -> usize {
        match self {
            Rows::Twenty => 0,
            Rows::TwentyTwo | Rows::TwentyPlusTwo => 2,
        }
    }

    /// Returns the number of rows in which pieces move.
    pub const fn count(self) -> usize {
        VISIBLE + self.above()
    }

    /// Returns the number of rows in which locked cells stay.
    pub const fn kept(self) -> usize {
        match self {
            Rows::Twenty | Rows::TwentyPlusTwo => VISIBLE,
            Rows::TwentyTwo => VISIBLE + 2,
        }
    }

    /// Returns the name: `20`, `22` or `20+2`.
    pub const fn name(self) -> &'static str {
        match self {
            Rows::Twenty => "20",
            Rows::TwentyTwo => "22",
            Rows::TwentyPlusTwo => "20+2",
        }
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rows {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Rows, BoardError> {
        Rows::ALL
            .into_iter()
            .find(|rows| rows.name() == text)
            .ok_or_else(|| BoardError::Rows(text.to_owned()))
    }
}

/// A board, stored as one bit mask per column, and the gravity. If the rule set has `n` rows above the visible ones, bit
/// `n + r` is the cell in visible row `r`. The lowest bit is the highest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Board {
    pub(crate) columns: [u32; WIDTH],
    pub(crate) rows: Rows,
    /// Number of frames in which a piece falls by one row, or 0 without gravity.
    pub(crate) frames: u8,
}

/// Result of locking a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// Board after full rows have been removed.
    pub board: Board,
    /// Number of rows cleared.
    pub lines: u8,
}

/// Error for a rule set or board that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoardError {
    /// The name of a rule set is unknown.
    #[error("`{0}` is not a rule set: use 20, 22 or 20+2")]
    Rows(String),
    /// The text has more than [`Rows::kept`] rows.
    #[error("board has {given} rows: at most {most} are possible")]
    TooManyRows {
        /// Number of rows in the text.
        given: usize,
        /// Maximum number of rows.
        most: usize,
    },
    /// A row of the text is invalid.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl Board {
    /// Returns the empty board for a rule set.
    pub const fn empty(rows: Rows) -> Board {
        Board {
            columns: [0; WIDTH],
            rows,
            frames: 0,
        }
    }

    /// Returns the board with the gravity of a level, which also applies to all boards after it. Without this call, pieces
    /// do not fall on their own.
    #[must_use]
    pub const fn with_gravity(self, level: u32) -> Board {
        Board {
            frames: frames_per_row(level) as u8,
            ..self
        }
    }

    /// Parses a board from rows of text. The last row of text is the floor row. Rows above the given rows are empty.
    pub fn parse<S: AsRef<str>>(rows: Rows, text: &[S]) -> Result<Board, BoardError> {
        let mut board = Board::empty(rows);
        let most = rows.kept();
        if text.len() > most {
            return Err(BoardError::TooManyRows {
                given: text.len(),
                most,
            });
        }
        let first = rows.count() - text.len();
        parse_rows(text, WIDTH, |x, index| {
            board.columns[x] |= 1 << (first + index);
        })?;
        Ok(board)
    }

    /// Returns the rule set of the board.
    pub const fn rule_set(&self) -> Rows {
        self.rows
    }

    /// Returns whether the cell in column `x` and visible row `y` is filled. `y` is negative above the visible rows.
    pub fn is_filled(&self, x: usize, y: i8) -> bool {
        let bit = i32::from(y) + self.rows.above() as i32;
        bit >= 0 && self.columns[x] >> bit & 1 == 1
    }

    /// Returns a hash of the cells. The highest bits differ most between similar boards.
    pub fn hash(&self) -> u64 {
        let mix = |hash: u64, &column: &u32| {
            (hash.rotate_left(23) ^ u64::from(column)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        self.columns.iter().fold(0, mix)
    }

    /// Returns a mask of all rows in which pieces move.
    pub(crate) const fn mask(&self) -> u32 {
        (1 << self.rows.count()) - 1
    }

    /// Returns whether `piece` fits at its spawn position. If it does not fit, the game is over.
    pub fn spawns(&self, piece: Piece) -> bool {
        let above = self.rows.above() as i8;
        shape(piece, 0)
            .iter()
            .all(|&(dx, dy)| self.columns[(5 + dx) as usize] >> (dy + above) & 1 == 0)
    }

    /// Locks a piece and removes full rows. The piece must fit at the placement.
    #[inline]
    pub fn lock(&self, piece: Piece, placement: Placement) -> Locked {
        let mut board = *self;
        let above = self.rows.above() as i8;
        for &(dx, dy) in shape(piece, placement.orientation) {
            let x = (placement.x + dx) as usize;
            board.columns[x] |= 1 << (placement.y + dy + above);
        }
        if self.rows == Rows::TwentyPlusTwo {
            for column in &mut board.columns {
                *column &= !0b11;
            }
        }
        let full = board
            .columns
            .iter()
            .fold(u32::MAX, |full, column| full & column);
        if full != 0 {
            board.remove_rows(full);
        }
        Locked {
            board,
            lines: full.count_ones() as u8,
        }
    }

    fn remove_rows(&mut self, mut rows: u32) {
        // Remove the highest full row first, because this does not move the other full rows.
        while rows != 0 {
            let row = rows.trailing_zeros();
            let above = (1u32 << row) - 1;
            let below = !above << 1;
            for column in &mut self.columns {
                *column = (*column & below) | (*column & above) << 1;
            }
            rows &= rows - 1;
        }
    }

    /// Returns the rows as text, from the highest row with a filled cell down to the floor.
    pub fn rows(&self) -> Vec<String> {
        let all = self.columns.iter().fold(0, |all, column| all | column);
        let first = all.trailing_zeros().min(self.rows.count() as u32);
        (first..self.rows.count() as u32)
            .map(|bit| {
                let cell = |x: usize| {
                    if self.columns[x] >> bit & 1 == 1 {
                        'X'
                    } else {
                        '_'
                    }
                };
                (0..WIDTH).map(cell).collect()
            })
            .collect()
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows() {
            writeln!(f, "{row}")?;
        }
        Ok(())
    }
}
