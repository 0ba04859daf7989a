//! The features of a well, which are the input of a network.
//!
//! Each feature is either active or inactive. The active features describe
//!
//! - the contents of each row of the stack, together with its distance from the top of the stack;
//! - the contents of each row without enclosed cells (empty cells that pieces cannot reach; the other empty cells are
//!   *open*);
//! - the contents of each window of 3 rows and 4 columns, with enclosed cells counted as filled, together with the
//!   window's first column;
//! - the value of each [count](Count).
//!
//! The features are numbered in this order. Rows are counted from the top of the stack, so most features stay the same
//! if rows are added at the bottom.

use crate::features::{self, Features, LANES, Lane, Rows, ones};
use hatebeam_game::{Clears, Emulator, MAX_HEIGHT, Well};

const COLUMNS: usize = 10;
const FULL: u16 = (1 << COLUMNS) - 1;
const ROW_VALUES: usize = 1 << COLUMNS;
/// Number of columns at which a window can begin.
const WINDOWS: usize = COLUMNS - 4 + 1;
const WINDOW_VALUES: usize = 1 << (3 * 4);

const CLEAN_ROWS: usize = MAX_HEIGHT * ROW_VALUES;
const FIRST_WINDOW: usize = CLEAN_ROWS + ROW_VALUES;
const FIRST_COUNT: usize = FIRST_WINDOW + WINDOWS * WINDOW_VALUES;

/// A count, with one feature for each of its values. Exactly one of these features is active.
struct Count {
    first: usize,
    values: usize,
}

impl Count {
    const fn after(before: usize, values: usize) -> Count {
        Count {
            first: before,
            values,
        }
    }

    const fn end(&self) -> usize {
        self.first + self.values
    }

    /// Returns the feature of a value. Values that are too large share the feature of the largest value.
    fn feature(&self, value: usize) -> u32 {
        (self.first + value.min(self.values - 1)) as u32
    }
}

/// The height of the stack, combined with the index of the lowest row that has an open cell.
const SHAPE: Count = Count::after(FIRST_COUNT, (MAX_HEIGHT + 1) * (MAX_HEIGHT + 1));
/// Number of rows with enclosed cells.
const ENCLOSED_ROWS: Count = Count::after(SHAPE.end(), MAX_HEIGHT + 1);
/// Number of enclosed cells.
const ENCLOSED: Count = Count::after(ENCLOSED_ROWS.end(), 64);
/// Number of covered cells: empty cells with a filled cell above them in the same column.
const COVERED: Count = Count::after(ENCLOSED.end(), 64);
/// The set of pieces that can clear a line, as bits.
const CLEARING: Count = Count::after(COVERED.end(), 128);
/// The set of pieces that can clear several lines, as bits.
const CLEARING_SEVERAL: Count = Count::after(CLEARING.end(), 128);
/// Number of filled cells, halved.
const FILLED: Count = Count::after(CLEARING_SEVERAL.end(), 81);

/// Number of features.
pub const FEATURES: usize = FILLED.end();

/// The features of the pieces that can clear lines. Their weights are zero in a network that was trained
/// without them.
pub const CLEARS_FEATURES: std::ops::Range<usize> = CLEARING.first..CLEARING_SEVERAL.end();

/// The bits that [`spread`] can set.
const SPREAD: u32 = 0x0924_9249;

/// Returns the row with bit `x` moved to bit `3x`.
#[inline(always)]
const fn spread(row: u32) -> u32 {
    let row = (row | row << 16) & 0x0300_00ff;
    let row = (row | row << 8) & 0x0300_f00f;
    let row = (row | row << 4) & 0x030c_30c3;
    (row | row << 2) & SPREAD
}

/// Flag of a [`Surrounding`] whose row has no enclosed cells.
const CLEAN: u32 = 1 << (3 * COLUMNS);

/// A row and the two rows above it. They determine all features of the row that do not depend on its distance from
/// the top.
///
/// Bits 0, 3, 6 and so on are set for the cells of the row that are not open. Each of these bits is followed by the
/// bits for the same column in the two rows above. [`CLEAN`] is set if the row has no enclosed cells.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Surrounding(pub(super) u32);

impl Surrounding {
    /// Returns the cells of the row, with bit `x` for column `x`.
    #[inline(always)]
    fn row(self) -> u32 {
        // Bit `3x` moves to bit `x` in four steps, the inverse of `spread`.
        let row = self.0 & SPREAD;
        let row = (row | row >> 2) & 0x030c_30c3;
        let row = (row | row >> 4) & 0x0300_f00f;
        let row = (row | row >> 8) & 0x0300_00ff;
        (row | row >> 16) & u32::from(FULL)
    }

    /// Calls `each` with each feature that this surrounding determines.
    #[inline(always)]
    pub(super) fn features(self, mut each: impl FnMut(u32)) {
        if self.0 & CLEAN != 0 {
            each(CLEAN_ROWS as u32 + self.row());
        }
        for window in 0..WINDOWS {
            let value = self.0 >> (3 * window) & (WINDOW_VALUES - 1) as u32;
            each((FIRST_WINDOW + window * WINDOW_VALUES) as u32 + value);
        }
    }
}

/// A part of a well's active features.
pub(super) enum Input {
    /// One feature.
    Feature(u32),
    /// The features that a surrounding determines.
    Surrounding(Surrounding),
}

/// What the rows of 32 wells determine. The first index of each array is a row's index in the well (0 is the bottom
/// row), the second a well. Entries for rows above the stack have no meaning.
pub(crate) struct RowInputs {
    /// The feature of the row's contents.
    features: Rows,
    surroundings: [[u32; LANES]; MAX_HEIGHT],
    /// Number of filled cells of each well.
    filled: Lane,
}

