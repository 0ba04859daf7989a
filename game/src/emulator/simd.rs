//! The SIMD operations that the emulator uses, and their portable implementation. A word is a set of
//! positions of one piece (see [`super::tables`]).

use super::children::Children;
use super::tables::{SHAPE_BOTTOM, SHAPE_ROWS, Seven, Shape};
use crate::well::{MAX_HEIGHT, Well};

/// Landings (resting positions of a piece), one word per level. See [`super::core`].
pub(crate) type Levels = [u64; 24];

/// Operations on seven words (one per piece) at a time, and the generation of children.
///
/// A value of an implementing type proves that the processor supports the instructions.
pub(crate) trait Simd: Copy {
    /// Seven words in registers.
    type Words: Copy;

    /// Returns the set of non-empty rows of a well as bits. Bit 0 is the bottom row.
    fn filled_rows(self, well: &Well) -> u32;

    fn load(self, words: &Seven) -> Self::Words;
    fn store(self, words: Self::Words) -> Seven;
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Computes `!a & b`.
    fn and_not(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Adds the positions to which one press of L, R or U leads, even if they are blocked.
    fn spread(self, words: Self::Words) -> Self::Words;
    fn equal(self, a: Self::Words, b: Self::Words) -> bool;
    /// Returns the set of non-zero words as bits.
    fn non_zero(self, words: Self::Words) -> u8;

    /// Places the piece in the well at every landing, in ascending order of levels, removes full
    /// rows and writes the results to `children`. Returns whether any line was cleared.
    fn draw(self, job: &Drawing<'_>, children: &mut Children) -> bool;
}

/// Input of [`Simd::draw`].
pub(crate) struct Drawing<'a> {
    pub(crate) well: &'a Well,
    pub(crate) full_row: u16,
    /// Height of the well's stack.
    pub(crate) stack: usize,
    pub(crate) landings: &'a Levels,
    /// Number of levels in use. At each of these levels, at least one row of the box is above the
    /// floor.
    pub(crate) levels: usize,
    pub(crate) shapes: &'a [Shape; 64],
}

impl Drawing<'_> {
    /// Checks that sixteen rows of a shape can be read from [`Drawing::first_row`] at every level.
    /// Unchecked reads rely on this.
    ///
    /// # Panics
    /// Panics if the check fails.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn check(&self) {
        const _: () = assert!(SHAPE_BOTTOM >= MAX_HEIGHT);
        const _: () = assert!(SHAPE_BOTTOM + 3 + MAX_HEIGHT <= SHAPE_ROWS);
        assert!(self.stack <= MAX_HEIGHT && self.levels <= self.stack + 4);
    }

    /// Returns the row of a shape that coincides with the bottom row of the well at `level`.
    #[inline(always)]
    pub(crate) fn first_row(&self, level: usize) -> usize {
        SHAPE_BOTTOM + level - self.stack
    }
}

/// The portable implementation, which processes one 64-bit word after another.
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
        // An array comparison would be a call of `memcmp`.
        (0..7).fold(0, |difference, i| difference | (a[i] ^ b[i])) == 0
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

/// Adds the positions to which one press of L, R or U leads, even if they are blocked.
#[inline(always)]
pub(crate) fn spread(word: u64) -> u64 {
    word | word << 1 | word >> 1 | word.rotate_left(16)
}

/// Removes full rows and returns their number.
pub(crate) fn remove_full_rows(rows: &mut [u16; MAX_HEIGHT], full_row: u16) -> u8 {
    let mut kept = 0;
    for index in 0..MAX_HEIGHT {
        rows[kept] = rows[index];
        kept += usize::from(rows[index] != full_row);
    }
    rows[kept..].fill(0);
    (MAX_HEIGHT - kept) as u8
}

/// Maximum number of positions in a word. A list that is written one word at a time needs this number
/// of spare entries.
pub(crate) const WORD: usize = 64;

const _: () = assert!(
    SHAPE_ROWS * 2 * WORD < u16::MAX as usize,
    "the offset of a shape fits into 16 bits"
);
