//! Guideline Tetris as perfect clears need it: turns with kicks, hold, previews and bags, without gravity.
//!
//! Rows count from the floor. The field has 10 columns and 40 rows; pieces spawn with their lowest cell in row 20.

mod bag;
mod kicks;
mod low;
mod perft;
mod placements;
mod queue;
mod shapes;

pub use bag::{Bag, BagError};
pub use kicks::{KickError, KickTable, Kicks};
pub use low::{LowField, LowFieldError, LowPlacements, MAX_LOW_ROWS};
pub use perft::{PerftLayer, perft};
pub use placements::{DropMode, PlacementSet, Placements};
pub use queue::{FirstChoices, Hold, HoldError};
pub use shapes::{Orientation, SrsPlacement, cells};

use crate::{Field, FieldError};

/// Number of columns.
pub const WIDTH: usize = 10;
/// Number of rows, with the ones above the visible field.
pub const HEIGHT: usize = 40;
/// Row of the lowest cell of a piece that spawns.
pub const SPAWN_ROW: usize = 20;

/// Returns the field of the given rows of text, the last of which is the floor row.
pub fn parse_field<S: AsRef<str>>(rows: &[S]) -> Result<Field, FieldError> {
    Field::parse(WIDTH, HEIGHT, rows)
}
