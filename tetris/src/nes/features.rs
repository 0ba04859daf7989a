//! The 17 features with which the program of a published article evaluates moves in Nintendo Tetris, and its weights.
//! The value of a move is the weighted sum of its features; lower values are better.

use super::board::{Board, WIDTH};
use super::placements::Placement;
use super::shapes::column_shape;
use crate::Piece;
use crate::bits::position_sum;

/// Number of features.
pub const FEATURES: usize = 17;

/// Names of the features, in the order of [`Features`].
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

/// Published weights of the search over two pieces.
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

/// Order in which the published program adds the weighted features after the first one. The rounding of a
/// floating-point sum depends on the order, so the same order is required to reproduce the published results.
const ORDER: [usize; 16] = [1, 11, 2, 3, 5, 4, 6, 7, 8, 10, 9, 14, 15, 16, 12, 13];

/// Term that replaces the weighted number of rows cleared if a move clears four rows (a tetris).
pub const TETRIS: f64 = -1e9;

/// Values of the features for a move, in the order of [`FEATURE_NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub [i32; FEATURES]);

impl Features {
    /// Computes the features of a placement.
    pub fn of(board: &Board, piece: Piece, placement: Placement) -> Features {
        let locked = board.lock(piece, placement);
        let bottom = column_shape(piece, placement.orientation).bottom;
        let mut features = Features::of_board(&locked.board);
        features.0[0] = i32::from(locked.lines);
        features.0[1] = lock_height(placement, bottom);
        features
    }

    /// Computes the features of a board, with 0 for rows cleared and for the lock height.
    pub fn of_board(board: &Board) -> Features {
        let rows = board.rows.kept();
        let bits = board
            .columns
            .map(|column| column >> (board.rows.count() - rows));
        let columns = bits.map(|bits| ColumnFeatures::of(bits, rows as i32));
        Features::of_columns(&bits, &columns)
    }

    /// Computes the features of a board with these columns, with 0 for rows cleared and for the lock height. `bits` are the
    /// cells of each column.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn of_columns(bits: &[u32; WIDTH], columns: &[ColumnFeatures; WIDTH]) -> Features {
        let mut counts = [0i16; 8];
        let mut extremes = [0i16; 8];
        let mut heights = [i32::from(WALL); WIDTH + 2];
        for (column, height) in columns.iter().zip(&mut heights[1..]) {
            for lane in 0..8 {
                counts[lane] += column.counts[lane];
                extremes[lane] = extremes[lane].max(column.extremes[lane]);
            }
            *height = i32::from(column.extremes[0]);
        }
        let [pile, lowest, max_depth, min_depth, ..] = extremes.map(i32::from);
        // The cells of a wall up to the pile's height are filled.
        let walls = bits[0].count_ones() + bits[WIDTH - 1].count_ones();
        let mut transitions = 2 * pile - walls as i32;
        let (mut wells, mut deep_wells, mut variance) = (0, 0, 0);
        for x in 1..=WIDTH {
            let depth = well_depth(heights[x - 1], heights[x], heights[x + 1]);
            wells += depth;
            deep_wells += i32::from(depth >= DEEP);
        }
        for x in 1..WIDTH {
            transitions += (bits[x - 1] ^ bits[x]).count_ones() as i32;
            variance += (heights[x] - heights[x + 1]).abs();
        }
        let mut features = [0; FEATURES];
        for (&feature, count) in SUMMED.iter().zip(counts) {
            features[feature] = i32::from(count);
        }
        features[2] = wells;
        features[3] = deep_wells;
        features[7] = i32::from(DEEPEST) - min_depth;
        features[8] = max_depth;
        features[10] = transitions;
        features[12] = pile;
        features[13] = pile + lowest - i32::from(DEEPEST);
        features[16] = variance;
        Features(features)
    }

    /// Returns the value, which is the weighted sum of the features. If four rows were cleared, the first term is −10⁹.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
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

/// Returns the lock height of a piece whose lowest cell is `bottom` rows below its centre.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(super) fn lock_height(placement: Placement, bottom: i8) -> i32 {
    19 - i32::from(placement.y) - i32::from(bottom)
}

/// Returns the depth of the well in a column with neighbours of these heights.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(super) fn well_depth(left: i32, own: i32, right: i32) -> i32 {
    (left.min(right) - own).max(0)
}

/// Minimum depth of a deep well, which only a piece I fills without covering a cell.
pub(super) const DEEP: i32 = 3;
/// Height that represents a wall. It is greater than the height of any column.
pub(super) const WALL: i16 = 64;
/// Number that is greater than the height of any column and the depth of any hole.
pub(super) const DEEPEST: i16 = 63;

/// The features that are sums over the columns, in the order of [`ColumnFeatures::counts`].
pub(super) const SUMMED: [usize; 7] = [4, 5, 6, 9, 11, 14, 15];

/// What a column contributes to the features of a board.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColumnFeatures {
    /// The numbers that are added, in the order of [`SUMMED`]. Eight numbers fill a vector register.
    pub(super) counts: [i16; 8],
    /// The numbers of which the maximum counts: the height, [`DEEPEST`] minus the height, the maximum depth of a hole, and
    /// [`DEEPEST`] minus the minimum depth of a hole.
    pub(super) extremes: [i16; 8],
}

impl ColumnFeatures {
    /// Computes the contribution of a column with `rows` rows. Bit 0 is the top row.
    pub(super) fn of(bits: u32, rows: i32) -> ColumnFeatures {
        let top = bits.trailing_zeros().min(rows as u32) as i32;
        // Empty cells directly below a filled cell.
        let holes = !bits & bits << 1 & ((1 << rows) - 1);
        let (solid, hole_count) = (bits.count_ones() as i32, holes.count_ones() as i32);
        let hole_rows = position_sum(holes.into()).0;
        let changes = ((bits ^ bits >> 1) & ((1 << (rows - 1)) - 1)).count_ones() as i32;
        // The change between the highest filled cell and the empty cell above it does not count.
        let transitions = changes - i32::from(top > 0 && bits != 0);
        let (min_depth, max_depth) = match holes {
            0 => (rows, 0),
            holes => (
                holes.trailing_zeros() as i32 - top,
                31 - holes.leading_zeros() as i32 - top,
            ),
        };
        let height = rows - top;
        let counts = [
            hole_count,
            hole_rows + hole_count,
            hole_rows - top * hole_count,
            transitions,
            height,
            solid,
            solid * rows - position_sum(bits.into()).0,
            0,
        ];
        let deepest = i32::from(DEEPEST);
        let extremes = [
            height,
            deepest - height,
            max_depth,
            deepest - min_depth,
            0,
            0,
            0,
            0,
        ];
        ColumnFeatures {
            counts: counts.map(|count| count as i16),
            extremes: extremes.map(|extreme| extreme as i16),
        }
    }
}
