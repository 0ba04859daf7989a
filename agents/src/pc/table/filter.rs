//! An approximate set of boards, which may also report a few boards that were never inserted.

use super::super::solver::KeyHasher;
use hatebeam_tetris::srs::LowField;
use std::hash::Hasher;

/// A Bloom filter of boards. Each board sets at most two bits of one word. The filter has at least 16 bits per board,
/// and wrongly reports about 2 % of the boards that were never inserted.
#[derive(Clone, Debug)]
pub(in super::super) struct BoardFilter {
    words: Vec<u64>,
}

impl BoardFilter {
    /// Creates an empty filter with room for `boards` boards.
    pub(super) fn new(boards: usize) -> BoardFilter {
        BoardFilter {
            words: vec![0; (boards / 4).next_power_of_two()],
        }
    }

    fn place(&self, key: u64) -> (usize, u64) {
        let mut hasher = KeyHasher::default();
        hasher.write_u64(key);
        let hash = hasher.finish();
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
        ((hash >> 12) as usize & (self.words.len() - 1), bits)
    }

    pub(super) fn insert(&mut self, key: u64) {
        let (word, bits) = self.place(key);
        self.words[word] |= bits;
    }

    /// Returns `true` for every inserted field, and for a few other fields.
    #[inline]
    pub(in super::super) fn contains(&self, field: &LowField) -> bool {
        let (word, bits) = self.place(field.key());
        self.words[word] & bits == bits
    }
}
