//! Search for the pieces that can clear lines. Levels and landings are defined in [`super::core`].

use super::core::{FLOOR, Rows, blocked, blocked_piece, down, draw};
use super::landings::{Landings, spread_free};
use super::simd::Simd;
use super::tables::{Seven, Tables};
use super::{Children, Clears, Follow};
use crate::piece::Piece;
use crate::well::{MAX_HEIGHT, Well};

/// The set of all runs in [`Tables::completes`]. Index 0 stands for no run.
const ALL_RUNS: u64 = !1;

/// The runs of empty cells that a piece must fill to complete the rows of a stack.
struct StackRuns {
    /// Index of each row's run in [`Tables::completes`], or 0 if no piece can complete the row.
    runs: [u8; FLOOR + MAX_HEIGHT + 4],
    /// The rows with a run, as bits in the order of `runs`.
    completable: u32,
    stack: usize,
    /// The last level at which the piece's box overlaps a row that can be completed.
    last_level: usize,
}

impl StackRuns {
    /// Finds the runs that are in the set `wanted`, which contains bit `i` for the run with index `i`. Returns `None` if
    /// there are none. Skips the rows below `lowest`, which no piece can reach.
    #[inline(always)]
    fn new(
        tables: &Tables,
        well: &Well,
        stack: usize,
        lowest: usize,
        wanted: u64,
    ) -> Option<StackRuns> {
        let mut runs = [0u8; FLOOR + MAX_HEIGHT + 4];
        let mut completable = 0;
        for row in lowest..stack {
            let run = tables.run[usize::from(well.rows()[row])];
            // No branch, because it would often be mispredicted.
            let is_wanted = (wanted >> run & 1) as u8;
            runs[FLOOR + row] = run * is_wanted;
            completable |= u32::from(is_wanted) << (FLOOR + row);
        }
        if completable == 0 {
            return None;
        }
        Some(StackRuns {
            runs,
            completable,
            stack,
            last_level: stack + FLOOR + 3 - completable.trailing_zeros() as usize,
        })
    }

    /// Returns the landings at `level` that clear at least one line, and the landings that clear
    /// several. Returns `None` if the box overlaps no row that can be completed.
    #[inline(always)]
    fn cleared_by<S: Simd>(
        &self,
        simd: S,
        tables: &Tables,
        level: usize,
        landings: S::Words,
    ) -> Option<(S::Words, S::Words)> {
        let bottom = self.stack + FLOOR - level;
        if self.completable >> bottom & 0b1111 == 0 {
            return None;
        }
        let zero = simd.load(&Seven::ZERO);
        let (mut once, mut twice) = (zero, zero);
        for y in 0..4 {
            let run = usize::from(self.runs[bottom + 3 - y]);
            let fills = simd.and(landings, simd.load(&tables.completes[run][y]));
            twice = simd.or(twice, simd.and(once, fills));
            once = simd.or(once, fills);
        }
        let dead = simd.load(self.dead(tables, level));
        Some((simd.and_not(dead, once), simd.and_not(dead, twice)))
    }

    /// Like [`StackRuns::cleared_by`], for one piece.
    #[inline(always)]
    fn cleared_by_piece(
        &self,
        tables: &Tables,
        piece: usize,
        level: usize,
        landings: u64,
    ) -> (u64, u64) {
        let top = self.stack + FLOOR + 3 - level;
        let landings = landings & !self.dead(tables, level).0[piece];
        let (mut once, mut twice) = (0, 0);
        for y in 0..4 {
            let run = usize::from(self.runs[top - y]);
            let fills = landings & tables.piece_completes[piece][run][y];
            twice |= once & fills;
            once |= fills;
        }
        (once, twice)
    }

    /// Returns the positions at `level` that extend above the bar (the top of the geometry's rows). They clear nothing.
    #[inline(always)]
    fn dead<'a>(&self, tables: &'a Tables, level: usize) -> &'a Seven {
        let above = (self.stack + 4).saturating_sub(level + tables.geometry.height());
        &tables.dead[above.min(4)]
    }
}

