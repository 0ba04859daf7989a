//! The backward emulator: finds the parents of a well.
//!
//! A parent is a live well without an empty row below its top, in which the enemy offers a piece
//! and a reachable placement of that piece leaves the given well. The search for all parents has
//! five steps:
//!
//! 1. Restore the rows that a placement may have cleared: none, or one to four full rows inside a
//!    window of four.
//! 2. On every level, find the positions at which all four cells of a piece are filled and which
//!    have at least one cell in each restored row. The well without these cells may be a parent.
//!    The tables of the forward emulator find these positions when filled and empty cells are
//!    exchanged.
//! 3. Keep a position if the piece rests on something else there, and if at least one of the
//!    positions that lead there by a single key is free. Both tests are table look-ups for all
//!    pieces at once, as in the forward emulator.
//! 4. If the parent's stack is higher than the given well's, *every* piece must be able to lower it
//!    that far, because HATETRIS gives the worst piece. So O and I must each find a row with a gap
//!    that they fit and that is open from above. Three rows are impossible, since O has only two.
//!    (This step is skipped for enemies that do not give the worst piece.)
//! 5. Check with the forward emulator that the enemy gives this piece and that the well is one of
//!    the children.
//!
//! Mean numbers over 1,000 wells that survived in a beam of 2,000: 5,400 placements pass step 2,
//! 560 pass step 3, 200 pass step 4, and 4.6 are parents (4.1 without a clear, 0.5 with one line,
//! none with more; median 4, 90th percentile 7, maximum 12, so one byte is enough to name a
//! parent). A call takes 24 µs with AVX-512, half of it in step 5 (see the benchmark). In random
//! play the numbers are 2,900, 490, 110 and 5.3, and a call takes 17 µs.

use crate::emulator::backward::Tables as BackTables;
use crate::emulator::{Children, Emulator};
use crate::enemy::Enemy;
use crate::piece::Piece;
use crate::reference::Parent;
use crate::well::Well;
use std::sync::Arc;

/// The pieces that an enemy may offer in a well, if the earlier game is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The piece that HATETRIS Mild gives. HATETRIS gives the same piece, except for its loop rule.
    Mild,
    /// Any of these pieces, in every well.
    AnyOf(&'static [Piece]),
}

impl Offer {
    /// Returns the pieces that `enemy` may offer. For HATETRIS this leaves out the pieces that the
    /// loop rule selects; use [`Offer::AnyOf`] with all pieces to include them.
    pub const fn of(enemy: Enemy) -> Offer {
        match enemy {
            Enemy::Hatetris | Enemy::Mild => Offer::Mild,
            Enemy::Lovetris => Offer::AnyOf(&[Piece::I]),
            Enemy::Burgiel | Enemy::Brzustowski => Offer::AnyOf(&[Piece::S, Piece::Z]),
        }
    }
}

/// Finds the parents of wells. Clones share the tables. The buffers are reused: once they have
/// grown, a call allocates nothing.
#[derive(Clone)]
pub struct Backward {
    emulator: Emulator,
    /// `None` where the forward emulator has no tables either.
    tables: Option<Arc<BackTables>>,
    candidates: Vec<Parent>,
    children: Children,
}

impl Backward {
    /// Creates a backward emulator with the geometry, rules and SIMD level of `emulator`.
    pub fn new(emulator: &Emulator) -> Backward {
        Backward {
            emulator: emulator.clone(),
            tables: emulator
                .tables()
                .map(|tables| Arc::new(BackTables::new(tables.geometry))),
            candidates: Vec::new(),
            children: Children::new(),
        }
    }

    /// Finds all parents of `well` under HATETRIS Mild, in the order of [`Backward::parents_by`].
    pub fn parents(&mut self, well: &Well, out: &mut Vec<Parent>) {
        self.parents_by(well, Offer::Mild, out);
    }

    /// Replaces the contents of `out` with all parents of `well`, without duplicates. They are
    /// sorted by lines cleared, then by piece (S Z O I L J T), then by their rows from the bottom
    /// up (smaller values first). This order is part of the format of stored frontiers, where an
    /// index names a parent.
    ///
    /// Every well of a game except the first has at least one parent. A well with an empty row
    /// below its top has none, and neither has a well that is not live in this geometry.
    pub fn parents_by(&mut self, well: &Well, offer: Offer, out: &mut Vec<Parent>) {
        out.clear();
        self.candidates.clear();
        if well.check(self.emulator.geometry()).is_err() || well.has_gap() {
            return;
        }
        let tables = self
            .tables
            .as_deref()
            .filter(|_| self.emulator.handles_parents_of(well));
        match tables {
            Some(tables) => self.emulator.collect_parents(
                tables,
                well,
                offer == Offer::Mild,
                &mut self.candidates,
            ),
            None => {
                let oracle = self.emulator.reference();
                oracle.for_each_removal(well, |candidate| self.candidates.push(candidate));
            }
        }
        for candidate in &self.candidates {
            let Parent {
                lines,
                piece,
                well: before,
            } = candidate;
            let offered = match offer {
                Offer::Mild => self.emulator.piece(before) == *piece,
                Offer::AnyOf(pieces) => pieces.contains(piece),
            };
            if offered {
                self.emulator.children(before, *piece, &mut self.children);
                if self.children.iter().any(|child| child == (well, *lines)) {
                    out.push(*candidate);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
    }
}
