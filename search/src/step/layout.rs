//! How a frontier is divided: into shards by hash, a shard into tables.

use crate::node::NodeWell;

/// Wells of width for each table in memory, which then fits a second-level cache.
pub const TABLE_WELLS: usize = 16_384;
/// Maximum number of shards of a frontier.
pub const MAX_SHARDS: usize = 4096;
/// Minimum number of shards of a run in a cluster, unless its user chose one: enough for some tens of workers.
pub const MIN_SHARDS: usize = 64;
/// Maximum number of wells in a shard of such a run.
pub const SHARD_WELLS: u64 = 1 << 20;

/// How the wells of a frontier are divided. A shard is what has one owner and one table on disk; it
/// is divided further into tables of a size that a core's cache holds. Both by the upper bits of the
/// hash, so that a table lies in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLayout {
    width: usize,
    shards: usize,
    tables: usize,
}

impl ShardLayout {
    /// Of a beam `width` wells wide into so many shards, 1 to [`MAX_SHARDS`].
    pub fn new(width: usize, shards: usize) -> ShardLayout {
        let (width, shards) = (width.max(1), shards.clamp(1, MAX_SHARDS));
        // A few tables even where one would do, lest threads wait for each other.
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

    /// Returns the number of shards of a run in a cluster, unless its user chose one.
    pub fn default_shards(width: u64) -> u32 {
        let shards = width.div_ceil(SHARD_WELLS);
        shards.clamp(MIN_SHARDS as u64, MAX_SHARDS as u64) as u32
    }

    /// As one machine divides it by itself: a shard a file.
    pub fn local(width: usize) -> ShardLayout {
        ShardLayout::new(width, if width < 4096 { 1 } else { 8 })
    }

    /// The beam's width.
    pub fn width(self) -> usize {
        self.width
    }

    /// How many shards there are.
    pub fn shards(self) -> usize {
        self.shards
    }

    /// The shard a well belongs to.
    #[inline]
    pub fn shard_of(self, well: &NodeWell) -> usize {
        scale(well.hash(), self.shards)
    }

    pub(super) fn tables(self) -> usize {
        self.tables
    }

    pub(super) fn tables_a_shard(self) -> usize {
        self.tables / self.shards
    }

    #[inline]
    pub(super) fn table_of(self, hash: u64) -> usize {
        scale(hash, self.tables)
    }

    /// Wells that a table keeps when it is full: its share of the width, and `sigmas` standard
    /// deviations more.
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
