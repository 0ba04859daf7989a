//! Estimates of the values of placements.
//!
//! An estimate is the sum of the weighted features in integers, so its terms can be added in any order: sums over the
//! columns that a placement does not change are computed once per board. [`MARGIN`] bounds the error. Placements with
//! different leftmost columns are estimated at once: lane `x` of the vectors stands for the leftmost column `x`.

use super::board::{Board, Rows, WIDTH};
use super::features::{
    ColumnFeatures, DEEP, DEEPEST, FEATURES, Features, SUMMED, WALL, Weights, well_depth,
};
use super::shapes::ColumnShape;

/// Number of placements that are estimated at once.
pub(super) const LANES: usize = 16;
/// One number for each leftmost column.
pub(super) type Lanes<T> = [T; LANES];

/// Number of columns and walls, with enough walls on the right for all lanes.
const PADDED: usize = LANES + 8;
/// Number of walls on the left of the columns.
pub(super) const WALLS: usize = 2;

/// Bound of the absolute value of all estimates.
const MAX_ESTIMATE: f64 = (1 << 30) as f64;
/// Bound of each feature, including the constants that estimates add.
const MAX_FEATURES: [f64; FEATURES] = [
    4.0, 64.0, 250.0, 10.0, 110.0, 1400.0, 1400.0, 64.0, 22.0, 220.0, 350.0, 220.0, 22.0, 90.0,
    220.0, 2600.0, 200.0,
];
/// Bound of the error in the difference between two estimates. The error of a weight is at most 0.5, and so is the error
/// of each column. The sum of the features that are not sums over columns is below 900.
pub(super) const MARGIN: i32 = 1000;
/// Estimate of a placement that clears rows, which always needs an exact evaluation.
pub(super) const CLEARS: i32 = i32::MIN;
/// Estimate for a lane without a placement.
pub(super) const NONE: i32 = i32::MAX;
/// Number that is greater than all estimates and stays below [`NONE`] if [`MARGIN`] is added.
pub(super) const LEAST_NONE: i32 = NONE - MARGIN - 1;
/// Lower bound of the factor by which the weights are multiplied, so that no value is mistaken for that of a move which
/// clears four rows.
pub(super) const MIN_SCALE: f64 = 10.0;

/// Maxima in one byte each, from the lowest: the height, [`DEEPEST`] minus the height, the maximum depth of a hole, and
/// [`DEEPEST`] minus the minimum depth of a hole.
type Extremes = u32;

#[cfg_attr(target_arch = "x86_64", inline(always))]
fn highest(a: Extremes, b: Extremes) -> Extremes {
    const TOP: u32 = 0x8080_8080;
    // The top bit of a byte is set if the byte of `a` is at least that of `b`. All bytes are below 128.
    let is_higher = ((a | TOP) - b) & TOP;
    let mask = is_higher - (is_higher >> 7);
    b ^ ((a ^ b) & mask)
}

#[cfg_attr(target_arch = "x86_64", inline(always))]
fn extreme(extremes: Extremes, byte: u32) -> i32 {
    (extremes >> (8 * byte) & 0xff) as i32
}

/// What a column contributes to an estimate.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct ColumnEstimate {
    /// The cells of the column.
    bits: u32,
    /// Weighted sum of the counts.
    value: i32,
    extremes: Extremes,
}

impl ColumnEstimate {
    const NONE: ColumnEstimate = ColumnEstimate {
        bits: u32::MAX,
        value: 0,
        extremes: 0,
    };
}

/// Number of columns that are remembered. A search meets some thousand columns, and the lists fit in a second-level cache.
const REMEMBERED: usize = 1 << 12;

/// What each column contributes with one set of weights.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Weights in estimates, and the factor by which weights were multiplied.
    weights: [i32; FEATURES],
    pub(super) exact_weights: Weights,
    pub(super) scale: f64,
    /// What estimates omit because it is the same for all placements.
    pub(super) constant: i32,
    rows: i32,
    /// The last column with each hash.
    estimates: Box<[ColumnEstimate; REMEMBERED]>,
    /// The features of each column in `estimates`.
    features: Box<[ColumnFeatures; REMEMBERED]>,
}

