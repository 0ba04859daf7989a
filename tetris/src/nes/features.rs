//! The 17 features of the published evaluator. Lower values are better.

use super::board::{Board, WIDTH};
use super::placements::Placement;
use super::shapes::shape;
use crate::Piece;
use crate::bits::position_sum;

/// Number of features.
pub const FEATURES: usize = 17;

/// Names of the features in their order.
pub const FEATURE_NAMES: [&str; FEATURES] = [
    "total_lines_cleared",
    "total_lock_height",
    "total_well_cells",
    "total_deep_wells",
    "total_column_holes",
    "total_weighted_column_holes",
    "total_column_hole_depths",
    "min_column_hole_depth",
    "max_column_hole_depth",
    "total_column_transitions",
    "total_row_transitions",
    "total_column_heights",
    "pile_height",
    "column_height_spread",
    "total_solid_cells",
    "total_weighted_solid_cells",
    "column_height_variance",
];

/// Weights of the features.
pub type Weights = [f64; FEATURES];

/// The published weights of the search over two pieces.
pub const WEIGHTS_BFS: Weights = [
    1.3282276908835944,
    9.846486271141757,
    4.817405627908283,
    9.715318036996814,
    -0.3670680101477659,
    5.703404711483374,
    16.933976984606,
    -2.1566052875561645,
    -2.7180258387245666,
    25.267981421496216,
    7.442511110663138,
    -0.4544756287577343,
    -8.898999264633806,
    -7.348894765418918,
    -17.902523404085525,
    1.4689699217835734,
    3.935193440623512,
];

/// The published weights that were trained on the best third of the games.
pub const WEIGHTS_BFS33: Weights = [
    -17.37233996631332,
    28.032583469672563,
    8.52980839496593,
    4.673047216968814,
    3.3658061823316774,
    13.948481766043546,
    20.78424570566947,
    -1.326729334533776,
    -0.9835968812725122,
    15.402246892927103,
    14.048767543947946,
    1.346590538832542,
    -22.174089219891346,
    -5.929824743493188,
    -23.395030316984354,
    1.241488019180518,
    0.9258750629698255,
];

/// Order in which the published program adds the weighted features after the first term. Sums of floating-point
/// numbers depend on it, and equal results depend on the sums.
const ORDER: [usize; 16] = [1, 11, 2, 3, 5, 4, 6, 7, 8, 10, 9, 14, 15, 16, 12, 13];

/// Value of a move that clears four lines, in place of its weighted number of lines.
const TETRIS: f64 = -1e9;

/// The features of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub [i32; FEATURES]);

impl Features {
    /// Computes the features of a placement.
    pub fn of(board: &Board, piece: Piece, placement: Placement) -> Features {
        let locked = board.lock(piece, placement);
        let lock_height = lock_height(piece, placement);
        BoardSums::of(&locked.board).features(locked.lines, lock_height)
    }

    /// Returns the value: the weighted sum, with −10⁹ in place of the first term if four lines were cleared.
    #[inline]
    pub fn value(&self, weights: &Weights) -> f64 {
        let mut sum = match self.0[0] {
            4 => TETRIS,
            lines => weights[0] * f64::from(lines),
        };
        for feature in ORDER {
            sum += weights[feature] * f64::from(self.0[feature]);
        }
        sum
    }
}

/// Number of rows between the lowest cell of a piece and the floor.
#[inline]
fn lock_height(piece: Piece, placement: Placement) -> i32 {
    let lowest = shape(piece, placement.orientation)
        .iter()
        .map(|cell| cell.1)
        .max();
    let row = i32::from(placement.y) + i32::from(lowest.unwrap_or(0));
    19 - row
}

/// Counts of one column that add up over the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ColumnSums {
    height: i32,
    holes: i32,
    weighted_holes: i32,
    hole_depths: i32,
    min_depth: i32,
    max_depth: i32,
    transitions: i32,
    solid: i32,
    weighted_solid: i32,
}

/// Counts of a board from which the features of every move that leads to it are made.
#[derive(Clone, Copy, Debug)]
pub struct BoardSums {
    columns: [ColumnSums; WIDTH],
    row_transitions: i32,
    rows: i32,
}

