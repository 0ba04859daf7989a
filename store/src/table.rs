//! The format of tables, which store nodes as keys and values, and the RocksDB settings.
//!
//! A key consists of the depth, which is the number of placed pieces (32 bits, big endian), and the
//! packed well. A value consists of the
//! score (32 bits, big endian), the number of rows cleared (16 bits, big endian) and the parent
//! hint, which is the low byte of the parent's hash (8 bits).
//!
//! The depths of a commit share one table, except for the last depth. A search that resumes needs
//! the last depth, but the next commit may drop it. Therefore, the last depth has its own tables. A
//! narrow beam thus has a few tables for thousands of depths. The last depth is divided into several
//! tables if it has many wells.
//!
//! Wells are assigned to shards by hash, so the key ranges of the shards of a depth overlap.
//! Therefore, a commit merges the shards and divides the result by key range, so that no two tables
//! overlap. RocksDB then ingests every table into its lowest level. A lookup reads only one table,
//! files can be deleted by key range, and compaction is never needed. Overlapping tables would
//! accumulate in level 0, in which RocksDB searches the files one by one and cannot delete them by
//! key range.
//!
//! # Settings
//!
//! The RocksDB settings are based on measurements with `examples/tables.rs` (200,000 wells at depth
//! 40). A well takes:
//!
//! - 10.5 bytes with the settings in this module,
//! - 30.8 bytes without compression,
//! - 9.6 bytes with zstd level 9, which takes 1.5 times as long,
//! - 11.2 bytes with 8 KiB blocks, and 10.2 bytes with 128 KiB blocks.
//!
//! Of the 10.5 bytes, the score takes 2.4, the hint 2.1 and the ribbon filter 0.9 (a Bloom filter
//! would take 1.25). A compression dictionary does not reduce the size, because the keys in a block
//! are already similar. At a width of 5,000,000, a well takes 10.4 bytes.

use crate::error::{StoreError, hex_of};
use crate::parallel::in_parallel;
use crate::run::NewDepth;
use hatebeam_game::Geometry;
use hatebeam_search::{Digest, MAX_LINES, Node, NodeWell};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, LiveFile, LogLevel, Options, ReadOptions,
    SstFileWriter,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Name of the folder with a RocksDB database of tables.
pub(crate) const DB_DIR: &str = "db";
/// Name of the folder with the tables that are being written.
pub(crate) const TABLES: &str = "tables";

/// Length of a value, in bytes.
const VALUE_LEN: usize = 7;
/// Length of the depth in a key, in bytes.
pub(crate) const DEPTH_LEN: usize = 4;
/// Maximum length of a key, in bytes.
const KEY_ROOM: usize = DEPTH_LEN + size_of::<NodeWell>();
/// Approximate maximum number of wells in a table. A table of this size takes about 10 MB on disk. A
/// thread that writes a table needs 30 bytes of memory per well for the filter.
const MAX_IN_A_TABLE: u64 = 1 << 20;
/// Minimum number of wells per table if a depth is divided only to use more threads.
const MIN_IN_A_TABLE: u64 = 1 << 16;
/// Approximate number of wells sampled to choose the boundaries between tables.
const SAMPLES: u64 = 1 << 16;

/// A key, stored without heap allocation.
pub(crate) struct Key {
    bytes: [u8; KEY_ROOM],
    len: usize,
}

