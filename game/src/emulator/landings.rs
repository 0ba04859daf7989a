//! The landings of one piece: all positions in which it can be locked. Levels are defined in
//! [`super::core`].

use super::core::{FirstLevels, Rows, blocked_piece};
use super::simd::{Levels, Simd, spread};
use super::tables::{Seven, Tables};
use crate::piece::Piece;
use crate::well::Well;

/// All landings of one piece.
pub(super) struct Landings {
    pub(super) words: Levels,
    /// Number of levels in use.
    pub(super) levels: usize,
}

impl Landings {
    /// Finds the landings of one piece, starting from the results for the first levels. Returns no
    /// landings if `WANTED` is false.
    #[inline(always)]
    pub(super) fn from_first_levels<const WANTED: bool>(
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
    pub(super) fn new(tables: &Tables, rows: &Rows, piece: usize) -> Landings {
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
    pub(super) fn of_piece(words: &[Seven], piece: usize, stack: usize) -> Landings {
        let mut landings = Landings {
            words: [0; 24],
            levels: words.len().min(stack + 4),
        };
        for (word, level) in landings.words.iter_mut().zip(words) {
            *word = level.0[piece];
        }
        landings
    }

    /// Finds the landings at level `self.levels` and all further levels. `reached` contains the
    /// positions at that level that are reachable from above, and `blocked` contains the positions
    /// that are blocked there.
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
            reached = spread_free(reached, blocked);
            blocked = blocked_piece(tables, piece, rows, self.levels + 1);
            self.words[self.levels] = reached & blocked;
            reached &= !blocked;
            self.levels += 1;
        }
    }

    /// Returns whether a landing at level 4 or a greater level clears a line.
    #[inline(always)]
    pub(super) fn clears_deep(&self, tables: &Tables, piece: usize, rows: &Rows) -> bool {
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
    pub(super) fn fold(&mut self, piece: usize) {
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

/// Returns the positions of a level that L, R and U reach from `reached`, including these. `blocked` contains the
/// positions that are blocked.
#[inline(always)]
pub(super) fn spread_free(mut reached: u64, blocked: u64) -> u64 {
    // Two steps per test cause fewer unpredictable branches than one. A well from random
    // play takes 90 ns, compared with 102 ns for one step and 92 ns for three. In
    // `super::core::down`, a second step does not help.
    loop {
        let once = spread(reached) & !blocked;
        let more = spread(once) & !blocked;
        reached = more;
        if more == once {
            return reached;
        }
    }
}

/// Returns the maximum number of rows by which a piece can lower the stack. The result is negative if
/// every lock raises the stack.
pub(super) fn best_drop(tables: &Tables, rows: &Rows, piece: usize) -> i32 {
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
