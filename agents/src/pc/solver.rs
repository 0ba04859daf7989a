//! Searches for perfect clears of known queues: a short depth-first search through compact fields, and then a complete
//! search, [`TiledSearch`].

use super::tiled::{SecondHalves, TiledSearch};
use super::tiling::{Stock, StockTilings};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{
    DropMode, KickTable, LowField, LowFieldError, LowPlacements, Rests, SrsPlacement,
};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use thiserror::Error;

/// Placements of a perfect clear, in order. The coordinates of each placement refer to the field from which the rows
/// cleared by earlier placements have been removed.
pub type Solution = Vec<SrsPlacement>;

/// Error for invalid input to a search for perfect clears, or for a solution that cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PcError {
    /// The queue is too short.
    #[error("the field needs {needed} pieces, but the queue has {given}")]
    ShortQueue {
        /// Number of pieces in the queue.
        given: usize,
        /// Number of pieces that fill the field.
        needed: usize,
    },
    /// No piece is seen.
    #[error("no piece is seen: give at least the current piece")]
    NothingSeen,
    /// A seen piece contradicts the pieces that are left in the bag.
    #[error(
        "piece {0} is impossible: it was already drawn from the bag, or is still in it; check the seen pieces and the pieces left in the bag"
    )]
    Impossible(Piece),
    /// The solution cannot be played.
    #[error("the solution cannot be played with this queue, kick table and drop mode")]
    NotPlayable,
    /// The piece cannot be placed there.
    #[error(
        "the piece cannot be placed there: choose a reachable placement of the first or the second seen piece"
    )]
    Placement,
    /// Whole pieces cannot fill the rows.
    #[error(transparent)]
    Rows(#[from] LowFieldError),
    /// The player sees too few pieces.
    #[error("{previews} previews are too few: at least {least} are needed")]
    Previews {
        /// Number of pieces that the player sees after the current piece.
        previews: usize,
        /// Minimum of this number.
        least: usize,
    },
    /// Too many pieces are unknown.
    #[error(
        "{unseen} pieces are unknown: give more seen pieces, so that at most {most} are unknown"
    )]
    Unseen {
        /// Number of unknown pieces.
        unseen: usize,
        /// Maximum number of unknown pieces.
        most: usize,
    },
}

/// Finds perfect clears for known queues of pieces.
#[derive(Clone, Debug)]
pub struct Solver {
    placements: LowPlacements,
    failed: HashSet<u64, BuildHasherDefault<KeyHasher>>,
    tilings: StockTilings,
    /// Ways to cover halves of fields that the complete search remembers.
    second: SecondHalves,
    /// Reusable lists of children, one for each number of pieces left.
    children: Vec<Vec<Child>>,
    /// Number of positions that the short search has expanded.
    positions: u64,
}

/// A placement and the resulting field.
#[derive(Clone, Copy, Debug)]
struct Child {
    placement: SrsPlacement,
    field: LowField,
    /// Whether the oldest unplaced piece was placed. If `false`, the second oldest was placed.
    is_oldest: bool,
}

/// Unplaced pieces of the queue after the oldest one, and whether pieces can be held.
#[derive(Clone, Copy)]
pub(super) struct Queue<'a> {
    pub(super) pieces: &'a [Piece],
    pub(super) hold: bool,
}

impl Queue<'_> {
    /// Returns the number of unplaced pieces of each kind, including `oldest`.
    pub(super) fn stock(&self, oldest: Piece) -> Stock {
        let oldest = Stock::default().with(oldest);
        self.pieces
            .iter()
            .fold(oldest, |stock, &piece| stock.with(piece))
    }
}

/// Maximum number of children that the short search follows from each position. Most queues have a perfect clear that
/// leads through the most compact fields.
const WIDTH: usize = 4;
/// Maximum number of positions that the short search expands. The complete search decides the other queues sooner.
const POSITIONS: u64 = 20;
/// Maximum number of pieces left for which the short search checks whether the unplaced pieces can cover the empty
/// cells. With more pieces left, the check takes long and often succeeds.
const TILED: usize = 4;

impl Solver {
    /// Creates a solver for a kick table and a drop mode.
    pub fn new(table: &KickTable, mode: DropMode) -> Solver {
        Solver::with_placements(LowPlacements::new(table, mode))
    }

    pub(super) fn with_placements(placements: LowPlacements) -> Solver {
        Solver {
            placements,
            failed: HashSet::default(),
            tilings: StockTilings::new(Stock::default()),
            second: SecondHalves::default(),
            children: vec![Vec::new(); 11],
            positions: 0,
        }
    }

