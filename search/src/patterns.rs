//! What small pieces of a well are worth: a sum over learned tables.
//!
//! The weights are for the logarithm of the odds that a well of a frontier has a descendant in the
//! frontiers 6, 12 and 20 pieces later. They were found by running beams, each with the weights that
//! the beams before it gave, and by logistic regression on their frontiers and on a sample of what
//! these left out.
//!
//! The tables are for the standard well's ten columns. Of a wider well the first ten are looked at;
//! columns that a narrower one lacks are empty and not open, the same in all its wells.

use crate::features::{Features, Rows};
use hatebeam_game::{Clears, MAX_HEIGHT, Well};
use std::sync::LazyLock;

/// The columns the tables are made for.
const COLUMNS: usize = 10;
const FULL: u16 = (1 << COLUMNS) - 1;
const ROWS: usize = 1 << COLUMNS;
/// Windows of two rows and five columns.
const PAIRS: usize = COLUMNS - 5 + 1;
const PAIR: usize = 1 << (2 * 5);
/// Windows of three rows and four columns.
const TRIPLES: usize = COLUMNS - 4 + 1;
const TRIPLE: usize = 1 << (3 * 4);
/// Plain counts, in the order of [`Patterns::sum`].
const COUNTS: usize = 8;
/// Counts of pieces that can clear lines, in the order of [`Patterns::of_clears`].
const CLEARS: usize = 5;

/// Learned weights, in units of one over 256.
pub(crate) struct Patterns {
    counts: [i32; COUNTS],
    clears: [i32; CLEARS],
    /// By the height of the stack.
    stack: [i32; MAX_HEIGHT + 1],
    /// By the row, if all its empty cells are open.
    clean: Box<[i16; ROWS]>,
    /// By how far the row is below the top of the stack, and by the row.
    rows: Box<[[i16; ROWS]; MAX_HEIGHT]>,
    /// By the window's first column, and by the cells of the upper and of the lower row.
    pairs: Box<[[i16; PAIR]; PAIRS]>,
    /// The same for three rows, a cell that is not open being as good as filled.
    triples: Box<[[i16; TRIPLE]; TRIPLES]>,
}

static STANDARD: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::read(include_bytes!("patterns.bin")));

fn table<const N: usize>(next: &mut impl FnMut() -> i16) -> Box<[i16; N]> {
    let all: Box<[i16]> = (0..N).map(|_| next()).collect();
    all.try_into().expect("it has this length")
}

fn tables<const N: usize, const M: usize>(next: &mut impl FnMut() -> i16) -> Box<[[i16; N]; M]> {
    let all: Box<[[i16; N]]> = (0..M).map(|_| *table(next)).collect();
    all.try_into().expect("it has this length")
}

impl Patterns {
    /// The weights that come with the program.
    pub(crate) fn standard() -> &'static Patterns {
        &STANDARD
    }

    /// Weights as they are in the file: little-endian numbers of 16 bits.
    fn read(bytes: &[u8]) -> Patterns {
        let (numbers, rest) = bytes.as_chunks::<2>();
        let mut numbers = numbers.iter().map(|&two| i16::from_le_bytes(two));
        let mut next = || numbers.next().expect("the file has all tables");
        // In the file the game's score comes after the pieces that can clear lines.
        let first: [i32; COUNTS + CLEARS] = std::array::from_fn(|_| i32::from(next()));
        let patterns = Patterns {
            counts: std::array::from_fn(|at| {
                first[if at < COUNTS - 1 { at } else { first.len() - 1 }]
            }),
            clears: std::array::from_fn(|at| first[COUNTS - 1 + at]),
            stack: std::array::from_fn(|_| i32::from(next())),
            clean: table(&mut next),
            rows: tables(&mut next),
            pairs: tables(&mut next),
            triples: tables(&mut next),
        };
        assert!(
            numbers.next().is_none() && rest.is_empty(),
            "nothing is left"
        );
        patterns
    }

    /// What the pieces that can clear lines add.
    pub(crate) fn of_clears(&self, clears: Clears) -> i32 {
        const ALL_PIECES: u8 = 0x7f;
        const S_AND_Z: u8 = 0b11;
        let counts: [u16; CLEARS] = [
            clears.pieces.count_ones() as u16,
            u16::from(clears.pieces == ALL_PIECES),
            u16::from(clears.pieces & S_AND_Z == S_AND_Z),
            clears.several.count_ones() as u16,
            u16::from(clears.pieces != 0),
        ];
        let weighted = self.clears.iter().zip(counts);
        weighted
            .map(|(weight, count)| weight * i32::from(count))
            .sum()
    }

    /// What a well is worth but for that, the greater the better; `open` and `lane` say which cells are open.
    #[inline]
    pub(crate) fn sum(
        &self,
        well: &Well,
        open: &Rows,
        lane: usize,
        features: &Features,
        lines: u16,
    ) -> i32 {
        let counts: [u16; COUNTS] = [
            features.holes,
            features.enclosed,
            features.enclosed_lines,
            features.surface_height,
            features.all[0],
            features.all[1],
            features.all[2],
            lines,
        ];
        let stack = usize::from(features.stack_height);
        let mut sum = self.stack[stack];
        for (weight, count) in self.counts.iter().zip(counts) {
            sum += weight * i32::from(count);
        }
        let (mut above, mut shut_above, mut shut_twice_above) = (0, 0, 0);
        let rows = well.rows()[..stack].iter().zip(&open[..stack]).rev();
        for ((&row, open), by_row) in rows.zip(self.rows.iter()) {
            let row = usize::from(row & FULL);
            let shut = usize::from(!open[lane] & FULL);
            sum += i32::from(by_row[row]);
            if row == shut {
                sum += i32::from(self.clean[row]);
            }
            for (column, by_pair) in self.pairs.iter().enumerate() {
                let pair = (above >> column & 31) << 5 | (row >> column & 31);
                sum += i32::from(by_pair[pair]);
            }
            for (column, by_triple) in self.triples.iter().enumerate() {
                let triple = (shut_twice_above >> column & 15) << 8
                    | (shut_above >> column & 15) << 4
                    | (shut >> column & 15);
                sum += i32::from(by_triple[triple]);
            }
            above = row;
            (shut_twice_above, shut_above) = (shut_above, shut);
        }
        sum
    }
}
