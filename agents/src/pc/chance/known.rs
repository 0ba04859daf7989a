//! Moves with the pieces that are known at the start. The states after each number of moves (a level) are listed from
//! the first level to the last, and then evaluated from the last level to the first.

use super::super::expand::Expander;
use super::super::solver::{KeyHasher, KeyMap, state_key};
use super::super::tiling::{Stock, StockTilings};
use super::future::Futures;
use super::supply::{Tail, fold_values, fold_words};
use crate::parallel::play_numbered;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, LowField, SrsPlacement};

/// Number of states, or of groups of states, that a thread processes at a time.
const BLOCK: usize = 256;
/// Maximum number of pieces left for which [`Level::keep_possible`] checks states. With more pieces left, few states
/// would be removed.
const TILED: usize = 6;
/// Number of parts into which the states of a level are divided to find equal ones. Each part needs a small hash map,
/// which stays in the processor's caches, and threads can process different parts.
const PARTS: usize = 16;
/// Index that stands for a removed state.
const NONE: u32 = u32::MAX;

/// A field with the held piece.
#[derive(Clone, Copy, Debug)]
struct State {
    field: LowField,
    held: Piece,
}

impl State {
    fn key(&self) -> u64 {
        state_key(&self.field, self.held)
    }

    /// Calls `visit` with each placement of the held piece or the next piece, and the resulting state.
    fn moves(&self, next: Piece, expander: &Expander, mut visit: impl FnMut(SrsPlacement, State)) {
        let held = Some((self.held, next));
        let swapped = (self.held != next).then_some((next, self.held));
        for (piece, held) in held.into_iter().chain(swapped) {
            expander.for_each(&self.field, piece, |placement, field| {
                visit(placement, State { field, held });
            });
        }
    }
}

/// The states after the same number of moves, and the moves from these states to those of the next level.
#[derive(Debug, Default)]
struct Level {
    states: Vec<State>,
    /// For each move, the index of the resulting state in the next level. The moves from one state are adjacent.
    moves: Vec<u32>,
    /// For each state, the end of its moves in `moves`.
    ends: Vec<u32>,
}

/// The states that result from the moves of a block of states, divided into parts so that equal states are in the same
/// part.
#[derive(Debug, Default)]
struct Children {
    states: [Vec<State>; PARTS],
    /// For each move, the part that contains the resulting state.
    parts: Vec<u8>,
    /// For each state of the block, the end of its moves in `parts`.
    ends: Vec<u32>,
}

impl Children {
    fn push(&mut self, state: State) {
        // Hash maps use the lowest and the highest bits.
        let part = (KeyHasher::hash(state.key()) >> 40) as usize % PARTS;
        self.states[part].push(state);
        self.parts.push(part as u8);
    }
}

/// The distinct states of a part.
struct DistinctStates {
    states: Vec<State>,
    /// For each state of the part, its index in `states`.
    indices: Vec<u32>,
}

impl DistinctStates {
    fn of<'a>(part: impl Iterator<Item = &'a State>) -> DistinctStates {
        let mut known: KeyMap<u64, u32> = KeyMap::default();
        let mut states = Vec::new();
        let index = |state: &State| {
            *known.entry(state.key()).or_insert_with(|| {
                states.push(*state);
                states.len() as u32 - 1
            })
        };
        let indices = part.map(index).collect();
        DistinctStates { states, indices }
    }
}

