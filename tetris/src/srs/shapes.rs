//! Shapes of the pieces in each orientation, and placements.

use crate::{Field, Piece};

/// Orientation of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Orientation {
    /// Orientation in which the piece spawns.
    Spawn,
    /// A quarter turn clockwise.
    Right,
    /// A half turn.
    Half,
    /// A quarter turn anticlockwise.
    Left,
}

impl Orientation {
    /// All orientations in clockwise order.
    pub const ALL: [Orientation; 4] = [
        Orientation::Spawn,
        Orientation::Right,
        Orientation::Half,
        Orientation::Left,
    ];

    /// Returns the index in [`Orientation::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Cells (column, row) of a piece in its box, the square in which the piece turns. The cell in the lower left corner is
/// (0, 0).
pub(crate) type BoxCells = [(i8, i8); 4];

const I: [BoxCells; 4] = [
    [(0, 2), (1, 2), (2, 2), (3, 2)],
    [(2, 0), (2, 1), (2, 2), (2, 3)],
    [(0, 1), (1, 1), (2, 1), (3, 1)],
    [(1, 0), (1, 1), (1, 2), (1, 3)],
];
const J: [BoxCells; 4] = [
    [(0, 1), (0, 2), (1, 1), (2, 1)],
    [(1, 0), (1, 1), (1, 2), (2, 2)],
    [(0, 1), (1, 1), (2, 0), (2, 1)],
    [(0, 0), (1, 0), (1, 1), (1, 2)],
];
const L: [BoxCells; 4] = [
    [(0, 1), (1, 1), (2, 1), (2, 2)],
    [(1, 0), (1, 1), (1, 2), (2, 0)],
    [(0, 0), (0, 1), (1, 1), (2, 1)],
    [(0, 2), (1, 0), (1, 1), (1, 2)],
];
const O: [BoxCells; 4] = [[(0, 0), (0, 1), (1, 0), (1, 1)]; 4];
const S: [BoxCells; 4] = [
    [(0, 1), (1, 1), (1, 2), (2, 2)],
    [(1, 1), (1, 2), (2, 0), (2, 1)],
    [(0, 0), (1, 0), (1, 1), (2, 1)],
    [(0, 1), (0, 2), (1, 0), (1, 1)],
];
const T: [BoxCells; 4] = [
    [(0, 1), (1, 1), (1, 2), (2, 1)],
    [(1, 0), (1, 1), (1, 2), (2, 1)],
    [(0, 1), (1, 0), (1, 1), (2, 1)],
    [(0, 1), (1, 0), (1, 1), (1, 2)],
];
const Z: [BoxCells; 4] = [
    [(0, 2), (1, 1), (1, 2), (2, 1)],
    [(1, 0), (1, 1), (2, 1), (2, 2)],
    [(0, 1), (1, 0), (1, 1), (2, 0)],
    [(0, 0), (0, 1), (1, 1), (1, 2)],
];

/// Returns the cells of a piece in an orientation, relative to its box.
pub(crate) const fn box_cells(piece: Piece, orientation: Orientation) -> &'static BoxCells {
    let all: &'static [BoxCells; 4] = match piece {
        Piece::I => &I,
        Piece::J => &J,
        Piece::L => &L,
        Piece::O => &O,
        Piece::S => &S,
        Piece::T => &T,
        Piece::Z => &Z,
    };
    &all[orientation as usize]
}

/// Returns the leftmost column and the lowest row of a piece's cells in an orientation, relative to its box.
pub(crate) const fn box_corner(piece: Piece, orientation: Orientation) -> (i8, i8) {
    let cells = box_cells(piece, orientation);
    let mut corner = cells[0];
    let mut i = 1;
    while i < 4 {
        if cells[i].0 < corner.0 {
            corner.0 = cells[i].0;
        }
        if cells[i].1 < corner.1 {
            corner.1 = cells[i].1;
        }
        i += 1;
    }
    corner
}

/// Returns the cells (column, row) of a piece in an orientation, relative to the leftmost column and the lowest row of
/// these cells.
pub const fn cells(piece: Piece, orientation: Orientation) -> [(u8, u8); 4] {
    let (left, low) = box_corner(piece, orientation);
    let inside = box_cells(piece, orientation);
    let mut moved = [(0, 0); 4];
    let mut i = 0;
    while i < 4 {
        moved[i] = ((inside[i].0 - left) as u8, (inside[i].1 - low) as u8);
        i += 1;
    }
    moved
}

/// Returns the first orientation in which the piece has the same shape.
pub(crate) const fn first_equal(piece: Piece, orientation: Orientation) -> Orientation {
    match (piece, orientation) {
        (Piece::O, _) => Orientation::Spawn,
        (Piece::I | Piece::S | Piece::Z, Orientation::Half) => Orientation::Spawn,
        (Piece::I | Piece::S | Piece::Z, Orientation::Left) => Orientation::Right,
        _ => orientation,
    }
}

/// A resting piece: its orientation, the column of its leftmost cell, and the row of its lowest cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SrsPlacement {
    /// The piece.
    pub piece: Piece,
    /// Orientation: the first of the orientations with the same shape.
    pub orientation: Orientation,
    /// Column of the leftmost cell.
    pub x: u8,
    /// Row of the lowest cell.
    pub y: u8,
}

impl SrsPlacement {
    /// Returns the cells (column, row) of the placement, sorted by row and column.
    pub fn cells(&self) -> [(u8, u8); 4] {
        let mut all = cells(self.piece, self.orientation).map(|(x, y)| (x + self.x, y + self.y));
        all.sort_unstable_by_key(|&(x, y)| (y, x));
        all
    }

    /// Places the piece and removes full rows. Returns the new field and the number of rows removed.
    pub fn put(&self, field: &Field) -> (Field, u32) {
        let mut after = *field;
        for (x, y) in self.cells() {
            after.columns[usize::from(x)] |= 1 << y;
        }
        let full = after.full_rows();
        after.remove_rows(full);
        (after, full.count_ones())
    }
}
