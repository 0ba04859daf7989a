//! The seven-bag generator: pieces come in random permutations of all seven pieces.

use crate::{Piece, Rng};
use std::fmt;
use thiserror::Error;

/// Set of the pieces that are left in a bag.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bag(u8);

/// Error for pieces that no sequence of bags can produce.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BagError {
    /// A piece is not left in the bag.
    #[error("piece {piece} at position {position} is impossible: the bag has only {left} left")]
    Impossible {
        /// The piece.
        piece: Piece,
        /// Position of the piece in the sequence, counted from 1.
        position: usize,
        /// Letters of the pieces that are left in the bag.
        left: String,
    },
    /// A piece occurs twice in one bag.
    #[error("piece {0} occurs twice: a bag contains each piece once")]
    Twice(Piece),
}

impl Bag {
    /// A bag that contains all seven pieces.
    pub const FULL: Bag = Bag(0x7f);

    /// Creates a bag that contains exactly these pieces. An empty list creates a full bag.
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

    /// Returns the bag after a sequence of pieces has been drawn, starting from a full bag.
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

    /// Returns the bag after a piece has been drawn, or `None` if the bag does not contain the piece. When the last
    /// piece of a bag is drawn, returns a full bag.
    pub const fn take(self, piece: Piece) -> Option<Bag> {
        let bit = 1 << piece.index();
        if self.0 & bit == 0 {
            return None;
        }
        let left = self.0 & !bit;
        Some(if left == 0 { Bag::FULL } else { Bag(left) })
    }

    /// Returns the bag with a piece added, or `None` if the bag already contains the piece.
    pub const fn put_back(self, piece: Piece) -> Option<Bag> {
        let bit = 1 << piece.index();
        if self.0 & bit == 0 {
            Some(Bag(self.0 | bit))
        } else {
            None
        }
    }

    /// Returns whether the bag contains a piece.
    pub const fn has(self, piece: Piece) -> bool {
        self.0 >> piece.index() & 1 == 1
    }

    /// Returns the number of pieces left, from 1 to 7. Each of these pieces is equally likely to be next.
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
            .expect("the index is below the number of pieces in the bag");
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
