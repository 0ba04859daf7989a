//! Measures of a board for an evaluator of players who keep the rightmost column, the well, open for pieces I, because
//! a tetris (four rows cleared at once) gives far more points than the same rows one by one.

use super::board::{Board, WIDTH};
use super::features::{DEEP, WALL, well_depth};

/// Number of columns outside the well.
pub(super) const STACK: usize = WIDTH - 1;

/// Measures of a board. The stack is the columns outside the well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    /// Heights of the columns.
    pub(super) heights: [i32; WIDTH],
    /// Mask of the rows with covered cells. A covered cell is an empty cell below a filled cell of its column.
    pub(super) covered_rows: u32,
    /// Number of covered cells.
    pub(super) covered: u32,
    /// Number of filled cells above the highest covered cell of their column.
    pub(super) above_covered: u32,
    /// Number of ready rows: they are full except for the well, and no other row separates them from the filled cells
    /// in the well.
    pub(super) ready: i32,
    /// Number of columns of the stack whose depth below the lower neighbour is two.
    pub(super) shallow_pits: i32,
    /// Number of columns of the stack whose depth below the lower neighbour is at least three.
    pub(super) deep_pits: i32,
    /// Number of changes between filled and empty cells along the rows of the stack, with walls on both sides.
    pub(super) transitions: i32,
    /// Mask of the differences from −2 to 2 that exist between neighbouring columns of the stack.
    pub(super) kinds: u32,
    /// Height of the highest column of the stack.
    pub(super) highest: i32,
}

impl Profile {
    /// Measures a board.
    #[inline(always)]
    pub(super) fn of(board: &Board) -> Profile {
        let rows = board.rows.count() as i32;
        let all = board.mask();
        let (mut covered_rows, mut covered, mut above_covered) = (0u32, 0, 0);
        let mut heights = [0i32; WIDTH];
        for (height, &column) in heights.iter_mut().zip(&board.columns) {
            let top = column.trailing_zeros().min(rows as u32);
            *height = rows - top as i32;
            let empty = !column & all & (u32::MAX << top);
            covered_rows |= empty;
            covered += empty.count_ones();
            let highest = empty & empty.wrapping_neg();
            above_covered +=
                (column & highest.wrapping_sub(1)).count_ones() * u32::from(highest != 0);
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
        let (mut shallow_pits, mut deep_pits) = (0, 0);
        let (mut kinds, mut highest, mut transitions) = (0u32, 0, 0);
        let wall = i32::from(WALL);
        for x in 0..STACK {
            let left = if x > 0 { heights[x - 1] } else { wall };
            let right = if x + 1 < STACK { heights[x + 1] } else { wall };
            let pit = well_depth(left, heights[x], right);
            shallow_pits += i32::from(pit == DEEP - 1);
            deep_pits += i32::from(pit >= DEEP);
            highest = highest.max(heights[x]);
            if x > 0 {
                let step = heights[x] - left;
                if step.abs() <= 2 {
                    kinds |= 1 << (step + 2);
                }
                transitions += (board.columns[x] ^ board.columns[x - 1]).count_ones() as i32;
            }
        }
        let pile = all & !((1u32 << (rows - highest)) - 1);
        transitions += (pile & !board.columns[0]).count_ones() as i32;
        transitions += (pile & !board.columns[STACK - 1]).count_ones() as i32;
        Profile {
            heights,
            covered_rows,
            covered,
            above_covered,
            ready,
            shallow_pits,
            deep_pits,
            transitions,
            kinds,
            highest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::nes::Rows;

    /// Measures a board cell by cell. `cell(x, y)` is whether the cell in column `x` and row `y` is filled.
    fn slow_profile(cell: impl Fn(usize, usize) -> bool, rows: usize) -> Profile {
        let height = |x: usize| (0..rows).find(|&y| cell(x, y)).map_or(0, |top| rows - top);
        let is_covered = |x: usize, y: usize| !cell(x, y) && y > rows - height(x);
        let heights: [i32; WIDTH] = std::array::from_fn(|x| height(x) as i32);
        let cells = || (0..WIDTH).flat_map(|x| (0..rows).map(move |y| (x, y)));
        let is_above = |&(x, y): &(usize, usize)| {
            let covered = (0..rows).find(|&y| is_covered(x, y));
            cell(x, y) && covered.is_some_and(|covered| y < covered)
        };
        let is_ready = |y: &usize| (0..STACK).all(|x| cell(x, *y));
        let pits: Vec<i32> = (0..STACK)
            .map(|x| {
                let left = if x > 0 { heights[x - 1] } else { 99 };
                let right = if x + 1 < STACK { heights[x + 1] } else { 99 };
                left.min(right) - heights[x]
            })
            .collect();
        let highest = heights[..STACK].iter().copied().max().unwrap();
        let changes = |y: usize| {
            let row: Vec<bool> = (0..STACK).map(|x| cell(x, y)).collect();
            let inside = row.windows(2).filter(|pair| pair[0] != pair[1]).count();
            inside as i32 + i32::from(!row[0]) + i32::from(!row[STACK - 1])
        };
        let steps: Vec<i32> = (1..STACK).map(|x| heights[x] - heights[x - 1]).collect();
        Profile {
            heights,
            covered_rows: (0..rows)
                .filter(|&y| (0..WIDTH).any(|x| is_covered(x, y)))
                .fold(0, |mask, y| mask | 1 << y),
            covered: cells().filter(|&(x, y)| is_covered(x, y)).count() as u32,
            above_covered: cells().filter(is_above).count() as u32,
            ready: (0..rows - height(STACK)).rev().take_while(is_ready).count() as i32,
            shallow_pits: pits.iter().filter(|&&pit| pit == 2).count() as i32,
            deep_pits: pits.iter().filter(|&&pit| pit > 2).count() as i32,
            transitions: (rows - highest as usize..rows).map(changes).sum(),
            kinds: (0..5)
                .filter(|kind| steps.contains(&(kind - 2)))
                .fold(0, |mask, kind| mask | 1 << kind),
            highest,
        }
    }

    #[test]
    fn profile_equals_cell_by_cell_computation() {
        let mut rng = Rng::new(5);
        for number in 0..3000 {
            let rows = Rows::ALL[number % 3];
            let top = rows.count() - 1 - rng.below(rows.kept() - 1);
            let mut board = Board::empty(rows);
            for (x, column) in board.columns.iter_mut().enumerate() {
                for y in top..rows.count() {
                    let is_filled = rng.below(8) > 0 && (x < STACK || number % 2 == 0);
                    *column |= u32::from(is_filled) << y;
                }
            }
            let cell = |x: usize, y: usize| board.columns[x] >> y & 1 == 1;
            let slow = slow_profile(cell, rows.count());
            assert_eq!(Profile::of(&board), slow, "{board}");
        }
    }
}
