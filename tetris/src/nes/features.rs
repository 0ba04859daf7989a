//! The 17 features with which the program of a published article evaluates moves in Nintendo Tetris, and its weights.
//! The value of a move is the weighted sum of its features; lower values are better.

use super::board::{Board, WIDTH};
use super::placements::{Placement, Placements};
use super::shapes::{ColumnShape, column_shape};
use crate::Piece;

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

/// Other published weights, whose training used only the best third of the games.
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

/// Order in which the published program adds the weighted features after the first one. The rounding of a
/// floating-point sum depends on the order, so the same order is required to reproduce the published results.
const ORDER: [usize; 16] = [1, 11, 2, 3, 5, 4, 6, 7, 8, 10, 9, 14, 15, 16, 12, 13];

/// Term that replaces the weighted number of rows cleared if a move clears four rows.
const TETRIS: f64 = -1e9;

/// Values of the features for a move, in the order of [`FEATURE_NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub [i32; FEATURES]);

impl Features {
    /// Computes the features of a placement.
    pub fn of(board: &Board, piece: Piece, placement: Placement) -> Features {
        BoardSums::of(board).features_after(piece, placement)
    }

    /// Returns the value, which is the weighted sum of the features. If four rows were cleared, the first term is −10⁹.
    #[inline(always)]
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

/// A placement and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Valued {
    /// The placement.
    pub placement: Placement,
    /// Value of the placement; lower is better.
    pub value: f64,
}

/// Writes every placement of a piece and its value to `values`. `placements` is a buffer, which is overwritten.
pub fn evaluate_all(
    board: &Board,
    piece: Piece,
    weights: &Weights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    #[cfg(target_arch = "x86_64")]
    if fast::available() {
        return fast::evaluate_all(board, piece, weights, placements, values);
    }
    evaluate_all_portable(board, piece, weights, placements, values);
}

/// Implements [`evaluate_all`]. The function is inlined, so it is compiled for the caller's instruction sets.
#[inline(always)]
fn evaluate_all_portable(
    board: &Board,
    piece: Piece,
    weights: &Weights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    values.clear();
    placements.find_inline(board, piece);
    if placements.list().is_empty() {
        return;
    }
    let sums = BoardSums::of(board);
    // This is a loop, because a closure would not be compiled for the caller's instruction sets.
    for &placement in placements.list() {
        let value = sums.features_after(piece, placement).value(weights);
        values.push(Valued { placement, value });
    }
}

/// A version of [`evaluate_all_portable`] that is compiled for processors with AVX2 and bit-counting instructions.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub(super) mod fast {
    use super::{Board, Piece, Placements, Valued, Weights, evaluate_all_portable};

    /// Returns whether the processor has the instruction sets for which the functions of this module are compiled.
    pub(in crate::nes) fn available() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
    }

    pub(super) fn evaluate_all(
        board: &Board,
        piece: Piece,
        weights: &Weights,
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
        weights: &Weights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) {
        evaluate_all_portable(board, piece, weights, placements, values);
    }
}

// Indices into `Counts`.
const HOLES: usize = 0;
const WEIGHTED_HOLES: usize = 1;
const HOLE_DEPTHS: usize = 2;
const TRANSITIONS: usize = 3;
const HEIGHT: usize = 4;
const SOLID: usize = 5;
const WEIGHTED_SOLID: usize = 6;

/// Counts for one column. The counts for a board are the sums over its columns. Eight numbers fill one vector register.
type Counts = [i32; 8];

/// One small number per column, at the indices 1 to 10. The elements at the indices 0 and 11 are for the walls. The
/// other elements pad the array to the size of a vector register.
type PerColumn = [i16; 16];

/// Height that represents a wall. It is greater than the height of any column.
const WALL: i16 = 64;

/// Counts for a board, with which the features of a move are computed quickly: a move without cleared rows changes at
/// most four columns.
#[derive(Clone, Copy, Debug)]
pub struct BoardSums {
    board: Board,
    rows: i32,
    /// Number of rows at the top in which locked cells do not stay. `columns` does not contain these rows.
    shift: u32,
    columns: [u32; WIDTH],
    counts: [Counts; WIDTH],
    total: Counts,
    heights: PerColumn,
    min_depths: PerColumn,
    max_depths: PerColumn,
    /// Result of the function [`changes`] for each pair of neighbouring columns, walls included.
    changes: [i32; WIDTH + 1],
    all_changes: i32,
    /// For each `x`, a mask of the rows that have no empty cell to the left of column `x`.
    full_left: [u32; WIDTH + 1],
    /// For each `x`, a mask of the rows that have no empty cell in column `x` or to its right.
    full_right: [u32; WIDTH + 1],
}

