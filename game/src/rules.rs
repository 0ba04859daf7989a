//! The rules, cell by cell: boards, positions, keys, and locking. A board includes the four rows
//! above the *bar*, a line four rows below the top. A game is over when a locked piece fills a cell
//! above the bar.
//!
//! This code is slow, but easy to compare with the rules of the game. The slow
//! [reference emulator](crate::reference), the playback of replays and the search for key paths use
//! it.

use crate::piece::Piece;
use crate::well::{Geometry, MAX_DEPTH, MAX_HEIGHT, ROWS_ABOVE_BAR, Well};
use std::fmt;

/// One of the four keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Key {
    /// `L`: moves the piece one column to the left.
    Left,
    /// `R`: moves the piece one column to the right.
    Right,
    /// `D`: moves the piece one row down, or locks it if it cannot move down.
    Down,
    /// `U`: turns the piece to its next orientation.
    Up,
}

impl Key {
    /// All keys in the order of their codes in a replay (0 to 3).
    pub const ALL: [Key; 4] = [Key::Left, Key::Right, Key::Down, Key::Up];

    /// Returns the letter of the key.
    pub const fn letter(self) -> char {
        ['L', 'R', 'D', 'U'][self as usize]
    }

    /// Returns the key with this upper-case letter.
    pub fn from_letter(letter: char) -> Option<Key> {
        Key::ALL.into_iter().find(|key| key.letter() == letter)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// A variant of the rules. The default is the variant of the current game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Rules {
    /// Whether full rows are removed even if the locked piece extends above the bar. If so, the
    /// test for the end of the game follows the removal. The real game does not work like this. An
    /// emulator from 2022 did, and only this variant reproduces its published results for small
    /// wells.
    pub clear_above_bar: bool,
}

/// The position of a piece: the position of its 4×4 box, and its orientation.
///
/// Two positions may differ even if a piece fills the same cells in both, because turning the piece
/// then leads to different cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// Orientation, 0 to 3.
    pub orientation: u8,
    /// Left column of the box. May be negative.
    pub x: i8,
    /// Top row of the box. Row 0 is the top of the well, four rows above the bar.
    pub y: i8,
}

impl Position {
    /// Returns the position in which a piece enters a well of this geometry.
    pub const fn spawn(geometry: Geometry) -> Position {
        Position {
            orientation: 0,
            x: ((geometry.width() - 4) / 2) as i8,
            y: 0,
        }
    }

    /// Returns the position to which this key leads, even if it is not free.
    pub const fn moved(self, key: Key) -> Position {
        let Position { orientation, x, y } = self;
        match key {
            Key::Left => Position {
                orientation,
                x: x - 1,
                y,
            },
            Key::Right => Position {
                orientation,
                x: x + 1,
                y,
            },
            Key::Down => Position {
                orientation,
                x,
                y: y + 1,
            },
            Key::Up => Position {
                orientation: (orientation + 1) & 3,
                x,
                y,
            },
        }
    }
}

/// A piece in a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The piece.
    pub piece: Piece,
    /// The position of the piece.
    pub position: Position,
}

impl Placement {
    /// Returns the four cells `(column, row)` of the piece. Row 0 is at the top.
    pub fn cells(&self) -> [(i32, i32); 4] {
        let Position { orientation, x, y } = self.position;
        self.piece
            .cells(orientation)
            .map(|(cx, cy)| (i32::from(x) + i32::from(cx), i32::from(y) + i32::from(cy)))
    }
}

/// A well that includes the four rows above the bar. The **top row is first**, as in the rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Board {
    geometry: Geometry,
    rows: [u16; MAX_DEPTH],
}

/// The result of locking a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The board after the lock.
    pub board: Board,
    /// Number of lines cleared.
    pub lines: u8,
    /// Whether the game is over.
    pub over: bool,
}

