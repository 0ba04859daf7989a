//! Placements of a piece and the fields after them, without fields that obviously cannot be cleared.

use super::table::BoardFilter;
use super::tiling::Tilings;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, LowPlacements, Rests, SrsPlacement};
use std::sync::Arc;

/// Finds the placements of a piece, except those after which the field obviously cannot be cleared.
#[derive(Clone, Debug)]
pub(super) struct Expander {
    placements: LowPlacements,
    filter: Filter,
}

/// A condition that every clearable field meets.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// The filter of a table's boards contains the field.
    Boards(Arc<BoardFilter>),
    /// Pieces can cover the field's empty cells.
    Tilings,
}

/// Maximum number of pieces left for which [`Filter::Tilings`] is checked. With more pieces left, almost every field
/// meets the condition.
const TILED: usize = 6;

impl Filter {
    #[inline]
    fn contains(&self, field: &LowField) -> bool {
        match self {
            Filter::Boards(boards) => boards.contains(field),
            Filter::Tilings => field.pieces_left() > TILED || Tilings::shared().can_fill(field),
        }
    }
}

impl Expander {
    pub(super) fn new(placements: LowPlacements, filter: Filter) -> Expander {
        Expander { placements, filter }
    }

    pub(super) fn placements(&self) -> &LowPlacements {
        &self.placements
    }

    /// Calls `visit` with each reachable placement of a piece and the field after it. Skips fields that obviously
    /// cannot be cleared.
    #[inline]
    pub(super) fn for_each(
        &self,
        field: &LowField,
        piece: Piece,
        visit: impl FnMut(SrsPlacement, LowField),
    ) {
        let rests = Rests::new(field, piece)
            .filter(|child| !child.is_split())
            .filter(|child| self.filter.contains(child));
        self.placements.for_each_reached(rests, visit);
    }
}