fn boxed<T: Copy, const LENGTH: usize>(value: T) -> Box<[T; LENGTH]> {
    let list: Box<[T]> = vec![value; LENGTH].into();
    list.try_into().ok().expect("the list has this length")
}

impl Columns {
    pub(super) fn new(rule_set: Rows, weights: &Weights) -> Columns {
        let products = weights.iter().zip(MAX_FEATURES);
        let bound: f64 = products.map(|(weight, most)| weight.abs() * most).sum();
        // Without usable weights all estimates are 0, so every placement is evaluated exactly.
        let scale = MAX_ESTIMATE / bound;
        let scale = if scale.is_normal() { scale } else { 0.0 };
        let above = rule_set.above() as i32;
        let rows = rule_set.kept() as i32;
        let scaled = weights.map(|weight| (weight * scale).round() as i32);
        Columns {
            weights: scaled,
            exact_weights: *weights,
            scale,
            constant: scaled[1] * (19 + above) + (scaled[7] - scaled[13]) * i32::from(DEEPEST)
                - scaled[10] * 2 * rows,
            rows,
            estimates: boxed(ColumnEstimate::NONE),
            features: boxed(ColumnFeatures::default()),
        }
    }

    /// Returns the index of a column in the lists.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn slot(bits: u32) -> usize {
        (bits.wrapping_mul(0x9e37_79b1) >> (32 - REMEMBERED.ilog2())) as usize % REMEMBERED
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn of(&mut self, bits: u32) -> ColumnEstimate {
        let known = self.estimates[Columns::slot(bits)];
        if known.bits == bits {
            return known;
        }
        self.compute(bits)
    }

    #[cold]
    #[inline(never)]
    fn compute(&mut self, bits: u32) -> ColumnEstimate {
        let features = ColumnFeatures::of(bits, self.rows);
        let weighted = SUMMED.iter().zip(features.counts);
        let value: f64 = weighted
            .map(|(&feature, count)| self.exact_weights[feature] * f64::from(count))
            .sum();
        let [a, b, c, d, ..] = features.extremes.map(|extreme| extreme as u8);
        let estimate = ColumnEstimate {
            bits,
            value: (value * self.scale).round() as i32,
            extremes: u32::from_le_bytes([a, b, c, d]),
        };
        self.estimates[Columns::slot(bits)] = estimate;
        self.features[Columns::slot(bits)] = features;
        estimate
    }

    /// Returns the features of a board with these columns, with 0 for rows cleared and for the lock height.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn features(&mut self, bits: &[u32; WIDTH]) -> Features {
        let mut columns = [ColumnFeatures::default(); WIDTH];
        for x in 0..WIDTH {
            self.of(bits[x]);
            columns[x] = self.features[Columns::slot(bits[x])];
        }
        Features::of_columns(bits, &columns)
    }
}

/// Estimates of parts of a board.
#[derive(Clone, Debug)]
pub(super) struct BoardEstimate {
    pub(super) rule_set: Rows,
    /// Number of rows at the top in which locked cells do not stay. The columns do not contain these rows.
    pub(super) shift: u32,
    /// The columns, between walls.
    pub(super) bits: [u32; PADDED],
    /// The heights of the columns, between walls.
    heights: [i32; PADDED],
    /// For each number of adjacent columns minus 1, everything outside these columns.
    parts: [Part; 4],
}

/// What the columns outside of some adjacent columns contribute to an estimate, by the leftmost of these. Boundaries of
/// the adjacent columns and wells beside them do not count.
#[derive(Clone, Copy, Debug)]
struct Part {
    value: Lanes<i32>,
    extremes: Lanes<Extremes>,
    /// Rows without empty cells outside of the columns.
    full: Lanes<u32>,
}

