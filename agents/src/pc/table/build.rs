//! Enumeration of all boards that can occur in a perfect clear from the empty field.

use super::super::solver::KeyHasher;
use super::super::tiling::Tilings;
use crate::parallel::play_numbered;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, LowFieldError, LowPlacements, Rests};
use std::sync::{Mutex, PoisonError};

/// Number of hash sets among which the boards of a layer are divided, so that each set fits in a processor's cache. A
/// layer contains the boards after the same number of pieces.
const SHARDS: usize = 256;
/// Number of boards that a thread collects for a set before it locks the set and inserts them.
const BATCH: usize = 2048;
/// Number of boards that a thread expands at a time.
const BLOCK: usize = 1 << 14;

/// Bit that marks a slot whose board cannot be filled with pieces. [`LowField::key`] never sets this bit.
const DEAD: u64 = 1 << 63;

/// A hash set of board keys with open addressing. It cannot hold the key 0, which stands for an empty slot.
/// Keys marked with [`DEAD`] stay in the set, so that a board is checked only once.
#[derive(Debug, Default)]
struct KeySet {
    slots: Vec<u64>,
    len: usize,
}

impl KeySet {
    fn slot(&self, key: u64) -> usize {
        let mut slot = (KeyHasher::hash(key) >> 16) as usize & (self.slots.len() - 1);
        while self.slots[slot] != 0 && self.slots[slot] & !DEAD != key {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// Inserts a key if it is not in the set yet. Marks the key if `is_dead` returns `true`.
    fn insert(&mut self, key: u64, is_dead: impl FnOnce() -> bool) {
        if 4 * self.len >= 3 * self.slots.len() {
            let larger = vec![0; (2 * self.slots.len()).max(64)];
            for marked in std::mem::replace(&mut self.slots, larger) {
                if marked != 0 {
                    let slot = self.slot(marked & !DEAD);
                    self.slots[slot] = marked;
                }
            }
        }
        let slot = self.slot(key);
        if self.slots[slot] == 0 {
            self.slots[slot] = key | u64::from(is_dead()) << DEAD.trailing_zeros();
            self.len += 1;
        }
    }

    /// Returns whether the set contains `key` and `key` is not marked.
    fn contains(&self, key: u64) -> bool {
        !self.slots.is_empty() && self.slots[self.slot(key)] == key
    }

    /// Returns the keys that are not marked.
    fn into_keys(self) -> impl Iterator<Item = u64> {
        let is_live = |&key: &u64| key != 0 && key & DEAD == 0;
        self.slots.into_iter().filter(is_live)
    }
}

fn shard(key: u64) -> usize {
    KeyHasher::hash(key) as usize % SHARDS
}

/// A set of keys, divided by hash into [`SHARDS`] smaller sets.
struct ShardedSet(Vec<KeySet>);

impl ShardedSet {
    fn of(keys: &[u64]) -> ShardedSet {
        let mut sets = ShardedSet((0..SHARDS).map(|_| KeySet::default()).collect());
        for &key in keys {
            sets.0[shard(key)].insert(key, || false);
        }
        sets
    }

    fn contains(&self, key: u64) -> bool {
        self.0[shard(key)].contains(key)
    }
}

/// Returns the boards that can be reached from the empty field and can be cleared. Element `n` of the result contains
/// the [`LowField::key`]s of the boards after `n` pieces. Calls `progress` with a description of each step before the
/// step.
///
/// First finds the boards that can be reached, and then removes those that cannot be cleared, from the last layer to
/// the first.
pub(super) fn layers(
    lines: usize,
    placements: &LowPlacements,
    threads: usize,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Vec<u64>>, LowFieldError> {
    let empty = LowField::empty(lines)?;
    let tilings = Tilings::shared();
    let pieces = empty.pieces_left();
    let mut layers = vec![vec![empty.key()]];
    // The cleared field, whose key is 0, is the only board after all pieces. It is added at the end.
    for layer in 1..pieces {
        progress(&format!("finding boards after piece {layer}"));
        layers.push(expanded(&layers[layer - 1], placements, tilings, threads));
    }
    let mut legal = ShardedSet::of(&[]);
    for layer in (0..pieces).rev() {
        progress(&format!("checking boards after piece {layer}"));
        let is_last = layer + 1 == pieces;
        let is_legal = |child: &LowField| {
            if is_last {
                child.is_clear()
            } else {
                legal.contains(child.key())
            }
        };
        layers[layer] = with_child(&layers[layer], placements, threads, is_legal);
        legal = ShardedSet::of(&layers[layer]);
    }
    layers.push(vec![0]);
    Ok(layers)
}

/// Returns the boards of `layer` from which at least one placement leads to a board that `accepts` accepts.
fn with_child(
    layer: &[u64],
    placements: &LowPlacements,
    threads: usize,
    accepts: impl Fn(&LowField) -> bool + Sync,
) -> Vec<u64> {
    let has_child = |key: &u64| {
        let field = LowField::from_key(*key);
        Piece::ALL.into_iter().any(|piece| {
            let mut found = false;
            let rests = Rests::new(&field, piece).filter(&accepts);
            placements.for_each_reached(rests, |_, _| found = true);
            found
        })
    };
    let blocks: Vec<&[u64]> = layer.chunks(BLOCK).collect();
    let kept = play_numbered(
        blocks.len(),
        threads,
        || (),
        |(), number| -> Vec<u64> {
            let keys = blocks[number].iter().copied();
            keys.filter(has_child).collect()
        },
    );
    kept.concat()
}

/// Returns the distinct boards after one more placement, except boards that cannot be filled with pieces.
fn expanded(
    layer: &[u64],
    placements: &LowPlacements,
    tilings: &Tilings,
    threads: usize,
) -> Vec<u64> {
    let sets: Vec<Mutex<KeySet>> = (0..SHARDS).map(|_| Mutex::default()).collect();
    let flush = |shard: usize, batch: &mut Vec<u64>| {
        let mut set = sets[shard].lock().unwrap_or_else(PoisonError::into_inner);
        for key in batch.drain(..) {
            set.insert(key, || !tilings.can_fill(&LowField::from_key(key)));
        }
    };
    let blocks: Vec<&[u64]> = layer.chunks(BLOCK).collect();
    let buffers = || vec![Vec::new(); SHARDS];
    play_numbered(blocks.len(), threads, buffers, |batches, number| {
        for key in blocks[number] {
            let field = LowField::from_key(*key);
            let mut add = |child: LowField| {
                let shard = shard(child.key());
                batches[shard].push(child.key());
                if batches[shard].len() == BATCH {
                    flush(shard, &mut batches[shard]);
                }
            };
            for piece in Piece::ALL {
                let rests = Rests::new(&field, piece).filter(|child| !child.is_split());
                placements.for_each_reached(rests, |_, child| add(child));
            }
        }
        for (shard, batch) in batches.iter_mut().enumerate() {
            flush(shard, batch);
        }
    });
    let sets = sets
        .into_iter()
        .map(|set| set.into_inner().unwrap_or_else(PoisonError::into_inner));
    sets.flat_map(KeySet::into_keys).collect()
}
