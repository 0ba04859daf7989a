//! The seven pieces, their cells, and the order in which the enemy (the algorithm that chooses the
//! pieces) prefers them.

use std::fmt;

/// One of the seven pieces. The discriminant is the index in the enemy's order of preference, which
/// breaks ties between pieces that are equally bad for the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Piece {
    /// `S`, the first piece in the order of preference.
    S,
    /// `Z`.
    Z,
    /// `O`.
    O,
    /// `I`.
    I,
    /// `L`.
    L,
    /// `J`.
    J,
    /// `T`.
    T,
}

/// The four cells `(x, y)` of a piece in its 4×4 box. `x` increases to the right and `y` downwards.
pub type Cells = [(u8, u8); 4];

/// Cells by piece (in the order of [`Piece::ALL`]) and orientation.
const CELLS: [[Cells; 4]; 7] = [
    [
        [(2, 1), (3, 1), (1, 2), (2, 2)],
        [(1, 1), (1, 2), (2, 2), (2, 3)],
        [(1, 1), (2, 1), (0, 2), (1, 2)],
        [(1, 0), (1, 1), (2, 1), (2, 2)],
    ],
    [
        [(1, 1), (2, 1), (2, 2), (3, 2)],
        [(2, 1), (1, 2), (2, 2), (1, 3)],
        [(0, 1), (1, 1), (1, 2), (2, 2)],
        [(2, 0), (1, 1), (2, 1), (1, 2)],
    ],
    [[(1, 1), (2, 1), (1, 2), (2, 2)]; 4],
    [
        [(0, 1), (1, 1), (2, 1), (3, 1)],
        [(2, 0), (2, 1), (2, 2), (2, 3)],
        [(0, 2), (1, 2), (2, 2), (3, 2)],
        [(1, 0), (1, 1), (1, 2), (1, 3)],
    ],
    [
        [(1, 1), (2, 1), (3, 1), (1, 2)],
        [(1, 1), (2, 1), (2, 2), (2, 3)],
        [(2, 1), (0, 2), (1, 2), (2, 2)],
        [(1, 0), (1, 1), (1, 2), (2, 2)],
    ],
    [
        [(1, 1), (2, 1), (1, 2), (1, 3)],
        [(0, 1), (1, 1), (2, 1), (2, 2)],
        [(2, 0), (2, 1), (1, 2), (2, 2)],
        [(1, 1), (1, 2), (2, 2), (3, 2)],
    ],
    [
        [(1, 1), (2, 1), (3, 1), (2, 2)],
        [(2, 1), (1, 2), (2, 2), (2, 3)],
        [(1, 1), (0, 2), (1, 2), (2, 2)],
        [(1, 0), (1, 1), (2, 1), (1, 2)],
    ],
];

impl Piece {
    /// All pieces in the enemy's order of preference.
    pub const ALL: [Piece; 7] = [
        Piece::S,
        Piece::Z,
        Piece::O,
        Piece::I,
        Piece::L,
        Piece::J,
        Piece::T,
    ];

    /// Returns the index of the piece in [`Piece::ALL`], 0 to 6.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the cells of the piece in `orientation`, which is taken modulo 4.
    pub const fn cells(self, orientation: u8) -> &'static Cells {
        &CELLS[self as usize][(orientation & 3) as usize]
    }

    /// Returns the letter of the piece.
    pub const fn letter(self) -> char {
        ['S', 'Z', 'O', 'I', 'L', 'J', 'T'][self as usize]
    }

    /// Returns the piece with this letter, which may be in upper or lower case.
    pub fn from_letter(letter: char) -> Option<Piece> {
        let letter = letter.to_ascii_uppercase();
        Piece::ALL
            .into_iter()
            .find(|piece| piece.letter() == letter)
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_round_trip() {
        for piece in Piece::ALL {
            assert_eq!(Piece::from_letter(piece.letter()), Some(piece));
            assert_eq!(Piece::ALL[piece.index()], piece);
        }
        assert_eq!(Piece::from_letter('X'), None);
    }

    #[test]
    fn every_orientation_has_four_distinct_cells_in_its_box() {
        for piece in Piece::ALL {
            for orientation in 0..4 {
                let mut cells = piece.cells(orientation).to_vec();
                cells.sort_unstable();
                cells.dedup();
                assert_eq!(cells.len(), 4, "{piece} {orientation}");
                assert!(cells.iter().all(|&(x, y)| x < 4 && y < 4));
            }
        }
    }
}
