//! What the emulator asks of a processor, and the answer in plain code.

use super::children::Children;
use super::tables::{SHAPE_BOTTOM, SHAPE_ROWS, Seven, Shape};
use crate::well::{MAX_HEIGHT, Well};

/// Landing words by level: see [`super::core`].
pub(crate) type Levels = [u64; 24];

/// A processor's way to handle seven words at a time and to draw children.
///
/// A value of such a type is the proof that the processor has the instructions.
pub(crate) trait Simd: Copy {
    /// Seven words in registers.
    type Words: Copy;

    /// A bit for each row of a well that is not empty, the bottom row's the lowest.
    fn filled_rows(self, well: &Well) -> u32;

    fn load(self, words: &Seven) -> Self::Words;
    fn store(self, words: Self::Words) -> Seven;
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `!a & b`.
    fn and_not(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Every position and those one key L, R or U away.
    fn spread(self, words: Self::Words) -> Self::Words;
    fn equal(self, a: Self::Words, b: Self::Words) -> bool;
    /// A bit for each word that is not zero.
    fn non_zero(self, words: Self::Words) -> u8;

    /// Draws every position set in `landings` over `well`, from the lowest level number up, removes
    /// full rows and puts the result into `children`. Level `d`'s box has its bottom row
    /// `stack - d` rows above the floor. Says whether any line was cleared.
    fn draw(self, job: &Drawing<'_>, children: &mut Children) -> bool;
}

/// What there is to draw.
pub(crate) struct Drawing<'a> {
    pub(crate) well: &'a Well,
    pub(crate) full_row: u16,
    /// Rows of the well's stack.
    pub(crate) stack: usize,
    pub(crate) landings: &'a Levels,
    /// Levels in use: those of a box that is not wholly under the floor.
    pub(crate) levels: usize,
    pub(crate) shapes: &'a [Shape; 64],
}

impl Drawing<'_> {
    /// Panics unless sixteen rows of a shape can be read from [`Drawing::first_row`] of every level:
    /// what reads them without a check relies on it.
    #[inline(always)]
    pub(crate) fn check(&self) {
        const _: () = assert!(SHAPE_BOTTOM >= MAX_HEIGHT);
        const _: () = assert!(SHAPE_BOTTOM + 3 + MAX_HEIGHT <= SHAPE_ROWS);
        assert!(self.stack <= MAX_HEIGHT && self.levels <= self.stack + 4);
    }

    /// The row of a shape that falls on the well's bottom row at a level.
    #[inline(always)]
    pub(crate) fn first_row(&self, level: usize) -> usize {
        SHAPE_BOTTOM + level - self.stack
    }
}

/// No special instructions: 64-bit words, one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Simd for Portable {
    type Words = [u64; 7];

    #[inline(always)]
    fn filled_rows(self, well: &Well) -> u32 {
        let rows = well.rows().iter().enumerate();
        rows.fold(0, |filled, (index, &row)| {
            filled | u32::from(row != 0) << index
        })
    }

    #[inline(always)]
    fn load(self, words: &Seven) -> [u64; 7] {
        std::array::from_fn(|i| words.0[i])
    }

    #[inline(always)]
    fn store(self, words: [u64; 7]) -> Seven {
        let mut all = [0; 8];
        all[..7].copy_from_slice(&words);
        Seven(all)
    }

    #[inline(always)]
    fn or(self, a: [u64; 7], b: [u64; 7]) -> [u64; 7] {
        std::array::from_fn(|i| a[i] | b[i])
    }

    #[inline(always)]
    fn and(self, a: [u64; 7], b: [u64; 7]) -> [u64; 7] {
        std::array::from_fn(|i| a[i] & b[i])
    }

    #[inline(always)]
    fn and_not(self, a: [u64; 7], b: [u64; 7]) -> [u64; 7] {
        std::array::from_fn(|i| !a[i] & b[i])
    }

    #[inline(always)]
    fn spread(self, words: [u64; 7]) -> [u64; 7] {
        words.map(spread)
    }

    #[inline(always)]
    fn equal(self, a: [u64; 7], b: [u64; 7]) -> bool {
        a == b
    }

    #[inline(always)]
    fn non_zero(self, words: [u64; 7]) -> u8 {
        (0..7).fold(0, |mask, i| mask | u8::from(words[i] != 0) << i)
    }

    #[inline(always)]
    fn draw(self, job: &Drawing<'_>, children: &mut Children) -> bool {
        let mut any_lines = false;
        for (level, &landings) in job.landings[..job.levels].iter().enumerate() {
            let offset = job.first_row(level);
            let mut left = landings;
            while left != 0 {
                let shape = &job.shapes[left.trailing_zeros() as usize];
                left &= left - 1;
                let mut rows = *job.well.rows();
                let mut full = false;
                for (row, bits) in rows.iter_mut().zip(&shape[offset..offset + MAX_HEIGHT]) {
                    *row |= bits;
                    full |= *row == job.full_row;
                }
                let lines = if full {
                    remove_full_rows(&mut rows, job.full_row)
                } else {
                    0
                };
                any_lines |= full;
                children.push(Well::from_rows(rows), lines);
            }
        }
        any_lines
    }
}

/// A word's positions and those one key L, R or U away.
#[inline(always)]
pub(crate) fn spread(word: u64) -> u64 {
    word | word << 1 | word >> 1 | word.rotate_left(16)
}

/// Removes full rows; says how many there were.
pub(crate) fn remove_full_rows(rows: &mut [u16; MAX_HEIGHT], full_row: u16) -> u8 {
    let mut kept = 0;
    for index in 0..MAX_HEIGHT {
        rows[kept] = rows[index];
        kept += usize::from(rows[index] != full_row);
    }
    rows[kept..].fill(0);
    (MAX_HEIGHT - kept) as u8
}

/// The most positions a word can hold, for lists that are written a word at a time.
pub(crate) const WORD: usize = 64;

const _: () = assert!(
    SHAPE_ROWS * 2 * WORD < u16::MAX as usize,
    "a shape's offset fits 16 bits"
);
