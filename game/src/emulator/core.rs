//! The fast emulator itself, once for all processors.
//!
//! **Levels.** Let `stack` be the height of the well's stack. At *level* `d` the bottom row of the
//! 4×4 box is `stack - d` rows above the floor. At level 0 the whole box is above the stack, where
//! every position inside the walls can be reached (the game leaves four empty rows there, and no
//! orientation is higher than its box). Nothing ever moves up, so the positions reached at level
//! `d + 1` are those of level `d` that are free one row further down, and what spreads from them
//! by L, R and U. A piece can be locked where it is reached and blocked one level down.
//!
//! **Which piece.** The stack of a game has no empty row, so that after a lock its height is
//! `max(stack, top of the piece) - lines`. At level `d` the top is `4 - d - top` rows above the
//! stack, where `top` is the topmost row of the box with a cell. From there it follows, line by line
//! in [`near`], which pieces can be held within `stack + 1` and within `stack` by what they do on
//! levels 1 to 4 alone. A piece that can do neither is the worst; if all can do both, the first of
//! them is the worst that can clear nothing that brings the stack below its height.
//!
//! **Tests** compare all of it with the oracle, piece by piece and child by child.

use super::children::Children;
use super::simd::{Drawing, Levels, Simd, spread};
use super::tables::{Seven, Tables};
use crate::piece::Piece;
use crate::well::{MAX_HEIGHT, Well};

/// Rows of padding below the floor: no piece's box is lower by more.
const FLOOR: usize = 4;

/// A well's rows with full ones under the floor and empty ones over the top.
struct Rows {
    rows: [u16; FLOOR + MAX_HEIGHT + 4],
    stack: usize,
}

impl Rows {
    /// `None` for a well with an empty row below its top (no game has one, and the rule for the
    /// height after a lock does not hold for it), and for one too high to be drawn.
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

    /// The row of the well that row `y` of the box (0 the top) meets at a level.
    #[inline(always)]
    fn at(&self, level: usize, y: usize) -> u16 {
        self.rows[self.stack + FLOOR + 3 - y - level]
    }
}

// A closure is a function of its own, compiled without the caller's instructions: the code below that
// handles `Words` therefore uses none, and no iterator adaptor either (measured: three times slower).

/// Positions of all pieces that a row's filled cells block where it is row `y` of the box; the walls
/// are in row 0.
#[inline(always)]
pub(super) fn blocked_by<S: Simd>(simd: S, tables: &Tables, row: u16, y: usize) -> S::Words {
    let (low, high) = tables.split(row);
    simd.or(
        simd.load(&tables.blocked_low[low][y]),
        simd.load(&tables.blocked_high[high][y]),
    )
}

/// Positions of all pieces that are blocked at a level, walls included.
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

/// The same for one piece.
#[inline(always)]
fn blocked_piece(tables: &Tables, piece: usize, rows: &Rows, level: usize) -> u64 {
    let at = |y: usize| {
        let (low, high) = tables.split(rows.at(level, y));
        tables.piece_low[piece][low][y] | tables.piece_high[piece][high][y]
    };
    (at(0) | at(1)) | (at(2) | at(3))
}

/// What all pieces can do on the first levels.
struct Near {
    /// Landings on levels 0 to 3.
    landings: [Seven; 4],
    /// Positions reached on level 4 from above; what spreads from them there is left out, since it
    /// matters only for a piece that is looked at further.
    reached: Seven,
    /// Positions blocked on level 4.
    blocked: Seven,
    /// Pieces that can be held within one row more than the stack.
    within_one: u8,
    /// Pieces that can be held within the stack.
    within: u8,
    /// Pieces that can bring the stack below its height by a lock on levels 1 to 3.
    below: u8,
}

/// Goes one level down from what is reached: the landings on the way, and what is reached there.
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
fn near<S: Simd>(simd: S, tables: &Tables, rows: &Rows) -> Near {
    let inside = simd.load(&tables.inside);
    // From level 0, everything that is free on level 1 is reached by D alone.
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
    // A piece that gets to level 3 lands there or lower, where it rises by at most one row.
    let low = simd.or(simd.and(l2, y1), simd.and(l1, y2));
    let mut near = Near {
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
    near.within = simd.non_zero(simd.or(reached, low));
    near_lines(simd, tables, rows, [l1, l2, l3], &mut near);
    near
}

/// The three highest rows of the stack: what would complete them.
struct HighRows<'a> {
    tables: &'a Tables,
    runs: [usize; 3],
    stack: usize,
}

impl HighRows<'_> {
    /// Positions on level `level` that complete the row with this number (0 the highest).
    #[inline(always)]
    fn completed<S: Simd>(&self, simd: S, row: usize, level: usize) -> S::Words {
        // On level 1 the lowest row of the box meets the highest row of the stack.
        let y = 4 + row - level;
        // Positions that reach above the bar clear nothing.
        let above = (self.stack + 4 - level).saturating_sub(self.tables.geometry.height());
        let dead = simd.load(&self.tables.dead[above]);
        simd.and_not(dead, simd.load(&self.tables.completes[self.runs[row]][y]))
    }
}

