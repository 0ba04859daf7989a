//! Evaluation of positions whose following pieces may be unknown. A sequence of following pieces *wins* if it allows
//! a perfect clear. It is *usable* if a player who always makes the best move for the pieces seen so far reaches a
//! perfect clear with it.

use super::super::solver::KeyMap;
use super::orders::{ALL_ONE, Orders, Orders4, next_three, next_two};
use super::supply::{Supply, fold_values, fold_words};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, LowField};
use std::rc::Rc;

/// A field, a held piece, and the pieces that can follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) field: LowField,
    pub(super) held: Piece,
    /// Index of the next piece in the [`Supply`], the queue of known and unknown pieces.
    pub(super) position: usize,
    pub(super) bag: Bag,
}

impl Position {
    fn key(&self) -> u64 {
        let bag: u64 = self
            .bag
            .pieces()
            .fold(0, |bits, piece| bits | 1 << piece.index());
        let held = self.held as u64;
        // In the field's key, two bits of each column from the third on are free.
        [
            held & 3,
            held >> 2,
            bag & 3,
            bag >> 2 & 3,
            bag >> 4 & 3,
            bag >> 6,
        ]
        .iter()
        .enumerate()
        .fold(self.field.key(), |key, (at, bits)| {
            key | bits << (16 + 6 * at)
        })
    }
}

/// Evaluates positions and remembers the results.
#[derive(Debug)]
pub(super) struct Futures {
    orders: Orders,
    supply: Supply,
    /// Number of pieces that the player sees after the held piece.
    window: usize,
    four: KeyMap<u64, Rc<Orders4>>,
    wins: KeyMap<u64, Rc<[u64]>>,
    values: KeyMap<u64, Rc<[u32]>>,
}

impl Futures {
    pub(super) fn new(orders: Orders, supply: Supply, window: usize) -> Futures {
        Futures {
            orders,
            supply,
            window,
            four: KeyMap::default(),
            wins: KeyMap::default(),
            values: KeyMap::default(),
        }
    }

    pub(super) fn supply(&mut self) -> &mut Supply {
        &mut self.supply
    }

    /// Returns the positions after each move if `next` is the next piece. `after_held` contains the fields after each
    /// placement of the held piece, and `bag` is the bag after `next` has been drawn.
    fn moves(
        &self,
        at: &Position,
        after_held: &[LowField],
        next: Piece,
        bag: Bag,
    ) -> Vec<Position> {
        let with = |field: &LowField, held| Position {
            field: *field,
            held,
            position: at.position + 1,
            bag,
        };
        let after_next = self.orders.children(&at.field, next);
        let held = after_held.iter().map(|field| with(field, next));
        held.chain(after_next.iter().map(|field| with(field, at.held)))
            .collect()
    }

    /// Returns the winning sequences. There is one word for each sequence of all pieces except the last two: the set of
    /// last pairs with which that sequence wins.
    pub(super) fn wins(&mut self, at: &Position) -> Rc<[u64]> {
        let left = self.supply.len() - at.position;
        if left <= 4 {
            return self.near_wins(at, left);
        }
        let key = at.key();
        if let Some(wins) = self.wins.get(&key) {
            return Rc::clone(wins);
        }
        let mut all = Vec::new();
        let after_held = self.orders.children(&at.field, at.held);
        for (piece, bag) in self.supply.options(at.position, at.bag) {
            let position = at.position + 1;
            let mut block = vec![0; self.supply.tails(position, bag).len()];
            for child in self.moves(at, &after_held, piece, bag) {
                let wins = self.wins(&child);
                block
                    .iter_mut()
                    .zip(&*wins)
                    .for_each(|(all, one)| *all |= one);
            }
            all.append(&mut block);
        }
        let all: Rc<[u64]> = all.into();
        self.wins.insert(key, Rc::clone(&all));
        all
    }

    /// Returns the winning sequences if `left`, the number of following pieces, is at most four.
    fn near_wins(&mut self, at: &Position, left: usize) -> Rc<[u64]> {
        let (field, held) = (&at.field, at.held.index());
        let last = self.supply.has_last();
        let tails = self.supply.tails(at.position, at.bag);
        match left {
            0 => Rc::new([u64::from(field.is_clear())]),
            1 => {
                let pieces = self.orders.one(field);
                let is_done = pieces >> held & 1 == 1;
                let wins = if is_done {
                    ALL_ONE
                } else if last {
                    pieces
                } else {
                    0
                };
                Rc::new([wins & tails[0].mask])
            }
            2 => Rc::new([next_two(self.orders.two(field), held, last) & tails[0].mask]),
            3 => {
                let three = self.orders.three(field);
                let options = self.supply.options(at.position, at.bag);
                let words = options.iter().zip(&*tails).map(|((piece, _), tail)| {
                    next_three(&three, held, piece.index(), last) & tail.mask
                });
                words.collect()
            }
            _ => {
                let four = match self.four.get(&field.key()) {
                    Some(four) => Rc::clone(four),
                    None => {
                        let four = Rc::new(self.orders.four(field, ALL_ONE as u8));
                        self.four.insert(field.key(), Rc::clone(&four));
                        four
                    }
                };
                let mut words = Vec::with_capacity(tails.len());
                self.four_words(&four, at, &mut words);
                words.into()
            }
        }
    }