impl Board {
    /// Creates the board of a live well (one in which the game is not over).
    pub fn new(geometry: Geometry, well: &Well) -> Board {
        let mut rows = [0; MAX_DEPTH];
        for (index, &row) in well.rows()[..geometry.height()].iter().enumerate() {
            rows[geometry.depth() - 1 - index] = row;
        }
        Board { geometry, rows }
    }

    /// Returns the geometry of the board.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns all rows from the top down, including those above the bar.
    pub fn rows(&self) -> &[u16] {
        &self.rows[..self.geometry.depth()]
    }

    /// Returns the part of the board below the bar. Unless the game is over, no other cells are filled.
    pub fn well(&self) -> Well {
        let mut rows = [0; MAX_HEIGHT];
        for (row, &bits) in rows
            .iter_mut()
            .zip(self.rows()[ROWS_ABOVE_BAR..].iter().rev())
        {
            *row = bits;
        }
        Well::from_rows(rows)
    }

    /// Returns the index of the topmost row with a filled cell, or the number of rows if the board
    /// is empty. The enemy, which chooses the pieces, rates a lock by this value: a greater rating
    /// is better for the player.
    pub fn rating(&self) -> u8 {
        let rows = self.rows();
        rows.iter().position(|&row| row != 0).unwrap_or(rows.len()) as u8
    }

    /// Returns whether all cells of a piece at this position are inside the well and empty.
    pub fn is_free(&self, piece: Piece, position: Position) -> bool {
        let (width, depth) = (self.geometry.width() as i32, self.geometry.depth() as i32);
        Placement { piece, position }
            .cells()
            .into_iter()
            .all(|(x, y)| {
                (0..width).contains(&x)
                    && (0..depth).contains(&y)
                    && self.rows[y as usize] >> x & 1 == 0
            })
    }

    /// Locks a piece at a free position.
    pub fn lock(&self, piece: Piece, position: Position, rules: Rules) -> Lock {
        let mut board = *self;
        let cells = Placement { piece, position }.cells();
        for (x, y) in cells {
            board.rows[y as usize] |= 1 << x;
        }
        let top = cells
            .iter()
            .map(|&(_, y)| y)
            .min()
            .expect("a piece has four cells");
        let mut lines = 0;
        if rules.clear_above_bar || top >= ROWS_ABOVE_BAR as i32 {
            for y in 0..self.geometry.depth() {
                if board.rows[y] == self.geometry.full_row() {
                    board.rows.copy_within(0..y, 1);
                    board.rows[0] = 0;
                    lines += 1;
                }
            }
        }
        let over = board.rows[ROWS_ABOVE_BAR - 1] != 0;
        Lock { board, lines, over }
    }

    /// Inserts a full row at index `row`, counted from the bottom, and moves the rows above it up.
    /// If `row` is greater than the height of the stack or the topmost row of the board is not
    /// empty, returns `false` and changes nothing.
    pub(crate) fn put_full_row(&mut self, row: usize) -> bool {
        let depth = self.geometry.depth();
        let stack = depth - usize::from(self.rating());
        if self.rows[0] != 0 || row > stack {
            return false;
        }
        let y = depth - 1 - row;
        self.rows.copy_within(1..=y, 0);
        self.rows[y] = self.geometry.full_row();
        true
    }

    /// Returns the board without the cells of a placement, or `None` if one of these cells is not
    /// filled.
    pub(crate) fn without(&self, placement: &Placement) -> Option<Board> {
        let mut board = *self;
        let (width, depth) = (self.geometry.width() as i32, self.geometry.depth() as i32);
        for (x, y) in placement.cells() {
            let inside = (0..width).contains(&x) && (0..depth).contains(&y);
            if !inside || self.rows[y as usize] >> x & 1 == 0 {
                return None;
            }
            board.rows[y as usize] &= !(1 << x);
        }
        Some(board)
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Board({} {:x?})", self.geometry, self.rows())
    }
}
