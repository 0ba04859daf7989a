//! Generators of the next piece: uniform and independent, or by bags.

use crate::Rng;

/// Kind of a [`Generator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorKind {
    /// Every piece is equally likely, independent of the pieces before.
    Uniform,
    /// Pieces come in random permutations of the whole set.
    Bag,
}

/// A stream of pieces, as indices into the set.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: GeneratorKind,
    pieces: usize,
    bag: Vec<usize>,
    rng: Rng,
}

impl Generator {
    /// Creates a stream of a set with `pieces` pieces.
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
