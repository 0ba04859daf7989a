//! Perft: counts the distinct wells that are possible after each number of pieces.
//!
//! **Definition.** A *level* contains all (well, score) pairs that are possible after a given
//! number of pieces against HATETRIS Mild, starting with the empty well. Only wells in which the
//! game is not over count. The count of a level is its number of distinct pairs. Each piece adds
//! four cells, and each cleared row removes the cells of one row. So a well and the number of
//! pieces determine the score, and it suffices to count wells.
//!
//! **Memory.** A level is a list of distinct wells of 32 bytes each. The next level is divided into
//! shards by hash and generated one shard at a time. For each shard, every well of the level is
//! expanded, and the children in the shard are collected, sorted and deduplicated. The buffer of a
//! shard takes about a quarter of the allowed memory, and the wells of the two levels may take the
//! rest. The last level is only counted, not stored. At 10 × 16, a level has about ten times as
//! many wells as the previous one. With 2 GiB, levels up to depth 8 (eight pieces, 232 million wells)
//! can be counted, which takes three to four minutes.

use hatebeam_game::{Children, Emulator, Well};
use thiserror::Error;

/// Size of a well in memory.
const WELL_BYTES: u64 = size_of::<Well>() as u64;

/// Error for a level that does not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "level {depth} does not fit in {} MiB: raise --memory, or use --depth {depth}, which only counts it",
    memory >> 20
)]
pub struct LevelTooLarge {
    /// Number of pieces.
    pub depth: u32,
    /// Allowed memory in bytes.
    pub memory: u64,
}

/// Progress of counting a level.
#[derive(Clone, Copy, Debug)]
pub struct LevelProgress {
    /// Number of pieces.
    pub depth: u32,
    /// 1-based index of the shard that is about to be generated.
    pub shard: u64,
    /// Number of shards.
    pub shards: u64,
}

/// A counter of the distinct wells in each level.
pub struct Perft {
    emulator: Emulator,
    children: Children,
    /// The distinct wells of the last counted level.
    level: Vec<Well>,
    /// The children of one shard.
    shard: Vec<Well>,
    memory: u64,
}

impl Perft {
    /// Creates a counter. `memory` is the allowed memory in bytes.
    pub fn new(emulator: Emulator, memory: u64) -> Perft {
        Perft {
            emulator,
            children: Children::new(),
            level: Vec::new(),
            shard: Vec::new(),
            memory,
        }
    }

    /// Returns the number of wells after `depth` pieces. Call this method with the depths 0, 1, 2 and
    /// so on, in this order, and set `is_last` in the last call. It calls `progress` before each shard.
    ///
    /// # Errors
    /// Returns [`LevelTooLarge`] if the level must be stored (`is_last` is false) and does not fit in memory.
    pub fn count(
        &mut self,
        depth: u32,
        is_last: bool,
        progress: &mut dyn FnMut(LevelProgress),
    ) -> Result<u64, LevelTooLarge> {
        if depth == 0 {
            self.level = vec![Well::EMPTY];
            return Ok(1);
        }
        let shards = self.shards_needed();
        let mut next: Vec<Well> = Vec::new();
        let mut count = 0;
        for index in 0..shards {
            let shard = index + 1;
            progress(LevelProgress {
                depth,
                shard,
                shards,
            });
            self.collect(index, shards);
            count += self.shard.len() as u64;
            if is_last {
                continue;
            }
            let kept = (self.level.len() + next.len() + self.shard.len()) as u64;
            if kept > self.memory / 4 * 3 / WELL_BYTES {
                let memory = self.memory;
                return Err(LevelTooLarge { depth, memory });
            }
            next.reserve_exact(self.shard.len());
            next.append(&mut self.shard);
        }
        self.level = next;
        Ok(count)
    }

    /// Returns the number of shards with which the children of an average shard, including
    /// duplicates, fit into a quarter of the allowed memory.
    fn shards_needed(&mut self) -> u64 {
        let mut total = 0;
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            total += self.children.len() as u64;
        }
        (total * WELL_BYTES).div_ceil(self.memory / 4).max(1)
    }

    /// Collects the level's distinct children in the shard with this 0-based index.
    fn collect(&mut self, index: u64, shards: u64) {
        self.shard.clear();
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            let is_in_shard = |child: &&Well| shards == 1 || child.hash() % shards == index;
            self.shard
                .extend(self.children.wells().iter().filter(is_in_shard));
        }
        self.shard.sort_unstable();
        self.shard.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Geometry, Rules};

    fn counts(memory: u64) -> Result<Vec<u64>, LevelTooLarge> {
        let emulator = Emulator::new(Geometry::new(10, 4).unwrap(), Rules::default());
        let mut perft = Perft::new(emulator, memory);
        (0..=4)
            .map(|depth| perft.count(depth, depth == 4, &mut |_| {}))
            .collect()
    }

    #[test]
    fn counts_do_not_depend_on_memory_limit() {
        let expected = counts(1 << 30).unwrap();
        assert_eq!(expected[..2], [1, 17]);
        assert_eq!(counts(1 << 20).unwrap(), expected);
    }

    #[test]
    fn level_that_does_not_fit_in_memory_is_rejected() {
        let error = counts(1 << 10).unwrap_err();
        assert!(error.depth > 0 && error.to_string().contains("--memory"));
    }
}
