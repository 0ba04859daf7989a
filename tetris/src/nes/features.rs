//! The 17 features with which the program of a published article evaluates moves in Nintendo Tetris, and its weights.
//! The value of a move is the weighted sum of its features; lower values are better.

use super::board::{Board, WIDTH};
use super::placements::{Placement, Placements};
use super::shapes::column_shape;
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

/// Returns the placement with the lowest value for each piece, in the order of [`Piece::ALL`], or `None` for a piece that
/// cannot spawn. If several placements have this value, returns the first of them. `placements` and `values` are buffers,
/// which are overwritten.
pub fn best_of_each_piece(
    board: &Board,
    weights: &Weights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) -> [Option<Valued>; 7] {
    #[cfg(target_arch = "x86_64")]
    if fast::available() {
        return fast::best_of_each_piece(board, weights, placements, values);
    }
    best_of_each_piece_portable(board, weights, placements, values)
}

/// Implements [`evaluate_all`]. The function is inlined, so it is compiled for the caller's instruction sets.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn evaluate_all_portable(
    board: &Board,
    piece: Piece,
    weights: &Weights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    let sums = BoardSums::of(board);
    sums.evaluate(&mut Batch::new(&sums), piece, weights, placements, values);
}

/// Implements [`best_of_each_piece`] like [`evaluate_all_portable`].
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn best_of_each_piece_portable(
    board: &Board,
    weights: &Weights,
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) -> [Option<Valued>; 7] {
    let sums = BoardSums::of(board);
    let mut batch = Batch::new(&sums);
    let mut best = [None; 7];
    for (best, piece) in best.iter_mut().zip(Piece::ALL) {
        sums.evaluate(&mut batch, piece, weights, placements, values);
        *best = values.iter().copied().reduce(|best, other| {
            if other.value < best.value {
                other
            } else {
                best
            }
        });
    }
    best
}

