//! The fast emulator, generic over the SIMD level.
//!
//! **Levels.** Let `stack` be the height of the well's stack. At *level* `d`, the bottom row of the
//! piece's 4×4 box is `stack - d` rows above the floor. At level 0 the whole box is above the
//! stack. Every position inside the walls is reachable there, because the four rows above the bar
//! are empty and no orientation is higher than its box. No key moves a piece up. So two kinds of
//! positions are reachable at level `d + 1`: the reachable positions of level `d` that are free one
//! row further down, and all positions that the keys L, R and U reach from these. A piece can be
//! locked in a position that is reachable at its level and blocked one level down. Such a position
//! is a *landing*.
//!
//! **Choice of the piece.** The best position in which the player can lock a piece is the one that
//! leaves the lowest stack. The enemy gives the *worst* piece, the one whose best position leaves
//! the highest stack. A stack in a game has no empty row. So its height after a lock is the greater
//! of its previous height and the height of the piece's top, minus the number of lines cleared. Let
//! `top` be the topmost row of the box that contains a cell. At level `d`, the top of the piece is
//! then `4 - d - top` rows above the stack. From levels 1 to 4, [`first_levels`] finds the pieces
//! that can keep the stack within `stack + 1` rows and those that can keep it within `stack` rows.
//! The worst piece is then:
//!
//! 1. if there is one, the first piece that cannot keep the stack within `stack + 1` rows;
//! 2. otherwise, if there is one, the first piece that cannot keep the stack within `stack` rows;
//! 3. otherwise, if there is one, the first piece that cannot lower the stack;
//! 4. otherwise, the first of the pieces that lower the stack by the fewest rows.
//!
//! **Tests** compare everything with the oracle, piece by piece and child by child.

use super::children::Children;
use super::simd::{Drawing, Levels, Simd, spread};
use super::tables::{Seven, Tables};
use crate::piece::Piece;
use crate::well::{MAX_HEIGHT, Well};

/// Number of padding rows below the floor. No box extends further down.
const FLOOR: usize = 4;

/// The rows of a well, with full rows below the floor and empty rows above the top.
struct Rows {
    rows: [u16; FLOOR + MAX_HEIGHT + 4],
    stack: usize,
}

