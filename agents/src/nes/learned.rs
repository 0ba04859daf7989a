//! A search that evaluates boards with learned weights, and looks ahead at unknown pieces. Lower values are better.

use super::{Search, View, Widths};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{
    Board, PATTERN_WEIGHTS, Placement, Placements, Transitions, Valued, discounted,
    evaluate_patterns,
};
use std::sync::{Arc, LazyLock};

/// File with the weights that are part of the program. `docs/games.md` has the command that learned them.
const BUILT_IN: &[u8] = include_bytes!("patterns.bin");
/// First bytes of a file with weights, before [`PATTERN_VERSION`], the number of weights and the weights.
pub(crate) const MAGIC: [u8; 8] = *b"HBNESPAT";
/// Version of files with weights. It increases if the format or [`patterns`](hatebeam_tetris::nes::patterns) changes.
pub(super) const PATTERN_VERSION: u32 = 1;
/// Number of bytes before the weights.
const HEADER: usize = 16;

/// Returns the weights that are part of the program.
pub fn built_in_patterns() -> Arc<[f32]> {
    static WEIGHTS: LazyLock<Arc<[f32]>> = LazyLock::new(|| {
        let weights = read_patterns(BUILT_IN).expect("the built-in file has the current format");
        Arc::from(weights)
    });
    Arc::clone(&WEIGHTS)
}

/// Returns the contents of a file with weights. Each weight is rounded to a whole number of points.
pub fn write_patterns(weights: &[f32]) -> Vec<u8> {
    let mut bytes = header(MAGIC, PATTERN_VERSION);
    for weight in weights {
        bytes.extend((weight.round_ties_even() as i16).to_le_bytes());
    }
    bytes
}

/// Reads the contents of a file with weights. Returns `None` if it has another format or version.
pub fn read_patterns(bytes: &[u8]) -> Option<Vec<f32>> {
    let bytes = bytes.strip_prefix(header(MAGIC, PATTERN_VERSION).as_slice())?;
    let (weights, rest) = bytes.as_chunks::<2>();
    let is_complete = weights.len() == PATTERN_WEIGHTS && rest.is_empty();
    let weight = |&bytes: &[u8; 2]| f32::from(i16::from_le_bytes(bytes));
    is_complete.then(|| weights.iter().map(weight).collect())
}

/// Returns the first bytes of a file: its kind, its version and the number of weights.
pub(super) fn header(magic: [u8; 8], version: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend(magic);
    bytes.extend(version.to_le_bytes());
    bytes.extend((PATTERN_WEIGHTS as u32).to_le_bytes());
    bytes
}

/// Value of a board on which the next piece cannot spawn.
const LOST: f64 = 0.0;

/// Search that tries all placements of the current piece and the next piece. It keeps the best pairs and chooses the pair
/// with the lowest expected value over the unknown pieces. Pairs with equal values keep the order in which they were
/// found.
#[derive(Clone, Debug)]
pub struct Learned {
    weights: Arc<[f32]>,
    /// Probabilities of the current move's unknown pieces.
    transitions: &'static Transitions,
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

/// Returns the value of a move that clears `lines` rows, where `rest` is the value of the moves after it.
fn combine(lines: u8, rest: f64) -> f64 {
    -discounted(lines, -rest)
}

impl Learned {
    /// Creates the search. `widths.first` is the number of pairs that it keeps, and `widths.inner` the number of
    /// placements that it tries for each unknown piece except the last one, of which it tries all.
    pub fn new(weights: Arc<[f32]>, widths: Widths) -> Learned {
        Learned {
            weights,
            transitions: Transitions::ARTICLE,
            widths,
            placements: Placements::new(),
            values: Vec::new(),
            pairs: Vec::new(),
            levels: vec![Vec::new(); widths.depth + 1],
        }
    }

    fn evaluate(&mut self, board: &Board, piece: Piece) {
        let (placements, values) = (&mut self.placements, &mut self.values);
        evaluate_patterns(board, piece, &self.weights, placements, values);
    }

    /// Collects the best `count` pairs of placements of the current piece and the next piece.
    fn collect_pairs(&mut self, view: &View, count: usize) {
        self.pairs.clear();
        let mut placements = Placements::new();
        for &first in placements.find(&view.board, view.current) {
            let locked = view.board.lock(view.current, first);
            self.evaluate(&locked.board, view.next);
            let lost = self.values.is_empty().then_some((LOST, None));
            let values = self
                .values
                .iter()
                .map(|valued| (valued.value, Some(valued.placement)));
            for (value, second) in values.chain(lost) {
                let value = combine(locked.lines, value);
                let pair = Pair {
                    value,
                    first,
                    second,
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
        let rest = self.expected_value(&second.board, view.next, self.widths.depth);
        let rest = combine(second.lines, rest);
        combine(first.lines, rest)
    }

    /// Returns the expected value of a board over `depth` unknown pieces. `last` is the piece that was placed last.
    fn expected_value(&mut self, board: &Board, last: Piece, depth: usize) -> f64 {
        Piece::ALL.iter().fold(0.0, |sum, &next| {
            sum + self.transitions.probability(last, next) * self.piece_value(board, next, depth)
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
            let rest = self.expected_value(&locked.board, piece, depth - 1);
            let value = combine(locked.lines, rest);
            least = least.min(value);
        }
        self.levels[depth] = best;
        least
    }
}

// Web pages do not learn.
#[cfg(not(target_family = "wasm"))]
impl Learned {
    /// Returns the weights.
    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Returns the weights, so that they can be changed. Returns `None` if another search uses them too.
    pub(super) fn weights_mut(&mut self) -> Option<&mut [f32]> {
        Arc::get_mut(&mut self.weights)
    }

    /// Returns the best placement of a piece that can spawn, without regard to the next piece.
    pub(super) fn best_single(&mut self, board: &Board, piece: Piece) -> Placement {
        self.evaluate(board, piece);
        let values = self.values.iter();
        let best = values.min_by(|a, b| a.value.total_cmp(&b.value));
        best.expect("the piece has a placement").placement
    }
}

impl Search for Learned {
    fn choose(&mut self, view: &View) -> Placement {
        self.transitions = view.transitions;
        if self.widths.depth == 0 {
            self.collect_pairs(view, 1);
            return self.pairs[0].first;
        }
        self.collect_pairs(view, self.widths.first);
        let pairs = std::mem::take(&mut self.pairs);
        let mut best = (f64::INFINITY, pairs[0].first);
        for pair in &pairs {
            let value = self.pair_value(view, pair);
            if value < best.0 {
                best = (value, pair.first);
            }
        }
        self.pairs = pairs;
        best.1
    }
}
