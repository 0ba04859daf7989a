//! Sets of orders of pieces that clear a field.
//!
//! A set of orders of two pieces is a word, in which bit 7·a + b stands for the order a, b. A set of longer orders is
//! a list of such words, one for each sequence of the pieces before the last two.

use super::super::expand::Expander;
use super::super::solver::{KeyHasher, KeyMap};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, Rests};
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of kinds of pieces.
pub(super) const PIECES: usize = 7;
/// Set of all pieces, one bit per piece.
pub(super) const ALL_ONE: u64 = 0x7f;

/// Set of orders of three pieces: for each first piece, the pairs that follow.
pub(super) type Orders3 = [u64; PIECES];
/// Set of orders of four pieces: for each first piece, the orders of three pieces that follow.
pub(super) type Orders4 = [Orders3; PIECES];

/// Number of independently locked parts of [`SharedOrders`].
const SHARDS: usize = 64;
/// Maximum number of fields in a part of [`SharedOrders`]. All parts then take at most 68 MB.
const SHARD_FIELDS: usize = 7 << 11;

/// Orders of three pieces that clear fields, for the threads of a search and for later searches. The results do not depend
/// on the order in which the threads find them.
#[derive(Debug)]
pub(super) struct SharedOrders {
    shards: Vec<Mutex<KeyMap<u64, Orders3>>>,
}

impl SharedOrders {
    pub(super) fn new() -> SharedOrders {
        SharedOrders {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, KeyMap<u64, Orders3>> {
        // Hash maps use the lowest and the highest bits.
        let shard = &self.shards[(KeyHasher::hash(key) >> 40) as usize % SHARDS];
        shard
            .lock()
            .expect("lock is not poisoned: no thread panics while holding it")
    }

    fn insert(&self, key: u64, orders: Orders3) {
        let mut shard = self.shard(key);
        if shard.len() == SHARD_FIELDS {
            shard.clear();
        }
        shard.insert(key, orders);
    }
}

/// Finds the orders without hold that clear a field, and remembers them.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    expander: Expander,
    shared: Arc<SharedOrders>,
    one: KeyMap<u64, u8>,
    two: KeyMap<u64, u64>,
    three: KeyMap<u64, Orders3>,
}

impl Orders {
    pub(super) fn new(expander: Expander, shared: Arc<SharedOrders>) -> Orders {
        Orders {
            expander,
            shared,
            one: KeyMap::default(),
            two: KeyMap::default(),
            three: KeyMap::default(),
        }
    }

    /// Returns the fields after each placement of a piece, except fields that obviously cannot be cleared.
    pub(super) fn children(&self, field: &LowField, piece: Piece) -> Vec<LowField> {
        let mut children = Vec::with_capacity(24);
        self.expander
            .for_each(field, piece, |_, child| children.push(child));
        children
    }

    /// Returns the pieces that clear a field with four empty cells, one bit per piece.
    pub(super) fn one(&mut self, field: &LowField) -> u64 {
        if let Some(&pieces) = self.one.get(&field.key()) {
            return u64::from(pieces);
        }
        let mut pieces = 0u8;
        for piece in Piece::ALL {
            let placements = self.expander.placements();
            let rests = Rests::new(field, piece).filter(LowField::is_clear);
            placements.for_each_reached(rests, |_, _| pieces |= 1 << piece.index());
        }
        self.one.insert(field.key(), pieces);
        u64::from(pieces)
    }

    /// Returns the orders of two pieces that clear a field.
    pub(super) fn two(&mut self, field: &LowField) -> u64 {
        if let Some(&orders) = self.two.get(&field.key()) {
            return orders;
        }
        let mut orders = 0;
        for piece in Piece::ALL {
            let mut second = 0;
            for child in self.children(field, piece) {
                second |= self.one(&child);
            }
            orders |= second << (PIECES * piece.index());
        }
        self.two.insert(field.key(), orders);
        orders
    }

    /// Returns the orders of three pieces that clear a field.
    pub(super) fn three(&mut self, field: &LowField) -> Orders3 {
        if let Some(orders) = self.three.get(&field.key()) {
            return *orders;
        }
        let shared = self.shared.shard(field.key()).get(&field.key()).copied();
        let orders = shared.unwrap_or_else(|| {
            let orders = Piece::ALL.map(|piece| {
                let children = self.children(field, piece);
                children.iter().fold(0, |all, child| all | self.two(child))
            });
            self.shared.insert(field.key(), orders);
            orders
        });
        self.three.insert(field.key(), orders);
        orders
    }

    /// Returns the orders of four pieces that clear a field and begin with a piece in `pieces` (one bit per piece).
    pub(super) fn four(&mut self, field: &LowField, pieces: u8) -> Orders4 {
        Piece::ALL.map(|piece| {
            let mut orders = [0; PIECES];
            if pieces >> piece.index() & 1 == 1 {
                for child in self.children(field, piece) {
                    let after = self.three(&child);
                    orders
                        .iter_mut()
                        .zip(after)
                        .for_each(|(all, one)| *all |= one);
                }
            }
            orders
        })
    }
}

/// Returns the pairs of next pieces with which a player who holds the piece `held` can clear a field that needs two
/// pieces. `two` contains the orders of two pieces that clear the field without hold. If `last_fits` is `false`, the
/// second of the next pieces cannot be placed.
#[inline]
pub(super) fn next_two(two: u64, held: usize, last_fits: bool) -> u64 {
    if two == 0 {
        return 0;
    }
    let after_held = two >> (PIECES * held) & ALL_ONE;
    let mut orders = 0;
    for piece in 0..PIECES {
        let after_piece = two >> (PIECES * piece) & ALL_ONE;
        let is_done = (after_held >> piece | after_piece >> held) & 1 == 1;
        let second = match (is_done, last_fits) {
            (true, _) => ALL_ONE,
            (false, true) => after_held | after_piece,
            (false, false) => 0,
        };
        orders |= second << (PIECES * piece);
    }
    orders
}

/// Returns the pairs of pieces after `first` with which a player who holds the piece `held` can clear a field that
/// needs three pieces. `three` contains the orders of three pieces that clear the field without hold. If `last_fits` is
/// `false`, the last piece cannot be placed.
#[inline]
pub(super) fn next_three(three: &Orders3, held: usize, first: usize, last_fits: bool) -> u64 {
    next_two(three[held], first, last_fits) | next_two(three[first], held, last_fits)
}
