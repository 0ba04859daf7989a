//! The emulator backwards: which wells a well can come from.
//!
//! A parent is a live well without an empty row below its top in which the enemy offers a piece that
//! a reachable placement turns into the given well. To find all of them:
//!
//! 1. Put back what a placement may have cleared: no row, or one to four full rows inside a window
//!    of four.
//! 2. On every level take the positions at which all four cells are filled and each row put back has
//!    at least one of them: without these cells the well may be a parent. The tables of the forward
//!    emulator find them when asked with filled and empty exchanged.
//! 3. Of these, keep those where the piece rests on something else, and where at least one of the
//!    positions from which a single key leads there is free. Both are table look-ups for all pieces at
//!    once, like the forward emulator's.
//! 4. In a parent whose stack is higher than the given well's, *every* piece can bring it down as far,
//!    or HATETRIS would have given one that cannot. So O and I must find a row whose gap they fit,
//!    open from above; and three rows down is impossible, since O has two. (For the enemies that
//!    do not look for the worst piece this step is left out.)
//! 5. Ask the forward emulator: is it the piece the enemy gives, and is the well among its children?
//!
//! For a well that survived in a beam of 2,000 (means of 1,000): 5,400 placements pass step 2; 560 pass
//! step 3; 200 pass step 4; 4.6 are parents (4.1 without a clear, 0.5 with one line, none with more; median 4,
//! 90th percentile 7, at most 12, so that a byte names one). A call takes 24 µs with AVX-512, half of it for
//! step 5 (see the benchmark). In random play: 2,900, 490, 110 and 5.3, in 17 µs.

use crate::emulator::backward::Tables as BackTables;
use crate::emulator::{Children, Emulator};
use crate::enemy::Enemy;
use crate::piece::Piece;
use crate::reference::Parent;
use crate::well::Well;
use std::sync::Arc;

/// Which pieces the enemy may offer in a well, when nothing is known of the game before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The one that HATETRIS Mild gives. HATETRIS gives the same but for its loop rule.
    Mild,
    /// Any of these, whatever the well.
    AnyOf(&'static [Piece]),
}

impl Offer {
    /// What this enemy may offer. For HATETRIS that is what it offers unless the loop rule strikes;
    /// [`Offer::AnyOf`] all pieces takes that in, too.
    pub const fn of(enemy: Enemy) -> Offer {
        match enemy {
            Enemy::Hatetris | Enemy::Mild => Offer::Mild,
            Enemy::Lovetris => Offer::AnyOf(&[Piece::I]),
            Enemy::Burgiel | Enemy::Brzustowski => Offer::AnyOf(&[Piece::S, Piece::Z]),
        }
    }
}

/// Finds parents. Holds tables (shared by its clones) and buffers, so that a call allocates nothing
/// once they have grown.
#[derive(Clone)]
pub struct Backward {
    emulator: Emulator,
    /// `None` where the forward emulator has no fast way either.
    tables: Option<Arc<BackTables>>,
    candidates: Vec<Parent>,
    children: Children,
}

impl Backward {
    /// A backward emulator for the geometry and rules of `emulator`, with its instructions.
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

    /// All parents of `well` under HATETRIS Mild, as [`Backward::parents_by`] has them.
    pub fn parents(&mut self, well: &Well, out: &mut Vec<Parent>) {
        self.parents_by(well, Offer::Mild, out);
    }

    /// All parents of `well`, in place of what `out` held: each once, in the order of lines cleared,
    /// then of the pieces (S Z O I L J T), then of the rows from the bottom up (the lesser value
    /// first). The order is part of the format of stored frontiers: an index into it names a parent.
    ///
    /// Every well of a game but the first has at least one. A well with an empty row below its top has
    /// none, and neither has one that is no live well of the geometry.
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
