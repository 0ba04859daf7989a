//! An evaluator whose weights are learned from games. The value of a board is the sum of one weight per pattern. A
//! pattern is a combination of small measures of the board, such as the differences between the heights of five
//! neighbouring columns, and every combination has its own weight. The value estimates the points of the rest of the
//! game, in units of the points at level 0, where each cleared row reduces the value of later rows by 1 %.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::best::Valued;
use super::board::Board;
use super::placements::Placements;
use super::profile::{Profile, STACK};
use super::scoring::points;
use crate::Piece;

/// Number of patterns of a board.
pub const PATTERNS: usize = 36;
/// Number of weights.
pub const PATTERN_WEIGHTS: usize = Table::COUNT_OF_ALL;

/// Indexes of the weights of a board, one per pattern.
pub type Patterns = [u32; PATTERNS];

/// Factors by which the value of a board is multiplied if the move before it clears 0 to 4 rows.
const DISCOUNTS: [f64; 5] = [1.0, 0.99, 0.9801, 0.970_299, 0.960_596];
/// Number of groups of heights in some patterns.
const LEVELS: u32 = 4;

/// Returns the value of clearing `lines` rows with a move that leads to a board with the value `rest`.
#[inline(always)]
pub fn discounted(lines: u8, rest: f64) -> f64 {
    f64::from(points(lines, 0)) + DISCOUNTS[lines as usize] * rest
}

/// Returns the value of a board with these patterns; higher values are better.
#[inline(always)]
pub fn board_value(patterns: &Patterns, weights: &[f32]) -> f32 {
    let mut sum = 0.0;
    for &index in patterns {
        sum += weights[index as usize];
    }
    sum
}

/// Writes every placement of a piece to `values`, with the negative value of the cleared rows and of the board after it.
/// `placements` is a buffer, which is overwritten.
///
/// # Panics
/// Panics if there are not [`PATTERN_WEIGHTS`] weights.
pub fn evaluate_patterns(
    board: &Board,
    piece: Piece,
    weights: &[f32],
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        return avx2::evaluate_patterns(board, piece, weights, placements, values);
    }
    evaluate_portable(board, piece, weights, placements, values);
}

/// Implements [`evaluate_patterns`]. The function is inlined, so it is compiled for the caller's instruction sets.
#[inline(always)]
pub(super) fn evaluate_portable(
    board: &Board,
    piece: Piece,
    weights: &[f32],
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    let weights = &weights[..PATTERN_WEIGHTS];
    values.clear();
    placements.find_inline(board, piece);
    for &placement in placements.list() {
        let locked = board.lock(piece, placement);
        let rest = board_value(&patterns(&locked.board), weights);
        let value = -discounted(locked.lines, f64::from(rest));
        values.push(Valued { placement, value });
    }
}

/// Part of the weights that belongs to one pattern or to the same pattern at several positions.
struct Table;

impl Table {
    const FIVE_COLUMNS: u32 = 0;
    const SIX_COLUMNS: u32 = Table::FIVE_COLUMNS + 5 * 7u32.pow(4);
    const FOUR_COLUMNS: u32 = Table::SIX_COLUMNS + 4 * 5u32.pow(5);
    const COVERED: u32 = Table::FOUR_COLUMNS + 6 * 9u32.pow(3) * LEVELS;
    const WELL: u32 = Table::COVERED + 23 * 9 * 6;
    const COVERED_ROWS: u32 = Table::WELL + 8 * 6 * 10;
    const FIRST_COVERED: u32 = Table::COVERED_ROWS + 6 * 11 * 12;
    const TRANSITIONS: u32 = Table::FIRST_COVERED + 11 * 6 * 8 + 1;
    const PARITY: u32 = Table::TRANSITIONS + 32 * 5;
    const PITS: u32 = Table::PARITY + 11 * LEVELS;
    const COLUMN: u32 = Table::PITS + 4 * 4 * 2 * LEVELS;
    const KINDS: u32 = Table::COLUMN + 10 * 4 * 5;
    const CELLS: u32 = Table::KINDS + 32 * 8;
    const EDGE: u32 = Table::CELLS + 67;
    const TOP: u32 = Table::EDGE + 14 * 9 * 9;
    const COUNT_OF_ALL: usize = (Table::TOP + 23 * 23) as usize;
}

/// Returns `value` limited to `-limit..=limit`, plus `limit`.
#[inline(always)]
fn limited(value: i32, limit: i32) -> u32 {
    (value.clamp(-limit, limit) + limit) as u32
}

