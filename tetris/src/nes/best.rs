//! The best placements. Estimates exclude most placements, so only a few need an exact evaluation.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::board::{Board, Rows, WIDTH};
use super::estimate::{
    BoardEstimate, CLEARS, Columns, LANES, LEAST_NONE, Lanes, MARGIN, MIN_SCALE, NONE, WALLS,
};
use super::features::{Weights, lock_height};
use super::placements::{Placement, Rests};
use super::shapes::{column_shape, orientations};
use crate::Piece;

/// Whether estimates are computed. Otherwise they are 0, so every placement is evaluated exactly: without vector registers,
/// estimates save little time, and they would add 30 kB to the web pages.
const ESTIMATES: bool = !cfg!(target_arch = "wasm32");

/// Placements of a piece with one orientation, at most one for each leftmost column.
#[derive(Clone, Copy, Debug)]
struct Round {
    orientation: u8,
    /// Row of the highest cell of each placement, counted from the highest row of the board.
    rows: Lanes<u32>,
    estimates: Lanes<i32>,
    /// Minimum of the estimates.
    least: i32,
}

#[cfg_attr(target_arch = "x86_64", inline(always))]
fn minimum(estimates: &Lanes<i32>) -> i32 {
    estimates
        .iter()
        .fold(NONE, |least, &estimate| least.min(estimate))
}

/// A placement and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Valued {
    /// The placement.
    pub placement: Placement,
    /// Value of the placement; lower is better.
    pub value: f64,
}

/// Finds the best placement of each piece with one set of weights.
#[derive(Clone, Debug)]
pub struct BestPlacements {
    columns: Columns,
    board: BoardEstimate,
    rounds: Vec<Round>,
    /// Lowest estimates, in ascending order.
    lowest: Vec<i32>,
}

impl BestPlacements {
    /// Prepares the evaluation of boards with a rule set.
    pub fn new(rows: Rows, weights: Weights) -> BestPlacements {
        BestPlacements {
            columns: Columns::new(rows, &weights),
            board: BoardEstimate::new(rows),
            rounds: Vec::new(),
            lowest: Vec::new(),
        }
    }

    /// Returns the placement with the lowest value for each piece, in the order of [`Piece::ALL`], or `None` for a piece
    /// that cannot spawn. If several placements have this value, returns the first of them.
    ///
    /// # Panics
    /// Panics if the board has another rule set.
    pub fn of_each_piece(&mut self, board: &Board) -> [Option<Valued>; 7] {
        assert!(board.rows == self.board.rule_set, "other rule set");
        #[cfg(target_arch = "x86_64")]
        if avx2::available() {
            return avx2::of_each_piece(self, board);
        }
        self.of_each_piece_inline(board)
    }

    /// Returns the bound of the error of [`BestPlacements::least_values`]. Returns `None` if these values are exact, because
    /// the weights are too large or too small for estimates.
    #[inline]
    pub fn error(&self) -> Option<f64> {
        (ESTIMATES && self.columns.scale > MIN_SCALE)
            .then(|| f64::from(MARGIN) / self.columns.scale)
    }

    /// Returns the approximate value of the best placement of each piece, like [`BestPlacements::of_each_piece`]. The
    /// values of placements that clear rows are exact. This takes less time.
    ///
    /// # Panics
    /// Panics if the board has another rule set.
    pub fn least_values(&mut self, board: &Board) -> [Option<f64>; 7] {
        assert!(board.rows == self.board.rule_set, "other rule set");
        if self.error().is_none() {
            return self.of_each_piece(board).map(|best| Some(best?.value));
        }
        #[cfg(target_arch = "x86_64")]
        if avx2::available() {
            return avx2::least_values(self, board);
        }
        self.least_values_inline(board)
    }

    /// Writes some placements of a piece and their values to `values`. The `count` best placements are among them.
    ///
    /// # Panics
    /// Panics if the board has another rule set.
    pub fn candidates(
        &mut self,
        board: &Board,
        piece: Piece,
        count: usize,
        values: &mut Vec<Valued>,
    ) {
        assert!(board.rows == self.board.rule_set, "other rule set");
        values.clear();
        #[cfg(target_arch = "x86_64")]
        if avx2::available() {
            return avx2::candidates(self, board, piece, count, values);
        }
        self.candidates_inline(board, piece, count, values);
    }

