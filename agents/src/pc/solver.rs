//! A depth-first search for perfect clears that remembers failed positions.

use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, KickTable, LowField, LowPlacements, SrsPlacement};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use thiserror::Error;

/// The placements of a perfect clear in order. Each placement refers to the field without the rows that earlier
/// placements cleared.
pub type Solution = Vec<SrsPlacement>;

/// Error for a queue that cannot be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PcError {
    /// The queue is too short.
    #[error("queue has {given} pieces: {needed} are required to fill the field")]
    ShortQueue {
        /// Number of pieces in the queue.
        given: usize,
        /// Number of pieces that fill the field.
        needed: usize,
    },
}

/// Finds perfect clears of known queues.
#[derive(Clone, Debug)]
pub struct Solver {
    placements: LowPlacements,
    failed: HashSet<u64, BuildHasherDefault<KeyHasher>>,
    /// Reusable lists of children, one for each number of pieces left.
    children: Vec<Vec<Child>>,
    positions: u64,
}

/// A placement that the search follows, and the resulting field.
#[derive(Clone, Copy, Debug)]
struct Child {
    placement: SrsPlacement,
    field: LowField,
    /// Whether the placed piece is the oldest unplaced piece. Otherwise it is the second oldest.
    is_oldest: bool,
}

/// Remaining pieces of the queue after the oldest one, and whether there is a hold slot.
#[derive(Clone, Copy)]
struct Queue<'a> {
    pieces: &'a [Piece],
    hold: bool,
}

impl Solver {
    /// Creates a solver for a kick table and a drop mode.
    pub fn new(table: &KickTable, mode: DropMode) -> Solver {
        Solver {
            placements: LowPlacements::new(table, mode),
            failed: HashSet::default(),
            children: vec![Vec::new(); 11],
            positions: 0,
        }
    }

    /// Searches for a perfect clear of all rows of the field. Returns `None` if no perfect clear exists.
    ///
    /// The first piece of the queue is the held piece if there is one, otherwise the current piece. With hold, the
    /// search uses one more piece than it places, if the queue is long enough.
    pub fn solve(
        &mut self,
        field: &LowField,
        queue: &[Piece],
        hold: bool,
    ) -> Result<Option<Solution>, PcError> {
        let needed = field.pieces_left();
        if queue.len() < needed {
            let given = queue.len();
            return Err(PcError::ShortQueue { given, needed });
        }
        self.failed.clear();
        self.positions = 0;
        let pieces = &queue[..queue.len().min(needed + usize::from(hold))];
        let mut solution = Vec::with_capacity(needed);
        let Some((&oldest, rest)) = pieces.split_first() else {
            return Ok(Some(solution));
        };
        let found = field.is_clear()
            || !field.is_split()
                && self.search(field, oldest, Queue { pieces: rest, hold }, &mut solution);
        solution.reverse();
        Ok(found.then_some(solution))
    }

    /// Returns the number of positions that the last search expanded.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// Searches from a field with the oldest unplaced piece and the pieces after it. Returns whether it found a perfect
    /// clear. On success `solution` contains the placements, the last one first.
    fn search(
        &mut self,
        field: &LowField,
        oldest: Piece,
        queue: Queue<'_>,
        solution: &mut Solution,
    ) -> bool {
        let key = field.key() | (oldest as u64 & 3) << 16 | (oldest as u64 >> 2) << 22;
        if self.failed.contains(&key) {
            return false;
        }
        self.positions += 1;
        let depth = field.pieces_left();
        let mut children = std::mem::take(&mut self.children[depth]);
        children.clear();
        self.expand(field, oldest, true, &mut children);
        let next = queue.pieces.first().copied();
        if let Some(next) = next.filter(|&next| queue.hold && next != oldest) {
            self.expand(field, next, false, &mut children);
        }
        // Try fields with compact empty space first, because they are more often solvable.
        children.sort_by_cached_key(|child| child.field.open_sides());
        let found = children.iter().find(|child| {
            if child.field.is_clear() {
                solution.clear();
                return true;
            }
            let Some((&following, rest)) = queue.pieces.split_first() else {
                return false;
            };
            let oldest = if child.is_oldest { following } else { oldest };
            let queue = Queue {
                pieces: rest,
                ..queue
            };
            self.search(&child.field, oldest, queue, solution)
        });
        if let Some(child) = found {
            solution.push(child.placement);
        } else {
            self.failed.insert(key);
        }
        let found = found.is_some();
        self.children[depth] = children;
        found
    }

    fn expand(&self, field: &LowField, piece: Piece, is_oldest: bool, children: &mut Vec<Child>) {
        self.placements.for_each(field, piece, |placement| {
            let field = field.put(placement);
            if !field.is_split() {
                children.push(Child {
                    placement,
                    field,
                    is_oldest,
                });
            }
        });
    }
}

/// A fast hasher for integer keys.
#[derive(Clone, Copy, Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
