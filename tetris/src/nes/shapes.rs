//! The orientations of the pieces.

use crate::Piece;

/// Cells of a piece in one orientation, relative to its centre: columns to the right, rows downwards.
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

/// Returns the orientations of a piece clockwise, beginning with the one that spawns.
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

/// Returns the cells of one orientation.
///
/// # Panics
/// Panics if the piece has no such orientation.
pub const fn shape(piece: Piece, orientation: u8) -> &'static Shape {
    &orientations(piece)[orientation as usize]
}
