//! The fields after each placement of a piece.

use super::table::BoardFilter;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, LowPlacements, SrsPlacement};
use std::sync::Arc;

/// Finds the fields after each placement that can possibly be cleared.
#[derive(Clone, Debug)]
pub(super) struct Expander {
    placements: LowPlacements,
    /// Fields that can be cleared, and a few others.
    filter: Option<Arc<BoardFilter>>,
}

impl Expander {
    pub(super) fn new(placements: LowPlacements, filter: Option<Arc<BoardFilter>>) -> Expander {
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
        mut visit: impl FnMut(SrsPlacement, LowField),
    ) {
        self.placements.for_each(field, piece, |placement| {
            let child = field.put(placement);
            let is_open = match &self.filter {
                Some(filter) => filter.contains(&child),
                None => !child.is_split(),
            };
            if is_open {
                visit(placement, child);
            }
        });
    }
}
