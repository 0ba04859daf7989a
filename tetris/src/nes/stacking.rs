//! An evaluator for players who keep the rightmost column, the well, open for pieces I and score with tetrises (four
//! rows cleared at once). The value of a board and of cleared rows is a weighted sum of features; lower values are
//! better.

use super::board::{Board, WIDTH};
use super::features::Valued;
use super::placements::Placements;
use crate::Piece;

/// Number of features.
pub const STACKING_FEATURES: usize = 18;

/// Names of the features, in the order of [`StackingWeights`].
pub const STACKING_FEATURE_NAMES: [&str; STACKING_FEATURES] = [
    "tetrises",
    "other_cleared_rows",
    "covered_cells",
    "rows_with_covered_cells",
    "cells_above_covered_cells",
    "holes",
    "well_height",
    "ready_rows",
    "ready_tetrises",
    "steps",
    "high_steps",
    "pit_cells",
    "deep_pits",
    "row_transitions",
    "missing_steps",
    "height",
    "height_above_8_squared",
    "height_above_14_squared",
];

/// Weights of the features.
pub type StackingWeights = [f64; STACKING_FEATURES];

/// Weights that were selected by hand in games with other pieces than those of the article.
pub const WEIGHTS_STACKING: StackingWeights = [
    -67.0, 10.0, 33.0, 11.0, 4.0, 7.8, 15.0, -3.2, -9.9, 1.9, 2.3, 1.6, 4.0, 4.0, 3.7, 2.0, 4.0,
    10.0,
];

/// Index of the first feature that depends only on the board.
const BOARD_FEATURES: usize = 2;
/// Number of columns outside the well.
const STACK: usize = WIDTH - 1;
/// Height that represents a wall. It is greater than the height of any column.
const WALL: i32 = 64;
/// Depth at which only a piece I fills a pit without covering a cell.
const DEEP: i32 = 3;

/// Returns the value of rows that one piece clears.
#[inline(always)]
pub fn lines_value(lines: u8, weights: &StackingWeights) -> f64 {
    match lines {
        4 => weights[0],
        lines => weights[1] * f64::from(lines),
    }
}

/// Writes every placement of a piece to `values`, with the value of the cleared rows and of the board after it.
/// `placements` is a buffer, which is overwritten.
pub fn evaluate_stacking(
    board: &Board,
    piece: Piece,
    weights: &StackingWeights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    #[cfg(target_arch = "x86_64")]
    if fast::available() {
        return fast::evaluate(board, piece, weights, placements, values);
    }
    evaluate_portable(board, piece, weights, placements, values);
}

/// Implements [`evaluate_stacking`]. The function is inlined, so it is compiled for the caller's instruction sets.
#[inline(always)]
fn evaluate_portable(
    board: &Board,
    piece: Piece,
    weights: &StackingWeights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    values.clear();
    placements.find_inline(board, piece);
    for &placement in placements.list() {
        let locked = board.lock(piece, placement);
        let features = stacking_features(&locked.board);
        let mut value = lines_value(locked.lines, weights);
        for (weight, feature) in weights[BOARD_FEATURES..].iter().zip(features) {
            value += weight * f64::from(feature);
        }
        values.push(Valued { placement, value });
    }
}

/// A version of [`evaluate_portable`] that is compiled for processors with AVX2 and bit-counting instructions.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod fast {
    use super::{Board, Piece, Placements, StackingWeights, Valued, evaluate_portable};

    pub(super) fn available() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
    }

    pub(super) fn evaluate(
        board: &Board,
        piece: Piece,
        weights: &StackingWeights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) {
        assert!(available());
        // SAFETY: the assertion above checks that the processor has every instruction set for which the function is
        // compiled. The function contains only safe code.
        unsafe { with_avx2(board, piece, weights, placements, values) }
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn with_avx2(
        board: &Board,
        piece: Piece,
        weights: &StackingWeights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) {
        evaluate_portable(board, piece, weights, placements, values);
    }
}