/// Returns the patterns of a board.
#[inline(always)]
pub fn patterns(board: &Board) -> Patterns {
    let profile = Profile::of(board);
    let mut patterns = [0; PATTERNS];
    let heights = &profile.heights;
    let steps: [i32; STACK] = std::array::from_fn(|x| heights[x + 1] - heights[x]);
    let highest = profile.highest as u32;
    let level = (highest / 5).min(LEVELS - 1);
    let window = |x: usize, length: usize, limit: i32| {
        let base = 2 * limit as u32 + 1;
        let mut number = x as u32;
        for &step in &steps[x..x + length] {
            number = number * base + limited(step, limit);
        }
        number
    };
    for (x, pattern) in patterns[..5].iter_mut().enumerate() {
        *pattern = Table::FIVE_COLUMNS + window(x, 4, 3);
    }
    for (x, pattern) in patterns[5..9].iter_mut().enumerate() {
        *pattern = Table::SIX_COLUMNS + window(x, 5, 2);
    }
    for (x, pattern) in patterns[9..15].iter_mut().enumerate() {
        *pattern = Table::FOUR_COLUMNS + window(x, 3, 4) * LEVELS + level;
    }
    let well = heights[STACK];
    let ready = profile.ready.min(5) as u32;
    let lowest = heights[..STACK].iter().copied().min().unwrap_or(0);
    let rows = profile.covered_rows.count_ones();
    let imbalance: i32 = (0..STACK)
        .map(|x| (heights[x] & 1) * (1 - 2 * (x as i32 & 1)))
        .sum();
    let cells: i32 = heights[..STACK].iter().sum();
    let middle = heights[3..7].iter().copied().max().unwrap_or(0);
    let left = heights[..3].iter().copied().max().unwrap_or(0);
    let scalars = [
        Table::COVERED + (highest * 9 + profile.covered.min(8)) * 6 + ready,
        Table::WELL
            + (well.min(7) as u32 * 6 + ready) * 10
            + ((lowest - well).clamp(-1, 8) + 1) as u32,
        Table::COVERED_ROWS + (rows.min(5) * 11 + profile.above_covered.min(10)) * 12 + highest / 2,
        Table::FIRST_COVERED + first_covered(board, &profile),
        Table::TRANSITIONS + profile.transitions.min(31) as u32 * 5 + rows.min(4),
        Table::PARITY + limited(imbalance, 5) * LEVELS + level,
        Table::PITS
            + ((profile.deep_pits.min(3) * 4 + profile.shallow_pits.min(3)) as u32 * 2
                + u32::from(ready >= 4))
                * LEVELS
            + level,
        Table::KINDS + profile.kinds * 8 + highest / 3,
        Table::CELLS + cells as u32 / 3,
        Table::EDGE
            + ((steps[8].clamp(-10, 3) + 10) as u32 * 9 + limited(steps[7], 4)) * 9
            + limited(steps[6], 4),
        Table::TOP + middle as u32 * 23 + left as u32,
    ];
    patterns[15..26].copy_from_slice(&scalars);
    for (x, pattern) in patterns[26..].iter_mut().enumerate() {
        *pattern = Table::COLUMN + x as u32 * 20 + covered_in_column(board, x);
    }
    patterns
}

/// Returns a number below 20 for the covered cells of a column and the filled cells above the highest of them.
#[inline(always)]
fn covered_in_column(board: &Board, x: usize) -> u32 {
    let column = board.columns[x];
    let empty = !column & board.mask() & !(column & column.wrapping_neg()).wrapping_sub(1);
    if column == 0 || empty == 0 {
        return 0;
    }
    let above = column & (empty & empty.wrapping_neg()).wrapping_sub(1);
    empty.count_ones().min(3) * 5 + above.count_ones().min(4)
}

/// Returns a number for the highest covered cells: the number of empty cells in the row above them, the number of
/// filled cells of their column above them, and the height of the stack. Without covered cells the number is 0.
#[inline(always)]
fn first_covered(board: &Board, profile: &Profile) -> u32 {
    let row = profile.covered_rows & profile.covered_rows.wrapping_neg();
    if row == 0 {
        return 0;
    }
    let (mut missing, mut thickest) = (0, 0);
    for &column in &board.columns {
        missing += u32::from(column & row >> 1 == 0);
        if column & row == 0 {
            let above = (column & (row - 1)).count_ones();
            thickest = above.max(thickest);
        }
    }
    1 + (missing.min(10) * 6 + thickest.min(5)) * 8 + profile.highest as u32 / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::nes::Rows;

    #[test]
    fn patterns_of_random_boards_are_different_weights() {
        let mut rng = Rng::new(5);
        for number in 0..20_000 {
            let rows = Rows::ALL[number % 3];
            let top = rows.count() - rng.below(rows.kept() + 1);
            let mut board = Board::empty(rows);
            let filled = 1 + rng.below(9);
            for column in &mut board.columns {
                for y in top..rows.count() {
                    *column |= u32::from(rng.below(10) < filled) << y;
                }
            }
            let mut patterns = patterns(&board);
            patterns.sort_unstable();
            assert!(patterns.windows(2).all(|pair| pair[0] < pair[1]), "{board}");
            assert!((patterns[PATTERNS - 1] as usize) < PATTERN_WEIGHTS);
        }
    }
}