    /// Searches for a perfect clear of all rows of the field. Returns `None` if no perfect clear exists.
    ///
    /// The first piece of the queue is the held piece if there is one, otherwise the current piece. With hold, the
    /// search considers one more piece than it places, if the queue is long enough.
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
        if field.is_clear() {
            return Ok(Some(solution));
        }
        if field.is_split() {
            return Ok(None);
        }
        if self.search(field, oldest, queue, &mut solution) {
            solution.reverse();
            return Ok(Some(solution));
        }
        Ok(TiledSearch::new(&self.placements, &mut self.second, field, oldest, queue).solve())
    }

    /// Calls `visit` with each distinct perfect clear, until `visit` returns `false`. Does not call `visit` if the
    /// field is already clear.
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
        // The short search can record a position as failed although it has a perfect clear.
        self.failed.clear();
        let pieces = &queue[..queue.len().min(field.pieces_left() + usize::from(hold))];
        let rest = Queue {
            pieces: &pieces[1..],
            hold,
        };
        self.visit_all(field, pieces[0], rest, &mut Vec::new(), &mut visit);
        Ok(())
    }

    /// Visits every perfect clear from a position. Returns whether to continue, and whether it found a perfect clear.
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
        if self.is_hopeless(field, oldest, queue, usize::MAX) {
            return (true, false);
        }
        let mut children = Vec::new();
        self.expand(field, oldest, queue, &mut children);
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

    /// Searches for a perfect clear of a field with the oldest unplaced piece and the pieces after it. Follows at most
    /// [`WIDTH`] children of each position, and expands at most [`POSITIONS`] positions. Returns whether it found a
    /// perfect clear. If it did, `solution` contains the placements in reverse order.
    fn search(
        &mut self,
        field: &LowField,
        oldest: Piece,
        queue: Queue<'_>,
        solution: &mut Solution,
    ) -> bool {
        if self.positions == POSITIONS || self.is_hopeless(field, oldest, queue, TILED) {
            return false;
        }
        self.positions += 1;
        let depth = field.pieces_left();
        let mut children = std::mem::take(&mut self.children[depth]);
        children.clear();
        self.expand(field, oldest, queue, &mut children);
        // Try fields with compact empty space first, because they can be cleared more often.
        children.sort_by_cached_key(|child| child.field.open_sides());
        let found = children.iter().take(WIDTH).find(|child| {
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

    /// Appends the placements of the oldest unplaced piece and, with hold, those of the piece after it.
    fn expand(&self, field: &LowField, oldest: Piece, queue: Queue<'_>, children: &mut Vec<Child>) {
        let next = queue.pieces.first().copied();
        let next = next.filter(|&next| queue.hold && next != oldest);
        let next = next.map(|next| (next, false));
        for (piece, is_oldest) in std::iter::once((oldest, true)).chain(next) {
            let rests = Rests::new(field, piece).filter(|child| !child.is_split());
            self.placements.for_each_reached(rests, |placement, field| {
                children.push(Child {
                    placement,
                    field,
                    is_oldest,
                });
            });
        }
    }

    /// Returns whether the search can skip a field: an earlier search from it failed, or the unplaced pieces cannot
    /// cover its empty cells. Does not check the cells if more than `tiled` pieces are left.
    fn is_hopeless(
        &mut self,
        field: &LowField,
        oldest: Piece,
        queue: Queue<'_>,
        tiled: usize,
    ) -> bool {
        let key = state_key(field, oldest);
        if self.failed.contains(&key) {
            return true;
        }
        let can_fill =
            field.pieces_left() > tiled || self.tilings.can_fill(field, queue.stock(oldest));
        if !can_fill {
            self.failed.insert(key);
        }
        !can_fill
    }
}

/// Returns a number that identifies the pair of a field and a piece.
pub(super) fn state_key(field: &LowField, oldest: Piece) -> u64 {
    field.key() | (oldest as u64 & 3) << 16 | (oldest as u64 >> 2) << 22
}

/// A map with the hasher [`KeyHasher`].
pub(super) type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// A fast hasher for integer keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyHasher(u64);

impl KeyHasher {
    /// Returns the hash of a key.
    #[inline]
    pub(super) fn hash(key: u64) -> u64 {
        let mut hasher = KeyHasher::default();
        hasher.write_u64(key);
        hasher.finish()
    }
}

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
