//! The seven-bag: pieces come in permutations of all seven.

use crate::{Piece, Rng};
use std::fmt;
use thiserror::Error;

/// The pieces left in a bag, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bag(u8);

/// Error for pieces that no sequence of bags can give.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BagError {
    /// A piece is not left in the bag.
    #[error("piece {piece} at position {position} is impossible: the bag has only {left} left")]
    Impossible {
        /// The piece.
        piece: Piece,
        /// Its position in the sequence, counted from 1.
        position: usize,
        /// Letters of the pieces left.
        left: String,
    },
    /// A piece occurs twice in one bag.
    #[error("piece {0} occurs twice: a bag has each piece once")]
    Twice(Piece),
}

impl Bag {
    /// A bag with all seven pieces.
    pub const FULL: Bag = Bag(0x7f);

    /// Creates the bag in which exactly these pieces are left. An empty list stands for a new bag.
    pub fn of(pieces: &[Piece]) -> Result<Bag, BagError> {
        let mut bag = 0;
        for &piece in pieces {
            if bag >> piece.index() & 1 == 1 {
                return Err(BagError::Twice(piece));
            }
            bag |= 1 << piece.index();
        }
        Ok(if bag == 0 { Bag::FULL } else { Bag(bag) })
    }

    /// Returns the bag after a sequence of pieces that begins with a full bag.
    pub fn after(pieces: &[Piece]) -> Result<Bag, BagError> {
        let mut bag = Bag::FULL;
        for (index, &piece) in pieces.iter().enumerate() {
            bag = bag.take(piece).ok_or_else(|| BagError::Impossible {
                piece,
                position: index + 1,
                left: bag.to_string(),
            })?;
        }
        Ok(bag)
    }

    /// Returns the bag without a piece, or `None` if the piece is not left. An empty bag becomes a full one.
    pub const fn take(self, piece: Piece) -> Option<Bag> {
        let bit = 1 << piece.index();
        if self.0 & bit == 0 {
            return None;
        }
        let left = self.0 & !bit;
        Some(if left == 0 { Bag::FULL } else { Bag(left) })
    }

    /// Whether a piece is left.
    pub const fn has(self, piece: Piece) -> bool {
        self.0 >> piece.index() & 1 == 1
    }

    /// Number of pieces left, 1 to 7. Each of them comes next with the same chance.
    pub const fn left(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the pieces left, in alphabetical order.
    pub fn pieces(self) -> impl Iterator<Item = Piece> {
        Piece::ALL.into_iter().filter(move |&piece| self.has(piece))
    }

    /// Draws the next piece.
    pub fn draw(&mut self, rng: &mut Rng) -> Piece {
        let index = rng.below(self.left() as usize);
        let piece = self
            .pieces()
            .nth(index)
            .expect("the bag has this many pieces");
        *self = self.take(piece).expect("the piece is in the bag");
        piece
    }
}

impl fmt::Display for Bag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| write!(f, "{piece}"))
    }
}

impl fmt::Debug for Bag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bag({self})")
    }
}
