//! The fields after each placement of a piece.

use super::table::BoardFilter;
use super::tiling::Tilings;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, LowPlacements, Rests, SrsPlacement};
use std::sync::Arc;

/// Finds the fields after each placement that can possibly be cleared.
#[derive(Clone, Debug)]
pub(super) struct Expander {
    placements: LowPlacements,
    filter: Filter,
}

/// Decides which fields can possibly be cleared.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// The fields of a table, and a few others.
    Boards(Arc<BoardFilter>),
    /// Fields whose empty cells pieces can cover.
    Tilings,
}

/// Maximum number of pieces left of a field whose tilings are searched. With more pieces, almost every field can be
/// covered.
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

    /// Calls `visit` with each placement of a piece and the field after it, unless no pieces can clear that field.
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
