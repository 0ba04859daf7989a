//! Generators of the next piece. Pieces are either independent and uniformly distributed, or drawn from bags, which are
//! random permutations of the whole set.

use crate::Rng;

/// Kind of a [`Generator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorKind {
    /// Every piece is equally likely, independently of the previous pieces.
    Uniform,
    /// Pieces are drawn from random permutations of the whole set.
    Bag,
}

/// A random stream of pieces. Each piece is an index into the piece set.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: GeneratorKind,
    pieces: usize,
    bag: Vec<usize>,
    rng: Rng,
}

impl Generator {
    /// Creates a stream for a piece set with `pieces` pieces.
    pub fn new(kind: GeneratorKind, pieces: usize, rng: Rng) -> Generator {
        Generator {
            kind,
            pieces,
            bag: Vec::new(),
            rng,
        }
    }

    /// Draws the next piece.
    pub fn draw(&mut self) -> usize {
        match self.kind {
            GeneratorKind::Uniform => self.rng.below(self.pieces),
            GeneratorKind::Bag => {
                if self.bag.is_empty() {
                    self.bag.extend(0..self.pieces);
                }
                let index = self.rng.below(self.bag.len());
                self.bag.swap_remove(index)
            }
        }
    }
}