/// Versions of the functions above that are compiled for processors with AVX2 and bit-counting instructions.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub(super) mod fast {
    use super::{
        Board, Piece, Placements, Valued, Weights, best_of_each_piece_portable,
        evaluate_all_portable,
    };

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
        unsafe { evaluate_all_avx2(board, piece, weights, placements, values) }
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn evaluate_all_avx2(
        board: &Board,
        piece: Piece,
        weights: &Weights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) {
        evaluate_all_portable(board, piece, weights, placements, values);
    }

    pub(super) fn best_of_each_piece(
        board: &Board,
        weights: &Weights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) -> [Option<Valued>; 7] {
        assert!(available());
        // SAFETY: as in `evaluate_all`.
        unsafe { best_of_each_piece_avx2(board, weights, placements, values) }
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn best_of_each_piece_avx2(
        board: &Board,
        weights: &Weights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) -> [Option<Valued>; 7] {
        best_of_each_piece_portable(board, weights, placements, values)
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

/// Height that represents a wall. It is greater than the height of any column.
const WALL: i16 = 64;

// On x86-64, functions are inlined so that they are compiled for the caller's instruction sets. Elsewhere this would only make
// the program larger, such as the WebAssembly of the web pages.

/// Counts for a board, with which the features of a move are computed quickly: a move without cleared rows changes at
/// most four columns.
#[derive(Clone, Copy, Debug)]
pub struct BoardSums {
    board: Board,
    rows: i32,
    /// Number of rows at the top in which locked cells do not stay. `columns` does not contain these rows.
    shift: u32,
    columns: [Column; WIDTH],
    total: Counts,
    /// Result of the function [`changes`] for each pair of neighbouring columns, walls included.
    changes: [i32; WIDTH + 1],
    all_changes: i32,
    /// For each `x`, a mask of the rows that have no empty cell to the left of column `x`.
    full_left: [u32; WIDTH + 1],
    /// For each `x`, a mask of the rows that have no empty cell in column `x` or to its right.
    full_right: [u32; WIDTH + 1],
}

/// A column, its height, counts for it, and the minimum and maximum depth of its holes.
#[derive(Clone, Copy, Debug)]
struct Column {
    bits: u32,
    /// Empty cells directly below a filled cell.
    holes: u32,
    /// Sum of the positions of `bits` and of `holes`.
    positions: i32,
    hole_positions: i32,
    counts: Counts,
    height: i16,
    min_depth: i16,
    max_depth: i16,
}

/// Returns the sum of the positions of the set bits. Counting bits five times is faster here than a lookup table.
#[cfg_attr(target_arch = "x86_64", inline(always))]
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
    const EMPTY: Column = Column {
        bits: 0,
        holes: 0,
        positions: 0,
        hole_positions: 0,
        counts: [0; 8],
        height: 0,
        min_depth: 0,
        max_depth: 0,
    };

    /// Computes the counts for a column with `rows` rows. Bit 0 is the top row.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn of(bits: u32, rows: i32) -> Column {
        let holes = Column::holes(bits, rows);
        Column::with(bits, holes, position_sum(bits), position_sum(holes), rows)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn holes(bits: u32, rows: i32) -> u32 {
        !bits & bits << 1 & ((1 << rows) - 1)
    }

    /// Fills the empty cells in `cells`, which are consecutive.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn fill(&self, cells: u32, rows: i32) -> Column {
        let bits = self.bits | cells;
        let holes = Column::holes(bits, rows);
        let (first, count) = (cells.trailing_zeros() as i32, cells.count_ones() as i32);
        let positions = self.positions + count * first + count * (count - 1) / 2;
        // Most placements leave no new hole.
        let hole_positions = match holes == self.holes {
            true => self.hole_positions,
            false => position_sum(holes),
        };
        Column::with(bits, holes, positions, hole_positions, rows)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn with(bits: u32, holes: u32, positions: i32, hole_positions: i32, rows: i32) -> Column {
        let top = bits.trailing_zeros().min(rows as u32) as i32;
        let (solid, hole_count) = (bits.count_ones() as i32, holes.count_ones() as i32);
        let changes = ((bits ^ bits >> 1) & ((1 << (rows - 1)) - 1)).count_ones() as i32;
        let mut counts = [0; 8];
        counts[HOLES] = hole_count;
        counts[WEIGHTED_HOLES] = hole_positions + hole_count;
        counts[HOLE_DEPTHS] = hole_positions - top * hole_count;
        // The change between the highest filled cell and the empty cell above it does not count.
        counts[TRANSITIONS] = changes - i32::from(top > 0 && bits != 0);
        counts[HEIGHT] = rows - top;
        counts[SOLID] = solid;
        counts[WEIGHTED_SOLID] = solid * rows - positions;
        let (min_depth, max_depth) = match holes {
            0 => (rows, 0),
            holes => (
                holes.trailing_zeros() as i32 - top,
                31 - holes.leading_zeros() as i32 - top,
            ),
        };
        Column {
            bits,
            holes,
            positions,
            hole_positions,
            counts,
            height: (rows - top) as i16,
            min_depth: min_depth as i16,
            max_depth: max_depth as i16,
        }
    }
}

impl BoardSums {
    /// Computes the counts of a board.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub fn of(board: &Board) -> BoardSums {
        let rows = board.rows.kept() as i32;
        let shift = board.rows.count() as u32 - rows as u32;
        let bits: [u32; WIDTH] = board.columns.map(|column| column >> shift);
        let mut sums = BoardSums {
            board: *board,
            rows,
            shift,
            columns: [Column::EMPTY; WIDTH],
            total: [0; 8],
            changes: [0; WIDTH + 1],
            all_changes: 0,
            full_left: [u32::MAX; WIDTH + 1],
            full_right: [u32::MAX; WIDTH + 1],
        };
        // This is a loop, because a closure would not be compiled for the caller's instruction sets.
        for x in 0..WIDTH {
            let column = Column::of(bits[x], rows);
            for (total, count) in sums.total.iter_mut().zip(column.counts) {
                *total += count;
            }
            sums.columns[x] = column;
            sums.changes[x] = changes(x, &bits);
            sums.full_left[x + 1] = sums.full_left[x] & bits[x];
        }
        for x in (0..WIDTH).rev() {
            sums.full_right[x] = sums.full_right[x + 1] & bits[x];
        }
        sums.changes[WIDTH] = changes(WIDTH, &bits);
        sums.all_changes = sums.changes.iter().sum();
        sums
    }

    /// Returns the features of the board itself, with 0 for rows cleared and for the lock height.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub fn features(&self) -> Features {
        let mut batch = Batch::new(self);
        let lane = batch.push(0, 0);
        batch.set_counts(lane, &self.total, self.all_changes);
        batch.first()
    }

    /// Returns the features of a placement on this board.
    pub fn features_after(&self, piece: Piece, placement: Placement) -> Features {
        let mut batch = Batch::new(self);
        let features = self.place(piece, placement, &mut batch, 0);
        features.unwrap_or_else(|| batch.first())
    }

    /// Writes every placement of a piece and its value to `values`. The batch must be empty, and is empty afterwards.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn evaluate(
        &self,
        batch: &mut Batch,
        piece: Piece,
        weights: &Weights,
        placements: &mut Placements,
        values: &mut Vec<Valued>,
    ) {
        values.clear();
        placements.find_inline(&self.board, piece);
        // This is a loop, because a closure would not be compiled for the caller's instruction sets.
        for &placement in placements.list() {
            let features = self.place(piece, placement, batch, values.len());
            let value = features.map_or(0.0, |features| features.value(weights));
            values.push(Valued { placement, value });
            if batch.count == LANES {
                batch.evaluate(weights, values);
                batch.clear(self);
            }
        }
        if batch.count > 0 {
            batch.evaluate(weights, values);
            batch.clear(self);
        }
    }

    /// Returns the features of a placement that clears rows. Adds any other placement to the batch; `position` is that of
    /// its value.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn place(
        &self,
        piece: Piece,
        placement: Placement,
        batch: &mut Batch,
        position: usize,
    ) -> Option<Features> {
        let shape = column_shape(piece, placement.orientation);
        let above = self.board.rows.above() as i32;
        let lowest = i32::from(placement.y) + i32::from(shape.bottom);
        let lock_height = 19 - lowest;
        let (left, width) = (
            (placement.x + shape.left) as usize,
            usize::from(shape.width),
        );
        let right = left + width;
        let row = i32::from(placement.y) + i32::from(shape.top) + above;
        let mut full = self.full_left[left] & self.full_right[right];
        let mut cells = [0u32; 4];
        for (dx, cells) in cells.iter_mut().enumerate().take(width) {
            *cells = u32::from(shape.masks[dx]) << row >> self.shift;
            full &= self.columns[left + dx].bits | *cells;
        }
        if full != 0 {
            let locked = self.board.lock(piece, placement);
            let mut features = BoardSums::of(&locked.board).features();
            features.0[0] = i32::from(locked.lines);
            features.0[1] = lock_height;
            return Some(features);
        }
        let lane = batch.push(position, lock_height);
        let (mut total, mut row_changes) = (self.total, self.all_changes);
        let mut before = if left > 0 {
            self.columns[left - 1].bits
        } else {
            0
        };
        for (dx, &cells) in cells.iter().enumerate().take(width) {
            let x = left + dx;
            let old = &self.columns[x];
            let column = old.fill(cells, self.rows);
            for (total, (new, old)) in total.iter_mut().zip(column.counts.iter().zip(&old.counts)) {
                *total += new - old;
            }
            batch.set_column(lane, x, &column);
            row_changes += changes_between(x, before, column.bits) - self.changes[x];
            before = column.bits;
        }
        let after = if right < WIDTH {
            self.columns[right].bits
        } else {
            0
        };
        row_changes += changes_between(right, before, after) - self.changes[right];
        batch.set_counts(lane, &total, row_changes);
        None
    }
}