/// Returns the pieces that can clear lines, or `None` if the fast emulator does not support the well.
/// `lowest` is the index of a row below which no piece can reach a cell. If `follow` is given, also
/// finds the wells that result when the chosen piece clears a line.
#[inline(always)]
pub(super) fn clears<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    lowest: usize,
    follow: Option<Follow<'_>>,
) -> Option<Clears> {
    let rows = Rows::new(simd, tables, well)?;
    let Some(runs) = StackRuns::new(tables, well, rows.stack, lowest, ALL_RUNS) else {
        return Some(Clears::default());
    };
    let Some(follow) = follow else {
        return Some(all_clears(simd, tables, &rows, &runs, &mut []).0);
    };
    let mut words = [Seven::ZERO; 24];
    let (clears, levels) = all_clears(simd, tables, &rows, &runs, &mut words);
    if let Some(piece) = (follow.choose)(clears) {
        let landings = Landings::of_piece(&words[..levels], piece.index(), rows.stack);
        let out = follow.children;
        draw(simd, tables, well, &rows, piece.index(), landings, out);
    }
    Some(clears)
}

/// Returns the pieces that can clear lines, and the number of levels with reachable positions that may clear lines.
///
/// Searching two wells at a time takes longer: 109 ns per well instead of 97 with AVX-512, 315 instead of 282 without SIMD.
/// Writes the landings that clear lines to `words`, indexed by level, unless it is empty.
#[inline(always)]
fn all_clears<S: Simd>(
    simd: S,
    tables: &Tables,
    rows: &Rows,
    runs: &StackRuns,
    words: &mut [Seven],
) -> (Clears, usize) {
    let zero = simd.load(&Seven::ZERO);
    let (mut once, mut twice) = (zero, zero);
    let mut reached = simd.load(&tables.inside);
    let mut level = 0;
    while level <= runs.last_level {
        let next = blocked(simd, tables, rows, level + 1);
        let (landings, further) = down(simd, reached, next);
        if let Some((one, several)) = runs.cleared_by(simd, tables, level, landings) {
            once = simd.or(once, one);
            twice = simd.or(twice, several);
            if let Some(word) = words.get_mut(level) {
                *word = simd.store(one);
            }
        }
        reached = further;
        level += 1;
        if simd.non_zero(reached) == 0 {
            break;
        }
    }
    let clears = Clears {
        pieces: simd.non_zero(once),
        several: simd.non_zero(twice),
    };
    (clears, level)
}

/// The landings of a piece that clear lines.
struct PieceClears {
    landings: Landings,
    /// Whether a landing clears several lines.
    several: bool,
}

/// Returns the landings of a piece that clear lines, or `None` if there are none.
#[inline(always)]
fn clears_of_piece(
    tables: &Tables,
    well: &Well,
    rows: &Rows,
    piece: usize,
    lowest: usize,
) -> Option<PieceClears> {
    let runs = StackRuns::new(tables, well, rows.stack, lowest, tables.piece_runs[piece])?;
    let mut words = [0; 24];
    let (mut any, mut several) = (0, 0);
    let mut reached = tables.inside.0[piece];
    let mut level = 0;
    while level <= runs.last_level && reached != 0 {
        let blocked = blocked_piece(tables, piece, rows, level + 1);
        let (once, twice) = runs.cleared_by_piece(tables, piece, level, reached & blocked);
        words[level] = once;
        any |= once;
        several |= twice;
        reached = spread_free(reached & !blocked, blocked);
        level += 1;
    }
    (any != 0).then_some(PieceClears {
        landings: Landings {
            words,
            levels: level.min(rows.stack + 4),
        },
        several: several != 0,
    })
}

/// Returns the first piece that cannot clear several lines at once, if it can clear one, and replaces `children` with
/// the wells that result. Returns `None` if the fast emulator does not support the well. `lowest` is the index of a row
/// below which no piece can reach a cell.
#[inline(always)]
pub(super) fn first_clear<S: Simd>(
    simd: S,
    tables: &Tables,
    well: &Well,
    lowest: usize,
    children: &mut Children,
) -> Option<Option<Piece>> {
    let rows = Rows::new(simd, tables, well)?;
    for piece in 0..Piece::ALL.len() {
        let Some(clears) = clears_of_piece(tables, well, &rows, piece, lowest) else {
            return Some(None);
        };
        if !clears.several {
            draw(simd, tables, well, &rows, piece, clears.landings, children);
            return Some(Some(Piece::ALL[piece]));
        }
    }
    Some(None)
}