impl Rows {
    /// Returns `None` if the well is too high for the tables or has an empty row below its top. The
    /// formula for the height after a lock is wrong for a well with such a row, but no well of a
    /// game has one.
    #[inline(always)]
    fn new<S: Simd>(simd: S, tables: &Tables, well: &Well) -> Option<Rows> {
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

    /// The row of the well that coincides with row `y` of the box (0 is the top row) at `level`.
    #[inline(always)]
    fn at(&self, level: usize, y: usize) -> u16 {
        self.rows[self.stack + FLOOR + 3 - y - level]
    }
}

// A closure is compiled as a separate function without the caller's instruction set. So the code
// below that handles `Words` uses neither closures nor iterator adaptors (measured: three times
// slower).

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
fn blocked<S: Simd>(simd: S, tables: &Tables, rows: &Rows, level: usize) -> S::Words {
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

/// Like [`blocked`] for one piece.
#[inline(always)]
fn blocked_piece(tables: &Tables, piece: usize, rows: &Rows, level: usize) -> u64 {
    let at = |y: usize| {
        let (low, high) = tables.split(rows.at(level, y));
        tables.piece_low[piece][low][y] | tables.piece_high[piece][high][y]
    };
    (at(0) | at(1)) | (at(2) | at(3))
}

/// Landings and reachable positions of all pieces on levels 0 to 4, and the effect of the landings
/// on the stack.
struct FirstLevels {
    /// Landings on levels 0 to 3.
    landings: [Seven; 4],
    /// Positions on level 4 that D reaches from level 3. Positions that L, R and U reach from these
    /// are not included, because they are needed only for the chosen piece.
    reached: Seven,
    /// Positions blocked on level 4.
    blocked: Seven,
    /// Pieces with a lock after which the stack is at most one row higher.
    within_one: u8,
    /// Pieces with a lock after which the stack is not higher.
    within: u8,
    /// Pieces with a lock on levels 1 to 3 after which the stack is lower.
    below: u8,
}

/// Moves one level down. Returns the landings on the upper level and the positions reachable on the
/// lower level.
#[inline(always)]
fn down<S: Simd>(simd: S, reached: S::Words, blocked: S::Words) -> (S::Words, S::Words) {
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
    // D alone reaches every free position on level 1 from level 0.
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
    // A piece that reaches level 3 lands on level 3 or below. Its top is then at most one row above
    // the stack.
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

/// The three highest rows of the stack, and the runs of empty cells that complete them when filled.
struct HighRows<'a> {
    tables: &'a Tables,
    runs: [usize; 3],
    stack: usize,
}

impl HighRows<'_> {
    /// Positions at `level` that complete row `row` of the stack (0 is the highest).
    #[inline(always)]
    fn completed<S: Simd>(&self, simd: S, row: usize, level: usize) -> S::Words {
        // On level 1, the lowest row of the box is at the highest row of the stack.
        let y = 4 + row - level;
        // Positions that extend above the bar clear nothing.
        let above = (self.stack + 4 - level).saturating_sub(self.tables.geometry.height());
        let dead = simd.load(&self.tables.dead[above]);
        simd.and_not(dead, simd.load(&self.tables.completes[self.runs[row]][y]))
    }
}

/// Adds the results of line-clearing locks on levels 1 to 3. On level `d`, the box overlaps the `d`
/// highest rows of the stack.
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
    // Level 1: if the piece's top row in the box is 1, the stack rises by two rows and loses one
    // line. Level 2: the stack rises by at most two rows and loses one line.
    first.within_one |= simd.non_zero(simd.or(simd.and(clear_1, y1), clear_2));
    // Level 2: if the top row is 1, the stack rises by one row and loses one line. Otherwise, it
    // rises by two rows and loses two lines. Level 3: the stack rises by at most one row and loses
    // one line.
    first.within |= simd.non_zero(simd.or(simd.or(simd.and(clear_2, y1), twice_2), clear_3));
    let below_2 = simd.or(simd.and(twice_2, y1), simd.and(clear_2, y2));
    let below_3 = simd.or(simd.and(clear_3, y1), twice_3);
    first.below = simd.non_zero(simd.or(below_2, below_3));
}

/// All landings of one piece.
struct Landings {
    words: Levels,
    /// Number of levels in use.
    levels: usize,
}

impl Landings {
    /// Finds the landings of one piece, starting from the results for the first levels. Returns no
    /// landings unless `WANTED` is true.
    #[inline(always)]
    fn from_first_levels<const WANTED: bool>(
        tables: &Tables,
        rows: &Rows,
        first: &FirstLevels,
        piece: usize,
    ) -> Landings {
        let mut landings = Landings {
            words: [0; 24],
            levels: 4,
        };
        if !WANTED {
            return landings;
        }
        for (word, level) in landings.words.iter_mut().zip(&first.landings) {
            *word = level.0[piece];
        }
        landings.descend(
            tables,
            rows,
            piece,
            first.reached.0[piece],
            first.blocked.0[piece],
        );
        landings
    }

    /// Finds the landings of one piece, starting at level 0.
    #[inline(always)]
    fn new(tables: &Tables, rows: &Rows, piece: usize) -> Landings {
        let mut landings = Landings {
            words: [0; 24],
            levels: 0,
        };
        let inside = tables.inside.0[piece];
        landings.descend(tables, rows, piece, inside, !inside);
        landings
    }

