//! The fast emulator, generic over the SIMD level.
//!
//! **Levels.** Let `stack` be the height of the well's stack. At *level* `d`, the bottom row of the
//! piece's 4×4 box is `stack - d` rows above the floor. At level 0, the whole box is above the
//! stack, so every position inside the walls is reachable. No key moves a piece up. So two kinds of
//! positions are reachable at level `d + 1`: the reachable positions of level `d` that are free one
//! row further down, and all positions that the keys L, R and U reach from these. A piece can be
//! locked in a position that is reachable at its level and blocked one level down. Such a position
//! is a *landing*.
//!
//! **Choice of the piece.** The best landing of a piece is the one that leaves the lowest stack. The
//! enemy gives the *worst* piece, whose best landing leaves the highest stack. A stack in a game has
//! no empty row. So its height after a lock is the greater of its previous height and the height of
//! the piece's top, minus the number of lines cleared. Let `top` be the topmost row of the box that
//! contains a cell. At level `d`, the top of the piece is then `4 - d - top` rows above the stack.
//! From levels 1 to 4, [`first_levels`] determines which pieces can keep the stack within `stack + 1`
//! rows, and which can keep it within `stack` rows. The worst piece, with pieces in the order of
//! [`Piece::ALL`], is then:
//!
//! 1. the first piece that cannot keep the stack within `stack + 1` rows, if there is such a piece;
//! 2. otherwise, the first piece that cannot keep the stack within `stack` rows, if any;
//! 3. otherwise, the first piece that cannot lower the stack, if any;
//! 4. otherwise, the first of the pieces that lower the stack by the fewest rows.

use super::children::Children;
use super::landings::{Landings, best_drop};
use super::simd::{Drawing, Simd};
use super::tables::{Seven, Tables};
use crate::piece::Piece;
use crate::well::{MAX_HEIGHT, Well};

/// Number of padding rows below the floor. No box of a piece extends further down.
pub(super) const FLOOR: usize = 4;

/// The rows of a well, with full rows below the floor and empty rows above the top.
pub(super) struct Rows {
    rows: [u16; FLOOR + MAX_HEIGHT + 4],
    pub(super) stack: usize,
}

impl Rows {
    /// Adds the padding to a well. Returns `None` if the well is too high for the tables or has an
    /// empty row below its top. With such a row, the height after a lock would be computed wrongly, but
    /// no well of a game has one.
    #[inline(always)]
    pub(super) fn new<S: Simd>(simd: S, tables: &Tables, well: &Well) -> Option<Rows> {
        let filled = simd.filled_rows(well);
        let stack = filled.trailing_ones();
        if filled >> stack != 0 || stack as usize > tables.max_stack {
            return None;
        }
        let mut rows = [0; FLOOR + MAX_HEIGHT + 4];
        rows[..FLOOR].fill(tables.geometry.full_row());
        rows[FLOOR..FLOOR + MAX_HEIGHT].copy_from_slice(well.rows());
        Some(Rows {
            rows,
            stack: stack as usize,
        })
    }

    /// Returns the row of the well that coincides with row `y` of the box at `level`. The top row of the
    /// box has index 0.
    #[inline(always)]
    pub(super) fn at(&self, level: usize, y: usize) -> u16 {
        self.rows[self.stack + FLOOR + 3 - y - level]
    }
}

// A closure is compiled as a separate function without the caller's instruction set. So the code
// below that handles `Words` uses neither closures nor iterator adaptors. With them, it was three
// times slower.

/// Returns the positions of all pieces that are blocked by the filled cells of `row` if that row
/// coincides with row `y` of the box. If `y` is 0, positions blocked by the walls are included.
#[inline(always)]
pub(super) fn blocked_by<S: Simd>(simd: S, tables: &Tables, row: u16, y: usize) -> S::Words {
    let (low, high) = tables.split(row);
    simd.or(
        simd.load(&tables.blocked_low[low][y]),
        simd.load(&tables.blocked_high[high][y]),
    )
}

/// Returns the positions of all pieces that are blocked at `level` by filled cells or by the walls.
#[inline(always)]
pub(super) fn blocked<S: Simd>(simd: S, tables: &Tables, rows: &Rows, level: usize) -> S::Words {
    let upper = simd.or(
        blocked_by(simd, tables, rows.at(level, 0), 0),
        blocked_by(simd, tables, rows.at(level, 1), 1),
    );
    let lower = simd.or(
        blocked_by(simd, tables, rows.at(level, 2), 2),
        blocked_by(simd, tables, rows.at(level, 3), 3),
    );
    simd.or(upper, lower)
}

/// Like [`blocked`], for one piece.
#[inline(always)]
pub(super) fn blocked_piece(tables: &Tables, piece: usize, rows: &Rows, level: usize) -> u64 {
    let at = |y: usize| {
        let (low, high) = tables.split(rows.at(level, y));
        tables.piece_low[piece][low][y] | tables.piece_high[piece][high][y]
    };
    (at(0) | at(1)) | (at(2) | at(3))
}

