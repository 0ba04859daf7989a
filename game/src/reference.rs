//! The oracle: a slow emulator that works cell by cell.
//!
//! The oracle follows the wording of the rules and takes tens of microseconds per well. The tests
//! compare the fast code in this crate with the oracle. The fast [`Emulator`](crate::Emulator) also
//! uses the oracle for the few wells that the fast code does not support.

use crate::piece::Piece;
use crate::rules::{Board, Key, Lock, Placement, Position, Rules};
use crate::well::{Geometry, ROWS_ABOVE_BAR, Well};
use std::ops::Range;

/// The oracle for one geometry.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    geometry: Geometry,
    rules: Rules,
}

/// All results of placing a piece in a well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The distinct live children (those in which the game is not over), each with the number of
    /// lines that its placement clears, in ascending order.
    pub children: Vec<(Well, u8)>,
    /// Whether at least one placement ends the game.
    pub can_die: bool,
}

/// A parent: a well from which a single placement leads to the given well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent {
    /// Number of lines that the placement clears.
    pub lines: u8,
    /// The piece placed.
    pub piece: Piece,
    /// The well before the placement.
    pub well: Well,
}

impl Reference {
    /// Creates an oracle for wells of `geometry`.
    pub const fn new(geometry: Geometry, rules: Rules) -> Reference {
        Reference { geometry, rules }
    }

    /// Calls `visit` for every position in which `piece` can be locked, with the position and the
    /// result of the lock.
    pub fn for_each_lock(&self, well: &Well, piece: Piece, mut visit: impl FnMut(Position, &Lock)) {
        let board = Board::new(self.geometry, well);
        let mut seen = Seen::default();
        let mut waiting = vec![Position::spawn(self.geometry)];
        seen.insert(waiting[0]);
        while let Some(position) = waiting.pop() {
            for key in Key::ALL {
                let next = position.moved(key);
                if board.is_free(piece, next) {
                    if seen.insert(next) {
                        waiting.push(next);
                    }
                } else if key == Key::Down {
                    visit(position, &board.lock(piece, position, self.rules));
                }
            }
        }
    }

    /// Returns the distinct live wells that `piece` can produce, and whether it can end the game.
    pub fn expand(&self, well: &Well, piece: Piece) -> Expansion {
        let mut outcome = Expansion {
            children: Vec::new(),
            can_die: false,
        };
        self.for_each_lock(well, piece, |_, lock| {
            if lock.over {
                outcome.can_die = true;
            } else {
                outcome.children.push((lock.board.well(), lock.lines));
            }
        });
        outcome.children.sort_unstable();
        outcome.children.dedup();
        outcome
    }

    /// Returns the highest rating that the player can reach with `piece` (see [`Board::rating`]).
    pub fn rating(&self, well: &Well, piece: Piece) -> u8 {
        let mut best = 0;
        self.for_each_lock(well, piece, |_, lock| best = best.max(lock.board.rating()));
        best
    }

    /// Returns the piece that HATETRIS Mild, the enemy without memory, gives: the piece with the
    /// lowest [`Reference::rating`]. If several pieces have this rating, returns the first in
    /// [`Piece::ALL`].
    pub fn piece(&self, well: &Well) -> Piece {
        Piece::ALL
            .into_iter()
            .min_by_key(|&piece| self.rating(well, piece)) // returns the first of several minima
            .expect("there are seven pieces")
    }

    /// Calls `visit` for every candidate parent of `well`. A candidate is built by restoring up to
    /// four full rows in `well` and removing the cells of a piece. The game is not over in a
    /// candidate, and a candidate has no empty row below its top.
    ///
    /// The caller must check whether the enemy gives the piece in the candidate, and whether a
    /// placement of the piece produces `well`. A candidate may be visited twice.
    pub fn for_each_removal(&self, well: &Well, mut visit: impl FnMut(Parent)) {
        let board = Board::new(self.geometry, well);
        // A piece clears no rows, or rows within a window of four. Each value of `more` selects
        // which of the upper three rows of the window are cleared together with the lowest.
        let depth = self.geometry.depth();
        visit_removals(&board, 0, 0..depth, &mut visit);
        for lowest in 0..depth {
            // The piece must break the lowest restored row, and its box has four rows.
            let y = depth - 1 - lowest;
            let boxes = y.saturating_sub(3)..y + 1;
            for more in 0..8usize {
                let mut before = board;
                let rows = (2 * more + 1) << lowest;
                let bottom_up = (0..depth).filter(|row| rows >> row & 1 == 1);
                let put = bottom_up.clone().all(|row| before.put_full_row(row));
                if put {
                    let lines = bottom_up.count() as u8;
                    visit_removals(&before, lines, boxes.clone(), &mut visit);
                }
            }
        }
    }

    /// Returns all parents of `well` for which `offered(parent, piece)` returns true, in the order of
    /// [`Backward::parents_by`](crate::Backward::parents_by).
    pub fn parents(&self, well: &Well, offered: impl Fn(&Well, Piece) -> bool) -> Vec<Parent> {
        let mut parents = Vec::new();
        self.for_each_removal(well, |parent| {
            let Parent {
                lines,
                piece,
                well: before,
            } = parent;
            if offered(&before, piece)
                && self
                    .expand(&before, piece)
                    .children
                    .contains(&(*well, lines))
            {
                parents.push(parent);
            }
        });
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

/// Visits the candidates that result from removing a piece from `board`, in which `lines` cleared rows
/// are already restored. The tops of the pieces' boxes are in the rows `boxes`. See
/// [`Reference::for_each_removal`].
fn visit_removals(board: &Board, lines: u8, boxes: Range<usize>, visit: &mut impl FnMut(Parent)) {
    let geometry = board.geometry();
    for piece in Piece::ALL {
        for orientation in 0..4 {
            for y in boxes.start as i8..boxes.end as i8 {
                for x in -2..geometry.width() as i8 {
                    let placement = Placement {
                        piece,
                        position: Position { orientation, x, y },
                    };
                    let Some(parent) = board.without(&placement) else {
                        continue;
                    };
                    let well = parent.well();
                    let live = parent.rating() >= ROWS_ABOVE_BAR as u8
                        && well.check(geometry).is_ok()
                        && !well.has_gap();
                    if live {
                        visit(Parent { lines, piece, well });
                    }
                }
            }
        }
    }
}

/// A set of positions, with one word per row and one bit for each orientation and column.
#[derive(Default)]
struct Seen([u128; 20]);

impl Seen {
    /// Adds a position and returns whether it is new.
    fn insert(&mut self, Position { orientation, x, y }: Position) -> bool {
        // The column of the box is in the range -2 to 15, and its row is in the range 0 to 19.
        let bit = 1u128 << (u32::from(orientation) * 32 + (i32::from(x) + 2) as u32);
        let row = &mut self.0[y as usize];
        let new = *row & bit == 0;
        *row |= bit;
        new
    }
}
