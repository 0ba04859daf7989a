//! The oracle: what a piece can do in a well and which piece is worst, found cell by cell.
//!
//! It follows the wording of the rules and nothing else, and it takes tens of microseconds a well.
//! Everything fast in this crate is tested against it; the fast emulator also hands it the few wells
//! that its shortcuts do not cover (see [`Emulator`](crate::Emulator)).

use crate::piece::Piece;
use crate::rules::{Board, Key, Lock, Placement, Position, Rules};
use crate::well::{Geometry, ROWS_ABOVE_BAR, Well};

/// The plain emulator for one geometry.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    geometry: Geometry,
    rules: Rules,
}

/// What can become of a well: the distinct live children, and whether the game can end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Live children with the lines cleared on the way, sorted, each once.
    pub children: Vec<(Well, u8)>,
    /// Whether some placement ends the game.
    pub can_die: bool,
}

/// A well another one can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent {
    /// Lines cleared on the way.
    pub lines: u8,
    /// The piece.
    pub piece: Piece,
    /// The well before.
    pub well: Well,
}

impl Reference {
    /// An oracle for wells of `geometry`.
    pub const fn new(geometry: Geometry, rules: Rules) -> Reference {
        Reference { geometry, rules }
    }

    /// Calls `visit` with every position from which `piece` can be locked, and what comes of it.
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

    /// The distinct live wells that `piece` can leave, and whether it can end the game.
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

    /// The best rating of a lock of `piece` (see [`Board::rating`]).
    pub fn rating(&self, well: &Well, piece: Piece) -> u8 {
        let mut best = 0;
        self.for_each_lock(well, piece, |_, lock| best = best.max(lock.board.rating()));
        best
    }

    /// The piece with the lowest rating, the first of them in the order of preference: what HATETRIS
    /// Mild gives.
    pub fn piece(&self, well: &Well) -> Piece {
        Piece::ALL
            .into_iter()
            .min_by_key(|&piece| self.rating(well, piece)) // the first of equals
            .expect("there are seven pieces")
    }

    /// Calls `visit` with every live well without an empty row below its top that may be a parent of
    /// `well`, judged by cells alone: the piece can be taken out of the well after `lines` full rows
    /// were put back, each of which it touches. Whether the enemy gives the piece, and whether it can
    /// get there and rest, is left to the caller. Some are visited twice.
    pub fn for_each_removal(&self, well: &Well, mut visit: impl FnMut(Parent)) {
        let board = Board::new(self.geometry, well);
        // Where full rows were: none, or a set inside a window of four rows.
        visit_removals(&board, 0, &mut visit);
        for lowest in 0..self.geometry.depth() {
            for more in 0..8usize {
                let mut before = board;
                let rows = (2 * more + 1) << lowest;
                let bottom_up = (0..self.geometry.depth()).filter(|row| rows >> row & 1 == 1);
                let put = bottom_up.clone().all(|row| before.put_full_row(row));
                if put {
                    visit_removals(&before, bottom_up.count() as u8, &mut visit);
                }
            }
        }
    }

    /// All parents of a well, as [`Backward`](crate::Backward) has them, in which `offered` says that the
    /// enemy may give the piece.
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

/// See [`Reference::for_each_removal`]: `board` has its full rows put back.
fn visit_removals(board: &Board, lines: u8, visit: &mut impl FnMut(Parent)) {
    let geometry = board.geometry();
    for piece in Piece::ALL {
        for orientation in 0..4 {
            for y in 0..geometry.depth() as i8 {
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

/// A set of positions: a bit for each orientation and column, a word a row.
#[derive(Default)]
struct Seen([u128; 20]);

impl Seen {
    /// Whether the position is new.
    fn insert(&mut self, Position { orientation, x, y }: Position) -> bool {
        // The box's column is -2 to 14, its row 0 to 19.
        let bit = 1u128 << (u32::from(orientation) * 32 + (i32::from(x) + 2) as u32);
        let row = &mut self.0[y as usize];
        let new = *row & bit == 0;
        *row |= bit;
        new
    }
}