impl BoardEstimate {
    pub(super) fn new(rule_set: Rows) -> BoardEstimate {
        let part = Part {
            value: [0; LANES],
            extremes: [0; LANES],
            full: [0; LANES],
        };
        BoardEstimate {
            rule_set,
            shift: (rule_set.count() - rule_set.kept()) as u32,
            bits: [(1 << rule_set.kept()) - 1; PADDED],
            heights: [i32::from(WALL); PADDED],
            parts: [part; 4],
        }
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn set_columns(&mut self, board: &Board) {
        for (bits, column) in self.bits[WALLS..].iter_mut().zip(board.columns) {
            *bits = column >> self.shift;
        }
    }

    /// Estimates the parts of the board.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn fill_parts(&mut self, columns: &mut Columns) {
        // Sums, maxima or intersections over the columns, boundaries or wells before or from each number. A well belongs
        // to the column at its index minus 1, so that there is one beyond each wall.
        let mut values = [0i32; WIDTH + 1];
        let mut before = [0; WIDTH + 1];
        let mut after = [0; WIDTH + 1];
        let mut full_before = [u32::MAX; WIDTH + 1];
        let mut full_after = [u32::MAX; WIDTH + 1];
        let mut boundaries = [0; WIDTH + 2];
        let mut wells = [0; WIDTH + 3];
        for x in 0..WIDTH {
            let bits = self.bits[x + WALLS];
            let column = columns.of(bits);
            self.heights[x + WALLS] = extreme(column.extremes, 0);
            values[x + 1] = values[x] + column.value;
            before[x + 1] = highest(before[x], column.extremes);
            full_before[x + 1] = full_before[x] & bits;
            after[x] = column.extremes;
        }
        for x in (0..WIDTH).rev() {
            after[x] = highest(after[x], after[x + 1]);
            full_after[x] = full_after[x + 1] & self.bits[x + WALLS];
        }
        let weights = &columns.weights;
        for x in 0..=WIDTH {
            let changes = (self.bits[x + 1] ^ self.bits[x + 2]).count_ones() as i32;
            let step = match x {
                0 | WIDTH => 0,
                _ => (self.heights[x + 1] - self.heights[x + 2]).abs(),
            };
            boundaries[x + 1] = boundaries[x] + weights[10] * changes + weights[16] * step;
        }
        for x in 1..=WIDTH {
            let depth = well_depth(self.heights[x], self.heights[x + 1], self.heights[x + 2]);
            wells[x + 1] = wells[x] + weights[2] * depth + weights[3] * i32::from(depth >= DEEP);
        }
        wells[WIDTH + 2] = wells[WIDTH + 1];
        let all = values[WIDTH] + boundaries[WIDTH + 1] + wells[WIDTH + 2];
        for (part, width) in self.parts.iter_mut().zip(1..) {
            for left in 0..=WIDTH - width {
                let right = left + width;
                part.value[left] = all
                    - (values[right] - values[left])
                    - (boundaries[right + 1] - boundaries[left])
                    - (wells[right + 2] - wells[left]);
                part.extremes[left] = highest(before[left], after[right]);
                part.full[left] = full_before[left] & full_after[right];
            }
        }
    }

