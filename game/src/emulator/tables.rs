//! The lookup tables of the fast emulator, which contain all data about the pieces in one geometry.
//!
//! A *word* is a set of positions of one piece whose 4×4 boxes are at the same height. It is a
//! `u64` of four 16-bit lanes, one lane per orientation. Bit `x + 2` of a lane represents the box
//! in column `x` (−2 to `width − 2`, so at most 15 columns fit). The keys L and R shift a word by
//! one bit, and U rotates it by 16 bits. A bit that a shift moves into the next lane always hits a
//! wall there: only two orientations of I reach an end of their lanes, and no orientation reaches the
//! adjacent end of the next lane.
//!
//! A row is looked up in two halves. The row blocks the union of the positions that its halves
//! block. In the standard geometry, the two tables of 32 entries fit into the L1 cache. One table of
//! 1,024 entries (480 kB including the copies per piece) would occupy half of the L2 cache. In a
//! benchmark that had a core to itself, the large table was 6 to 10 % faster, but a beam search
//! needs the L2 cache for other data.
//!
//! [`Seven`] contains seven words, one per piece in the order of [`Piece::ALL`], and an empty eighth
//! word. Together, they fill one 512-bit register.

use crate::piece::{Cells, Piece};
use crate::rules::Rules;
use crate::well::{Geometry, MAX_HEIGHT, ROWS_ABOVE_BAR};

/// The words of all pieces at one height. The eighth word is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Seven(pub(crate) [u64; 8]);

impl Seven {
    pub(crate) const ZERO: Seven = Seven([0; 8]);
}

/// Maximum number of columns that fit into a lane.
pub(crate) const MAX_FAST_WIDTH: usize = 15;

/// Number of rows in a [`Shape`].
pub(crate) const SHAPE_ROWS: usize = 40;
/// Index of the bottom row of the box in a [`Shape`].
pub(crate) const SHAPE_BOTTOM: usize = 20;

/// The rows of a piece at one position, bottom row of the box first, padded with empty rows on both
/// sides. A slice of 16 rows (the maximum height of a well) contains the piece as it appears in the
/// well. The start of the slice determines the height of the box.
pub(crate) type Shape = [u16; SHAPE_ROWS];

pub(crate) struct Tables {
    pub(crate) geometry: Geometry,
    /// Maximum supported stack height. Sixteen rows must be enough for all children, including
    /// those that extend above the bar before lines clear.
    pub(crate) max_stack: usize,
    /// Number of bits in the lower half of a row.
    pub(crate) low_bits: u32,
    /// Positions blocked by the filled cells of a row, indexed by the lower half of the row and by
    /// the row's index in the box (0 is the top). Index 0 of every entry also contains the
    /// positions blocked by the walls.
    pub(crate) blocked_low: Box<[[Seven; 4]]>,
    /// Positions blocked by the filled cells of a row, indexed by the upper half of the row and by
    /// the row's index in the box. Positions blocked by the walls are not included.
    pub(crate) blocked_high: Box<[[Seven; 4]]>,
    /// [`Tables::blocked_low`], separated by piece.
    pub(crate) piece_low: [Box<[[u64; 4]]>; 7],
    /// [`Tables::blocked_high`], separated by piece.
    pub(crate) piece_high: [Box<[[u64; 4]]>; 7],
    /// Index of the run of empty cells that a piece must fill to complete a row, or 0 if no piece
    /// can complete the row. Indexed by the cells of the row.
    pub(crate) run: Box<[u8]>,
    /// Positions that fill a run, indexed by the run and by the row of the box that fills it.
    pub(crate) completes: Box<[[Seven; 4]]>,
    /// [`Tables::completes`], separated by piece.
    pub(crate) piece_completes: [Box<[[u64; 4]]>; 7],
    /// The runs that a position of each piece fills, with bit `i` for the run with index `i`.
    pub(crate) piece_runs: [u64; 7],
    /// Positions with a cell above the bar, indexed by the number of box rows above the bar. Such
    /// positions end the game and clear no lines. All words are zero if the rules clear lines above the
    /// bar.
    pub(crate) dead: [Seven; 5],
    /// Positions whose topmost cell is in row `k` of the box or lower, indexed by `k`.
    pub(crate) top_from: [Seven; 4],
    /// Positions inside the walls.
    pub(crate) inside: Seven,
    /// The rows of a piece at a position, indexed by piece and by the position's bit in a word.
    pub(crate) shapes: [Box<[Shape; 64]>; 7],
}

/// Returns the positions for which `wanted` returns true. Each cell passed to `wanted` is a column
/// of the well and a row of the box. Positions outside the walls are never included.
pub(crate) fn seven(geometry: Geometry, wanted: impl Fn(Piece, &[(i32, i32); 4]) -> bool) -> Seven {
    let mut words = Seven::ZERO;
    for_each_position(geometry, |piece, bit, cells| {
        words.0[piece.index()] |= u64::from(wanted(piece, cells)) << bit;
    });
    words
}

/// Calls `visit` for every position inside the walls with its piece, its bit in the word, and its
/// cells (column of the well, row of the box).
pub(crate) fn for_each_position(
    geometry: Geometry,
    mut visit: impl FnMut(Piece, u32, &[(i32, i32); 4]),
) {
    let width = geometry.width() as i32;
    for piece in Piece::ALL {
        for orientation in 0..4 {
            for x in -2..=width - 2 {
                let cells: &Cells = piece.cells(orientation);
                let cells = cells.map(|(cx, cy)| (x + i32::from(cx), i32::from(cy)));
                if cells.iter().all(|(column, _)| (0..width).contains(column)) {
                    visit(piece, u32::from(orientation) * 16 + (x + 2) as u32, &cells);
                }
            }
        }
    }
}

