//! The search with branching, from the article that also published the search in `bfs.rs`. It tries the best placements of the
//! current piece and the next piece, and then the best placements of each possible further piece. Lower
//! values are better.

use super::bfs::LOST;
use super::{Search, View};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{
    ARTICLE_ORDER, BestPlacements, Board, Numbering, Placement, Rows, TETRIS, Transitions, Valued,
    Weights,
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

/// Search that first selects the best placements of the current piece by value, and then evaluates them in this order
/// with an expectimax search over the next piece and the unknown pieces. It chooses the placement with the lowest
/// result. If it reaches a placement that clears four rows (a tetris), it chooses this placement immediately.
#[derive(Clone, Debug)]
pub struct Branching {
    /// Probabilities of the current move's unknown pieces.
    transitions: &'static Transitions,
    widths: Widths,
    numbering: Numbering,
    values: Vec<Valued>,
    best: BestPlacements,
    /// The last leaves with each hash of the board. A search often reaches a board again with pieces in another order.
    known_leaves: Vec<Option<KnownLeaves>>,
    /// Whether the values of leaves are exact.
    is_exact: bool,
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

/// The best placement of the last piece of the search.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    /// Value of the placement, or `None` if the piece cannot spawn.
    value: Option<f64>,
    is_tetris: bool,
}

/// Number of boards whose leaves are remembered. A search with the article's widths reaches 525 boards.
const KNOWN_LEAVES: usize = 1 << 10;

/// The leaves on a board for each piece.
#[derive(Clone, Copy, Debug)]
struct KnownLeaves {
    board: Board,
    is_exact: bool,
    leaves: [Leaf; 7],
}

impl Leaf {
    /// Returns the value plus the bonus for `tetrises` earlier tetrises. If the placement itself is a tetris, its own bonus
    /// is not included. The bonus is negative.
    fn value(self, tetrises: u32) -> f64 {
        let offset = if self.is_tetris { -TETRIS } else { 0.0 };
        self.value
            .map_or(LOST, |value| value + offset + f64::from(tetrises) * TETRIS)
    }
}

impl Branching {
    /// Creates the search for boards with these rows.
    pub fn new(rows: Rows, weights: Weights, widths: Widths) -> Branching {
        Branching {
            transitions: Transitions::ARTICLE,
            widths,
            numbering: Numbering::new(rows),
            values: Vec::new(),
            best: BestPlacements::new(rows, weights),
            known_leaves: vec![None; KNOWN_LEAVES],
            is_exact: true,
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
        self.best.candidates(board, piece, count, &mut self.values);
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
            return self.leaves(board)[piece.index()].value(tetrises);
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

    /// Returns the leaves on a board for each piece.
    fn leaves(&mut self, board: &Board) -> [Leaf; 7] {
        let slot = (board.hash() >> (64 - KNOWN_LEAVES.ilog2())) as usize;
        match &self.known_leaves[slot] {
            Some(known) if known.board == *board && known.is_exact == self.is_exact => known.leaves,
            _ => {
                let leaves = self.find_leaves(board);
                self.known_leaves[slot] = Some(KnownLeaves {
                    board: *board,
                    is_exact: self.is_exact,
                    leaves,
                });
                leaves
            }
        }
    }

    fn find_leaves(&mut self, board: &Board) -> [Leaf; 7] {
        // A placement that is a tetris always has a value this low.
        let is_low = |value: f64| value < TETRIS / 2.0;
        if self.is_exact {
            let best = self.best.of_each_piece(board);
            Piece::ALL.map(|piece| {
                let best = best[piece.index()];
                let is_tetris = best.is_some_and(|best| {
                    is_low(best.value) && board.lock(piece, best.placement).lines == 4
                });
                Leaf {
                    value: best.map(|best| best.value),
                    is_tetris,
                }
            })
        } else {
            self.best.least_values(board).map(|value| Leaf {
                value,
                is_tetris: value.is_some_and(is_low),
            })
        }
    }

    /// Returns the values of placements of the current piece.
    fn evaluate(&mut self, view: &View, candidates: &[Candidate], is_exact: bool) -> Vec<f64> {
        self.is_exact = is_exact;
        let value = |candidate: &Candidate| {
            let locked = view.board.lock(view.current, candidate.placement);
            self.piece_value(&locked.board, view.next, self.widths.depth, 0)
        };
        candidates.iter().map(value).collect()
    }

    /// Returns the expected value of a board over all possible next pieces. `last` is the piece that was placed last.
    fn expected_value(&mut self, board: &Board, last: Piece, depth: usize, tetrises: u32) -> f64 {
        let leaves = (depth == 0).then(|| self.leaves(board));
        ARTICLE_ORDER.iter().fold(0.0, |sum, &next| {
            let value = match &leaves {
                Some(leaves) => leaves[next.index()].value(tetrises),
                None => self.piece_value(board, next, depth, tetrises),
            };
            sum + self.transitions.probability(last, next) * value
        })
    }
}

impl Search for Branching {
    fn choose(&mut self, view: &View) -> Placement {
        self.transitions = view.transitions;
        let mut candidates = Vec::new();
        let (board, first) = (&view.board, self.widths.first);
        self.collect_best(board, view.current, first, &mut candidates);
        for candidate in &candidates {
            if board.lock(view.current, candidate.placement).lines == 4 {
                return candidate.placement;
            }
        }
        // Approximate values usually suffice, because the values of the candidates differ by more than the error. The
        // factor is generous: the error of an expected value is at most that of a leaf.
        let is_decided = |values: &[f64], error: f64| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let near = values.iter().filter(|&&value| value <= least + 4.0 * error);
            near.count() == 1
        };
        let approximate = self
            .best
            .error()
            .map(|error| (self.evaluate(view, &candidates, false), error));
        let values = match approximate {
            Some((values, error)) if is_decided(&values, error) => values,
            _ => self.evaluate(view, &candidates, true),
        };
        let mut best: Option<(f64, u16, Placement)> = None;
        for (candidate, &value) in candidates.iter().zip(&values) {
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
