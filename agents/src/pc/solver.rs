//! A depth-first search for perfect clears that remembers failed positions.

use super::tiling::{Stock, StockTilings};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, KickTable, LowField, LowPlacements, Rests, SrsPlacement};
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
    /// A seen piece contradicts the pieces that are left in the bag.
    #[error(
        "piece {0} is impossible: it was drawn from the bag already, or is still left in it; check the seen pieces and those that are left in the bag"
    )]
    Impossible(Piece),
    /// A solution does not fit its queue and field.
    #[error("the solution cannot be played with this queue, kick table and drop mode")]
    NotPlayable,
    /// Too many pieces are unknown.
    #[error(
        "{unseen} pieces are unknown: chances of at most {most} unknown pieces can be computed"
    )]
    Unseen {
        /// Number of unknown pieces.
        unseen: usize,
        /// Maximum number of unknown pieces.
        most: usize,
    },
}

/// Finds perfect clears of known queues.
#[derive(Clone, Debug)]
pub struct Solver {
    placements: LowPlacements,
    failed: HashSet<u64, BuildHasherDefault<KeyHasher>>,
    tilings: StockTilings,
    /// Reusable lists of children, one for each number of pieces left.
    children: Vec<Vec<Child>>,
    positions: u64,
    /// Number of children that are followed from each position.
    width: usize,
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

impl Queue<'_> {
    /// Returns the remaining pieces.
    fn stock(&self, oldest: Piece) -> Stock {
        let oldest = Stock::default().with(oldest);
        self.pieces
            .iter()
            .fold(oldest, |stock, &piece| stock.with(piece))
    }
}

/// Numbers of children that are followed from each position, in one search after the other. Most queues have a perfect
/// clear near the most compact fields.
const WIDTHS: [usize; 2] = [4, usize::MAX];

impl Solver {
    /// Creates a solver for a kick table and a drop mode.
    pub fn new(table: &KickTable, mode: DropMode) -> Solver {
        Solver {
            placements: LowPlacements::new(table, mode),
            failed: HashSet::default(),
            tilings: StockTilings::new(Stock::default()),
            children: vec![Vec::new(); 11],
            positions: 0,
            width: usize::MAX,
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
        let queue = Queue { pieces: rest, hold };
        self.tilings = StockTilings::new(queue.stock(oldest));
        let mut found = field.is_clear();
        let mut widths = WIDTHS.iter().filter(|_| !field.is_split());
        while let (false, Some(&width)) = (found, widths.next()) {
            self.width = width;
            self.failed.clear();
            found = self.search(field, oldest, queue, &mut solution);
        }
        solution.reverse();
        Ok(found.then_some(solution))
    }

    /// Calls `visit` with perfect clears, which differ in at least one placement, until it returns `false` or no perfect
    /// clear is left.
    pub fn solve_each(
        &mut self,
        field: &LowField,
        queue: &[Piece],
        hold: bool,
        mut visit: impl FnMut(&[SrsPlacement]) -> bool,
    ) -> Result<(), PcError> {
        if self.solve(field, queue, hold)?.is_none() || field.is_clear() {
            return Ok(());
        }
        // A search that does not follow all children remembers positions that are not hopeless.
        self.failed.clear();
        let pieces = &queue[..queue.len().min(field.pieces_left() + usize::from(hold))];
        let rest = Queue {
            pieces: &pieces[1..],
            hold,
        };
        self.visit_all(field, pieces[0], rest, &mut Vec::new(), &mut visit);
        Ok(())
    }

    /// Visits every perfect clear from a position. Returns whether to continue, and whether there is a perfect clear.
    fn visit_all(
        &mut self,
        field: &LowField,
        oldest: Piece,
        queue: Queue<'_>,
        placed: &mut Vec<SrsPlacement>,
        visit: &mut dyn FnMut(&[SrsPlacement]) -> bool,
    ) -> (bool, bool) {
        if field.is_clear() {
            return (visit(placed), true);
        }
        if self.is_hopeless(field, oldest, queue) {
            return (true, false);
        }
        let mut children = Vec::new();
        self.expand(field, oldest, true, &mut children);
        let next = queue.pieces.first().copied();
        if let Some(next) = next.filter(|&next| queue.hold && next != oldest) {
            self.expand(field, next, false, &mut children);
        }
        let mut any = false;
        for child in children {
            let (following, rest) = match queue.pieces.split_first() {
                Some((&following, rest)) => (following, rest),
                None if child.field.is_clear() => (oldest, &[][..]),
                None => continue,
            };
            let oldest = if child.is_oldest { following } else { oldest };
            let queue = Queue {
                pieces: rest,
                ..queue
            };
            placed.push(child.placement);
            let (continues, found) = self.visit_all(&child.field, oldest, queue, placed, visit);
            placed.pop();
            any |= found;
            if !continues {
                return (false, any);
            }
        }
        if !any {
            self.failed.insert(state_key(field, oldest));
        }
        (true, any)
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
        if self.is_hopeless(field, oldest, queue) {
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
        let found = children.iter().take(self.width).find(|child| {
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
            self.failed.insert(state_key(field, oldest));
        }
        let found = found.is_some();
        self.children[depth] = children;
        found
    }

    fn expand(&self, field: &LowField, piece: Piece, is_oldest: bool, children: &mut Vec<Child>) {
        let rests = Rests::new(field, piece).filter(|child| !child.is_split());
        self.placements.for_each_reached(rests, |placement, field| {
            children.push(Child {
                placement,
                field,
                is_oldest,
            });
        });
    }

    /// Returns whether the remaining pieces cannot clear a field, because they cannot cover its empty cells or because a
    /// search has failed.
    fn is_hopeless(&mut self, field: &LowField, oldest: Piece, queue: Queue<'_>) -> bool {
        let key = state_key(field, oldest);
        if self.failed.contains(&key) {
            return true;
        }
        let can_fill = self.tilings.can_fill(field, queue.stock(oldest));
        if !can_fill {
            self.failed.insert(key);
        }
        !can_fill
    }
}

/// Returns a number that identifies a field and the oldest unplaced piece.
pub(super) fn state_key(field: &LowField, oldest: Piece) -> u64 {
    field.key() | (oldest as u64 & 3) << 16 | (oldest as u64 >> 2) << 22
}

/// A fast hasher for integer keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
