//! The division of a frontier (the wells kept at one depth) into shards, and of shards into tables.

use crate::node::NodeWell;
use std::ops::Range;

/// Approximate number of wells per table. A table with this many wells fits into an L2 cache.
pub const TABLE_WELLS: usize = 16_384;
/// Maximum number of shards of a frontier.
pub const MAX_SHARDS: usize = 4096;
/// Minimum value of [`ShardLayout::default_shards`], which is enough for several dozen workers.
pub const MIN_SHARDS: usize = 64;
/// Maximum average number of wells per shard with the
/// [default number of shards](ShardLayout::default_shards), unless [`MAX_SHARDS`] limits that number.
pub const SHARD_WELLS: u64 = 1 << 20;
/// Minimum average number of wells per shard after [`ShardLayout::for_workers`] has split shards. A shard with this many
/// wells has two tables, so the number of wells per table is at most 1.5 times [`TABLE_WELLS`].
pub const MIN_SHARD_WELLS: usize = 2 * TABLE_WELLS;
/// Number of shards per worker that [`ShardLayout::for_workers`] provides. The number of shards of a worker is then at
/// most one eighth above its share.
const SHARDS_PER_WORKER: usize = 8;

/// The division of a frontier. Each shard is owned by one machine and is divided into tables that fit
/// into the cache of a core. The upper bits of a well's hash select both the shard and the table, so
/// each table is part of exactly one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLayout {
    width: usize,
    shards: usize,
    tables: usize,
}

impl ShardLayout {
    /// Divides a beam of `width` wells into `shards` shards, clamped to the range 1 to
    /// [`MAX_SHARDS`].
    pub fn new(width: usize, shards: usize) -> ShardLayout {
        let (width, shards) = (width.max(1), shards.clamp(1, MAX_SHARDS));
        // With more than one shard, there are at least 16 tables in total, so that threads rarely
        // wait for each other.
        let least = if shards == 1 {
            1
        } else {
            16usize.div_ceil(shards)
        };
        ShardLayout {
            width,
            shards,
            tables: shards * (width / shards / TABLE_WELLS).max(least),
        }
    }

    /// Returns the default number of shards for a run of this width in a cluster.
    pub fn default_shards(width: u64) -> u32 {
        let shards = width.div_ceil(SHARD_WELLS);
        shards.clamp(MIN_SHARDS as u64, MAX_SHARDS as u64) as u32
    }

    /// Returns a layout that splits the shards of this one for `workers` workers with `threads` search threads in total.
    /// Doubles the number of shards until there is one for each thread and eight for each worker.
    /// Stops before a shard has fewer than `min_wells` wells on average, and at [`MAX_SHARDS`].
    pub fn for_workers(self, workers: usize, threads: usize, min_wells: usize) -> ShardLayout {
        let wanted = threads.max(workers.saturating_mul(SHARDS_PER_WORKER));
        let mut shards = self.shards;
        while shards < wanted && 2 * shards <= MAX_SHARDS && self.width / (2 * shards) >= min_wells
        {
            shards *= 2;
        }
        ShardLayout::new(self.width, shards)
    }

    /// Returns the layout for a run on one machine: one shard for narrow beams, otherwise eight.
    pub fn local(width: usize) -> ShardLayout {
        ShardLayout::new(width, if width < 4096 { 1 } else { 8 })
    }

    /// Returns the width of the beam.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns the number of shards.
    pub fn shards(self) -> usize {
        self.shards
    }

    /// Returns the index of the shard that contains a well.
    #[inline]
    pub fn shard_of(self, well: &NodeWell) -> usize {
        scale(well.hash(), self.shards)
    }