    /// Estimates a placement that covers `COLUMNS` columns for each of the first `N` leftmost columns. `rows` contains the
    /// row of each placement's highest cell, and any number if there is no placement.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn estimate<const COLUMNS: usize, const N: usize>(
        &self,
        columns: &mut Columns,
        shape: &ColumnShape,
        rows: &Lanes<u32>,
        estimates: &mut Lanes<i32>,
    ) {
        // Cells and heights of the columns that change and of their neighbours.
        let mut bits = [[0u32; N]; 6];
        let mut heights = [[0i32; N]; 8];
        let (mut values, mut maxima) = ([[0; N]; COLUMNS], [[0; N]; COLUMNS]);
        for (x, bits) in bits.iter_mut().enumerate().take(COLUMNS + 2) {
            bits.copy_from_slice(&self.bits[x + 1..][..N]);
        }
        for (x, heights) in heights.iter_mut().enumerate().take(COLUMNS + 4) {
            heights.copy_from_slice(&self.heights[x..][..N]);
        }
        for dx in 0..COLUMNS {
            let cells = u32::from(shape.masks[dx]);
            for lane in 0..N {
                bits[dx + 1][lane] |= cells << (rows[lane] % 32) >> (self.shift % 32);
            }
            for lane in 0..=WIDTH - COLUMNS {
                let column = columns.of(bits[dx + 1][lane]);
                values[dx][lane] = column.value;
                maxima[dx][lane] = column.extremes;
            }
        }
        for dx in 0..COLUMNS {
            for lane in 0..N {
                heights[dx + 2][lane] = extreme(maxima[dx][lane], 0);
            }
        }
        let sums = local_sums::<COLUMNS, N>(&bits, &mut heights);
        let part = &self.parts[COLUMNS - 1];
        let weights = &columns.weights;
        let (mut value, mut extremes, mut full) = (part.value, part.extremes, part.full);
        for dx in 0..COLUMNS {
            for lane in 0..N {
                value[lane] += values[dx][lane];
                extremes[lane] = highest(extremes[lane], maxima[dx][lane]);
                full[lane] &= bits[dx + 1][lane];
            }
        }
        for lane in 0..N {
            let extremes = extremes[lane];
            // Constants make no difference between estimates, so they are omitted.
            let lowest_row = rows[lane] as i32 + i32::from(shape.bottom - shape.top);
            let sum = value[lane]
                + weights[2] * sums.wells[lane]
                + weights[3] * sums.deep_wells[lane]
                + weights[10] * sums.transitions[lane]
                + weights[16] * sums.variance[lane]
                + weights[8] * extreme(extremes, 2)
                - weights[7] * extreme(extremes, 3)
                + (2 * weights[10] + weights[12] + weights[13]) * extreme(extremes, 0)
                + weights[13] * extreme(extremes, 1)
                - weights[1] * lowest_row;
            estimates[lane] = if full[lane] == 0 { sum } else { CLEARS };
        }
    }
}

/// Features of the boundaries of changed columns, and of wells in these columns and beside them.
struct LocalSums<const N: usize> {
    wells: [i32; N],
    deep_wells: [i32; N],
    transitions: [i32; N],
    variance: [i32; N],
}

/// Computes the sums for `COLUMNS` changed columns. `bits` contains the changed columns between their neighbours, and
/// `heights` contains the heights between those of two neighbours on each side. Overwrites some heights.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn local_sums<const COLUMNS: usize, const N: usize>(
    bits: &[[u32; N]; 6],
    heights: &mut [[i32; N]; 8],
) -> LocalSums<N> {
    let mut sums = LocalSums {
        wells: [0; N],
        deep_wells: [0; N],
        transitions: [0; N],
        variance: [0; N],
    };
    for x in 1..=COLUMNS + 2 {
        let [left, own, right] = [x - 1, x, x + 1].map(|x| &heights[x]);
        for lane in 0..N {
            let depth = well_depth(left[lane], own[lane], right[lane]);
            sums.wells[lane] += depth;
            sums.deep_wells[lane] += i32::from(depth >= DEEP);
        }
    }
    // At a wall, the heights do not count.
    heights[1][0] = heights[2][0];
    heights[COLUMNS + 2][WIDTH - COLUMNS] = heights[COLUMNS + 1][WIDTH - COLUMNS];
    for x in 0..=COLUMNS {
        for lane in 0..N {
            let changes = (bits[x][lane] ^ bits[x + 1][lane]).count_ones();
            sums.transitions[lane] += changes as i32;
            sums.variance[lane] += (heights[x + 1][lane] - heights[x + 2][lane]).abs();
        }
    }
    sums
}
