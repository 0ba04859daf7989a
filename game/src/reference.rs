//! The oracle: what a piece can do in a well and which piece is worst, found cell by cell.
//!
//! It follows the wording of the rules and nothing else, and it takes tens of microseconds a well.
//! Everything fast in this crate is tested against it; the fast emulator also hands it the few wells
//! that its shortcuts do not cover (see [`Emulator`](crate::Emulator)).

use crate::piece::Piece;
use crate::rules::{Board, Key, Lock, Position, Rules};
use crate::well::{Geometry, Well};

/// The plain emulator for one geometry.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    geometry: Geometry,
    rules: Rules,
}

/// What can become of a well: the distinct live children, and whether the game can end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Live children with the lines cleared on the way, sorted, each once.
    pub children: Vec<(Well, u8)>,
    /// Whether some placement ends the game.
    pub can_die: bool,
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
    pub fn outcome(&self, well: &Well, piece: Piece) -> Outcome {
        let mut outcome = Outcome {
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
