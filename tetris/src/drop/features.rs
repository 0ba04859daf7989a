//! Features of an action (a rotation and a column) in the game of dropped pieces.
//!
//! There are two sets of features:
//!
//! - the features of Brenman's paper, both as the paper defines them and as the paper's program computes them
//! - the features of the controllers from the literature: Dellacherie's controller, BCTS and DT

use super::{Drop, Turned};
use crate::Field;
use crate::bits::position_sum;

/// Names of the paper's features, in the order of [`PaperFeatures::paper`].
pub const PAPER_NAMES: [&str; 7] = [
    "lines",
    "d_holes",
    "d_blocked",
    "d_aggregate_blocked",
    "d_height",
    "total_height",
    "lost",
];

/// Names of the controllers' features, in the order of [`ControllerFeatures::array`].
pub const BCTS_NAMES: [&str; 9] = [
    "landing_height",
    "eroded_piece_cells",
    "row_transitions",
    "column_transitions",
    "holes",
    "cumulative_wells",
    "hole_depth",
    "rows_with_holes",
    "diversity",
];

/// Counts for a field, from which the paper's features are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// Height of the highest filled cell, counted from the floor.
    pub height: i32,
    /// Height as the paper's program computes it. It differs from `height` only for an empty field, whose height is its
    /// number of rows.
    pub height_program: i32,
    /// Number of empty cells that are not connected to the top row by empty cells.
    pub holes: i32,
    /// Number of empty cells with a filled cell somewhere above them in the same column.
    pub blocked: i32,
    /// Number of filled cells with an empty cell somewhere below them in the same column.
    pub aggregate_blocked: i32,
    /// Number of filled cells above the uppermost empty cell of their column. The paper's program computes this number
    /// instead of `aggregate_blocked`. It is nearly always 0.
    pub aggregate_blocked_program: i32,
    /// Sum of the heights of the filled cells; the floor row has height 1.
    pub total_height: i32,
}

impl FieldCounts {
    /// Computes the counts for a field.
    pub fn of(field: &Field) -> FieldCounts {
        let mut counts = FieldCounts::default();
        let rows = field.height() as u32;
        for &column in &field.columns[..field.width()] {
            let height = 64 - column.leading_zeros();
            let (positions, cells) = position_sum(column);
            counts.height = counts.height.max(height as i32);
            counts.total_height += positions + cells;
            counts.blocked += height as i32 - cells;
            counts.aggregate_blocked += cells - column.trailing_ones() as i32;
            if height == rows && cells < rows as i32 {
                let from_top = (column << (64 - rows)).leading_ones();
                counts.aggregate_blocked_program += from_top as i32;
            }
        }
        counts.height_program = match counts.height {
            0 => rows as i32,
            height => height,
        };
        if counts.blocked > 0 || counts.height == rows as i32 {
            counts.holes = holes(field);
        }
        counts
    }
}

/// Returns the number of empty cells that are not connected to the top row by empty cells.
fn holes(field: &Field) -> i32 {
    let width = field.width();
    let mask = field.mask();
    let top = 1u64 << (field.height() - 1);
    // Start with the empty cells above each column. In most fields, few other empty cells remain.
    let empty: [u64; 16] = std::array::from_fn(|x| !field.columns[x] & mask);
    let mut reached = [0u64; 16];
    for x in 0..width {
        let air = mask & !((1u64 << field.column_height(x)) - 1);
        reached[x] = if empty[x] & top != 0 { air } else { 0 };
    }
    let mut changed = true;
    while changed {
        changed = false;
        for x in 0..width {
            let left = if x > 0 { reached[x - 1] } else { 0 };
            let right = if x + 1 < width { reached[x + 1] } else { 0 };
            let seeds = (left | right) & empty[x] & !reached[x];
            if seeds != 0 {
                reached[x] = spread(reached[x] | seeds, empty[x]);
                changed = true;
            }
        }
    }
    (0..width)
        .map(|x| (empty[x] & !reached[x]).count_ones() as i32)
        .sum()
}

/// Extends the set bits of `seeds` upwards and downwards along runs of set bits of `free`.
fn spread(seeds: u64, free: u64) -> u64 {
    let mut all = seeds;
    loop {
        let next = all | ((all << 1 | all >> 1) & free);
        if next == all {
            return all;
        }
        all = next;
    }
}

/// The paper's features of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaperFeatures {
    /// Number of rows cleared, change in holes, and change in blocked cells.
    pub common: [i32; 3],
    /// Change in aggregate blocked cells, as defined by the paper and as computed by its program.
    pub aggregate_blocked: [i32; 2],
    /// Change in height, as defined by the paper and as computed by its program.
    pub height: [i32; 2],
    /// Sum of the heights of the filled cells after the action.
    pub total_height: i32,
    /// 1 if the action loses the game, otherwise 0.
    pub lost: i32,
}

impl PaperFeatures {
    /// Computes the features of an action from the counts before the action and from its result.
    pub fn new(before: &FieldCounts, drop: &Drop) -> PaperFeatures {
        PaperFeatures::between(before, &FieldCounts::of(&drop.field), drop.lines, drop.lost)
    }

