//! A search that plays for tetrises (four rows cleared at once). It evaluates boards with
//! [`evaluate_stacking`], and looks ahead at unknown pieces. Lower values are better.

use super::{Search, View, Widths};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{
    Board, Placement, Placements, StackingWeights, Valued, article_transition, evaluate_stacking,
    lines_value,
};

/// Value of a board on which the next piece cannot spawn.
const LOST: f64 = 1e6;

/// Search that tries all placements of the current piece and the next piece. It keeps the best pairs and chooses the pair
/// with the lowest expected value over the unknown pieces. Pairs with equal values keep the order in which they were
/// found.
#[derive(Clone, Debug)]
pub struct Stacking {
    weights: StackingWeights,
    widths: Widths,
    placements: Placements,
    values: Vec<Valued>,
    pairs: Vec<Pair>,
    /// Reusable lists of the best placements, indexed by the number of remaining unknown pieces.
    levels: Vec<Vec<Valued>>,
}

/// A placement of the current piece, followed by a placement of the next piece.
#[derive(Clone, Copy, Debug)]
struct Pair {
    value: f64,
    first: Placement,
    /// Placement of the next piece, if it can spawn.
    second: Option<Placement>,
}

/// Inserts an item into a list of at most `count` items, which is sorted by value.
fn insert<T>(list: &mut Vec<T>, count: usize, item: T, value: impl Fn(&T) -> f64) {
    if list.len() == count && value(&item) >= value(&list[count - 1]) {
        return;
    }
    let at = list.partition_point(|other| value(other) <= value(&item));
    list.insert(at, item);
    list.truncate(count);
}

impl Stacking {
    /// Creates the search. `widths.first` is the number of pairs that it keeps, and `widths.inner` the number of
    /// placements that it tries for each unknown piece except the last one, of which it tries all.
    pub fn new(weights: StackingWeights, widths: Widths) -> Stacking {
        Stacking {
            weights,
            widths,
            placements: Placements::new(),
            values: Vec::new(),
            pairs: Vec::new(),
            levels: vec![Vec::new(); widths.depth + 1],
        }
    }

    fn evaluate(&mut self, board: &Board, piece: Piece) {
        evaluate_stacking(
            board,
            piece,
            &self.weights,
            &mut self.placements,
            &mut self.values,
        );
    }

    /// Collects the best pairs of placements of the current piece and the next piece.
    fn collect_pairs(&mut self, view: &View) {
        let count = match self.widths.depth {
            0 => 1,
            _ => self.widths.first,
        };
        self.pairs.clear();
        let mut placements = Placements::new();
        for &first in placements.find(&view.board, view.current) {
            let locked = view.board.lock(view.current, first);
            let cleared = lines_value(locked.lines, &self.weights);
            self.evaluate(&locked.board, view.next);
            if self.values.is_empty() {
                let pair = Pair {
                    value: cleared + LOST,
                    first,
                    second: None,
                };
                insert(&mut self.pairs, count, pair, |pair| pair.value);
            }
            for valued in &self.values {
                let pair = Pair {
                    value: cleared + valued.value,
                    first,
                    second: Some(valued.placement),
                };
                insert(&mut self.pairs, count, pair, |pair| pair.value);
            }
        }
    }

    /// Returns the expected value of a pair over the unknown pieces.
    fn pair_value(&mut self, view: &View, pair: &Pair) -> f64 {
        let Some(second) = pair.second else {
            return pair.value;
        };
        let first = view.board.lock(view.current, pair.first);
        let second = first.board.lock(view.next, second);
        lines_value(first.lines, &self.weights)
            + lines_value(second.lines, &self.weights)
            + self.expected_value(&second.board, view.next, self.widths.depth)
    }

    /// Returns the expected value of a board over `depth` unknown pieces. `last` is the piece that was placed last.
    fn expected_value(&mut self, board: &Board, last: Piece, depth: usize) -> f64 {
        Piece::ALL.iter().fold(0.0, |sum, &next| {
            sum + article_transition(last, next) * self.piece_value(board, next, depth)
        })
    }

    /// Returns the lowest expected value of a placement of `piece`, the first of `depth` unknown pieces.
    fn piece_value(&mut self, board: &Board, piece: Piece, depth: usize) -> f64 {
        self.evaluate(board, piece);
        if depth == 1 {
            let values = self.values.iter().map(|valued| valued.value);
            return values.reduce(f64::min).unwrap_or(LOST);
        }
        let mut best = std::mem::take(&mut self.levels[depth]);
        best.clear();
        for &valued in &self.values {
            insert(&mut best, self.widths.inner, valued, |valued| valued.value);
        }
        let mut least = LOST;
        for valued in &best {
            let locked = board.lock(piece, valued.placement);
            let value = lines_value(locked.lines, &self.weights)
                + self.expected_value(&locked.board, piece, depth - 1);
            least = least.min(value);
        }
        self.levels[depth] = best;
        least
    }
}

impl Search for Stacking {
    fn choose(&mut self, view: &View) -> Placement {
        self.collect_pairs(view);
        let pairs = std::mem::take(&mut self.pairs);
        let mut best = &pairs[0];
        if self.widths.depth > 0 && pairs.len() > 1 {
            let mut least = self.pair_value(view, best);
            for pair in &pairs[1..] {
                let value = self.pair_value(view, pair);
                if value < least {
                    (least, best) = (value, pair);
                }
            }
        }
        let placement = best.first;
        self.pairs = pairs;
        placement
    }
}