    /// Appends the winning sequences of four pieces. `four` contains the orders that clear the position's field.
    fn four_words(&mut self, four: &Orders4, at: &Position, words: &mut Vec<u64>) {
        let (held, last) = (at.held.index(), self.supply.has_last());
        let tails = self.supply.tails(at.position, at.bag);
        let mut tails = tails.iter();
        for (first, bag) in self.supply.options(at.position, at.bag) {
            let first = first.index();
            for (second, _) in self.supply.options(at.position + 1, bag) {
                let second = second.index();
                let word = next_three(&four[held], first, second, last)
                    | next_three(&four[first], held, second, last);
                words.push(word & tails.next().map_or(0, |tail| tail.mask));
            }
        }
    }

    /// Appends the winning sequences for a field with each of the held pieces.
    pub(super) fn append_wins(
        &mut self,
        field: &LowField,
        held: &[Piece],
        bag: Bag,
        words: &mut Vec<u64>,
    ) {
        let with = |held| Position {
            field: *field,
            held,
            position: 0,
            bag,
        };
        if self.supply.len() != 4 {
            for &held in held {
                words.extend_from_slice(&self.wins(&with(held)));
            }
            return;
        }
        // The first placed piece is the held piece or the next one.
        let pieces = self.supply.option_bits(0, bag);
        let pieces = held
            .iter()
            .fold(pieces, |bits, piece| bits | 1 << piece.index());
        let four = self.orders.four(field, pieces);
        for &held in held {
            self.four_words(&four, &with(held), words);
        }
    }

    /// Appends the [`Futures::values`] for a field with each of the held pieces.
    pub(super) fn append_values(
        &mut self,
        field: &LowField,
        held: &[Piece],
        bag: Bag,
        counts: &mut Vec<u32>,
    ) {
        for &held in held {
            let at = Position {
                field: *field,
                held,
                position: 0,
                bag,
            };
            counts.extend_from_slice(&self.values(&at));
        }
    }

    /// Returns whether the player sees all following pieces.
    fn sees_all(&self, at: &Position) -> bool {
        self.window >= self.supply.len() - at.position
    }

    /// Returns the number of usable sequences.
    pub(super) fn total(&mut self, at: &Position) -> u32 {
        if self.sees_all(at) {
            return self.wins(at).iter().map(|word| word.count_ones()).sum();
        }
        self.values(at).iter().sum()
    }

    /// Returns the number of usable sequences for each sequence of all seen pieces but the last.
    pub(super) fn folded(&mut self, at: &Position) -> Vec<u32> {
        let mut sums = Vec::new();
        if self.sees_all(at) {
            let wins = self.wins(at);
            let tails = self.supply.tails(at.position, at.bag);
            fold_words(&wins, &tails, self.supply.len() - at.position, &mut sums);
            return sums;
        }
        let size = self.supply.sizes(at.position, at.bag)[self.window - 1];
        sums.extend(fold_values(&self.values(at), size));
        sums
    }

    /// Returns the number of usable sequences for each sequence of seen pieces.
    pub(super) fn values(&mut self, at: &Position) -> Rc<[u32]> {
        let key = at.key();
        if let Some(values) = self.values.get(&key) {
            return Rc::clone(values);
        }
        let after_held = self.orders.children(&at.field, at.held);
        let options = self.supply.options(at.position, at.bag);
        let position = at.position + 1;
        let mut all = Vec::new();
        if self.window == 0 {
            let mut best = 0;
            for &field in &after_held {
                let mut sum = 0;
                for &(held, bag) in &options {
                    sum += self.total(&Position {
                        field,
                        held,
                        position,
                        bag,
                    });
                }
                best = best.max(sum);
            }
            all.push(best);
        } else {
            for (piece, bag) in options {
                let mut best: Option<Vec<u32>> = None;
                for child in self.moves(at, &after_held, piece, bag) {
                    let values = self.folded(&child);
                    best = Some(match best {
                        None => values,
                        Some(best) => best.iter().zip(values).map(|(&a, b)| a.max(b)).collect(),
                    });
                }
                let sizes = self.supply.sizes(position, bag);
                let empty = || vec![0; sizes[..self.window - 1].iter().product()];
                all.append(&mut best.unwrap_or_else(empty));
            }
        }
        let all: Rc<[u32]> = all.into();
        self.values.insert(key, Rc::clone(&all));
        all
    }
}