impl ColumnSums {
    /// Counts a column of `rows` rows; the highest row has bit 0.
    #[inline]
    fn of(column: u32, rows: i32) -> ColumnSums {
        if column == 0 {
            return ColumnSums {
                min_depth: rows,
                ..ColumnSums::default()
            };
        }
        let top = column.trailing_zeros() as i32;
        let all = (1u32 << rows) - 1;
        let (positions, solid) = position_sum(u64::from(column));
        let hole_bits = !column & column << 1 & all;
        let (hole_positions, holes) = position_sum(u64::from(hole_bits));
        let changes = ((column ^ column >> 1) & all >> 1).count_ones() as i32;
        ColumnSums {
            height: rows - top,
            holes,
            weighted_holes: hole_positions + holes,
            hole_depths: hole_positions - top * holes,
            min_depth: if holes == 0 {
                rows
            } else {
                hole_bits.trailing_zeros() as i32 - top
            },
            max_depth: if holes == 0 {
                0
            } else {
                31 - hole_bits.leading_zeros() as i32 - top
            },
            // The change from the air to the column's top does not count.
            transitions: changes - i32::from(top > 0),
            solid,
            weighted_solid: solid * rows - positions,
        }
    }
}

impl BoardSums {
    /// Counts a board.
    pub fn of(board: &Board) -> BoardSums {
        let rows = board.rows.kept() as i32;
        let shift = board.rows.count() as i32 - rows;
        let columns: [u32; WIDTH] = board.columns.map(|column| column >> shift);
        BoardSums {
            columns: columns.map(|column| ColumnSums::of(column, rows)),
            row_transitions: row_transitions(&columns),
            rows,
        }
    }

    /// Returns the features of a move that leads to this board.
    pub fn features(&self, lines: u8, lock_height: i32) -> Features {
        let mut sums = ColumnSums {
            min_depth: self.rows,
            ..ColumnSums::default()
        };
        let (mut highest, mut lowest) = (0, i32::MAX);
        let (mut well_cells, mut deep_wells, mut steps) = (0, 0, 0);
        for (x, column) in self.columns.iter().enumerate() {
            sums.height += column.height;
            sums.holes += column.holes;
            sums.weighted_holes += column.weighted_holes;
            sums.hole_depths += column.hole_depths;
            sums.min_depth = sums.min_depth.min(column.min_depth);
            sums.max_depth = sums.max_depth.max(column.max_depth);
            sums.transitions += column.transitions;
            sums.solid += column.solid;
            sums.weighted_solid += column.weighted_solid;
            highest = highest.max(column.height);
            lowest = lowest.min(column.height);
            // Walls are higher than any column.
            let left = if x > 0 {
                self.columns[x - 1].height
            } else {
                64
            };
            let right = if x < WIDTH - 1 {
                self.columns[x + 1].height
            } else {
                64
            };
            let depth = (left.min(right) - column.height).max(0);
            well_cells += depth;
            deep_wells += i32::from(depth >= 3);
            if x > 0 {
                steps += (left - column.height).abs();
            }
        }
        Features([
            i32::from(lines),
            lock_height,
            well_cells,
            deep_wells,
            sums.holes,
            sums.weighted_holes,
            sums.hole_depths,
            sums.min_depth,
            sums.max_depth,
            sums.transitions,
            self.row_transitions + 2 * highest,
            sums.height,
            highest,
            highest - lowest,
            sums.solid,
            sums.weighted_solid,
            steps,
        ])
    }
}

/// Changes between filled and empty along all rows. Above the pile only the walls would count, so their part is
/// written as −(filled cells of the outer columns), to which twice the pile's height is added later.
fn row_transitions(columns: &[u32; WIDTH]) -> i32 {
    let between: u32 = columns
        .windows(2)
        .map(|pair| (pair[0] ^ pair[1]).count_ones())
        .sum();
    let outer = columns[0].count_ones() + columns[WIDTH - 1].count_ones();
    between as i32 - outer as i32
}
