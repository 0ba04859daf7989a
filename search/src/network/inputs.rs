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

use crate::features::{self, Features, LANES, Rows};
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
const COUNTS: usize = 7;

/// Number of features.
pub const FEATURES: usize = FILLED.end();

/// Maximum number of active features of a well.
const MAX_ACTIVE: usize = MAX_HEIGHT * (1 + Surrounding::MAX_FEATURES) + COUNTS;

/// For each value of a row, the value with bit `x` moved to bit `3x`.
static SPREAD: [u32; ROW_VALUES] = {
    let mut table = [0; ROW_VALUES];
    let mut row = 0;
    while row < ROW_VALUES {
        let mut column = 0;
        while column < COLUMNS {
            table[row] |= (row as u32 >> column & 1) << (3 * column);
            column += 1;
        }
        row += 1;
    }
    table
};

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
    /// Maximum number of features that one surrounding determines.
    const MAX_FEATURES: usize = WINDOWS + 1;

    /// Calls `each` with each feature that this surrounding determines.
    #[inline(always)]
    pub(super) fn features(self, mut each: impl FnMut(u32)) {
        if self.0 & CLEAN != 0 {
            let cell = |x: usize| (self.0 >> (3 * x) & 1) << x;
            let row: u32 = (0..COLUMNS).map(cell).sum();
            each(CLEAN_ROWS as u32 + row);
        }
        for window in 0..WINDOWS {
            let value = self.0 >> (3 * window) & (WINDOW_VALUES - 1) as u32;
            each((FIRST_WINDOW + window * WINDOW_VALUES) as u32 + value);
        }
    }
}

/// The active features of a well.
pub(crate) struct Active {
    features: [u32; MAX_ACTIVE],
    len: usize,
    surroundings: [Surrounding; MAX_HEIGHT],
    rows: usize,
}

impl Active {
    pub(crate) const fn new() -> Active {
        Active {
            features: [0; MAX_ACTIVE],
            len: 0,
            surroundings: [Surrounding(0); MAX_HEIGHT],
            rows: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, feature: u32) {
        self.features[self.len] = feature;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn features(&self) -> &[u32] {
        &self.features[..self.len]
    }

    /// Returns the surroundings of the rows. The list that [`features`](Active::features) returns does not contain the
    /// features that these surroundings determine.
    #[inline(always)]
    pub(super) fn surroundings(&self) -> &[Surrounding] {
        &self.surroundings[..self.rows]
    }
}

/// Replaces the contents of `active` with the active features of a well. Lane `lane` of `open` contains the well's open
/// cells. If `SURROUNDINGS` is true, stores the surroundings of rows instead of the features that they determine.
#[inline]
pub(crate) fn list<const SURROUNDINGS: bool>(
    well: &Well,
    open: &Rows,
    lane: usize,
    features: &Features,
    clears: Clears,
    active: &mut Active,
) {
    active.len = 0;
    active.rows = 0;
    let stack = usize::from(features.stack_height).min(MAX_HEIGHT);
    let mut filled = 0;
    // The bits of three interleaved rows. The lowest of the three bits of each column is for the current row.
    let mut three = 0;
    for distance in 0..stack {
        let y = stack - 1 - distance;
        let row = well.rows()[y] & FULL;
        let shut = !open[y][lane] & FULL;
        filled += row.count_ones();
        active.push((distance * ROW_VALUES) as u32 + u32::from(row));
        // The mask removes the bit that the shift moves from one column into the next.
        three = (three << 1 & 0x36db_6db6) | SPREAD[usize::from(shut)];
        let surrounding = Surrounding(three | (CLEAN * u32::from(row == shut)));
        if SURROUNDINGS {
            active.surroundings[distance] = surrounding;
            active.rows = distance + 1;
        } else {
            surrounding.features(|feature| active.push(feature));
        }
    }
    let lowest = usize::from(features.surface_height).min(MAX_HEIGHT);
    active.push(SHAPE.feature(stack * (MAX_HEIGHT + 1) + lowest));
    let [covered, enclosed, enclosed_rows] = features.all.map(usize::from);
    active.push(ENCLOSED_ROWS.feature(enclosed_rows));
    active.push(ENCLOSED.feature(enclosed));
    active.push(COVERED.feature(covered));
    active.push(CLEARING.feature(usize::from(clears.pieces)));
    active.push(CLEARING_SEVERAL.feature(usize::from(clears.several)));
    active.push(FILLED.feature(filled as usize / 2));
}

/// Lists the active features of wells, for training.
pub struct FeatureLister {
    emulator: Emulator,
    features: [Features; LANES],
    open: Rows,
    active: Active,
}

impl FeatureLister {
    /// Creates a lister for wells of the emulator's geometry.
    pub fn new(emulator: &Emulator) -> FeatureLister {
        FeatureLister {
            emulator: emulator.clone(),
            features: [Features::default(); LANES],
            open: [[0; LANES]; MAX_HEIGHT],
            active: Active::new(),
        }
    }

    /// Calls `each` with the active features of every well, in order.
    pub fn list(&mut self, wells: &[Well], mut each: impl FnMut(&[u32])) {
        let (level, geometry) = (self.emulator.level(), self.emulator.geometry());
        for wells in wells.chunks(LANES) {
            features::count_open(level, geometry, wells, &mut self.features, &mut self.open);
            for (lane, well) in wells.iter().enumerate() {
                let features = &self.features[lane];
                let lowest = usize::from(features.surface_height);
                let clears = self.emulator.clears(well, lowest, None);
                let active = &mut self.active;
                list::<false>(well, &self.open, lane, features, clears, active);
                each(self.active.features());
            }
        }
    }
}