/// Landings and reachable positions of all pieces at levels 0 to 4, and the effect of the landings
/// on the stack.
pub(super) struct FirstLevels {
    /// Landings at levels 0 to 3.
    pub(super) landings: [Seven; 4],
    /// Positions at level 4 that D reaches from level 3. Positions that L, R and U reach from these
    /// are not included, because they are needed only for the chosen piece.
    pub(super) reached: Seven,
    /// Positions blocked at level 4.
    pub(super) blocked: Seven,
    /// Pieces with a landing that leaves the stack at most one row higher, as bits.
    within_one: u8,
    /// Pieces with a landing that does not leave the stack higher.
    within: u8,
    /// Pieces with a landing at levels 1 to 3 that leaves the stack lower.
    below: u8,
}

/// Moves one level down. Returns the landings at the upper level and the positions reachable at the
/// lower level. `reached` contains the positions reachable at the upper level, and `blocked` the
/// positions blocked at the lower level.
#[inline(always)]
pub(super) fn down<S: Simd>(simd: S, reached: S::Words, blocked: S::Words) -> (S::Words, S::Words) {
    let landings = simd.and(reached, blocked);
    let mut reached = simd.and_not(blocked, reached);
    loop {
        let more = simd.and_not(blocked, simd.spread(reached));
        if simd.equal(more, reached) {
            return (landings, reached);
        }
        reached = more;
    }
}

#[inline(always)]
fn first_levels<S: Simd>(simd: S, tables: &Tables, rows: &Rows) -> FirstLevels {
    let inside = simd.load(&tables.inside);
    // D alone reaches every free position at level 1 from level 0.
    let blocked_1 = blocked(simd, tables, rows, 1);
    let l0 = simd.and(inside, blocked_1);
    let reached_1 = simd.and_not(blocked_1, inside);
    let (l1, reached_2) = down(simd, reached_1, blocked(simd, tables, rows, 2));
    let (l2, reached_3) = down(simd, reached_2, blocked(simd, tables, rows, 3));
    let blocked_4 = blocked(simd, tables, rows, 4);
    let l3 = simd.and(reached_3, blocked_4);
    let reached = simd.and_not(blocked_4, reached_3);

    let y1 = simd.load(&tables.top_from[1]);
    let y2 = simd.load(&tables.top_from[2]);
    // A piece that reaches level 3 lands at level 3 or a greater level. Its top is then at most one
    // row above the stack.
    let low = simd.or(simd.and(l2, y1), simd.and(l1, y2));
    let mut first = FirstLevels {
        landings: [
            simd.store(l0),
            simd.store(l1),
            simd.store(l2),
            simd.store(l3),
        ],
        reached: simd.store(reached),
        blocked: simd.store(blocked_4),
        within_one: simd.non_zero(simd.or(reached_3, low)),
        within: 0,
        below: 0,
    };
    let low = simd.or(simd.and(l3, y1), simd.and(l2, y2));
    first.within = simd.non_zero(simd.or(reached, low));
    add_line_clears(simd, tables, rows, [l1, l2, l3], &mut first);
    first
}

/// The three highest rows of the stack, as the runs of empty cells that a piece must fill to complete
/// them.
struct HighRows<'a> {
    tables: &'a Tables,
    runs: [usize; 3],
    stack: usize,
}

impl HighRows<'_> {
    /// Returns the positions at `level` that complete row `row` of the stack (0 is the highest).
    #[inline(always)]
    fn completed<S: Simd>(&self, simd: S, row: usize, level: usize) -> S::Words {
        // At level 1, the lowest row of the box is at the highest row of the stack.
        let y = 4 + row - level;
        // Positions that extend above the bar (the top of the geometry's rows) clear nothing.
        let above = (self.stack + 4 - level).saturating_sub(self.tables.geometry.height());
        let dead = simd.load(&self.tables.dead[above]);
        simd.and_not(dead, simd.load(&self.tables.completes[self.runs[row]][y]))
    }
}

