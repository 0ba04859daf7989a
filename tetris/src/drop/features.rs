//! Features of an action: those of Brenman's paper, as the paper defines them and as its program computes them, and
//! those of the controllers of Dellacherie and of Thiery and Scherrer (BCTS, DT).

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

/// Counts of a field from which the paper's features are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// Rows from the floor to the highest filled cell.
    pub height: i32,
    /// The same as the program computes it: an empty field counts as full height.
    pub height_program: i32,
    /// Empty cells that no path of empty cells joins to the highest row.
    pub holes: i32,
    /// Empty cells with a filled cell above in the column.
    pub blocked: i32,
    /// Filled cells with an empty cell below in the column.
    pub aggregate_blocked: i32,
    /// Filled cells above the uppermost empty cell of the column: what the program computes in place of
    /// `aggregate_blocked`. It is nearly always 0.
    pub aggregate_blocked_program: i32,
    /// Sum of the heights of the filled cells; the floor row has height 1.
    pub total_height: i32,
}

impl FieldCounts {
    /// Counts a field.
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

/// Number of empty cells that no path of empty cells joins to the highest row.
fn holes(field: &Field) -> i32 {
    let width = field.width();
    let mask = field.mask();
    let top = 1u64 << (field.height() - 1);
    // The air above a column is reached at once; what remains are covered cells, which are few in most fields.
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

/// Extends seeds upwards and downwards along runs of set bits of `free`.
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
    /// Rows cleared, and the changes of holes and of blocked cells.
    pub common: [i32; 3],
    /// Change of aggregate blocked cells: by the paper, and by the program.
    pub aggregate_blocked: [i32; 2],
    /// Change of the height: by the paper, and by the program.
    pub height: [i32; 2],
    /// Sum of the heights of the filled cells after the action.
    pub total_height: i32,
    /// 1 if the action loses the game.
    pub lost: i32,
}

impl PaperFeatures {
    /// Computes the features of an action from the counts before it and its result.
    pub fn new(before: &FieldCounts, drop: &Drop) -> PaperFeatures {
        PaperFeatures::between(before, &FieldCounts::of(&drop.field), drop.lines, drop.lost)
    }

    /// Computes the features from the counts before and after one or several moves.
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerFeatures {
    /// Height of the piece's middle before rows are cleared; the floor row has height 1.
    pub landing_height: f64,
    /// Rows cleared, times the piece's own cells in them.
    pub eroded_piece_cells: i32,
    /// Changes between filled and empty along the rows that have a filled cell; walls count as filled.
    pub row_transitions: i32,
    /// Changes between filled and empty along the columns; the floor counts as filled, the air as empty.
    pub column_transitions: i32,
    /// Empty cells with a filled cell above in the column.
    pub holes: i32,
    /// Sum of 1 + 2 + … + depth over the wells: runs of cells above a column's top with both neighbours filled.
    pub cumulative_wells: i32,
    /// Filled cells directly above each hole, up to the next empty cell.
    pub hole_depth: i32,
    /// Rows with at least one hole.
    pub rows_with_holes: i32,
    /// Number of different height steps of at most 2 between neighbouring columns.
    pub diversity: i32,
}

impl ControllerFeatures {
    /// Computes the features of an action with the given shape.
    pub fn new(drop: &Drop, turned: &Turned) -> ControllerFeatures {
        let field = &drop.field;
        let width = field.width();
        let mask = field.mask();
        let mut features = ControllerFeatures {
            landing_height: f64::from(drop.landing_row) + (turned.height() as f64 + 1.0) / 2.0,
            eroded_piece_cells: i32::from(drop.lines) * i32::from(drop.eroded_cells),
            ..ControllerFeatures::default()
        };
        let rows = field.columns.iter().fold(0, |rows, column| rows | column);
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
            features.row_transitions += ((left ^ column) & rows).count_ones() as i32;
            // The lowest bit compares the floor row with the floor, the highest the top row with the air.
            features.column_transitions += (column ^ (column << 1 | 1)).count_ones() as i32;
            features.holes += holes.count_ones() as i32;
            features.hole_depth += hole_depths(holes, column);
            features.cumulative_wells += well_sums(left & right & mask & !below_top);
            hole_rows |= holes;
            if x > 0 {
                let step = field.column_height(x) as i32 - field.column_height(x - 1) as i32;
                if step.abs() <= 2 {
                    steps |= 1 << (step + 2);
                }
            }
            left = column;
        }
        features.row_transitions += ((left ^ mask) & rows).count_ones() as i32;
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

/// Sum over the holes of the filled cells directly above. Only the highest hole of a run has any.
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

/// Sum of 1 + 2 + … + length over the runs of set bits.
fn well_sums(mut cells: u64) -> i32 {
    let mut sum = 0;
    while cells != 0 {
        // Each step counts the cells that have at least this many cells of their run above or at them.
        sum += cells.count_ones() as i32;
        cells &= cells << 1;
    }
    sum
}
