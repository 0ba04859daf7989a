//! The search with branching, from the article that also published the search in `bfs.rs`. It tries the best placements of the
//! current piece and the next piece, and then the best placements of each possible further piece. Lower
//! values are better.

use super::bfs::{LOST, TETRIS};
use super::{Search, View};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{
    Board, Numbering, Placement, Placements, Rows, Valued, Weights, article_transition,
    best_of_each_piece, evaluate_all,
};
use std::str::FromStr;
use thiserror::Error;

/// Widths of the search (numbers of placements that it tries for a piece), and its depth (number of unknown pieces).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Number of placements of the current piece.
    pub first: usize,
    /// Number of placements of the next piece and of each unknown piece.
    pub inner: usize,
    /// Number of unknown pieces after the next piece.
    pub depth: usize,
}

impl Widths {
    /// Widths of the search that produced the article's results.
    pub const ARTICLE: Widths = Widths {
        first: 3,
        inner: 5,
        depth: 2,
    };
    /// Default widths of [`Learned`](super::Learned).
    pub const LEARNED: Widths = Widths {
        first: 5,
        inner: 2,
        depth: 2,
    };
}

/// Error for text that does not describe widths.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` does not describe widths: write FIRST/INNER/DEPTH, such as 3/5/2, with positive widths and a depth of at most 4"
)]
pub struct WidthsError(String);

impl FromStr for Widths {
    type Err = WidthsError;

    /// Parses widths such as `3/5/2`.
    fn from_str(text: &str) -> Result<Widths, WidthsError> {
        let numbers: Option<Vec<usize>> = text.split('/').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[first, inner, depth]) if first > 0 && inner > 0 && depth <= 4 => Ok(Widths {
                first,
                inner,
                depth,
            }),
            _ => Err(WidthsError(text.to_owned())),
        }
    }
}

/// Order in which the article's program adds up the values of the pieces. The order affects rounding.
const SUM_ORDER: [Piece; 7] = [
    Piece::I,
    Piece::L,
    Piece::J,
    Piece::T,
    Piece::Z,
    Piece::S,
    Piece::O,
];

/// Search that first selects the best placements of the current piece by value, and then evaluates them in this order
/// with an expectimax search over the next piece and the unknown pieces. It chooses the placement with the lowest
/// result. If it reaches a placement that clears four rows (a tetris), it chooses this placement immediately.
#[derive(Clone, Debug)]
pub struct Branching {
    weights: Weights,
    widths: Widths,
    numbering: Numbering,
    placements: Placements,
    values: Vec<Valued>,
    /// Reusable lists of the best placements, indexed by the number of remaining unknown pieces.
    levels: Vec<Vec<Candidate>>,
}

/// A placement that the search tries.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    value: f64,
    number: u16,
    placement: Placement,
}

impl Branching {
    /// Creates the search for boards with these rows.
    pub fn new(rows: Rows, weights: Weights, widths: Widths) -> Branching {
        Branching {
            weights,
            widths,
            numbering: Numbering::new(rows),
            placements: Placements::new(),
            values: Vec::new(),
            levels: vec![Vec::new(); widths.depth + 2],
        }
    }

    /// Writes the best `count` placements of a piece to `best`, best first.
    fn collect_best(
        &mut self,
        board: &Board,
        piece: Piece,
        count: usize,
        best: &mut Vec<Candidate>,
    ) {
        evaluate_all(
            board,
            piece,
            &self.weights,
            &mut self.placements,
            &mut self.values,
        );
        best.clear();
        for valued in &self.values {
            if best.len() == count && valued.value > best[count - 1].value {
                continue;
            }
            let candidate = Candidate {
                value: valued.value,
                number: self.numbering.number(piece, valued.placement),
                placement: valued.placement,
            };
            let key = |candidate: &Candidate| (candidate.value, candidate.number);
            let at = best.partition_point(|other| key(other) < key(&candidate));
            if at < count {
                best.insert(at, candidate);
                best.truncate(count);
            }
        }
    }

    /// Returns the expected value of a board on which `piece` is placed next, followed by `depth` unknown pieces.
    /// `tetrises` is the number of tetrises since the position in which the search began.
    fn piece_value(&mut self, board: &Board, piece: Piece, depth: usize, tetrises: u32) -> f64 {
        if depth == 0 {
            let (placements, values) = (&mut self.placements, &mut self.values);
            evaluate_all(board, piece, &self.weights, placements, values);
            let best = values.iter().min_by(|a, b| a.value.total_cmp(&b.value));
            return leaf_value(board, piece, best.copied(), tetrises);
        }
        let mut best = std::mem::take(&mut self.levels[depth]);
        self.collect_best(board, piece, self.widths.inner, &mut best);
        let mut least = None;
        for candidate in &best {
            let locked = board.lock(piece, candidate.placement);
            let tetris = u32::from(locked.lines == 4);
            let value = self.expected_value(&locked.board, piece, depth - 1, tetrises + tetris);
            least = Some(least.map_or(value, |least: f64| least.min(value)));
            if tetris == 1 {
                break;
            }
        }
        self.levels[depth] = best;
        least.unwrap_or(LOST)
    }

    /// Returns the expected value of a board over all possible next pieces. `last` is the piece that was placed last.
    fn expected_value(&mut self, board: &Board, last: Piece, depth: usize, tetrises: u32) -> f64 {
        let leaves = (depth == 0).then(|| {
            let (placements, values) = (&mut self.placements, &mut self.values);
            best_of_each_piece(board, &self.weights, placements, values)
        });
        SUM_ORDER.iter().fold(0.0, |sum, &next| {
            let value = match &leaves {
                Some(best) => leaf_value(board, next, best[next.index()], tetrises),
                None => self.piece_value(board, next, depth, tetrises),
            };
            sum + article_transition(last, next) * value
        })
    }
}

/// Returns the value of the best placement of `piece`, the last piece of the search, plus the bonus for `tetrises` earlier
/// tetrises. If this placement is a tetris, its own bonus is not included. The bonus is negative.
fn leaf_value(board: &Board, piece: Piece, best: Option<Valued>, tetrises: u32) -> f64 {
    let Some(best) = best else {
        return LOST;
    };
    // A placement that is a tetris always has a value this low. Checking the value first avoids locking the piece in
    // most cases.
    let is_tetris = best.value < TETRIS / 2.0 && board.lock(piece, best.placement).lines == 4;
    let offset = if is_tetris { -TETRIS } else { 0.0 };
    best.value + offset + f64::from(tetrises) * TETRIS
}

impl Search for Branching {
    fn choose(&mut self, view: &View) -> Placement {
        let mut candidates = Vec::new();
        self.collect_best(
            &view.board,
            view.current,
            self.widths.first,
            &mut candidates,
        );
        let mut best: Option<(f64, u16, Placement)> = None;
        for candidate in &candidates {
            let locked = view.board.lock(view.current, candidate.placement);
            if locked.lines == 4 {
                return candidate.placement;
            }
            let value = self.piece_value(&locked.board, view.next, self.widths.depth, 0);
            let is_better = best.is_none_or(|(best_value, best_number, _)| {
                value < best_value || value == best_value && candidate.number < best_number
            });
            if is_better {
                best = Some((value, candidate.number, candidate.placement));
            }
        }
        best.expect("the current piece can spawn and has a placement")
            .2
    }
}
