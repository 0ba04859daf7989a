//! Search for the candidate parents of a well, for all pieces at once. See [`crate::backward`] for the
//! algorithm. As in [`super::tables`], a *position* is the position of a piece's 4×4 box, and a *word* is a
//! set of positions at one height.

use super::core::blocked_by;
use super::simd::Simd;
use super::tables::{self, SHAPE_BOTTOM, Seven, for_each_position};
use crate::piece::Piece;
use crate::reference::Parent;
use crate::well::{Geometry, MAX_HEIGHT, Well};

/// Number of rows that can block a neighbour: the four rows of a box, the row above the box and the row
/// below it.
const ROWS_AROUND: usize = 6;

/// Lookup tables for the neighbours in one direction. A neighbour of a position is one key away: either
/// the key leads from the position to the neighbour, or from the neighbour to the position. The tables
/// contain the positions whose neighbour in this direction is blocked. The cells of the position itself
/// do not block its neighbour.
struct Neighbour {
    /// Positions whose neighbour is outside the walls.
    outside: Seven,
    /// Positions whose neighbour is blocked by the filled cells of a row. Indexed by the lower bits
    /// of the row, then by the row's index, which is 0 for the row above the box.
    low: Box<[[Seven; ROWS_AROUND]]>,
    /// Positions whose neighbour is blocked by the filled cells of a row. Indexed like `low`, but
    /// by the upper bits of the row.
    high: Box<[[Seven; ROWS_AROUND]]>,
}

pub(crate) struct Tables {
    low_bits: u32,
    /// The neighbour one row down. The piece rests on something if this neighbour is blocked.
    below: Neighbour,
    /// The neighbours from which the keys D, L, R and U (in this order) lead to the position.
    before: [Neighbour; 4],
    /// Positions that have a cell in a given row of the box, indexed by this row.
    touches: [Seven; 4],
}

type PlacedCells = [(i32, i32); 4];

impl Neighbour {
    /// Creates the tables. `of` returns the cells of a position's neighbour. Its arguments are a piece,
    /// the bit of the position in the piece's word, and the cells of the position.
    fn new(
        geometry: Geometry,
        low_bits: u32,
        of: impl Fn(Piece, u32, &PlacedCells) -> PlacedCells,
    ) -> Neighbour {
        let width = geometry.width() as u32;
        let entry = |value: usize, shift: u32| {
            let bits = value << shift;
            let mut entry = [Seven::ZERO; ROWS_AROUND];
            for_each_position(geometry, |piece, bit, cells| {
                for (x, y) in of(piece, bit, cells) {
                    let filled = (0..width as i32).contains(&x) && bits >> x & 1 == 1;
                    if filled && !cells.contains(&(x, y)) {
                        entry[(y + 1) as usize].0[piece.index()] |= 1 << bit;
                    }
                }
            });
            entry
        };
        let mut outside = Seven::ZERO;
        for_each_position(geometry, |piece, bit, cells| {
            if of(piece, bit, cells)
                .iter()
                .any(|(x, _)| !(0..width as i32).contains(x))
            {
                outside.0[piece.index()] |= 1 << bit;
            }
        });
        Neighbour {
            outside,
            low: (0..1 << low_bits).map(|value| entry(value, 0)).collect(),
            high: (0..1 << (width - low_bits))
                .map(|value| entry(value, low_bits))
                .collect(),
        }
    }

    /// Returns the positions whose neighbour is blocked.
    #[inline(always)]
    fn blocked<S: Simd>(&self, simd: S, low_bits: u32, rows: &[u16; ROWS_AROUND]) -> S::Words {
        let mut blocked = simd.load(&self.outside);
        for (index, &row) in rows.iter().enumerate() {
            let low = usize::from(row) & ((1 << low_bits) - 1);
            let high = usize::from(row >> low_bits);
            blocked = simd.or(blocked, simd.load(&self.low[low][index]));
            blocked = simd.or(blocked, simd.load(&self.high[high][index]));
        }
        blocked
    }
}

impl Tables {
    pub(crate) fn new(geometry: Geometry) -> Tables {
        let low_bits = tables::low_bits(geometry);
        let moved = |dx: i32, dy: i32| {
            Neighbour::new(geometry, low_bits, move |_, _, cells| {
                cells.map(|(x, y)| (x + dx, y + dy))
            })
        };
        let turned_before = |piece: Piece, bit: u32, _: &PlacedCells| {
            let (orientation, x) = (bit / 16, (bit % 16) as i32 - 2);
            let cells = piece.cells((orientation as u8).wrapping_sub(1) & 3);
            cells.map(|(cx, cy)| (x + i32::from(cx), i32::from(cy)))
        };
        Tables {
            low_bits,
            below: moved(0, 1),
            before: [
                moved(0, -1),
                moved(1, 0),
                moved(-1, 0),
                Neighbour::new(geometry, low_bits, turned_before),
            ],
            touches: std::array::from_fn(|row| {
                tables::seven(geometry, |_, cells| {
                    cells.iter().any(|&(_, y)| y == row as i32)
                })
            }),
        }
    }
}