    /// Extracts the landings of one piece from `words`, which contains the landings of all pieces,
    /// indexed by level.
    #[inline(always)]
    fn of_piece(words: &[Seven], piece: usize, stack: usize) -> Landings {
        let mut landings = Landings {
            words: [0; 24],
            levels: words.len().min(stack + 4),
        };
        for (word, level) in landings.words.iter_mut().zip(words) {
            *word = level.0[piece];
        }
        landings
    }

    /// Continues at level `self.levels`. `reached` contains the positions there that are reachable
    /// from above, and `blocked` contains the blocked positions.
    #[inline(always)]
    fn descend(
        &mut self,
        tables: &Tables,
        rows: &Rows,
        piece: usize,
        mut reached: u64,
        mut blocked: u64,
    ) {
        while reached != 0 {
            // Two steps per test mean fewer unpredictable branches. A well from random play takes
            // 90 ns, compared with 102 ns for one step and 92 ns for three. In `down`, a second
            // step gains nothing.
            loop {
                let once = spread(reached) & !blocked;
                let more = spread(once) & !blocked;
                reached = more;
                if more == once {
                    break;
                }
            }
            blocked = blocked_piece(tables, piece, rows, self.levels + 1);
            self.words[self.levels] = reached & blocked;
            reached &= !blocked;
            self.levels += 1;
        }
    }

    /// Whether a lock on level 4 or below clears a line.
    #[inline(always)]
    fn clears_deep(&self, tables: &Tables, piece: usize, rows: &Rows) -> bool {
        let mut any = 0;
        for level in 4..self.levels {
            let mut fills = 0;
            for y in 0..4 {
                let run = usize::from(tables.run[usize::from(rows.at(level, y))]);
                fills |= tables.piece_completes[piece][run][y];
            }
            any |= self.words[level] & fills;
        }
        any != 0
    }

    /// Merges positions that fill the same cells. Each orientation of S, Z and I has the same shape
    /// as another orientation shifted by one column or one level. All orientations of O are equal.
    #[inline(always)]
    fn fold(&mut self, piece: usize) {
        const LANE: u64 = 0xffff;
        let levels = self.levels;
        let words = &mut self.words;
        match Piece::ALL[piece] {
            Piece::S | Piece::Z => {
                for level in 0..levels {
                    let (word, next) = (words[level], words[level + 1]);
                    let flat = (word | word >> 33) & LANE;
                    let upright = (word >> 16 | next >> 48) & LANE;
                    words[level] = flat | upright << 16;
                }
            }
            Piece::O => words[..levels].iter_mut().for_each(|word| *word &= LANE),
            Piece::I => {
                for level in 0..levels {
                    let (word, next) = (words[level], words[level + 1]);
                    let flat = (word >> 32 | next) & LANE;
                    let upright = (word >> 16 | word >> 49) & LANE;
                    words[level] = upright << 16 | flat << 32;
                }
            }
            Piece::L | Piece::J | Piece::T => {}
        }
    }
}

/// The maximum number of rows by which a piece can lower the stack. Negative if every lock raises
/// the stack.
fn best_drop(tables: &Tables, rows: &Rows, piece: usize) -> i32 {
    let landings = Landings::new(tables, rows, piece);
    let mut best = i32::MIN;
    for (level, &word) in landings.words[..landings.levels].iter().enumerate() {
        let above = (rows.stack + 4).saturating_sub(level + tables.geometry.height());
        let dead = tables.dead[above.min(4)].0[piece];
        let fills: [u64; 4] = std::array::from_fn(|y| {
            let run = usize::from(tables.run[usize::from(rows.at(level, y))]);
            tables.piece_completes[piece][run][y] & !dead
        });
        for top in 0..4 {
            let only = tables.top_from[top].0[piece]
                & !tables
                    .top_from
                    .get(top + 1)
                    .map_or(0, |words| words.0[piece]);
            let mut left = word & only;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left &= left - 1;
                let lines = fills.iter().filter(|&&fills| fills & bit != 0).count() as i32;
                let rise = (4 - level as i32 - top as i32).max(0);
                best = best.max(lines - rise);
            }
        }
    }
    best
}

