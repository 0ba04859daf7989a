//! The pieces that a queue can bring.

use super::super::tiling::Stock;
use super::orders::{ALL_ONE, KeyMap, PIECES};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::Bag;
use std::rc::Rc;

/// The pieces that follow the first pieces of a queue: some known pieces, and then pieces from the bag. The last one may
/// be missing.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    known: Vec<Piece>,
    /// Number of pieces, including the known ones and the missing one.
    len: usize,
    /// Whether the last piece exists. Otherwise a placeholder stands for it, which cannot be placed.
    has_last: bool,
    tails: KeyMap<(usize, u8), Rc<[Tail]>>,
}

/// The possible last two pieces after a sequence of pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Possible pieces before the last one; one bit per piece.
    pub(super) firsts: u8,
    /// Possible pairs, as bits 7·a + b. If only one piece is left, bit b; if none is left, bit 0.
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

    /// Returns the possible pieces at a position and the bags after each of them.
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

    /// Returns the pieces that can occur at a position or later, one bit per piece.
    pub(super) fn later_bits(&self, position: usize, bag: Bag) -> u8 {
        let known = self.known.iter().skip(position);
        let known = known.fold(0, |bits, piece| bits | 1 << piece.index());
        let unknown = self.len - position.max(self.known.len()).min(self.len);
        if unknown > bag.left() as usize {
            return ALL_ONE as u8;
        }
        bag.pieces()
            .fold(known, |bits, piece| bits | 1 << piece.index())
    }

    /// Returns the pieces that a queue can bring. Each bag after the first one counts as a whole.
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

    /// Returns the possible endings of each sequence of all but two of the pieces from `position` on. Sequences are
    /// sorted.
    pub(super) fn tails(&mut self, position: usize, bag: Bag) -> Rc<[Tail]> {
        let key = (
            position,
            bag.pieces()
                .fold(0, |bits, piece| bits | 1 << piece.index()),
        );
        if let Some(tails) = self.tails.get(&key) {
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
        self.tails.insert(key, Rc::clone(&tails));
        tails
    }
}

/// Appends the number of sequences in a set for each sequence without the last piece. `words` contains the set's last
/// pairs for each of the tails, and `left` is the number of pieces.
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

/// Returns the sums of groups of `size` values.
pub(super) fn fold_values(values: &[u32], size: usize) -> impl Iterator<Item = u32> + '_ {
    values.chunks_exact(size).map(|group| group.iter().sum())
}