    /// Implements [`BestPlacements::of_each_piece`]. The function is inlined, so it is compiled for the caller's
    /// instruction sets.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn of_each_piece_inline(&mut self, board: &Board) -> [Option<Valued>; 7] {
        self.prepare(board);
        let mut best = [None; 7];
        for (best, piece) in best.iter_mut().zip(Piece::ALL) {
            let limit = self.estimate(board, piece) + MARGIN;
            self.evaluate_up_to(limit, piece, |valued| {
                let is_better = best.is_none_or(|best: Valued| {
                    valued.value < best.value
                        || valued.value == best.value && valued.placement < best.placement
                });
                if is_better {
                    *best = Some(valued);
                }
            });
        }
        best
    }

    /// Implements [`BestPlacements::least_values`] in the same way.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn least_values_inline(&mut self, board: &Board) -> [Option<f64>; 7] {
        self.prepare(board);
        let mut least = [None; 7];
        for (least, piece) in least.iter_mut().zip(Piece::ALL) {
            let estimate = self.estimate(board, piece);
            if estimate < LEAST_NONE {
                *least = Some(f64::from(estimate + self.columns.constant) / self.columns.scale);
            }
            self.evaluate_up_to(CLEARS, piece, |valued| {
                *least = Some(least.map_or(valued.value, |least: f64| least.min(valued.value)));
            });
        }
        least
    }

    /// Implements [`BestPlacements::candidates`] in the same way.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn candidates_inline(
        &mut self,
        board: &Board,
        piece: Piece,
        count: usize,
        values: &mut Vec<Valued>,
    ) {
        self.prepare(board);
        self.estimate(board, piece);
        self.lowest.clear();
        for round in &self.rounds {
            for &estimate in &round.estimates {
                let at = self.lowest.partition_point(|&lower| lower <= estimate);
                if at < count && estimate != NONE && estimate != CLEARS {
                    self.lowest.truncate(count - 1);
                    self.lowest.insert(at, estimate);
                }
            }
        }
        let last = self
            .lowest
            .get(count - 1)
            .map_or(NONE - 1, |&last| last + MARGIN);
        self.evaluate_up_to(last, piece, |valued| values.push(valued));
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn prepare(&mut self, board: &Board) {
        self.board.set_columns(board);
        if ESTIMATES {
            self.board.fill_parts(&mut self.columns);
        }
    }

    /// Estimates the placements of a piece. Returns the least estimate.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn estimate(&mut self, board: &Board, piece: Piece) -> i32 {
        let rests = Rests::of(board, piece);
        self.rounds.clear();
        let mut least = [LEAST_NONE; LANES];
        for orientation in 0..orientations(piece).len() {
            let shape = column_shape(piece, orientation as u8);
            // The positions of the piece's centre, by leftmost column.
            let mut left = [0; LANES];
            let last = WIDTH - usize::from(shape.width);
            for (x, rows) in left.iter_mut().enumerate().take(last + 1) {
                let centre = (x as i32 - i32::from(shape.left)) as usize % WIDTH;
                *rows = rests.rows(orientation, centre);
            }
            while left != [0; LANES] {
                let mut rows = [0; LANES];
                let mut exists = [false; LANES];
                for lane in 0..WIDTH {
                    exists[lane] = left[lane] != 0;
                    let row = left[lane].trailing_zeros() as i32 + i32::from(shape.top);
                    rows[lane] = if exists[lane] { row as u32 } else { 0 };
                    left[lane] &= left[lane].wrapping_sub(1);
                }
                let (board, columns) = (&self.board, &mut self.columns);
                let mut estimates = [0; LANES];
                let found = &mut estimates;
                match shape.width {
                    _ if !ESTIMATES => {}
                    1 => board.estimate::<1, 16>(columns, shape, &rows, found),
                    2 => board.estimate::<2, 16>(columns, shape, &rows, found),
                    3 => board.estimate::<3, 8>(columns, shape, &rows, found),
                    _ => board.estimate::<4, 8>(columns, shape, &rows, found),
                }
                for lane in 0..LANES {
                    estimates[lane] = if exists[lane] { estimates[lane] } else { NONE };
                    let bound = if estimates[lane] == CLEARS {
                        NONE
                    } else {
                        estimates[lane]
                    };
                    least[lane] = least[lane].min(bound);
                }
                self.rounds.push(Round {
                    orientation: orientation as u8,
                    rows,
                    least: minimum(&estimates),
                    estimates,
                });
            }
        }
        minimum(&least)
    }

    /// Evaluates the placements with estimates up to `limit`.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn evaluate_up_to(&mut self, limit: i32, piece: Piece, mut visit: impl FnMut(Valued)) {
        for index in 0..self.rounds.len() {
            if self.rounds[index].least > limit {
                continue;
            }
            let mut chosen = 0u32;
            for lane in 0..LANES {
                let is_chosen = self.rounds[index].estimates[lane] <= limit;
                chosen |= u32::from(is_chosen) << lane;
            }
            while chosen != 0 {
                let lane = chosen.trailing_zeros() as usize;
                chosen &= chosen - 1;
                let Round {
                    orientation, rows, ..
                } = self.rounds[index];
                visit(self.valued(piece, orientation, lane, rows[lane]));
            }
        }
    }

    /// Evaluates a placement.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn valued(&mut self, piece: Piece, orientation: u8, left: usize, row: u32) -> Valued {
        let shape = column_shape(piece, orientation);
        let mut bits = [0; WIDTH];
        bits.copy_from_slice(&self.board.bits[WALLS..WALLS + WIDTH]);
        for dx in 0..usize::from(shape.width) {
            bits[left + dx] |= u32::from(shape.masks[dx]) << row >> self.board.shift;
        }
        let mut full = bits[0];
        for &column in &bits[1..] {
            full &= column;
        }
        let mut rest = full;
        while rest != 0 {
            let above = (rest & rest.wrapping_neg()) - 1;
            rest &= rest - 1;
            for column in &mut bits {
                *column = *column & !(above << 1 | 1) | (*column & above) << 1;
            }
        }
        let above = self.board.rule_set.above() as i32;
        let placement = Placement {
            orientation,
            x: left as i8 - shape.left,
            y: (row as i32 - i32::from(shape.top) - above) as i8,
        };
        let mut features = self.columns.features(&bits);
        features.0[0] = full.count_ones() as i32;
        features.0[1] = lock_height(placement, shape.bottom);
        Valued {
            placement,
            value: features.value(&self.columns.exact_weights),
        }
    }
}