/// Adds the effects of landings at levels 1 to 3 that clear lines. At level `d`, the box overlaps the
/// `d` highest rows of the stack.
#[inline(always)]
fn add_line_clears<S: Simd>(
    simd: S,
    tables: &Tables,
    rows: &Rows,
    [l1, l2, l3]: [S::Words; 3],
    first: &mut FirstLevels,
) {
    let run_1 = usize::from(tables.run[usize::from(rows.at(1, 3))]);
    let run_2 = usize::from(tables.run[usize::from(rows.at(2, 3))]);
    let run_3 = usize::from(tables.run[usize::from(rows.at(3, 3))]);
    if run_1 | run_2 | run_3 == 0 {
        return;
    }
    let high = HighRows {
        tables,
        runs: [run_1, run_2, run_3],
        stack: rows.stack,
    };
    let y1 = simd.load(&tables.top_from[1]);
    let y2 = simd.load(&tables.top_from[2]);
    let clear_1 = simd.and(l1, high.completed(simd, 0, 1));
    let (a2, b2) = (
        simd.and(l2, high.completed(simd, 0, 2)),
        simd.and(l2, high.completed(simd, 1, 2)),
    );
    let (a3, b3, c3) = (
        simd.and(l3, high.completed(simd, 0, 3)),
        simd.and(l3, high.completed(simd, 1, 3)),
        simd.and(l3, high.completed(simd, 2, 3)),
    );
    let clear_2 = simd.or(a2, b2);
    let clear_3 = simd.or(simd.or(a3, b3), c3);
    let twice_2 = simd.and(a2, b2);
    let twice_3 = simd.or(
        simd.or(simd.and(a3, b3), simd.and(a3, c3)),
        simd.and(b3, c3),
    );
    // Level 1: if the piece's top row in the box is 1 or lower, the stack rises by at most two rows
    // and loses one line. Level 2: the stack rises by at most two rows and loses one line.
    first.within_one |= simd.non_zero(simd.or(simd.and(clear_1, y1), clear_2));
    // Level 2: if the top row is 1 or lower, the stack rises by at most one row and loses one line.
    // Otherwise, it rises by two rows and must lose two lines. Level 3: the stack rises by at most
    // one row and loses one line.
    first.within |= simd.non_zero(simd.or(simd.or(simd.and(clear_2, y1), twice_2), clear_3));
    let below_2 = simd.or(simd.and(twice_2, y1), simd.and(clear_2, y2));
    let below_3 = simd.or(simd.and(clear_3, y1), twice_3);
    first.below = simd.non_zero(simd.or(below_2, below_3));
}

/// Returns the worst piece if every piece can lower the stack: the first of the pieces that lower it
/// by the fewest rows.
#[cold]
fn least_drop(tables: &Tables, rows: &Rows) -> usize {
    let (mut worst, mut least) = (0, i32::MAX);
    for piece in 0..7 {
        let drop = best_drop(tables, rows, piece);
        if drop < least {
            (worst, least) = (piece, drop);
        }
        if least <= 1 {
            break; // no later piece can be worse, because every piece lowers the stack by at least a row
        }
    }
    worst
}

/// Returns the piece that HATETRIS Mild gives, and its landings. The landings may be missing unless
/// `LANDINGS` is true.
#[inline(always)]
fn choose<S: Simd, const LANDINGS: bool>(
    simd: S,
    tables: &Tables,
    rows: &Rows,
) -> (usize, Landings) {
    const ALL: u8 = 0x7f;
    let first = first_levels(simd, tables, rows);
    let missing = if first.within_one != ALL {
        !first.within_one
    } else {
        !first.within
    } & ALL;
    if missing != 0 {
        let piece = missing.trailing_zeros() as usize;
        return (
            piece,
            Landings::from_first_levels::<LANDINGS>(tables, rows, &first, piece),
        );
    }
    for piece in 0..7 {
        if first.below >> piece & 1 == 0 {
            let landings = Landings::from_first_levels::<true>(tables, rows, &first, piece);
            if !landings.clears_deep(tables, piece, rows) {
                return (piece, landings);
            }
        }
    }
    let piece = least_drop(tables, rows);
    (
        piece,
        Landings::from_first_levels::<LANDINGS>(tables, rows, &first, piece),
    )
}

/// Generates the children of `piece` from its landings.
#[inline(always)]
pub(super) fn draw<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    rows: &Rows,
    piece: usize,
    mut landings: Landings,
    children: &mut Children,
) {
    children.clear();
    landings.fold(piece);
    let height = tables.geometry.height();
    if rows.stack + 4 > height {
        for level in 0..4.min(landings.levels) {
            let above = (rows.stack + 4).saturating_sub(level + height);
            let dead = tables.dead[above.min(4)].0[piece];
            children.can_die |= landings.words[level] & dead != 0;
            landings.words[level] &= !dead;
        }
    }
    let drawing = Drawing {
        well,
        full_row: tables.geometry.full_row(),
        stack: rows.stack,
        landings: &landings.words,
        levels: landings.levels,
        shapes: &tables.shapes[piece],
    };
    if simd.draw(&drawing, children) {
        children.remove_duplicates();
    }
}

// The functions below return `None` or `false` for wells that the fast emulator does not support.

#[inline(always)]
pub(super) fn piece<S: Simd>(simd: S, tables: &Tables, well: &Well) -> Option<Piece> {
    let rows = Rows::new(simd, tables, well)?;
    Some(Piece::ALL[choose::<S, false>(simd, tables, &rows).0])
}

#[inline(always)]
pub(super) fn expand<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    out: &mut Children,
) -> Option<Piece> {
    let rows = Rows::new(simd, tables, well)?;
    let (piece, landings) = choose::<S, true>(simd, tables, &rows);
    draw(simd, tables, well, &rows, piece, landings, out);
    Some(Piece::ALL[piece])
}

#[inline(always)]
pub(super) fn children<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    piece: Piece,
    out: &mut Children,
) -> bool {
    let Some(rows) = Rows::new(simd, tables, well) else {
        return false;
    };
    let landings = Landings::new(tables, &rows, piece.index());
    draw(simd, tables, well, &rows, piece.index(), landings, out);
    true
}