impl Key {
    pub(crate) fn new(geometry: Geometry, depth: u32, well: &NodeWell) -> Key {
        let mut bytes = [0; KEY_ROOM];
        let packed = geometry.packed_len();
        bytes[..DEPTH_LEN].copy_from_slice(&depth.to_be_bytes());
        bytes[DEPTH_LEN..DEPTH_LEN + packed].copy_from_slice(&well.0[..packed]);
        Key {
            bytes,
            len: DEPTH_LEN + packed,
        }
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the depth in a key, or `None` if the key is too short.
pub(crate) fn depth_of(key: &[u8]) -> Option<u32> {
    let (depth, _) = key.split_first_chunk::<DEPTH_LEN>()?;
    Some(u32::from_be_bytes(*depth))
}

/// Returns the first and the last depth in a table, as a range, or `None` if a key is too short.
pub(crate) fn depths_of(file: &LiveFile) -> Option<RangeInclusive<u32>> {
    let first = depth_of(file.start_key.as_deref()?)?;
    let last = depth_of(file.end_key.as_deref()?)?;
    Some(first..=last)
}

fn value_of(node: &Node) -> [u8; VALUE_LEN] {
    let [a, b, c, d] = node.score.to_be_bytes();
    let [e, f] = node.lines.to_be_bytes();
    [a, b, c, d, e, f, node.hint]
}

/// Reason for the damage of a depth if one of its entries cannot be decoded.
pub(crate) const INVALID_ENTRY: &str = "an entry has an invalid length or number of lines";

/// Decodes a value. Returns `None` if its length or its number of lines is invalid.
pub(crate) fn node_of_value(well: NodeWell, value: &[u8]) -> Option<Node> {
    let &[a, b, c, d, e, f, hint] = value else {
        return None;
    };
    let lines = u16::from_be_bytes([e, f]);
    (lines <= MAX_LINES).then_some(Node {
        score: i32::from_be_bytes([a, b, c, d]),
        well,
        lines,
        hint,
    })
}

/// Decodes a key and its value. Returns `None` if one of their lengths or the number of lines is invalid.
pub(crate) fn node_of(geometry: Geometry, key: &[u8], value: &[u8]) -> Option<Node> {
    let packed = key.get(DEPTH_LEN..)?;
    if packed.len() != geometry.packed_len() {
        return None;
    }
    let mut well = NodeWell::default();
    well.0.get_mut(..packed.len())?.copy_from_slice(packed);
    node_of_value(well, value)
}

/// Decodes the values that a lookup of `wells` at a depth in the database `dir` returned.
pub(crate) fn nodes_of_values(
    dir: &Path,
    depth: u32,
    wells: &[NodeWell],
    values: Vec<Result<Option<Vec<u8>>, rocksdb::Error>>,
) -> Result<Vec<Option<Node>>, StoreError> {
    let node = |(well, value): (&NodeWell, Result<Option<Vec<u8>>, rocksdb::Error>)| {
        let value = value.map_err(StoreError::read(depth, dir))?;
        let value = value.map(|value| {
            node_of_value(*well, &value).ok_or_else(|| StoreError::DamagedDepth {
                depth,
                file: None,
                reason: INVALID_ENTRY.to_owned(),
            })
        });
        value.transpose()
    };
    wells.iter().zip(values).map(node).collect()
}

/// Returns the settings for RocksDB and its tables.
pub(crate) fn options(cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(32 << 10);
    table.set_block_restart_interval(16);
    table.set_ribbon_filter(10.0);
    table.set_whole_key_filtering(true);
    table.set_block_cache(cache);
    // Without this setting, the filters of all open tables remain in memory, at 1.3 bytes per well.
    table.set_cache_index_and_filter_blocks(true);

    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::Zstd);
    options.set_compression_options(-14, 1, 0, 0);
    options.set_disable_auto_compactions(true);
    options.set_max_open_files(512);
    options.set_write_buffer_size(1 << 20);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options.set_log_level(LogLevel::Warn);
    // Without paranoid checks, other depths remain readable if a table is missing or incomplete.
    // Reading the damaged table still returns an error.
    options.set_paranoid_checks(false);
    options
}

/// Returns the options for reading all entries of a depth once.
pub(crate) fn scan_options(depth: u32) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options.set_readahead_size(2 << 20);
    if let Some(next) = depth.checked_add(1) {
        options.set_iterate_upper_bound(next.to_be_bytes());
    }
    options
}

/// The tables that a commit has written.
pub(crate) struct Written {
    pub(crate) paths: Vec<PathBuf>,
    /// One entry for each depth of the commit.
    pub(crate) depths: Vec<WrittenDepth>,
}

/// The size and the digest of a written depth.
#[derive(Clone, Copy, Default)]
pub(crate) struct WrittenDepth {
    /// Size of the depth in its tables, in bytes. The size of a table with several depths is divided
    /// in proportion to the numbers of nodes.
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
}

/// The nodes of a depth that go into one table.
struct TablePart<'a> {
    /// Index of the depth in the commit.
    index: usize,
    /// Sorted sequences of nodes.
    nodes: Vec<&'a [Node]>,
}

