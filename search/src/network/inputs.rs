//! The features of a well that a network sees.
//!
//! Rows are counted from the top of the stack, so most features do not depend on the height. The
//! features are, in this order:
//!
//! - each row of the stack, by its distance from the top;
//! - each row without enclosed cells;
//! - each window of 3 rows and 4 columns, by its first column, in which enclosed cells count as filled;
//! - one of each kind of [count](Count).

use crate::features::{self, Features, LANES, Rows};
use hatebeam_game::{Clears, Emulator, MAX_HEIGHT, Well};

const COLUMNS: usize = 10;
const FULL: u16 = (1 << COLUMNS) - 1;
const ROW_VALUES: usize = 1 << COLUMNS;
/// Number of positions of a window.
const WINDOWS: usize = COLUMNS - 4 + 1;
const WINDOW_VALUES: usize = 1 << (3 * 4);

const CLEAN_ROWS: usize = MAX_HEIGHT * ROW_VALUES;
const FIRST_WINDOW: usize = CLEAN_ROWS + ROW_VALUES;
const FIRST_COUNT: usize = FIRST_WINDOW + WINDOWS * WINDOW_VALUES;

/// A kind of count: exactly one of its values is active.
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

    /// The feature of a value. Values that are too great count as the greatest.
    fn feature(&self, value: usize) -> u32 {
        (self.first + value.min(self.values - 1)) as u32
    }
}

/// Height of the stack, and the lowest row with an open cell.
const SHAPE: Count = Count::after(FIRST_COUNT, (MAX_HEIGHT + 1) * (MAX_HEIGHT + 1));
/// Number of rows with enclosed cells.
const ENCLOSED_ROWS: Count = Count::after(SHAPE.end(), MAX_HEIGHT + 1);
/// Number of enclosed cells.
const ENCLOSED: Count = Count::after(ENCLOSED_ROWS.end(), 64);
/// Number of covered cells.
const COVERED: Count = Count::after(ENCLOSED.end(), 64);
/// The set of pieces that can clear a line.
const CLEARING: Count = Count::after(COVERED.end(), 128);
/// The set of pieces that can clear several lines.
const CLEARING_SEVERAL: Count = Count::after(CLEARING.end(), 128);
/// Half of the number of filled cells.
const FILLED: Count = Count::after(CLEARING_SEVERAL.end(), 81);
const COUNTS: usize = 7;

/// Number of features.
pub const FEATURES: usize = FILLED.end();

/// Greatest number of active features of a well.
const MAX_ACTIVE: usize = MAX_HEIGHT * (1 + Surrounding::MAX_FEATURES) + COUNTS;

/// Bit `x` of a row at bit `3x`.
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

/// A row without enclosed cells in a surrounding.
const CLEAN: u32 = 1 << (3 * COLUMNS);

/// A row and the two rows above it, which determine most features of the row: bits 0, 3, 6 ... are
/// the cells of the row that are not open, and the bits after them are those of the rows above.
/// [`CLEAN`] is set if the row has no enclosed cells.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Surrounding(pub(super) u32);

impl Surrounding {
    /// Greatest number of features that are active because of a surrounding.
    const MAX_FEATURES: usize = WINDOWS + 1;

    /// Calls `each` with the features that are active because of this surrounding.
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

    /// The surroundings whose features are not in the list.
    #[inline(always)]
    pub(super) fn surroundings(&self) -> &[Surrounding] {
        &self.surroundings[..self.rows]
    }
}

/// Lists the active features of a well. Its open cells are in lane `lane` of `open`. With
/// `SURROUNDINGS`, the surroundings of the rows are listed instead of their features.
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
    // Three rows, interleaved: the lowest row of a window is in the lowest of three bits.
    let mut three = 0;
    for distance in 0..stack {
        let y = stack - 1 - distance;
        let row = well.rows()[y] & FULL;
        let shut = !open[y][lane] & FULL;
        filled += row.count_ones();
        active.push((distance * ROW_VALUES) as u32 + u32::from(row));
        // What leaves the three bits of a column is masked out.
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
