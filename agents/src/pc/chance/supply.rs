//! The possible orders of the pieces in a queue whose first pieces are known.

use super::super::solver::KeyMap;
use super::super::tiling::Stock;
use super::orders::{ALL_ONE, PIECES};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::Bag;
use std::rc::Rc;

/// A queue of known pieces, followed by unknown pieces from the bag. Its last piece, which a player can leave in the
/// hold slot, is missing if the game has no more pieces than the field needs.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    known: Vec<Piece>,
    /// Number of known and unknown pieces. Includes the last piece even if it is missing.
    len: usize,
    /// Whether the last piece exists. If `false`, an arbitrary piece stands for it, which the search does not place.
    has_last: bool,
    tails: KeyMap<(usize, Bag), Rc<[Tail]>>,
}

/// The possible last two pieces of a queue, for one sequence of all other pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Possible second-to-last pieces, one bit per piece.
    pub(super) firsts: u8,
    /// Possible pairs: bit 7·a + b stands for the order a, b. If only one piece is left, bit b stands for the piece
    /// b. If no piece is left, only bit 0 is set.
    pub(super) mask: u64,
}

impl Supply {
    pub(super) fn new(known: Vec<Piece>, len: usize, has_last: bool) -> Supply {
        Supply {
            known,
            len,
            has_last,
            tails: KeyMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the last piece can be placed.
    pub(super) fn has_last(&self) -> bool {
        self.has_last
    }

    /// Returns the possible pieces at a position, each with the bag that follows. `bag` is the bag of the unknown
    /// pieces, so a known piece does not change it.
    pub(super) fn options(&self, position: usize, bag: Bag) -> Vec<(Piece, Bag)> {
        if position + 1 == self.len && !self.has_last {
            return vec![(Piece::ALL[0], bag)];
        }
        match self.known.get(position) {
            Some(&piece) => vec![(piece, bag)],
            None => bag
                .pieces()
                .filter_map(|piece| Some((piece, bag.take(piece)?)))
                .collect(),
        }
    }

    /// Returns the possible pieces at a position, one bit per piece.
    pub(super) fn option_bits(&self, position: usize, bag: Bag) -> u8 {
        let options = self.options(position, bag);
        options
            .iter()
            .fold(0, |bits, (piece, _)| bits | 1 << piece.index())
    }

    /// Returns the known pieces, and all pieces of each bag from which an unknown piece is drawn.
    pub(super) fn stock(&self, bag: Bag) -> Stock {
        let mut stock = self
            .known
            .iter()
            .fold(Stock::default(), |stock, &piece| stock.with(piece));
        let unknown = self.len - self.known.len();
        let (mut drawn, mut bag) = (0, bag);
        while drawn < unknown {
            stock = bag.pieces().fold(stock, Stock::with);
            drawn += bag.left() as usize;
            bag = Bag::FULL;
        }
        stock
    }

    /// Returns the number of possible pieces at each position from `position` on.
    pub(super) fn sizes(&self, position: usize, bag: Bag) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut bag = bag;
        for position in position..self.len {
            let options = self.options(position, bag);
            sizes.push(options.len());
            bag = options[0].1;
        }
        sizes
    }

    /// Returns the tails of the pieces from `position` on: one for each possible sequence of the pieces before the
    /// last two, in the order of these sequences.
    pub(super) fn tails(&mut self, position: usize, bag: Bag) -> Rc<[Tail]> {
        if let Some(tails) = self.tails.get(&(position, bag)) {
            return Rc::clone(tails);
        }
        let mut tails = Vec::new();
        match self.len - position {
            0 => tails.push(Tail { firsts: 0, mask: 1 }),
            1 => tails.push(Tail {
                firsts: 0,
                mask: u64::from(self.option_bits(position, bag)),
            }),
            2 => {
                let mut tail = Tail { firsts: 0, mask: 0 };
                for (piece, bag) in self.options(position, bag) {
                    let seconds = u64::from(self.option_bits(position + 1, bag));
                    tail.firsts |= 1 << piece.index();
                    tail.mask |= seconds << (PIECES * piece.index());
                }
                tails.push(tail);
            }
            _ => {
                for (_, bag) in self.options(position, bag) {
                    tails.extend_from_slice(&self.tails(position + 1, bag));
                }
            }
        }
        let tails: Rc<[Tail]> = tails.into();
        self.tails.insert((position, bag), Rc::clone(&tails));
        tails
    }
}

/// Groups the sequences that differ only in the last piece, and appends the size of each group to `sums`. For each
/// tail, `words` contains the last pairs of these sequences. `left` is the length of the sequences.
pub(super) fn fold_words(words: &[u64], tails: &[Tail], left: usize, sums: &mut Vec<u32>) {
    if left < 2 {
        sums.push(words[0].count_ones());
        return;
    }
    for (word, tail) in words.iter().zip(tails) {
        let mut firsts = tail.firsts;
        while firsts != 0 {
            let first = firsts.trailing_zeros() as usize;
            firsts &= firsts - 1;
            sums.push((word >> (PIECES * first) & ALL_ONE).count_ones());
        }
    }
}

/// Returns the sum of each group of `size` adjacent values.
pub(super) fn fold_values(values: &[u32], size: usize) -> impl Iterator<Item = u32> + '_ {
    values.chunks_exact(size).map(|group| group.iter().sum())
}