/// Number of padding rows below the floor and above the top.
const PAD: usize = 5;

/// A well in which cleared rows are restored.
struct Uncleared {
    /// The rows, with full rows below the floor and empty rows above the top.
    rows: [u16; PAD + MAX_HEIGHT + PAD],
    stack: usize,
    lines: u8,
}

impl Uncleared {
    /// Copies the rows of `well` and inserts a full row for each set bit of `restored`. Bit 0 is the
    /// bottom row of the result. Returns `None` if a restored row is above the stack, or if the stack
    /// becomes higher than `limit`.
    #[inline(always)]
    fn new(
        well: &Well,
        full_row: u16,
        stack: usize,
        restored: u32,
        limit: usize,
    ) -> Option<Uncleared> {
        let lines = restored.count_ones() as usize;
        let stack = stack + lines;
        if stack > limit || restored >> stack != 0 {
            return None;
        }
        let mut rows = [0; PAD + MAX_HEIGHT + PAD];
        rows[..PAD].fill(full_row);
        let mut from = 0;
        for (index, row) in rows[PAD..PAD + stack].iter_mut().enumerate() {
            if restored >> index & 1 == 1 {
                *row = full_row;
            } else {
                *row = well.rows()[from];
                from += 1;
            }
        }
        Some(Uncleared {
            rows,
            stack,
            lines: lines as u8,
        })
    }
}

/// The input of [`collect`].
pub(super) struct Search<'a> {
    pub(super) forward: &'a tables::Tables,
    pub(super) back: &'a Tables,
    pub(super) well: &'a Well,
    /// Maximum stack height before full rows are removed.
    pub(super) limit: usize,
    /// Whether the enemy always gives the worst piece. If so, a candidate is a parent only if every
    /// piece can be placed in it so that the stack is then no higher than the stack of `well`.
    pub(super) worst_piece: bool,
}

/// Appends all candidate parents of the well. A candidate may be appended twice.
#[inline(always)]
pub(super) fn collect<S: Simd>(simd: S, search: &Search<'_>, out: &mut Vec<Parent>) {
    let Search { forward, well, .. } = *search;
    let full_row = forward.geometry.full_row();
    let stack = well.stack_height();
    if let Some(rows) = Uncleared::new(well, full_row, stack, 0, search.limit) {
        for bottom in 0..rows.stack + 3 {
            collect_level(simd, search, &rows, bottom, &[Seven([u64::MAX; 8])], out);
        }
    }
    // `lowest` is the lowest restored row. If bit `k` of `more` is set, row `lowest + k + 1` is also
    // restored.
    for lowest in 0..=stack {
        for more in 0..8u32 {
            let restored = (2 * more + 1) << lowest;
            let Some(rows) = Uncleared::new(well, full_row, stack, restored, search.limit) else {
                continue;
            };
            // The enemy gives the worst piece, so every piece must be able to lower a parent's stack
            // to the height of the well's stack. O clears at most two lines, so a parent's stack is at
            // most two rows higher than the well's. If the top of the stack is above the box, removing
            // a piece does not lower the stack. With three or more restored rows, the stack is then
            // too high, so there is no parent.
            if search.worst_piece && rows.lines >= 3 && lowest + 4 < rows.stack {
                continue;
            }
            // The box must contain all restored rows. `highest` is the distance from the lowest to
            // the highest restored row.
            let highest = (32 - more.leading_zeros()) as usize;
            for below in 0..=3 - highest {
                // The lowest restored row is row `3 - below` of the box.
                let mut touches = [Seven([u64::MAX; 8]); 4];
                touches[0] = search.back.touches[3 - below];
                for k in 0..3 {
                    if more >> k & 1 == 1 {
                        touches[k + 1] = search.back.touches[2 - k - below];
                    }
                }
                collect_level(simd, search, &rows, lowest + 3 - below, &touches, out);
            }
        }
    }
}

