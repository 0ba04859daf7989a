//! The parts of guideline Tetris that a search for perfect clears requires: turns with kicks, and bags.
//! A perfect clear leaves the field empty. Pieces do not fall by themselves.
//!
//! Rows are numbered from the floor. The field has 10 columns and 40 rows. Pieces spawn with their lowest cell in row
//! 20.

mod bag;
mod keys;
mod kicks;
mod low;
mod placements;
mod shapes;

pub use bag::{Bag, BagError};
pub use keys::{SrsKey, keys_to};
pub use kicks::{KickError, KickTable, Kicks};
pub use low::{LowField, LowFieldError, LowPlacements, MAX_LOW_ROWS, Rests};
pub use placements::{DropMode, PlacementSet, Placements};
pub use shapes::{Orientation, SrsPlacement, cells};

use crate::{Field, FieldError};

/// Number of columns.
pub const WIDTH: usize = 10;
/// Number of rows, including the rows above the visible field.
pub const HEIGHT: usize = 40;
/// Row of the lowest cell of a spawning piece.
pub const SPAWN_ROW: usize = 20;

/// Parses a field from rows of text. The last row of text is the floor row.
pub fn parse_field<S: AsRef<str>>(rows: &[S]) -> Result<Field, FieldError> {
    Field::parse(WIDTH, HEIGHT, rows)
}