/// What locks on levels 1 to 3 that clear lines add. On level `d` the box meets the `d` highest rows
/// of the stack.
#[inline(always)]
fn near_lines<S: Simd>(
    simd: S,
    tables: &Tables,
    rows: &Rows,
    [l1, l2, l3]: [S::Words; 3],
    near: &mut Near,
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
    // Level 1: two rows up with top 1, less one line. Level 2: two rows up at most.
    near.within_one |= simd.non_zero(simd.or(simd.and(clear_1, y1), clear_2));
    // Level 2: one row up with top 1; two rows up less two lines. Level 3: one row up at most.
    near.within |= simd.non_zero(simd.or(simd.or(simd.and(clear_2, y1), twice_2), clear_3));
    let below_2 = simd.or(simd.and(twice_2, y1), simd.and(clear_2, y2));
    let below_3 = simd.or(simd.and(clear_3, y1), twice_3);
    near.below = simd.non_zero(simd.or(below_2, below_3));
}

/// All landings of one piece.
struct Landings {
    words: Levels,
    /// Levels in use.
    levels: usize,
}

impl Landings {
    /// From the first levels on; nothing if they are not wanted.
    #[inline(always)]
    fn from_near<const WANTED: bool>(
        tables: &Tables,
        rows: &Rows,
        near: &Near,
        piece: usize,
    ) -> Landings {
        let mut landings = Landings {
            words: [0; 24],
            levels: 4,
        };
        if !WANTED {
            return landings;
        }
        for (word, level) in landings.words.iter_mut().zip(&near.landings) {
            *word = level.0[piece];
        }
        landings.descend(
            tables,
            rows,
            piece,
            near.reached.0[piece],
            near.blocked.0[piece],
        );
        landings
    }

    /// From the top.
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

    /// Goes on from what is reached from above, and what is blocked, on level `self.levels`.
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
            // Two steps, then a test: fewer exits to guess (random play: 90 ns a well against 102 with one,
            // 92 with three; in `down`, above, a second step gains nothing).
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

    /// Merges positions that fill the same cells: S, Z and I look the same in two orientations each,
    /// one column or one level apart, and O in all four.
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

/// How many rows a piece can bring the stack below its height at best; negative if it must rise.
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

/// Best rating of each piece, as [`crate::Board::rating`] counts.
pub(super) fn ratings<S: Simd>(simd: S, tables: &Tables, well: &Well) -> Option<[u8; 7]> {
    let rows = Rows::new(simd, tables, well)?;
    let depth = tables.geometry.depth() as i32;
    Some(std::array::from_fn(|piece| {
        (depth - (rows.stack as i32 - best_drop(tables, &rows, piece))) as u8
    }))
}

/// The worst piece where every piece can bring the stack below its height: the first that does so by
/// the fewest rows.
#[cold]
fn least_drop(tables: &Tables, rows: &Rows) -> usize {
    let (mut worst, mut least) = (0, i32::MAX);
    for piece in 0..7 {
        let drop = best_drop(tables, rows, piece);
        if drop < least {
            (worst, least) = (piece, drop);
        }
        if least <= 1 {
            break; // none does less
        }
    }
    worst
}

/// The piece HATETRIS Mild gives and, if wanted, where it can land.
#[inline(always)]
fn choose<S: Simd, const LANDINGS: bool>(
    simd: S,
    tables: &Tables,
    rows: &Rows,
) -> (usize, Landings) {
    const ALL: u8 = 0x7f;
    let near = near(simd, tables, rows);
    let missing = if near.within_one != ALL {
        !near.within_one
    } else {
        !near.within
    } & ALL;
    if missing != 0 {
        let piece = missing.trailing_zeros() as usize;
        return (
            piece,
            Landings::from_near::<LANDINGS>(tables, rows, &near, piece),
        );
    }
    for piece in 0..7 {
        if near.below >> piece & 1 == 0 {
            let landings = Landings::from_near::<true>(tables, rows, &near, piece);
            if !landings.clears_deep(tables, piece, rows) {
                return (piece, landings);
            }
        }
    }
    let piece = least_drop(tables, rows);
    (
        piece,
        Landings::from_near::<LANDINGS>(tables, rows, &near, piece),
    )
}

/// Draws the children of `piece` from its landings.
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

// The three below say `None`, or false, of wells that the fast way does not cover.

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

/// Which pieces can clear lines and, if `out` is given, what the first of them leaves that can clear
/// exactly one line and no more. See [`super::Clears`].
#[inline(always)]
pub(super) fn clears<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    lowest: usize,
    out: Option<&mut Children>,
) -> Option<super::Clears> {
    let rows = Rows::new(simd, tables, well)?;
    let stack = rows.stack;
    // By row of the stack: the number of its run. Only rows that can be reached matter.
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
    // The last level at which the box still meets that row.
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
            // Positions that reach above the bar clear nothing. (Two lines at once are judged by the
            // same words: a piece that is dead has no bit in `landings` that counts.)
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
    let single = clears.pieces & !clears.several;
    if let Some(out) = out
        && single != 0
    {
        let piece = single.trailing_zeros() as usize;
        let mut landings = Landings {
            words: [0; 24],
            levels: level.min(stack + 4),
        };
        for (word, level) in landings.words.iter_mut().zip(&words[..level]) {
            *word = level.0[piece];
        }
        draw(simd, tables, well, &rows, piece, landings, out);
    }
    Some(clears)
}