    /// Computes the features from the counts before and after one or more actions.
    pub fn between(
        before: &FieldCounts,
        after: &FieldCounts,
        lines: u8,
        lost: bool,
    ) -> PaperFeatures {
        PaperFeatures {
            common: [
                i32::from(lines),
                after.holes - before.holes,
                after.blocked - before.blocked,
            ],
            aggregate_blocked: [
                after.aggregate_blocked - before.aggregate_blocked,
                after.aggregate_blocked_program - before.aggregate_blocked_program,
            ],
            height: [
                after.height - before.height,
                after.height_program - before.height_program,
            ],
            total_height: after.total_height,
            lost: i32::from(lost),
        }
    }

    /// Returns the features as the paper defines them, in the order of [`PAPER_NAMES`].
    pub fn paper(&self) -> [i32; 7] {
        self.array(0)
    }

    /// Returns the features as the paper's program computes them, in the order of [`PAPER_NAMES`].
    pub fn program(&self) -> [i32; 7] {
        self.array(1)
    }

    fn array(&self, form: usize) -> [i32; 7] {
        let [lines, holes, blocked] = self.common;
        [
            lines,
            holes,
            blocked,
            self.aggregate_blocked[form],
            self.height[form],
            self.total_height,
            self.lost,
        ]
    }
}

/// The controllers' features of an action.
///
/// The definitions are those of MDPTetris, the program for which the published weights were tuned. With transitions
/// and wells counted in other ways, DT-10 clears 793 rows on a field of 10 × 10 cells instead of 5,025.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerFeatures {
    /// Height of the piece's middle before rows are cleared; the floor row has height 1.
    pub landing_height: f64,
    /// Number of rows cleared, multiplied by the number of the piece's own cells in these rows.
    pub eroded_piece_cells: i32,
    /// Number of changes between filled and empty along all rows. The walls count as filled, so an empty row has two.
    pub row_transitions: i32,
    /// Number of changes between filled and empty along the columns. The floor counts as filled, and the space above
    /// the field as empty.
    pub column_transitions: i32,
    /// Number of empty cells with a filled cell somewhere above them in the same column.
    pub holes: i32,
    /// Sum, over all well cells, of the number of consecutive empty cells from the well cell downwards. A well cell is an
    /// empty cell with filled cells, or walls, to its left and right. It may be covered.
    pub cumulative_wells: i32,
    /// Sum, over all holes, of the number of consecutive filled cells directly above the hole.
    pub hole_depth: i32,
    /// Number of rows with at least one hole.
    pub rows_with_holes: i32,
    /// Number of distinct height differences between neighbouring columns. Only differences from -2 to 2 count.
    pub diversity: i32,
}

impl ControllerFeatures {
    /// Computes the features of an action from its result and the rotated piece.
    pub fn new(drop: &Drop, turned: &Turned) -> ControllerFeatures {
        let field = &drop.field;
        let width = field.width();
        let mask = field.mask();
        let mut features = ControllerFeatures {
            landing_height: f64::from(drop.landing_row) + (turned.height() as f64 + 1.0) / 2.0,
            eroded_piece_cells: i32::from(drop.lines) * i32::from(drop.eroded_cells),
            ..ControllerFeatures::default()
        };
        let mut left = mask;
        let mut hole_rows = 0;
        let mut steps = 0u32;
        for x in 0..width {
            let column = field.columns[x];
            let right = if x + 1 < width {
                field.columns[x + 1]
            } else {
                mask
            };
            let below_top = (1u64 << field.column_height(x)) - 1;
            let holes = below_top & !column;
            features.row_transitions += (left ^ column).count_ones() as i32;
            // The lowest bit compares the floor row with the floor. The highest bit compares the top row with the space
            // above it.
            features.column_transitions += (column ^ (column << 1 | 1)).count_ones() as i32;
            features.holes += holes.count_ones() as i32;
            features.hole_depth += hole_depths(holes, column);
            features.cumulative_wells += well_sums(left & right & !column, !column);
            hole_rows |= holes;
            if x > 0 {
                let step = field.column_height(x) as i32 - field.column_height(x - 1) as i32;
                if step.abs() <= 2 {
                    steps |= 1 << (step + 2);
                }
            }
            left = column;
        }
        features.row_transitions += (left ^ mask).count_ones() as i32;
        features.rows_with_holes = hole_rows.count_ones() as i32;
        features.diversity = steps.count_ones() as i32;
        features
    }

    /// Returns the features in the order of [`BCTS_NAMES`].
    pub fn array(&self) -> [f64; 9] {
        [
            self.landing_height,
            f64::from(self.eroded_piece_cells),
            f64::from(self.row_transitions),
            f64::from(self.column_transitions),
            f64::from(self.holes),
            f64::from(self.cumulative_wells),
            f64::from(self.hole_depth),
            f64::from(self.rows_with_holes),
            f64::from(self.diversity),
        ]
    }
}

/// Returns the sum, over all holes of a column, of the number of consecutive filled cells directly above the hole. In a
/// run of holes, only the highest one has a filled cell directly above it.
fn hole_depths(holes: u64, column: u64) -> i32 {
    let mut lowest_filled = (holes << 1) & column;
    let mut sum = 0;
    while lowest_filled != 0 {
        let start = lowest_filled.trailing_zeros();
        sum += (column >> start).trailing_ones() as i32;
        lowest_filled &= lowest_filled - 1;
    }
    sum
}

/// Returns the sum, over all cells, of the number of consecutive empty cells from the cell downwards.
fn well_sums(mut cells: u64, empty: u64) -> i32 {
    let mut sum = 0;
    while cells != 0 {
        sum += cells.count_ones() as i32;
        cells = (cells >> 1) & empty;
    }
    sum
}