impl Level {
    /// Finds the moves from each state. A move places the state's held piece or `next`. Returns the level and the
    /// states of the next level.
    fn new(
        states: Vec<State>,
        next: Piece,
        expander: &Expander,
        threads: usize,
    ) -> (Level, Vec<State>) {
        let blocks: Vec<&[State]> = states.chunks(BLOCK).collect();
        let expand = |(): &mut (), number: usize| {
            let mut children = Children::default();
            for state in blocks[number] {
                state.moves(next, expander, |_, child| children.push(child));
                children.ends.push(children.parts.len() as u32);
            }
            children
        };
        let expanded = play_numbered(blocks.len(), threads, || (), expand);
        let distinct = play_numbered(
            PARTS,
            threads,
            || (),
            |(), part| {
                DistinctStates::of(expanded.iter().flat_map(|children| &children.states[part]))
            },
        );
        let mut following = Vec::new();
        let mut indices = Vec::new();
        for part in &distinct {
            let start = following.len() as u32;
            following.extend_from_slice(&part.states);
            indices.push(part.indices.iter().map(move |index| start + index));
        }
        let mut level = Level::default();
        for children in &expanded {
            let start = level.moves.len() as u32;
            level
                .ends
                .extend(children.ends.iter().map(|end| start + end));
            let parts = children.parts.iter();
            let index = parts.map(|&part| indices[usize::from(part)].next());
            level.moves.extend(
                index.map(|index| index.expect("each part has an index for each of its states")),
            );
        }
        level.states = states;
        (level, following)
    }

    /// Removes the states of the next level in which the held piece and the pieces in `rest` cannot cover the empty
    /// cells, and removes the moves to these states. Does nothing if more than [`TILED`] pieces are left.
    fn keep_possible(&mut self, following: &mut Vec<State>, rest: Stock, threads: usize) {
        if following
            .first()
            .is_none_or(|state| state.field.pieces_left() > TILED)
        {
            return;
        }
        let blocks: Vec<&[State]> = following.chunks(BLOCK).collect();
        let all = Piece::ALL.iter().fold(rest, |all, &piece| all.with(piece));
        let tilings = || StockTilings::new(all);
        let possible = play_numbered(blocks.len(), threads, tilings, |tilings, number| {
            let is_possible = |state: &State| tilings.can_fill(&state.field, rest.with(state.held));
            blocks[number].iter().map(is_possible).collect::<Vec<_>>()
        });
        let possible = possible.concat();
        self.keep_states(following, |index| possible[index]);
    }

    /// Keeps only the `width` most compact states of the next level, which have the fewest open sides. Removes the
    /// moves to the other states.
    fn keep_compact(&mut self, following: &mut Vec<State>, width: usize) {
        let mut order: Vec<u32> = (0..following.len() as u32).collect();
        order.select_nth_unstable_by_key(width, |&index| {
            (following[index as usize].field.open_sides(), index)
        });
        let mut is_compact = vec![false; following.len()];
        for &index in &order[..width] {
            is_compact[index as usize] = true;
        }
        self.keep_states(following, |index| is_compact[index]);
    }

    /// Removes the states of the next level for which `kept` returns `false`, and removes the moves to these states.
    fn keep_states(&mut self, following: &mut Vec<State>, kept: impl Fn(usize) -> bool) {
        let mut places = vec![NONE; following.len()];
        let mut len = 0;
        for index in (0..following.len()).filter(|&index| kept(index)) {
            following[len] = following[index];
            places[index] = len as u32;
            len += 1;
        }
        following.truncate(len);
        for index in self.moves.iter_mut().filter(|index| **index != NONE) {
            *index = places[*index as usize];
        }
    }

    /// Returns the indices of the states that the moves from a state lead to.
    fn moves_of(&self, state: usize) -> impl Iterator<Item = u32> + '_ {
        let start = state.checked_sub(1).map_or(0, |before| self.ends[before]);
        let moves = &self.moves[start as usize..self.ends[state] as usize];
        moves.iter().copied().filter(|&index| index != NONE)
    }
}

/// The sequences of pieces that can follow the pieces of [`KnownMoves`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequences<'a> {
    pub(super) tails: &'a [Tail],
    /// Number of possible pieces at each position of the sequences.
    pub(super) sizes: &'a [usize],
    /// Number of pieces of the sequence that the player sees before the first move.
    pub(super) seen: usize,
    pub(super) bag: Bag,
}

impl Sequences<'_> {
    /// Returns the number of distinct sequences of the pieces that the player sees after `moves` moves. Returns
    /// `None` if the player then sees all pieces.
    fn seen_after(&self, moves: usize) -> Option<usize> {
        let seen = self.seen + moves;
        (seen < self.sizes.len()).then(|| self.sizes[..seen].iter().product())
    }
}