impl RowInputs {
    pub(crate) fn new() -> RowInputs {
        RowInputs {
            features: [[0; LANES]; MAX_HEIGHT],
            surroundings: [[0; LANES]; MAX_HEIGHT],
            filled: [0; LANES],
        }
    }

    /// Replaces the contents. `stacks` contains the heights of the stacks.
    #[inline(always)]
    pub(crate) fn find(&mut self, rows: &Rows, open: &Rows, stacks: &Lane) {
        let (mut above, mut twice_above) = ([0; LANES], [0; LANES]);
        self.filled = [0; LANES];
        for y in (0..MAX_HEIGHT).rev() {
            let (features, surroundings) = (&mut self.features[y], &mut self.surroundings[y]);
            let mut filled = [0; LANES];
            for lane in 0..LANES {
                let distance = stacks[lane].wrapping_sub(y as u16 + 1);
                let row = rows[y][lane] & FULL;
                let shut = !open[y][lane] & FULL;
                filled[lane] = row;
                features[lane] = distance.wrapping_mul(ROW_VALUES as u16) | row;
                // Cells above the stack count as open, also those beyond the rows and columns of a small well.
                let in_stack = u32::from(stacks[lane] > y as u16).wrapping_neg();
                let here = spread(u32::from(shut)) & in_stack;
                let clean = u32::from(row == shut) * CLEAN;
                surroundings[lane] = here | above[lane] << 1 | twice_above[lane] << 2 | clean;
                twice_above[lane] = above[lane];
                above[lane] = here;
            }
            for (sum, filled) in self.filled.iter_mut().zip(ones(&filled)) {
                *sum += filled;
            }
        }
    }
}

// The feature of a row's contents fits into 16 bits.
const _: () = assert!(MAX_HEIGHT * ROW_VALUES <= 1 << 16);

/// A well, with what is known about it.
pub(crate) struct Described<'a> {
    /// The rows of several wells.
    pub(crate) rows: &'a RowInputs,
    /// The index of this well in `rows`.
    pub(crate) lane: usize,
    pub(crate) features: &'a Features,
}

impl Described<'_> {
    /// Calls `each` with all active features of the well, except those of the [pieces that can clear
    /// lines](clears_features). The feature of the number of filled cells is the last.
    #[inline(always)]
    pub(super) fn inputs(&self, mut each: impl FnMut(Input)) {
        let (rows, lane) = (self.rows, self.lane);
        let stack = usize::from(self.features.stack_height).min(MAX_HEIGHT);
        let features = rows.features[..stack].iter();
        for (features, surroundings) in features.zip(&rows.surroundings).rev() {
            each(Input::Feature(u32::from(features[lane])));
            each(Input::Surrounding(Surrounding(surroundings[lane])));
        }
        let lowest = usize::from(self.features.surface_height).min(MAX_HEIGHT);
        let [covered, enclosed, enclosed_rows] = self.features.all.map(usize::from);
        each(Input::Feature(
            SHAPE.feature(stack * (MAX_HEIGHT + 1) + lowest),
        ));
        each(Input::Feature(ENCLOSED_ROWS.feature(enclosed_rows)));
        each(Input::Feature(ENCLOSED.feature(enclosed)));
        each(Input::Feature(COVERED.feature(covered)));
        let filled = usize::from(rows.filled[lane]);
        each(Input::Feature(FILLED.feature(filled / 2)));
    }
}

/// Returns the features of the pieces that can clear lines.
#[inline(always)]
pub(super) fn clears_features(clears: Clears) -> [u32; 2] {
    [
        CLEARING.feature(usize::from(clears.pieces)),
        CLEARING_SEVERAL.feature(usize::from(clears.several)),
    ]
}

/// Lists the active features of wells, for training.
pub struct FeatureLister {
    emulator: Emulator,
    sees_clears: bool,
    features: [Features; LANES],
    open: Rows,
    rows: Box<RowInputs>,
    active: Vec<u32>,
}

impl FeatureLister {
    /// Creates a lister for wells of the emulator's geometry. It lists the [`CLEARS_FEATURES`] only if `sees_clears` is true.
    pub fn new(emulator: &Emulator, sees_clears: bool) -> FeatureLister {
        FeatureLister {
            emulator: emulator.clone(),
            sees_clears,
            features: [Features::default(); LANES],
            open: [[0; LANES]; MAX_HEIGHT],
            rows: Box::new(RowInputs::new()),
            active: Vec::new(),
        }
    }

    /// Calls `each` with the active features of every well, in order.
    pub fn list(&mut self, wells: &[Well], mut each: impl FnMut(&[u32])) {
        let (level, geometry) = (self.emulator.level(), self.emulator.geometry());
        for wells in wells.chunks(LANES) {
            let (open, rows) = (&mut self.open, Some(&mut *self.rows));
            features::count_open(level, geometry, wells, &mut self.features, open, rows);
            for (lane, well) in wells.iter().enumerate() {
                let features = &self.features[lane];
                let active = &mut self.active;
                active.clear();
                let described = Described {
                    rows: &self.rows,
                    lane,
                    features,
                };
                described.inputs(|input| match input {
                    Input::Feature(feature) => active.push(feature),
                    Input::Surrounding(surrounding) => {
                        surrounding.features(|feature| active.push(feature));
                    }
                });
                if self.sees_clears {
                    // Training adds up 32-bit floats in this order, so another order would give another network.
                    let filled = active.pop();
                    let lowest = usize::from(features.surface_height);
                    let clears = self.emulator.clears(well, lowest, None);
                    active.extend(clears_features(clears));
                    active.extend(filled);
                }
                each(active);
            }
        }
    }
}
