//! The `patterns` evaluator, which scores the small patterns in a well with learned tables.
//!
//! The weights approximate the log-odds that a well in a frontier (the wells kept at one depth) has
//! a descendant in the frontiers 6, 12 and 20 pieces later. They were learned by logistic regression
//! on the frontiers of beams and on a sample of the wells that the beams dropped. Each beam used the
//! weights learned from the previous beams.
//!
//! The tables cover the ten columns of the standard well. In a wider well, they cover only the first
//! ten columns. In a narrower well, the missing columns count as empty and enclosed.
//!
//! *Open* cells are empty cells that pieces can still reach. All other empty cells are *enclosed*.

use crate::features::{Features, Rows};
use hatebeam_game::{Clears, MAX_HEIGHT, Well};
use std::sync::LazyLock;

const COLUMNS: usize = 10;
const FULL: u16 = (1 << COLUMNS) - 1;
const ROWS: usize = 1 << COLUMNS;
const TWO_ROWS: u64 = (1 << (2 * COLUMNS)) - 1;
const THREE_ROWS: u64 = (1 << (3 * COLUMNS)) - 1;
/// Number of horizontal positions of a window of two rows and five columns.
const PAIRS: usize = COLUMNS - 5 + 1;
const PAIR: usize = 1 << (2 * 5);
/// Number of horizontal positions of a window of three rows and four columns.
const TRIPLES: usize = COLUMNS - 4 + 1;
const TRIPLE: usize = 1 << (3 * 4);
/// Number of counted features. Their order is defined in [`Patterns::sum`].
const COUNTS: usize = 8;
/// Number of features that depend on the pieces that can clear lines. Their order is defined in
/// [`Patterns::clears_score`].
const CLEARS: usize = 5;

/// All seven pieces as bits in [`Clears::pieces`].
pub(crate) const ALL_PIECES: u8 = 0x7f;
/// S and Z as bits in [`Clears::pieces`].
pub(crate) const S_AND_Z: u8 = 0b11;

/// The learned weights, in units of 1/256.
pub(crate) struct Patterns {
    counts: [i32; COUNTS],
    clears: [i32; CLEARS],
    /// Weights indexed by stack height.
    stack: [i32; MAX_HEIGHT + 1],
    /// Weights of rows without enclosed cells, indexed by the cells of the row.
    clean: Box<[i16; ROWS]>,
    /// Weights of rows, indexed by the distance from the top of the stack and by the cells of the
    /// row.
    rows: Box<[[i16; ROWS]; MAX_HEIGHT]>,
    /// Weights of windows of two rows and five columns, indexed by the first column and by the
    /// cells of the two rows.
    pairs: Box<[[i16; PAIR]; PAIRS]>,
    /// Weights of windows of three rows and four columns, indexed by the first column and by the
    /// cells of the three rows. Enclosed cells count as filled.
    triples: Box<[[i16; TRIPLE]; TRIPLES]>,
}

/// The learned weights as little-endian 16-bit integers.
pub(crate) const TABLES: &[u8] = include_bytes!("patterns.bin");

static STANDARD: LazyLock<Patterns> = LazyLock::new(|| Patterns::read(TABLES));

fn table<const N: usize>(next: &mut impl FnMut() -> i16) -> Box<[i16; N]> {
    let all: Box<[i16]> = (0..N).map(|_| next()).collect();
    all.try_into().expect("`all` has N elements")
}

fn tables<const N: usize, const M: usize>(next: &mut impl FnMut() -> i16) -> Box<[[i16; N]; M]> {
    let all: Box<[[i16; N]]> = (0..M).map(|_| *table(next)).collect();
    all.try_into().expect("`all` has M tables")
}

impl Patterns {
    /// Returns the weights that are compiled into the program.
    pub(crate) fn standard() -> &'static Patterns {
        &STANDARD
    }

    /// Reads weights from little-endian 16-bit integers.
    fn read(bytes: &[u8]) -> Patterns {
        let (numbers, rest) = bytes.as_chunks::<2>();
        let mut numbers = numbers.iter().map(|&two| i16::from_le_bytes(two));
        let mut next = || numbers.next().expect("the file contains all tables");
        // In the file, the last of the `counts` follows all of the `clears`.
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
            "the file contains only the tables"
        );
        patterns
    }

    /// Returns the part of the score that depends on the pieces that can clear lines.
    pub(crate) fn clears_score(&self, clears: Clears) -> i32 {
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

    /// Returns the score of a well without the part that depends on the pieces that can clear
    /// lines. Lane `lane` of `open` contains the well's open cells.
    #[inline]
    pub(crate) fn sum(
        &self,
        memory: &mut Memory,
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
        // Both variables contain the current row in the lowest ten bits, followed by the rows above
        // it. The bits of `shut` mark the cells that are not open.
        let (mut context, mut shut) = (0, 0);
        let rows = well.rows()[..stack].iter().zip(&open[..stack]).rev();
        for ((&row, open), by_row) in rows.zip(self.rows.iter()) {
            let row = usize::from(row & FULL);
            sum += i32::from(by_row[row]);
            context = (context << 10 & TWO_ROWS) | row as u64;
            shut = (shut << 10 & THREE_ROWS) | u64::from(!open[lane] & FULL);
            sum += memory.sum(context << 30 | shut, || self.context_sum(context, shut));
        }
        sum
    }

    /// Returns the part of the score that depends on a row and the two rows above it: the weights of
    /// the windows whose lowest row is this row, and the weight of the row itself if it has no
    /// enclosed cells. `context` contains this row and the row above it. `shut` marks the cells that
    /// are not open in this row and the two rows above it.
    fn context_sum(&self, context: u64, shut: u64) -> i32 {
        let cells = |rows: u64, above: u32| (rows >> (10 * above)) as usize & usize::from(FULL);
        let (row, above) = (cells(context, 0), cells(context, 1));
        let [shut, shut_above, shut_twice_above] = [0, 1, 2].map(|above| cells(shut, above));
        let mut sum = 0;
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
        sum
    }
}

/// Number of sums in a [`Memory`].
const MEMORY: usize = 1 << 13;

/// A cache of the results of [`Patterns::context_sum`]. The wells of a beam have most of their rows in
/// common, so nine of ten results are found in the cache.
pub(crate) struct Memory {
    /// Keys with the highest bit set, and their sums. The key of an empty slot is 0.
    sums: Box<[(u64, i32)]>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            sums: vec![(0, 0); MEMORY].into(),
        }
    }

    /// Returns the sum for a key of 50 bits. Calls `calculate` if the cache does not contain the sum.
    #[inline(always)]
    fn sum(&mut self, key: u64, calculate: impl FnOnce() -> i32) -> i32 {
        let key = key | 1 << 63;
        let at = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - MEMORY.ilog2());
        let entry = &mut self.sums[at as usize];
        if entry.0 != key {
            *entry = (key, calculate());
        }
        entry.1
    }
}