/// Counts for a column, its height, and the minimum and maximum depth of its holes.
struct Column {
    counts: Counts,
    height: i16,
    min_depth: i16,
    max_depth: i16,
}

/// Returns the sum of the positions of the set bits. Counting bits five times is faster here than a lookup table.
#[inline(always)]
fn position_sum(bits: u32) -> i32 {
    const DIGITS: [u32; 5] = [
        0xaaaa_aaaa,
        0xcccc_cccc,
        0xf0f0_f0f0,
        0xff00_ff00,
        0xffff_0000,
    ];
    let mut sum = 0;
    for (digit, mask) in DIGITS.into_iter().enumerate() {
        sum += ((bits & mask).count_ones() << digit) as i32;
    }
    sum
}

impl Column {
    /// Computes the counts for a column with `rows` rows. Bit 0 is the top row.
    #[inline(always)]
    fn of(column: u32, rows: i32) -> Column {
        let all = (1u32 << rows) - 1;
        let top = column.trailing_zeros().min(rows as u32) as i32;
        let hole_bits = !column & column << 1 & all;
        let (positions, solid) = (position_sum(column), column.count_ones() as i32);
        let (hole_positions, holes) = (position_sum(hole_bits), hole_bits.count_ones() as i32);
        let changes = ((column ^ column >> 1) & all >> 1).count_ones() as i32;
        let mut counts = [0; 8];
        counts[HOLES] = holes;
        counts[WEIGHTED_HOLES] = hole_positions + holes;
        counts[HOLE_DEPTHS] = hole_positions - top * holes;
        // The change between the highest filled cell and the empty cell above it does not count.
        counts[TRANSITIONS] = changes - i32::from(top > 0 && column != 0);
        counts[HEIGHT] = rows - top;
        counts[SOLID] = solid;
        counts[WEIGHTED_SOLID] = solid * rows - positions;
        let (min_depth, max_depth) = match hole_bits {
            0 => (rows, 0),
            bits => (
                bits.trailing_zeros() as i32 - top,
                31 - bits.leading_zeros() as i32 - top,
            ),
        };
        Column {
            counts,
            height: (rows - top) as i16,
            min_depth: min_depth as i16,
            max_depth: max_depth as i16,
        }
    }
}

impl BoardSums {
    /// Computes the counts of a board.
    #[inline(always)]
    pub fn of(board: &Board) -> BoardSums {
        let rows = board.rows.kept() as i32;
        let shift = board.rows.count() as u32 - rows as u32;
        let columns: [u32; WIDTH] = board.columns.map(|column| column >> shift);
        let mut sums = BoardSums {
            board: *board,
            rows,
            shift,
            columns,
            counts: [[0; 8]; WIDTH],
            total: [0; 8],
            heights: [WALL; 16],
            min_depths: [rows as i16; 16],
            max_depths: [0; 16],
            changes: [0; WIDTH + 1],
            all_changes: 0,
            full_left: [u32::MAX; WIDTH + 1],
            full_right: [u32::MAX; WIDTH + 1],
        };
        for (x, &bits) in columns.iter().enumerate() {
            let column = Column::of(bits, rows);
            sums.counts[x] = column.counts;
            for (total, count) in sums.total.iter_mut().zip(column.counts) {
                *total += count;
            }
            sums.heights[x + 1] = column.height;
            sums.min_depths[x + 1] = column.min_depth;
            sums.max_depths[x + 1] = column.max_depth;
            sums.changes[x] = changes(x, &columns);
            sums.full_left[x + 1] = sums.full_left[x] & bits;
        }
        for x in (0..WIDTH).rev() {
            sums.full_right[x] = sums.full_right[x + 1] & columns[x];
        }
        sums.changes[WIDTH] = changes(WIDTH, &columns);
        sums.all_changes = sums.changes.iter().sum();
        sums
    }

    /// Returns the features of the board itself, with 0 for rows cleared and for the lock height.
    pub fn features(&self) -> Features {
        self.assemble(
            0,
            0,
            &self.total,
            &self.heights,
            &self.min_depths,
            &self.max_depths,
            self.all_changes,
        )
    }

    /// Returns the features of a placement on this board.
    #[inline(always)]
    pub fn features_after(&self, piece: Piece, placement: Placement) -> Features {
        let shape = column_shape(piece, placement.orientation);
        let above = self.board.rows.above() as i32;
        let lowest = i32::from(placement.y) + i32::from(shape.bottom);
        let lock_height = 19 - lowest;
        let left = (placement.x + shape.left) as usize;
        let right = left + usize::from(shape.width);
        let row = i32::from(placement.y) + i32::from(shape.top) + above;
        let mut full = self.full_left[left] & self.full_right[right];
        let mut columns = [0u32; 4];
        for (dx, new) in columns
            .iter_mut()
            .enumerate()
            .take(usize::from(shape.width))
        {
            let cells = u32::from(shape.masks[dx]) << row >> self.shift;
            *new = self.columns[left + dx] | cells;
            full &= *new;
        }
        if full != 0 {
            return self.features_with_lines(piece, placement, lock_height);
        }
        self.features_without_lines(shape, left, &columns, lock_height)
    }