/// Checks the order of the nodes, writes the tables of a commit to a folder, and flushes them to disk.
pub(crate) fn write(
    options: &Options,
    folder: &Path,
    geometry: Geometry,
    depths: &[NewDepth<'_>],
    threads: usize,
) -> Result<Written, StoreError> {
    for NewDepth { record, shards, .. } in depths {
        in_parallel(threads, shards.len(), |shard| {
            check_order(record.depth, shard, shards[shard])
        })?;
    }
    let tables = tables_of(depths, threads);
    let first = depths.first().map_or(0, |depth| depth.record.depth);
    let files = in_parallel(threads, tables.len(), |at| {
        let path = folder.join(format!("{first}-{at}.sst"));
        let mut table = TableWriter::create(options, &path)?;
        let digests = tables[at].iter().map(|part| {
            let depth = depths[part.index].record.depth;
            table.add(geometry, depth, &part.nodes)
        });
        let digests: Vec<Digest> = digests.collect::<Result<_, _>>()?;
        let bytes = table.finish()?;
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(StoreError::io(&path))?;
        Ok((path, bytes, digests))
    })?;
    let mut written = Written {
        paths: Vec::new(),
        depths: vec![WrittenDepth::default(); depths.len()],
    };
    for (parts, (path, bytes, digests)) in tables.iter().zip(files) {
        written.paths.push(path);
        let count = |part: &TablePart<'_>| part.nodes.iter().map(|nodes| nodes.len() as u64).sum();
        let counts: Vec<u64> = parts.iter().map(count).collect();
        for ((part, digest), share) in parts.iter().zip(digests).zip(shares(bytes, &counts)) {
            let depth = &mut written.depths[part.index];
            depth.bytes += share;
            depth.digest.join(digest);
        }
    }
    Ok(written)
}

/// Divides a commit into tables.
fn tables_of<'a>(depths: &[NewDepth<'a>], threads: usize) -> Vec<Vec<TablePart<'a>>> {
    let Some((last, before)) = depths.split_last() else {
        return Vec::new();
    };
    let is_not_empty = |nodes: &&[Node]| !nodes.is_empty();
    let shared = before.iter().enumerate().filter(|(_, depth)| depth.keep);
    let shared = shared.map(|(index, depth)| TablePart {
        index,
        nodes: depth.shards.iter().copied().filter(is_not_empty).collect(),
    });
    let mut tables = vec![shared.collect::<Vec<_>>()];
    if last.keep {
        let boundaries = boundaries(&last.shards, threads);
        for at in 0..=boundaries.len() {
            let from = at.checked_sub(1).map(|before| &boundaries[before]);
            let to = boundaries.get(at);
            let nodes = last.shards.iter().map(|shard| {
                let index = |well: &NodeWell| shard.partition_point(|node| node.well < *well);
                &shard[from.map_or(0, index)..to.map_or(shard.len(), index)]
            });
            tables.push(vec![TablePart {
                index: before.len(),
                nodes: nodes.filter(is_not_empty).collect(),
            }]);
        }
    }
    for table in &mut tables {
        table.retain(|part| !part.nodes.is_empty());
    }
    tables.retain(|table| !table.is_empty());
    tables
}

/// Divides `bytes` in proportion to `counts`. The shares add up to `bytes`.
fn shares(bytes: u64, counts: &[u64]) -> Vec<u64> {
    let total = u128::from(counts.iter().sum::<u64>()).max(1);
    let (mut sum, mut given) = (0, 0);
    let share = |count: &u64| {
        sum += u128::from(*count);
        let upto = (u128::from(bytes) * sum / total) as u64;
        upto - std::mem::replace(&mut given, upto)
    };
    counts.iter().map(share).collect()
}

/// Checks that the wells of a shard are in strictly ascending order.
pub(crate) fn check_order(depth: u32, shard: usize, nodes: &[Node]) -> Result<(), StoreError> {
    match nodes
        .windows(2)
        .position(|pair| pair[0].well >= pair[1].well)
    {
        None => Ok(()),
        Some(before) => Err(StoreError::Unsorted {
            depth,
            shard,
            index: before + 1,
        }),
    }
}

/// Returns the boundaries between the tables: the first well of every table except the first table.
fn boundaries(shards: &[&[Node]], threads: usize) -> Vec<NodeWell> {
    let count: u64 = shards.iter().map(|shard| shard.len() as u64).sum();
    let tables = (threads as u64)
        .min(count / MIN_IN_A_TABLE)
        .max(count.div_ceil(MAX_IN_A_TABLE))
        .max(1);
    let step = (count / SAMPLES).max(1) as usize;
    let mut samples: Vec<NodeWell> = shards
        .iter()
        .flat_map(|shard| shard.iter().step_by(step))
        .map(|node| node.well)
        .collect();
    samples.sort_unstable();
    let mut boundaries: Vec<NodeWell> = (1..tables)
        .filter_map(|at| {
            let index = u128::from(at) * samples.len() as u128 / u128::from(tables);
            samples.get(index as usize).copied()
        })
        .collect();
    boundaries.dedup();
    boundaries
}

/// A writer for one table, which can contain several depths in ascending order.
pub(crate) struct TableWriter<'a> {
    writer: SstFileWriter<'a>,
    path: &'a Path,
}