/// Results for the states of a level. [`super::future`] defines winning and usable sequences.
#[derive(Debug)]
struct Values {
    /// For each state, the winning sequences. They are grouped by the pieces before the last two: for each [`Tail`], a
    /// word contains the set of the last two pieces.
    words: Vec<u64>,
    /// For each state, the number of usable sequences for each sequence of seen pieces. Empty if the player sees all
    /// pieces.
    counts: Vec<u32>,
}

/// Numbers of winning and usable sequences after a first move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wins {
    /// Number of winning sequences.
    pub(super) clairvoyant: u32,
    /// Number of usable sequences.
    pub(super) adaptive: u32,
}

/// The levels of states that moves with known pieces reach.
#[derive(Debug)]
pub(super) struct KnownMoves {
    /// First moves, in the order of the first level's `moves`.
    pub(super) first: Vec<SrsPlacement>,
    levels: Vec<Level>,
    /// Whether no state was removed to limit the width, so that the results are exact.
    pub(super) is_complete: bool,
}

impl KnownMoves {
    /// Lists the states after each number of moves with `pieces`, which must contain at least two pieces. `later`
    /// contains the pieces that can follow.
    ///
    /// If a level has more than `width` states, only the `width` most compact states are kept, and the results are
    /// lower bounds.
    pub(super) fn new(
        field: &LowField,
        pieces: &[Piece],
        later: Stock,
        expander: &Expander,
        width: usize,
        threads: usize,
    ) -> KnownMoves {
        let root = State {
            field: *field,
            held: pieces[0],
        };
        let mut first = Vec::new();
        root.moves(pieces[1], expander, |placement, _| first.push(placement));
        let mut levels = Vec::new();
        let mut is_complete = true;
        let mut states = vec![root];
        let stock = |pieces: &[Piece]| pieces.iter().fold(later, |stock, &piece| stock.with(piece));
        for (placed, &next) in pieces.iter().enumerate().skip(1) {
            let (mut level, mut following) = Level::new(states, next, expander, threads);
            let rest = stock(&pieces[placed + 1..]);
            if following.len() > width {
                level.keep_compact(&mut following, width);
                is_complete = false;
            } else if width == usize::MAX {
                // In a narrow search, checking the states takes longer than following them.
                level.keep_possible(&mut following, rest, threads);
            }
            levels.push(level);
            states = following;
        }
        levels.push(Level {
            states,
            ..Level::default()
        });
        KnownMoves {
            first,
            levels,
            is_complete,
        }
    }

    /// Returns the numbers of sequences after each first move. `futures` creates an evaluator for a thread.
    pub(super) fn evaluate(
        &self,
        sequences: &Sequences<'_>,
        futures: impl Fn() -> Futures + Sync,
        threads: usize,
    ) -> Vec<Wins> {
        let mut after = self.last_values(sequences, futures, threads);
        for (moves, level) in self.levels.iter().enumerate().rev().skip(1) {
            if moves == 0 {
                return level
                    .moves
                    .iter()
                    .map(|&child| after.wins(sequences, child))
                    .collect();
            }
            after = after.before(sequences, level, moves, threads);
        }
        Vec::new()
    }

    /// Returns the results for the states of the last level.
    fn last_values(
        &self,
        sequences: &Sequences<'_>,
        futures: impl Fn() -> Futures + Sync,
        threads: usize,
    ) -> Values {
        let states = self.levels.last().map_or(&[][..], |level| &level.states);
        let state = |index: &u32| &states[*index as usize];
        // States with the same field share most of the work.
        let mut order: Vec<u32> = (0..states.len() as u32).collect();
        order.sort_unstable_by_key(|index| (state(index).field, state(index).held));
        let groups: Vec<&[u32]> = order
            .chunk_by(|a, b| state(a).field == state(b).field)
            .collect();
        let size = sequences.seen_after(self.levels.len() - 1);
        let blocks: Vec<&[&[u32]]> = groups.chunks(BLOCK).collect();
        let results = play_numbered(blocks.len(), threads, futures, |futures, number| {
            let (mut words, mut counts) = (Vec::new(), Vec::new());
            for group in blocks[number] {
                let held: Vec<Piece> = group.iter().map(|index| state(index).held).collect();
                let field = &state(&group[0]).field;
                futures.append_wins(field, &held, sequences.bag, &mut words);
                if size.is_some() {
                    futures.append_values(field, &held, sequences.bag, &mut counts);
                }
            }
            (words, counts)
        });
        let words = results.iter().flat_map(|result| &result.0);
        let counts = results.iter().flat_map(|result| &result.1);
        Values {
            words: reordered(words, &order, sequences.tails.len()),
            counts: reordered(counts, &order, size.unwrap_or(0)),
        }
    }
}