    /// Returns the shards of this layout that have hashes in common with shard `shard` of the layout `other`.
    ///
    /// # Panics
    /// Panics if `other` has no such shard.
    pub fn overlapping(self, other: ShardLayout, shard: usize) -> Range<usize> {
        assert!(shard < other.shards, "shard {shard} does not exist");
        // The hashes of a shard are those from its own lowest hash up to, but not including, that of the next shard.
        let lowest = |shard: usize| ((shard as u128) << 64).div_ceil(other.shards as u128);
        let (first, next) = (lowest(shard), lowest(shard + 1));
        scale(first as u64, self.shards)..scale((next - 1) as u64, self.shards) + 1
    }

    pub(super) fn tables(self) -> usize {
        self.tables
    }

    pub(super) fn tables_per_shard(self) -> usize {
        self.tables / self.shards
    }

    #[inline]
    pub(super) fn table_of(self, hash: u64) -> usize {
        scale(hash, self.tables)
    }

    /// Returns the number of wells that a full table keeps: its share of the width plus `sigmas`
    /// standard deviations plus 16 wells, but at most the width.
    pub(super) fn room(self, sigmas: f64) -> usize {
        if self.tables == 1 {
            return self.width;
        }
        let share = self.width as f64 / self.tables as f64;
        ((share + sigmas * share.sqrt() + 16.0) as usize).min(self.width)
    }
}

#[inline]
fn scale(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shards_are_split_for_threads_and_workers() {
        let shards = |width, workers, threads| {
            let layout = ShardLayout::new(width, 64);
            let layout = layout.for_workers(workers, threads, MIN_SHARD_WELLS);
            assert_eq!(layout.width(), width);
            layout.shards()
        };
        assert_eq!(shards(25_000_000, 1, 64), 64);
        assert_eq!(shards(25_000_000, 1, 65), 128);
        assert_eq!(shards(25_000_000, 8, 8), 64);
        assert_eq!(shards(25_000_000, 9, 9), 128);
        // A shard has 48,828 wells, and with twice as many shards it would have fewer than MIN_SHARD_WELLS.
        assert_eq!(shards(25_000_000, 64, 64 * 72), 512);
        assert_eq!(shards(1_000_000, 64, 64 * 72), 64);
        assert_eq!(shards(1 << 30, 1000, 72_000), MAX_SHARDS);
        assert_eq!(shards(1 << 30, usize::MAX, usize::MAX), MAX_SHARDS);
        let odd = ShardLayout::new(1 << 30, 954).for_workers(64, 64 * 72, MIN_SHARD_WELLS);
        assert_eq!(odd.shards(), 4 * 954);
        // The number of shards never decreases.
        assert_eq!(
            ShardLayout::new(100, 500).for_workers(1, 1, 1).shards(),
            500
        );
    }

    #[test]
    fn split_shard_overlaps_its_halves() {
        let (before, after) = (ShardLayout::new(9, 3), ShardLayout::new(9, 6));
        assert_eq!(after.overlapping(before, 1), 2..4);
        assert_eq!(before.overlapping(after, 3), 1..2);
        assert_eq!(before.overlapping(before, 2), 2..3);
        let two = ShardLayout::new(9, 2);
        assert_eq!(two.overlapping(before, 1), 0..2);
    }

    proptest! {
        #[test]
        fn overlapping_shards_are_those_of_the_hashes_in_the_shard(
            (shards, shard) in (1..=MAX_SHARDS).prop_flat_map(|shards| (Just(shards), 0..shards)),
            others in 1..=MAX_SHARDS,
            hash in any::<u64>(),
        ) {
            let (layout, other) = (ShardLayout::new(1, others), ShardLayout::new(1, shards));
            let range = layout.overlapping(other, shard);
            let of_hash = layout.overlapping(other, scale(hash, shards));
            prop_assert!(of_hash.contains(&scale(hash, others)));
            // Each shard in the range also overlaps in the other direction, and its neighbors do not.
            for at in range.start.saturating_sub(1)..(range.end + 1).min(others) {
                let back = other.overlapping(layout, at).contains(&shard);
                prop_assert_eq!(back, range.contains(&at), "{}", at);
            }
        }
    }
}
