//! Shapes of the pieces in each orientation.

use crate::Piece;

/// Cells (column, row) of a piece in one orientation, relative to its centre. Columns increase to the right, and rows
/// downwards.
pub type Shape = [(i8, i8); 4];

const T: [Shape; 4] = [
    [(-1, 0), (0, 0), (1, 0), (0, 1)],
    [(0, -1), (-1, 0), (0, 0), (0, 1)],
    [(0, -1), (-1, 0), (0, 0), (1, 0)],
    [(0, -1), (0, 0), (1, 0), (0, 1)],
];
const J: [Shape; 4] = [
    [(-1, 0), (0, 0), (1, 0), (1, 1)],
    [(0, -1), (0, 0), (-1, 1), (0, 1)],
    [(-1, -1), (-1, 0), (0, 0), (1, 0)],
    [(0, -1), (1, -1), (0, 0), (0, 1)],
];
const Z: [Shape; 2] = [
    [(-1, 0), (0, 0), (0, 1), (1, 1)],
    [(1, -1), (0, 0), (1, 0), (0, 1)],
];
const O: [Shape; 1] = [[(-1, 0), (0, 0), (-1, 1), (0, 1)]];
const S: [Shape; 2] = [
    [(0, 0), (1, 0), (-1, 1), (0, 1)],
    [(0, -1), (0, 0), (1, 0), (1, 1)],
];
const L: [Shape; 4] = [
    [(-1, 0), (0, 0), (1, 0), (-1, 1)],
    [(-1, -1), (0, -1), (0, 0), (0, 1)],
    [(1, -1), (-1, 0), (0, 0), (1, 0)],
    [(0, -1), (0, 0), (0, 1), (1, 1)],
];
const I: [Shape; 2] = [
    [(-2, 0), (-1, 0), (0, 0), (1, 0)],
    [(0, -2), (0, -1), (0, 0), (0, 1)],
];

/// Returns the orientations of a piece in clockwise order, beginning with the spawn orientation.
pub const fn orientations(piece: Piece) -> &'static [Shape] {
    match piece {
        Piece::T => &T,
        Piece::J => &J,
        Piece::Z => &Z,
        Piece::O => &O,
        Piece::S => &S,
        Piece::L => &L,
        Piece::I => &I,
    }
}

/// Returns the cells of a piece in one orientation.
///
/// # Panics
/// Panics if the piece has no such orientation.
pub const fn shape(piece: Piece, orientation: u8) -> &'static Shape {
    &orientations(piece)[orientation as usize]
}

/// Cells of a piece in one orientation, grouped by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnShape {
    /// Leftmost column, relative to the centre.
    pub(crate) left: i8,
    /// Number of columns.
    pub(crate) width: u8,
    /// Highest row, relative to the centre.
    pub(crate) top: i8,
    /// Lowest row, relative to the centre.
    pub(crate) bottom: i8,
    /// Mask of the cells in each column; the lowest bit is the row `top`.
    pub(crate) masks: [u8; 4],
}

static COLUMN_SHAPES: [[ColumnShape; 4]; 7] = {
    let mut all = [[by_columns(&I[0]); 4]; 7];
    let mut piece = 0;
    while piece < 7 {
        let shapes = orientations(Piece::ALL[piece]);
        let mut orientation = 0;
        while orientation < shapes.len() {
            all[piece][orientation] = by_columns(&shapes[orientation]);
            orientation += 1;
        }
        piece += 1;
    }
    all
};

const fn by_columns(shape: &Shape) -> ColumnShape {
    let (mut left, mut right, mut top, mut bottom) = (i8::MAX, i8::MIN, i8::MAX, i8::MIN);
    let mut cell = 0;
    while cell < 4 {
        let (x, y) = shape[cell];
        left = if x < left { x } else { left };
        right = if x > right { x } else { right };
        top = if y < top { y } else { top };
        bottom = if y > bottom { y } else { bottom };
        cell += 1;
    }
    let mut masks = [0; 4];
    cell = 0;
    while cell < 4 {
        let (x, y) = shape[cell];
        masks[(x - left) as usize] |= 1 << (y - top);
        cell += 1;
    }
    ColumnShape {
        left,
        width: (right - left + 1) as u8,
        top,
        bottom,
        masks,
    }
}

/// Returns the cells of a piece in one orientation, grouped by column.
#[inline(always)]
pub(crate) const fn column_shape(piece: Piece, orientation: u8) -> &'static ColumnShape {
    &COLUMN_SHAPES[piece.index()][orientation as usize]
}