/// Appends the candidates that result from removing a piece at one height of the box. The piece's
/// position must be in every set in `touches`. The bottom row of the box is row `bottom - 3` of the
/// well: a box may reach three rows below the floor, and `bottom` cannot be negative.
#[inline(always)]
fn collect_level<S: Simd>(
    simd: S,
    search: &Search<'_>,
    rows: &Uncleared,
    bottom: usize,
    touches: &[Seven],
    out: &mut Vec<Parent>,
) {
    let Search { forward, back, .. } = *search;
    let full_row = forward.geometry.full_row();
    // Index 0 is the row above the box, index 5 the row below it.
    let mut around = [0; ROWS_AROUND];
    for (index, row) in around.iter_mut().enumerate() {
        *row = rows.rows[PAD + bottom + 1 - index];
    }
    let mut missing = simd.load(&Seven([0; 8]));
    for y in 0..4 {
        // No cell can be removed from below the floor.
        let under = bottom < y;
        let empty = if under {
            full_row
        } else {
            !around[y + 1] & full_row
        };
        missing = simd.or(missing, blocked_by(simd, forward, empty, y));
    }
    let mut found = simd.and_not(missing, simd.load(&forward.inside));
    for touch in touches {
        found = simd.and(found, simd.load(touch));
    }
    if simd.non_zero(found) == 0 {
        return;
    }
    found = simd.and(found, back.below.blocked(simd, back.low_bits, &around));
    if simd.non_zero(found) == 0 {
        return;
    }
    let mut stuck = back.before[0].blocked(simd, back.low_bits, &around);
    for k in 1..4 {
        stuck = simd.and(stuck, back.before[k].blocked(simd, back.low_bits, &around));
    }
    let found = simd.store(simd.and_not(stuck, found));
    for (piece, &word) in found.0[..7].iter().enumerate() {
        let mut left = fold(Piece::ALL[piece], word);
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some(well) = remove(search, rows, bottom, piece, bit) {
                out.push(Parent {
                    lines: rows.lines,
                    piece: Piece::ALL[piece],
                    well,
                });
            }
        }
    }
}

/// Merges positions at one height that fill the same cells.
#[inline(always)]
fn fold(piece: Piece, word: u64) -> u64 {
    const LANE: u64 = 0xffff;
    match piece {
        Piece::S | Piece::Z => (word | (word >> 33 & LANE)) & !(LANE << 32),
        Piece::O => (word | word >> 16 | word >> 32 | word >> 48) & LANE,
        Piece::I => (word | (word >> 49 & LANE) << 16) & !(LANE << 48),
        Piece::L | Piece::J | Piece::T => word,
    }
}

/// Removes the piece and returns the resulting well if it may be a parent.
#[inline(always)]
fn remove(
    search: &Search<'_>,
    rows: &Uncleared,
    bottom: usize,
    piece: usize,
    bit: usize,
) -> Option<Well> {
    let offset = SHAPE_BOTTOM + 3 - bottom;
    let shape = &search.forward.shapes[piece][bit][offset..offset + MAX_HEIGHT];
    let mut parent = [0; MAX_HEIGHT];
    let mut filled = 0u32;
    for row in 0..MAX_HEIGHT {
        parent[row] = rows.rows[PAD + row] & !shape[row];
        filled |= u32::from(parent[row] != 0) << row;
    }
    let stack = filled.trailing_ones() as usize;
    if filled >> stack != 0 || stack > search.forward.geometry.height() {
        return None;
    }
    // Number of rows by which the piece lowered the stack.
    let drop = stack.saturating_sub(rows.stack - usize::from(rows.lines));
    if search.worst_piece
        && drop > 0
        && !o_and_i_may_clear(&parent, search.forward.geometry.full_row(), drop)
    {
        return None;
    }
    Some(Well::from_rows(parent))
}

/// Returns whether both O and I, the pieces that fit the fewest gaps, may be able to clear `lines`
/// lines at once. The check is approximate: it may return true even if one of the pieces cannot. It
/// relies on the fact that a piece enters the last gap of a row from above.
#[inline(always)]
fn o_and_i_may_clear(rows: &[u16; MAX_HEIGHT], full_row: u16, lines: usize) -> bool {
    let mut empty = [full_row; MAX_HEIGHT + 2];
    for (empty, row) in empty.iter_mut().zip(rows) {
        *empty = !row & full_row;
    }
    let (mut one_by_o, mut two_by_o, mut by_i) = (false, false, false);
    for row in 0..MAX_HEIGHT {
        let (gap, above) = (empty[row], empty[row + 1]);
        let first = gap & gap.wrapping_neg();
        let open = gap & above;
        let fits_o = gap == first.wrapping_mul(3);
        one_by_o |= fits_o & (open == gap);
        two_by_o |= fits_o & (above == gap) & (empty[row + 2] & gap == gap);
        by_i |= ((gap == first) | (gap == first.wrapping_mul(15))) & (open != 0);
    }
    // The O piece has two rows, so it cannot clear three lines or more. For two lines, test only that I
    // can clear one line, because the test for O already excludes nearly all wells.
    by_i & match lines {
        1 => one_by_o,
        2 => two_by_o,
        _ => false,
    }
}