/// Returns the number of bits in the lower half of a row.
pub(crate) fn low_bits(geometry: Geometry) -> u32 {
    geometry.width().div_ceil(2) as u32
}

impl Tables {
    /// Creates the tables for a geometry, or returns `None` if the fast emulator does not support
    /// it.
    pub(crate) fn new(geometry: Geometry, rules: Rules) -> Option<Tables> {
        if !(5..=MAX_FAST_WIDTH).contains(&geometry.width()) {
            // In four columns, the I piece can fill an empty row. The fast emulator assumes that no
            // piece can. Sixteen columns do not fit into a lane.
            return None;
        }
        let (width, height) = (geometry.width() as u32, geometry.height());
        let low_bits = low_bits(geometry);
        let walls = seven(geometry, |_, _| true).0.map(|inside| !inside);
        let blocked = |value: usize, shift: u32| -> [Seven; 4] {
            let bits = value << shift;
            std::array::from_fn(|row| {
                seven(geometry, |_, cells| {
                    cells
                        .iter()
                        .any(|&(x, y)| y == row as i32 && bits >> x & 1 == 1)
                })
            })
        };
        let mut blocked_low: Box<[_]> = (0..1 << low_bits).map(|value| blocked(value, 0)).collect();
        let blocked_high: Box<[_]> = (0..1 << (width - low_bits))
            .map(|value| blocked(value, low_bits))
            .collect();
        for entry in &mut blocked_low {
            for (word, wall) in entry[0].0.iter_mut().zip(walls).take(7) {
                *word |= wall;
            }
        }
        let (run, completes) = runs(geometry);
        let piece_completes = by_piece(&completes);
        let top = |cells: &[(i32, i32); 4]| cells.iter().map(|&(_, y)| y).min().unwrap_or(0);
        let dead = |rows: i32| {
            seven(geometry, |_, cells| {
                !rules.clear_above_bar && top(cells) < rows
            })
        };
        Some(Tables {
            geometry,
            max_stack: if rules.clear_above_bar && height + ROWS_ABOVE_BAR > MAX_HEIGHT {
                height.saturating_sub(ROWS_ABOVE_BAR)
            } else {
                height
            },
            low_bits,
            piece_low: by_piece(&blocked_low),
            piece_high: by_piece(&blocked_high),
            blocked_low,
            blocked_high,
            run,
            piece_runs: std::array::from_fn(|piece| filled_runs(&piece_completes[piece])),
            piece_completes,
            completes,
            dead: std::array::from_fn(|rows| dead(rows as i32)),
            top_from: std::array::from_fn(|k| seven(geometry, |_, cells| top(cells) >= k as i32)),
            inside: seven(geometry, |_, _| true),
            shapes: shapes(geometry),
        })
    }

    /// Splits a row into its lower half and its upper half.
    #[inline(always)]
    pub(crate) fn split(&self, row: u16) -> (usize, usize) {
        (
            usize::from(row) & ((1 << self.low_bits) - 1),
            usize::from(row >> self.low_bits),
        )
    }
}

/// Returns [`Tables::run`] and [`Tables::completes`]. A run is one to four adjacent empty cells. Run
/// indices start at 1. With 15 columns, there are 54 runs.
fn runs(geometry: Geometry) -> (Box<[u8]>, Box<[[Seven; 4]]>) {
    let mut run_of = vec![0; 1 << geometry.width()];
    let mut completes = vec![[Seven::ZERO; 4]];
    for length in 1..=4 {
        for start in 0..=geometry.width() - length {
            let empties = ((1u16 << length) - 1) << start;
            run_of[usize::from(geometry.full_row() & !empties)] = completes.len() as u8;
            completes.push(std::array::from_fn(|row| {
                seven(geometry, |_, cells| {
                    let in_row = cells.iter().filter(|&&(_, y)| y == row as i32);
                    in_row.fold(0, |bits, &(x, _)| bits | 1 << x) == empties
                })
            }));
        }
    }
    (run_of.into(), completes.into())
}

/// Returns the runs that a piece fills, as bits. There are at most 58 runs, for 16 columns.
fn filled_runs(completes: &[[u64; 4]]) -> u64 {
    let runs = completes.iter().enumerate();
    let filled = runs.filter(|(_, positions)| **positions != [0; 4]);
    filled.fold(0, |bits, (run, _)| bits | 1 << run)
}

fn by_piece(entries: &[[Seven; 4]]) -> [Box<[[u64; 4]]>; 7] {
    std::array::from_fn(|piece| {
        entries
            .iter()
            .map(|entry| entry.map(|words| words.0[piece]))
            .collect()
    })
}

fn shapes(geometry: Geometry) -> [Box<[Shape; 64]>; 7] {
    let mut shapes: [Box<[Shape; 64]>; 7] =
        std::array::from_fn(|_| Box::new([[0; SHAPE_ROWS]; 64]));
    for_each_position(geometry, |piece, bit, cells| {
        for &(x, y) in cells {
            shapes[piece.index()][bit as usize][SHAPE_BOTTOM + 3 - y as usize] |= 1 << x;
        }
    });
    shapes
}