/// Number of placements that are evaluated at once. One small number of each fills a vector register.
const LANES: usize = 16;

/// One number for each placement of a batch.
type Lanes<T> = [T; LANES];

/// Placements without cleared rows, whose features are computed at once.
struct Batch {
    count: usize,
    /// Positions of the placements in the list of values.
    positions: Lanes<usize>,
    rows: i16,
    /// The heights of the columns, between those of the walls.
    heights: [Lanes<i16>; WIDTH + 2],
    min_depths: [Lanes<i16>; WIDTH],
    max_depths: [Lanes<i16>; WIDTH],
    counts: [Lanes<i32>; 7],
    row_changes: Lanes<i32>,
    lock_heights: Lanes<i32>,
}

impl Batch {
    /// Creates a batch for placements on a board.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn new(sums: &BoardSums) -> Batch {
        let mut batch = Batch {
            count: 0,
            positions: [0; LANES],
            rows: sums.rows as i16,
            heights: [[WALL; LANES]; WIDTH + 2],
            min_depths: [[0; LANES]; WIDTH],
            max_depths: [[0; LANES]; WIDTH],
            counts: [[0; LANES]; 7],
            row_changes: [0; LANES],
            lock_heights: [0; LANES],
        };
        batch.clear(sums);
        batch
    }

    /// Removes all placements.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn clear(&mut self, sums: &BoardSums) {
        self.count = 0;
        for (x, column) in sums.columns.iter().enumerate() {
            self.heights[x + 1] = [column.height; LANES];
            self.min_depths[x] = [column.min_depth; LANES];
            self.max_depths[x] = [column.max_depth; LANES];
        }
    }

    /// Adds a placement, of which the value belongs at `position` in the list of values. Returns its lane.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn push(&mut self, position: usize, lock_height: i32) -> usize {
        let lane = self.count;
        self.count += 1;
        self.positions[lane] = position;
        self.lock_heights[lane] = lock_height;
        lane
    }

    /// Sets a column that differs from that of the board.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn set_column(&mut self, lane: usize, x: usize, column: &Column) {
        self.heights[x + 1][lane] = column.height;
        self.min_depths[x][lane] = column.min_depth;
        self.max_depths[x][lane] = column.max_depth;
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn set_counts(&mut self, lane: usize, total: &Counts, row_changes: i32) {
        for (lanes, &count) in self.counts.iter_mut().zip(total) {
            lanes[lane] = count;
        }
        self.row_changes[lane] = row_changes;
    }

    /// Returns the features of the first placement.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn first(&self) -> Features {
        let lanes = self.features();
        let mut features = Features([0; FEATURES]);
        for (feature, lanes) in features.0.iter_mut().zip(&lanes) {
            *feature = lanes[0];
        }
        features
    }

    /// Returns the features of all placements.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn features(&self) -> [Lanes<i32>; FEATURES] {
        let (mut highest, mut lowest) = ([0i16; LANES], [WALL; LANES]);
        let (mut well_cells, mut deep_wells) = ([0i16; LANES], [0i16; LANES]);
        let mut steps = [0i16; LANES];
        let (mut min_depth, mut max_depth) = ([self.rows; LANES], [0i16; LANES]);
        for x in 1..=WIDTH {
            let [left, own, right] = [x - 1, x, x + 1].map(|x| &self.heights[x]);
            for lane in 0..LANES {
                let depth = (left[lane].min(right[lane]) - own[lane]).max(0);
                well_cells[lane] += depth;
                deep_wells[lane] += i16::from(depth >= 3);
                highest[lane] = highest[lane].max(own[lane]);
                lowest[lane] = lowest[lane].min(own[lane]);
                min_depth[lane] = min_depth[lane].min(self.min_depths[x - 1][lane]);
                max_depth[lane] = max_depth[lane].max(self.max_depths[x - 1][lane]);
            }
            if x > 1 {
                for lane in 0..LANES {
                    steps[lane] += (own[lane] - left[lane]).abs();
                }
            }
        }
        let mut features = [[0; LANES]; FEATURES];
        for lane in 0..LANES {
            let pile_height = i32::from(highest[lane]);
            // `changes` does not include the pile's height for each of the two walls.
            features[10][lane] = self.row_changes[lane] + 2 * pile_height;
            features[2][lane] = i32::from(well_cells[lane]);
            features[3][lane] = i32::from(deep_wells[lane]);
            features[7][lane] = i32::from(min_depth[lane]);
            features[8][lane] = i32::from(max_depth[lane]);
            features[12][lane] = pile_height;
            features[13][lane] = i32::from(highest[lane] - lowest[lane]);
            features[16][lane] = i32::from(steps[lane]);
        }
        features[1] = self.lock_heights;
        features[4] = self.counts[HOLES];
        features[5] = self.counts[WEIGHTED_HOLES];
        features[6] = self.counts[HOLE_DEPTHS];
        features[9] = self.counts[TRANSITIONS];
        features[11] = self.counts[HEIGHT];
        features[14] = self.counts[SOLID];
        features[15] = self.counts[WEIGHTED_SOLID];
        features
    }

    /// Writes the values of all placements. They are the same as those of [`Features::value`], because the terms are added
    /// in the same order.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn evaluate(&self, weights: &Weights, values: &mut [Valued]) {
        let features = self.features();
        // No rows are cleared, so the first term is 0.
        let mut sums = [weights[0] * 0.0; LANES];
        for feature in ORDER {
            for lane in 0..LANES {
                sums[lane] += weights[feature] * f64::from(features[feature][lane]);
            }
        }
        for (&position, sum) in self.positions.iter().zip(sums).take(self.count) {
            values[position].value = sum;
        }
    }
}

/// Returns the number of rows in which the columns `x − 1` and `x` differ.
///
/// A wall differs from its neighbouring column in the column's empty cells up to the pile's height. The number of
/// these cells is the pile's height minus the number of filled cells in the column. For a wall, this function returns
/// only the negated number of filled cells, and the caller adds the pile's height.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn changes(x: usize, columns: &[u32; WIDTH]) -> i32 {
    let left = if x > 0 { columns[x - 1] } else { 0 };
    let right = if x < WIDTH { columns[x] } else { 0 };
    changes_between(x, left, right)
}

/// Returns the result of [`changes`] for the columns to the left and to the right of the boundary `x`. A wall is 0.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn changes_between(x: usize, left: u32, right: u32) -> i32 {
    let count = (left ^ right).count_ones() as i32;
    match x {
        0 | WIDTH => -count,
        _ => count,
    }
}