/// Reorders groups of `count` values: group number `i` becomes group number `order[i]`.
fn reordered<'a, T: Copy + Default + 'a>(
    mut values: impl Iterator<Item = &'a T>,
    order: &[u32],
    count: usize,
) -> Vec<T> {
    let mut result = vec![T::default(); order.len() * count];
    for &index in order {
        for slot in &mut result[index as usize * count..][..count] {
            *slot = *values
                .next()
                .expect("there are `count` values for each index in `order`");
        }
    }
    result
}

impl Values {
    fn words(&self, sequences: &Sequences<'_>, state: u32) -> &[u64] {
        let count = sequences.tails.len();
        &self.words[state as usize * count..][..count]
    }

    /// Returns the results for a state of the second level. They are 0 if the state was removed.
    fn wins(&self, sequences: &Sequences<'_>, state: u32) -> Wins {
        if state == NONE {
            return Wins::default();
        }
        let words = self.words(sequences, state);
        let clairvoyant = words.iter().map(|word| word.count_ones()).sum();
        let adaptive = match sequences.seen_after(1) {
            None => clairvoyant,
            Some(size) => self.counts[state as usize * size..][..size].iter().sum(),
        };
        Wins {
            clairvoyant,
            adaptive,
        }
    }

    /// Returns the results for the states of `level`, the level before this one. They are the states after `moves` moves.
    fn before(
        &self,
        sequences: &Sequences<'_>,
        level: &Level,
        moves: usize,
        threads: usize,
    ) -> Values {
        let count = sequences.tails.len();
        let size = sequences.seen_after(moves);
        let folded = size.map(|size| self.folded(sequences, moves + 1, size));
        let merge = |(): &mut (), number: usize| {
            let states = number * BLOCK..level.states.len().min((number + 1) * BLOCK);
            let mut words = vec![0; states.len() * count];
            let mut counts = vec![0; states.len() * size.unwrap_or(0)];
            for (index, state) in states.enumerate() {
                let all = &mut words[index * count..][..count];
                for child in level.moves_of(state) {
                    let child = self.words(sequences, child);
                    all.iter_mut().zip(child).for_each(|(all, one)| *all |= one);
                }
                let (Some(size), Some(folded)) = (size, &folded) else {
                    continue;
                };
                let best = &mut counts[index * size..][..size];
                for child in level.moves_of(state) {
                    let child = &folded[child as usize * size..][..size];
                    best.iter_mut()
                        .zip(child)
                        .for_each(|(best, &one)| *best = one.max(*best));
                }
            }
            (words, counts)
        };
        let blocks = level.states.len().div_ceil(BLOCK);
        let (words, counts): (Vec<_>, Vec<_>) = play_numbered(blocks, threads, || (), merge)
            .into_iter()
            .unzip();
        Values {
            words: words.concat(),
            counts: counts.concat(),
        }
    }

    /// Returns the number of usable sequences for each state and for each of the `size` sequences of pieces that the
    /// player sees one move earlier. The states are the states after `moves` moves.
    fn folded(&self, sequences: &Sequences<'_>, moves: usize, size: usize) -> Vec<u32> {
        let mut sums = Vec::new();
        match sequences.seen_after(moves) {
            None => {
                let left = sequences.sizes.len();
                for words in self.words.chunks_exact(sequences.tails.len()) {
                    fold_words(words, sequences.tails, left, &mut sums);
                }
            }
            Some(larger) => sums.extend(fold_values(&self.counts, larger / size)),
        }
        sums
    }
}