impl<'a> TableWriter<'a> {
    pub(crate) fn create(
        options: &'a Options,
        path: &'a Path,
    ) -> Result<TableWriter<'a>, StoreError> {
        let writer = SstFileWriter::create(options);
        writer.open(path).map_err(StoreError::db(path))?;
        Ok(TableWriter { writer, path })
    }

    /// Merges sorted sequences of nodes, writes the nodes to the table, and returns their digest.
    pub(crate) fn add(
        &mut self,
        geometry: Geometry,
        depth: u32,
        parts: &[&[Node]],
    ) -> Result<Digest, StoreError> {
        let (writer, path) = (&mut self.writer, self.path);
        let mut digest = Digest::default();
        let mut put = |node: &Node| {
            digest.add(node);
            let key = Key::new(geometry, depth, &node.well);
            let put = writer.put(&key, value_of(node));
            put.map_err(StoreError::db(path))
        };
        let mut rest: Vec<std::slice::Iter<'_, Node>> =
            parts.iter().map(|part| part.iter()).collect();
        let mut heads: BinaryHeap<Reverse<(NodeWell, usize)>> = parts
            .iter()
            .enumerate()
            .filter_map(|(part, nodes)| Some(Reverse((nodes.first()?.well, part))))
            .collect();
        let mut before: Option<NodeWell> = None;
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((well, part)) = *head;
            let Some(node) = rest[part].next() else {
                PeekMut::pop(head);
                continue;
            };
            if before == Some(well) {
                return Err(StoreError::DuplicateWell {
                    depth,
                    well: hex_of(geometry, &well),
                });
            }
            before = Some(well);
            put(node)?;
            match rest[part].as_slice().first() {
                Some(next) => *head = Reverse((next.well, part)),
                None => {
                    PeekMut::pop(head);
                }
            }
        }
        Ok(digest)
    }

    /// Completes the table without flushing it to disk, and returns its size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, StoreError> {
        self.writer.finish().map_err(StoreError::db(self.path))?;
        Ok(self.writer.file_size())
    }
}

/// Deletes all files in `folder`, which must contain only tables that RocksDB has not ingested.
pub(crate) fn discard(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(file = %entry.path().display(), %error, "cannot remove table");
        }
    }
}

/// Removes from RocksDB all tables whose depths are all in `from..=to`.
pub(crate) fn delete(db: &DB, path: &Path, from: u32, to: u32) -> Result<(), StoreError> {
    let begin = from.to_be_bytes().to_vec();
    // The end lies between the last possible key of depth `to` and the first key of the next depth.
    let mut end = to.to_be_bytes().to_vec();
    end.extend([0xff; KEY_ROOM]);
    db.delete_file_in_range(begin, end)
        .map_err(StoreError::db(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Well;

    #[test]
    fn shares_add_up_and_are_proportional_to_the_counts() {
        assert_eq!(shares(1000, &[1, 1, 2]), [250, 250, 500]);
        assert_eq!(shares(100, &[1, 1, 1]), [33, 33, 34]);
        assert_eq!(shares(7, &[]), [0; 0]);
        assert_eq!(
            shares(u64::MAX, &[3, u64::MAX >> 2]).iter().sum::<u64>(),
            u64::MAX
        );
    }

    #[test]
    fn key_and_value_have_documented_format() {
        let geometry = Geometry::new(8, 3).unwrap();
        let well = Well::from_hex(geometry, "018003").unwrap();
        let node = Node {
            score: -2,
            well: NodeWell::pack(geometry, &well),
            lines: 0x0102,
            hint: 0xab,
        };
        let key = Key::new(geometry, 0x0001_0203, &node.well);
        // The key contains the depth, then the rows from the bottom up.
        assert_eq!(key.as_ref(), [0, 1, 2, 3, 0x03, 0x80, 0x01]);
        let value = value_of(&node);
        // The value contains the score, the number of rows cleared and the hint.
        assert_eq!(value, [0xff, 0xff, 0xff, 0xfe, 1, 2, 0xab]);
        assert_eq!(node_of(geometry, key.as_ref(), &value), Some(node));
        assert_eq!(depth_of(key.as_ref()), Some(0x0001_0203));
        assert_eq!(node_of(geometry, &key.as_ref()[1..], &value), None);
        assert_eq!(node_of(geometry, key.as_ref(), &value[1..]), None);
    }

    #[test]
    fn value_with_too_many_lines_is_refused() {
        let well = NodeWell::default();
        for (lines, is_valid) in [(0, true), (MAX_LINES, true), (MAX_LINES + 1, false)] {
            let node = Node {
                score: 7,
                well,
                lines,
                hint: 0,
            };
            let expected = is_valid.then_some(node);
            assert_eq!(node_of_value(well, &value_of(&node)), expected, "{lines}");
        }
    }
}