/// Returns the features of a board, in the order of [`STACKING_FEATURE_NAMES`] without the features of cleared rows.
///
/// A covered cell is an empty cell below a filled cell of its column, and a hole is a covered cell right below a filled
/// cell. A ready row is full except for the well, and no other row separates it from the filled cells in the well.
#[inline(always)]
fn stacking_features(board: &Board) -> [i32; STACKING_FEATURES - BOARD_FEATURES] {
    let rows = board.rows.count() as i32;
    let all = board.mask();
    let (mut covered_rows, mut covered, mut above_covered, mut holes) = (0u32, 0, 0, 0);
    let mut heights = [0i32; WIDTH];
    for (height, &column) in heights.iter_mut().zip(&board.columns) {
        let top = column.trailing_zeros().min(rows as u32);
        *height = rows - top as i32;
        let empty = !column & all & (u32::MAX << top);
        covered_rows |= empty;
        covered += empty.count_ones();
        holes += (empty & column << 1).count_ones();
        let highest = empty & empty.wrapping_neg();
        above_covered += (column & highest.wrapping_sub(1)).count_ones() * u32::from(highest != 0);
    }
    let full = board.columns[..STACK]
        .iter()
        .fold(all, |full, column| full & column);
    let well = rows - heights[STACK];
    let ready = if well > 0 {
        (full << (32 - well)).leading_ones() as i32
    } else {
        0
    };
    let (mut steps, mut high_steps, mut pit_cells, mut deep_pits, mut kinds) = (0, 0, 0, 0, 0u32);
    let mut highest = 0;
    let mut transitions = 0;
    for x in 0..STACK {
        let left = if x > 0 { heights[x - 1] } else { WALL };
        let right = if x + 1 < STACK { heights[x + 1] } else { WALL };
        let pit = (left.min(right) - heights[x]).max(0);
        pit_cells += pit * (pit + 1) / 2;
        deep_pits += i32::from(pit >= DEEP);
        highest = highest.max(heights[x]);
        if x > 0 {
            let step = heights[x] - left;
            steps += step.abs();
            high_steps += (step.abs() - 2).max(0);
            if step.abs() <= 2 {
                kinds |= 1 << (step + 2);
            }
            transitions += (board.columns[x] ^ board.columns[x - 1]).count_ones() as i32;
        }
    }
    let pile = all & !((1u32 << (rows - highest)) - 1);
    transitions += (pile & !board.columns[0]).count_ones() as i32;
    transitions += (pile & !board.columns[STACK - 1]).count_ones() as i32;
    let square = |excess: i32| excess.max(0) * excess.max(0);
    [
        covered as i32,
        covered_rows.count_ones() as i32,
        above_covered as i32,
        holes as i32,
        heights[STACK],
        ready,
        i32::from(ready >= 4),
        steps,
        high_steps,
        pit_cells,
        deep_pits,
        transitions,
        5 - kinds.count_ones() as i32,
        highest,
        square(highest - 8),
        square(highest - 14),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::nes::Rows;

    /// Computes the features cell by cell. `cell(x, y)` is whether the cell in column `x` and row `y` is filled.
    fn slow_features(cell: impl Fn(usize, usize) -> bool, rows: usize) -> [i32; 16] {
        let height = |x: usize| (0..rows).find(|&y| cell(x, y)).map_or(0, |top| rows - top);
        let is_covered = |x: usize, y: usize| !cell(x, y) && y > rows - height(x);
        let heights: Vec<i32> = (0..10).map(|x| height(x) as i32).collect();
        let cells = || (0..10).flat_map(|x| (0..rows).map(move |y| (x, y)));
        let mut features = [0; 16];
        features[0] = cells().filter(|&(x, y)| is_covered(x, y)).count() as i32;
        let has_covered = |y: &usize| (0..10).any(|x| is_covered(x, *y));
        features[1] = (0..rows).filter(has_covered).count() as i32;
        let above = |&(x, y): &(usize, usize)| {
            let covered = (0..rows).find(|&y| is_covered(x, y));
            cell(x, y) && covered.is_some_and(|covered| y < covered)
        };
        features[2] = cells().filter(above).count() as i32;
        let is_hole = |&(x, y): &(usize, usize)| y > 0 && cell(x, y - 1) && !cell(x, y);
        features[3] = cells().filter(is_hole).count() as i32;
        features[4] = heights[9];
        let is_ready = |y: &usize| (0..9).all(|x| cell(x, *y));
        features[5] = (0..rows - heights[9] as usize)
            .rev()
            .take_while(is_ready)
            .count() as i32;
        features[6] = i32::from(features[5] >= 4);
        let steps: Vec<i32> = (1..9).map(|x| heights[x] - heights[x - 1]).collect();
        features[7] = steps.iter().map(|step| step.abs()).sum();
        features[8] = steps.iter().map(|step| (step.abs() - 2).max(0)).sum();
        for x in 0..9 {
            let left = if x > 0 { heights[x - 1] } else { 99 };
            let right = if x < 8 { heights[x + 1] } else { 99 };
            let pit = left.min(right) - heights[x];
            features[9] += (1..=pit).sum::<i32>();
            features[10] += i32::from(pit >= 3);
        }
        let highest = heights[..9].iter().copied().max().unwrap();
        for y in rows - highest as usize..rows {
            let row: Vec<bool> = (0..9).map(|x| cell(x, y)).collect();
            let changes = row.windows(2).filter(|pair| pair[0] != pair[1]).count();
            features[11] += changes as i32 + i32::from(!row[0]) + i32::from(!row[8]);
        }
        features[12] = (-2..=2).filter(|step| !steps.contains(step)).count() as i32;
        features[13] = highest;
        features[14] = (highest - 8).max(0).pow(2);
        features[15] = (highest - 14).max(0).pow(2);
        features
    }

    #[test]
    fn features_equal_cell_by_cell_computation() {
        let mut rng = Rng::new(5);
        for number in 0..3000 {
            let rows = Rows::ALL[number % 3];
            let top = rows.count() - 1 - rng.below(rows.kept() - 1);
            let mut board = Board::empty(rows);
            for (x, column) in board.columns.iter_mut().enumerate() {
                for y in top..rows.count() {
                    let is_filled = rng.below(8) > 0 && (x < 9 || number % 2 == 0);
                    *column |= u32::from(is_filled) << y;
                }
            }
            let cell = |x: usize, y: usize| board.columns[x] >> y & 1 == 1;
            let slow = slow_features(cell, rows.count());
            assert_eq!(stacking_features(&board), slow, "{board}");
        }
    }
}
