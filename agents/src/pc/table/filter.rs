//! An approximate set of boards, which may also report a few boards that were never inserted.

use super::super::solver::KeyHasher;
use hatebeam_tetris::srs::LowField;

/// Numbers of pieces that can be left, 0 to 10.
const LAYERS: usize = 11;

/// A Bloom filter of boards. Each board sets at most two bits of one word. The filter has at least 16 bits per board,
/// and wrongly reports about 2 % of the boards that were never inserted.
///
/// Boards with different numbers of pieces left have separate words, because a search checks most often whether boards
/// with few pieces left are in the filter. There are few of these boards, so their words stay in the processor's caches.
#[derive(Clone, Debug)]
pub(in super::super) struct BoardFilter {
    /// Words for each number of pieces left.
    layers: [Box<[u64]>; LAYERS],
}

impl BoardFilter {
    /// Creates an empty filter. `boards` returns the number of boards for each number of pieces left.
    pub(super) fn new(boards: impl Fn(usize) -> usize) -> BoardFilter {
        let words = |left| vec![0; (boards(left) / 4).next_power_of_two()].into();
        BoardFilter {
            layers: std::array::from_fn(words),
        }
    }

    pub(super) fn insert(&mut self, field: &LowField) {
        let words = &mut self.layers[field.pieces_left()];
        let (word, bits) = place(field, words.len());
        words[word] |= bits;
    }

    /// Returns `true` for every inserted field, and for a few other fields.
    #[inline]
    pub(in super::super) fn contains(&self, field: &LowField) -> bool {
        let words = &self.layers[field.pieces_left()];
        let (word, bits) = place(field, words.len());
        words[word] & bits == bits
    }
}

/// Returns the index of a field's word, and its bits in this word. `words` is the number of words, a power of two.
#[inline]
fn place(field: &LowField, words: usize) -> (usize, u64) {
    let hash = KeyHasher::hash(field.key());
    let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
    ((hash >> 12) as usize & (words - 1), bits)
}
