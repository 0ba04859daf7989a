//! The division of a frontier (the wells kept at one depth) into shards, and of shards into tables.

use crate::node::NodeWell;

/// Approximate number of wells per table. A table with this many wells fits into an L2 cache.
pub const TABLE_WELLS: usize = 16_384;
/// Maximum number of shards of a frontier.
pub const MAX_SHARDS: usize = 4096;
/// Minimum value of [`ShardLayout::default_shards`], which is enough for several dozen workers.
pub const MIN_SHARDS: usize = 64;
/// Maximum average number of wells per shard with the
/// [default number of shards](ShardLayout::default_shards), unless [`MAX_SHARDS`] limits that number.
pub const SHARD_WELLS: u64 = 1 << 20;

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