/// Returns the highest rating that the player can reach with each piece (see
/// [`crate::Board::rating`]), or `None` if the fast emulator does not support the well.
pub(super) fn ratings<S: Simd>(simd: S, tables: &Tables, well: &Well) -> Option<[u8; 7]> {
    let rows = Rows::new(simd, tables, well)?;
    let depth = tables.geometry.depth() as i32;
    Some(std::array::from_fn(|piece| {
        (depth - (rows.stack as i32 - best_drop(tables, &rows, piece))) as u8
    }))
}

/// The worst piece if every piece can lower the stack: the first of the pieces that lower it by the
/// fewest rows.
#[cold]
fn least_drop(tables: &Tables, rows: &Rows) -> usize {
    let (mut worst, mut least) = (0, i32::MAX);
    for piece in 0..7 {
        let drop = best_drop(tables, rows, piece);
        if drop < least {
            (worst, least) = (piece, drop);
        }
        if least <= 1 {
            break; // no later piece can be worse, because every piece lowers the stack
        }
    }
    worst
}

/// Returns the piece that HATETRIS Mild gives and, if `LANDINGS` is set, its landings.
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
fn draw<S: Simd>(
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

/// Returns the pieces that can clear lines. If `follow` is given, also finds the wells that result
/// when the chosen piece clears a line.
#[inline(always)]
pub(super) fn clears<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    lowest: usize,
    follow: Option<super::Follow<'_>>,
) -> Option<super::Clears> {
    let rows = Rows::new(simd, tables, well)?;
    let stack = rows.stack;
    // The index of the run that completes each row of the stack. Rows below `lowest` are skipped
    // because no piece reaches them.
    let mut runs = [0u8; FLOOR + MAX_HEIGHT + 4];
    let mut deepest = stack;
    for row in (lowest..stack).rev() {
        let run = tables.run[usize::from(well.rows()[row])];
        runs[FLOOR + row] = run;
        if run != 0 {
            deepest = row;
        }
    }
    let mut clears = super::Clears::default();
    if deepest == stack {
        return Some(clears);
    }
    // The last level at which the box overlaps row `deepest`.
    let last = stack - deepest + 3;
    let mut words = [Seven::ZERO; 24];
    let zero = simd.load(&Seven::ZERO);
    let (mut once, mut twice) = (zero, zero);
    let mut reached = simd.load(&tables.inside);
    let mut level = 0;
    while level <= last {
        let next = blocked(simd, tables, &rows, level + 1);
        let (landings, further) = down(simd, reached, next);
        let top = stack + FLOOR + 3 - level;
        let mut here = zero;
        let mut any = false;
        for y in 0..4 {
            let run = usize::from(runs[top - y]);
            if run != 0 {
                any = true;
                let fills = simd.and(landings, simd.load(&tables.completes[run][y]));
                twice = simd.or(twice, simd.and(here, fills));
                here = simd.or(here, fills);
            }
        }
        if any {
            // Positions that extend above the bar clear nothing, neither one line nor several.
            let above = (stack + 4)
                .saturating_sub(level + tables.geometry.height())
                .min(4);
            let dead = simd.load(&tables.dead[above]);
            here = simd.and_not(dead, here);
            if above > 0 {
                twice = simd.and_not(dead, twice);
            }
            once = simd.or(once, here);
            words[level] = simd.store(here);
        }
        reached = further;
        level += 1;
        if simd.non_zero(reached) == 0 {
            break;
        }
    }
    clears.pieces = simd.non_zero(once);
    clears.several = simd.non_zero(twice);
    if let Some(follow) = follow
        && let Some(piece) = (follow.choose)(clears)
    {
        let landings = Landings::of_piece(&words[..level], piece.index(), stack);
        let out = follow.children;
        draw(simd, tables, well, &rows, piece.index(), landings, out);
    }
    Some(clears)
}
