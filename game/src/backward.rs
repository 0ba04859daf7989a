//! The backward emulator: finds the parents of a well.
//!
//! A parent is a live well (one in which the game is not over) that has no empty row below the top
//! of its stack. In a parent, the enemy offers a piece, and some reachable placement of that piece
//! produces the given well. The search for all parents has five steps:
//!
//! 1. Restore the rows that the placement may have cleared: none, or one to four full rows within a
//!    window of four rows.
//! 2. At every height, find the positions in which all four cells of a piece are filled and at
//!    least one cell is in each restored row. The well without these cells is a candidate. The
//!    lookup tables of the forward emulator yield these positions if filled and empty cells are swapped.
//! 3. Keep a position if the piece rests on other cells or on the floor, and if the piece can get
//!    there: at least one position that is a single key away must be free. Each test is a table
//!    lookup for all pieces at once, as in the forward emulator.
//! 4. If the candidate's stack is higher than that of the given well, *every* piece must be able to
//!    lower it by the difference. Otherwise, HATETRIS would give a piece that cannot do this. So
//!    some row must have a single gap that O can fill from above, and some row must have a single
//!    gap that I can fill from above. A difference of three rows is impossible, because O occupies
//!    only two. This step is skipped for enemies that do not give the worst piece.
//! 5. Use the forward emulator to check that the enemy gives this piece and that the given well is
//!    one of the candidate's children.
//!
//! The following figures are averages over 1,000 wells that survived in a beam of width 2,000.
//! 5,400 placements remain after step 2, 560 after step 3, 200 after step 4, and 4.6 after step 5. Of
//! these 4.6 placements, 4.1 clear no line, 0.5 clear one, and none clear more. The median number of
//! parents is 4, the 90th percentile is 7, and the maximum is 12. With so few parents, the lowest byte
//! of a parent's hash, which searches store with each well, nearly always identifies the parent. In the
//! benchmark in `benches`, a call takes 24 µs with AVX-512, half of it in step 5. For wells from random
//! play, the averages are 2,900, 490, 110 and 5.3, and a call takes 17 µs.

use crate::emulator::backward::Tables as BackTables;
use crate::emulator::{Children, Emulator};
use crate::enemy::Enemy;
use crate::piece::Piece;
use crate::reference::Parent;
use crate::well::Well;
use std::sync::Arc;

/// The pieces that an enemy may offer in a well when the moves that led to the well are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The piece that HATETRIS Mild gives. HATETRIS gives the same piece unless its loop rule
    /// selects a different one.
    Mild,
    /// Any of these pieces, regardless of the well.
    AnyOf(&'static [Piece]),
}

impl Offer {
    /// Returns the pieces that `enemy` may offer. For HATETRIS, the result excludes pieces that the
    /// loop rule selects. Use [`Offer::AnyOf`] with all pieces to include them.
    pub const fn of(enemy: Enemy) -> Offer {
        match enemy {
            Enemy::Hatetris | Enemy::Mild => Offer::Mild,
            Enemy::Lovetris => Offer::AnyOf(&[Piece::I]),
            Enemy::Burgiel | Enemy::Brzustowski => Offer::AnyOf(&[Piece::S, Piece::Z]),
        }
    }
}

/// Finds the parents of wells. Clones share the lookup tables. The buffers are reused, so calls do not
/// allocate once the buffers are large enough.
#[derive(Clone)]
pub struct Backward {
    emulator: Emulator,
    /// The lookup tables, or `None` if the forward emulator has none.
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

    /// Returns the emulator.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Finds all parents of `well` under HATETRIS Mild, in the order of [`Backward::parents_by`].
    pub fn parents(&mut self, well: &Well, out: &mut Vec<Parent>) {
        self.parents_by(well, Offer::Mild, out);
    }

    /// Replaces the contents of `out` with all parents of `well`, without duplicates. The parents are
    /// sorted by lines cleared, then by piece (S Z O I L J T), then by rows from the bottom up
    /// (smaller values first). This order determines which of several possible parents is chosen when
    /// a game is reconstructed from stored wells.
    ///
    /// A live well of a game has at least one parent, unless it is the first well or `offer` excludes
    /// the piece that led to it. A well has no parents if it has an empty row below its top or is not
    /// live in this geometry.
    pub fn parents_by(&mut self, well: &Well, offer: Offer, out: &mut Vec<Parent>) {
        self.parents_where(well, offer, |_| true, out);
    }

    /// Like [`Backward::parents_by`], but returns only parents that `accept` accepts. Candidates that it
    /// rejects are not verified, which saves most of the time if it accepts few.
    pub fn parents_where(
        &mut self,
        well: &Well,
        offer: Offer,
        accept: impl Fn(&Well) -> bool,
        out: &mut Vec<Parent>,
    ) {
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
            if !accept(before) {
                continue;
            }
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