    #[cold]
    fn features_with_lines(
        &self,
        piece: Piece,
        placement: Placement,
        lock_height: i32,
    ) -> Features {
        let locked = self.board.lock(piece, placement);
        let mut features = BoardSums::of(&locked.board).features();
        features.0[0] = i32::from(locked.lines);
        features.0[1] = lock_height;
        features
    }

    #[inline(always)]
    fn features_without_lines(
        &self,
        shape: &ColumnShape,
        left: usize,
        columns: &[u32; 4],
        lock_height: i32,
    ) -> Features {
        let width = usize::from(shape.width);
        let mut total = self.total;
        let mut heights = self.heights;
        let mut min_depths = self.min_depths;
        let mut max_depths = self.max_depths;
        let mut row_changes = self.all_changes;
        let mut before = if left > 0 { self.columns[left - 1] } else { 0 };
        for (dx, &bits) in columns.iter().enumerate().take(width) {
            let x = left + dx;
            let column = Column::of(bits, self.rows);
            for ((total, new), old) in total.iter_mut().zip(column.counts).zip(self.counts[x]) {
                *total += new - old;
            }
            heights[x + 1] = column.height;
            min_depths[x + 1] = column.min_depth;
            max_depths[x + 1] = column.max_depth;
            let new = if x > 0 {
                (before ^ bits).count_ones() as i32
            } else {
                -(bits.count_ones() as i32)
            };
            row_changes += new - self.changes[x];
            before = bits;
        }
        let x = left + width;
        let new = if x < WIDTH {
            (before ^ self.columns[x]).count_ones() as i32
        } else {
            -(before.count_ones() as i32)
        };
        row_changes += new - self.changes[x];
        self.assemble(
            0,
            lock_height,
            &total,
            &heights,
            &min_depths,
            &max_depths,
            row_changes,
        )
    }

    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "a struct for these arguments would be used only here"
    )]
    fn assemble(
        &self,
        lines: i32,
        lock_height: i32,
        total: &Counts,
        heights: &PerColumn,
        min_depths: &PerColumn,
        max_depths: &PerColumn,
        row_changes: i32,
    ) -> Features {
        let (mut highest, mut lowest) = (0, WALL);
        let (mut well_cells, mut deep_wells, mut steps) = (0i16, 0i16, 0i16);
        for x in 1..=WIDTH {
            let depth = (heights[x - 1].min(heights[x + 1]) - heights[x]).max(0);
            well_cells += depth;
            deep_wells += i16::from(depth >= 3);
            highest = highest.max(heights[x]);
            lowest = lowest.min(heights[x]);
        }
        for x in 2..=WIDTH {
            steps += (heights[x] - heights[x - 1]).abs();
        }
        let min_depth = min_depths
            .iter()
            .fold(self.rows as i16, |least, &depth| least.min(depth));
        let max_depth = max_depths.iter().fold(0, |most, &depth| most.max(depth));
        let highest = i32::from(highest);
        Features([
            lines,
            lock_height,
            i32::from(well_cells),
            i32::from(deep_wells),
            total[HOLES],
            total[WEIGHTED_HOLES],
            total[HOLE_DEPTHS],
            i32::from(min_depth),
            i32::from(max_depth),
            total[TRANSITIONS],
            // `changes` does not include the pile's height for each of the two walls.
            row_changes + 2 * highest,
            total[HEIGHT],
            highest,
            highest - i32::from(lowest),
            total[SOLID],
            total[WEIGHTED_SOLID],
            i32::from(steps),
        ])
    }
}

/// Returns the number of rows in which the columns `x − 1` and `x` differ.
///
/// A wall differs from its neighbouring column in the column's empty cells up to the pile's height. The number of
/// these cells is the pile's height minus the number of filled cells in the column. For a wall, this function returns
/// only the negated number of filled cells, and the caller adds the pile's height.
#[inline(always)]
fn changes(x: usize, columns: &[u32; WIDTH]) -> i32 {
    match x {
        0 => -(columns[0].count_ones() as i32),
        WIDTH => -(columns[WIDTH - 1].count_ones() as i32),
        x => (columns[x - 1] ^ columns[x]).count_ones() as i32,
    }
}
