//! The tables: how nodes become keys and values, and how RocksDB is set up.
//!
//! A key is the depth (32 bits, big endian) and the packed well; a value is the score (32 bits), the
//! game score (16 bits), both big endian, and the hint. The wells of a depth come in shards that
//! overlap (wells are sharded by hash); here they are merged and cut anew by key range, so that no two
//! tables overlap. Then every table is ingested into RocksDB's lowest level, a look-up asks one
//! table only, a depth can be removed by removing files, and nothing ever needs compaction. Tables
//! that overlap would soon pile up in level 0, whose files RocksDB does not remove by range and
//! searches one by one.
//!
//! **Settings** are measured by `examples/tables.rs` (200,000 wells of depth 40; bytes a well): 10.5 as
//! they are here, 30.8 without compression, 9.6 with zstd level 9 at one and a half times the time, 11.2
//! with blocks of 8 KiB and 10.2 with 128. Of the 10.5 the score takes 2.4, the hint 2.1 and the ribbon
//! filter 0.9 (a bloom filter takes 1.25). A dictionary gains nothing: the keys of a block are alike
//! enough. At a width of 5,000,000 it is 10.4.

use crate::error::StoreError;
use hatebeam_game::Geometry;
use hatebeam_search::{Digest, Node, NodeWell};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, LogLevel, Options, SstFileWriter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a value.
const VALUE_LEN: usize = 7;
/// Bytes of the depth in a key.
pub(crate) const DEPTH_LEN: usize = 4;
/// The most bytes of a key.
const KEY_ROOM: usize = DEPTH_LEN + size_of::<NodeWell>();
/// A table has at most about as many wells, some 10 MB: each thread that writes one holds all that its
/// filter is made from, 30 bytes a well.
const MOST_IN_A_TABLE: u64 = 1 << 20;
/// No table is cut for the sake of threads that would have fewer wells than these.
const LEAST_IN_A_TABLE: u64 = 1 << 16;
/// How many wells are looked at to find where to cut.
const SAMPLES: u64 = 1 << 16;

/// A key on the stack.
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

/// The depth that a key is of.
pub(crate) fn depth_of(key: &[u8]) -> Option<u32> {
    let (depth, _) = key.split_first_chunk::<DEPTH_LEN>()?;
    Some(u32::from_be_bytes(*depth))
}

fn value_of(node: &Node) -> [u8; VALUE_LEN] {
    let [a, b, c, d] = node.score.to_be_bytes();
    let [e, f] = node.lines.to_be_bytes();
    [a, b, c, d, e, f, node.hint]
}

/// The node with this well and this value.
pub(crate) fn node_of_value(well: NodeWell, value: &[u8]) -> Option<Node> {
    let &[a, b, c, d, e, f, hint] = value else {
        return None;
    };
    Some(Node {
        score: i32::from_be_bytes([a, b, c, d]),
        well,
        lines: u16::from_be_bytes([e, f]),
        hint,
    })
}

/// The node with this key and this value.
pub(crate) fn node_of(geometry: Geometry, key: &[u8], value: &[u8]) -> Option<Node> {
    let packed = key.get(DEPTH_LEN..)?;
    if packed.len() != geometry.packed_len() {
        return None;
    }
    let mut well = NodeWell::default();
    well.0.get_mut(..packed.len())?.copy_from_slice(packed);
    node_of_value(well, value)
}

/// The nodes of a depth with these wells, from the values that were found for them.
pub(crate) fn found(
    depth: u32,
    wells: &[NodeWell],
    values: Vec<Result<Option<Vec<u8>>, rocksdb::Error>>,
) -> Result<Vec<Option<Node>>, StoreError> {
    let node = |(well, value): (&NodeWell, Result<Option<Vec<u8>>, rocksdb::Error>)| {
        let value = value.map_err(StoreError::read(depth))?;
        let value = value.map(|value| {
            node_of_value(*well, &value).ok_or_else(|| StoreError::DamagedDepth {
                depth,
                file: None,
                reason: "an entry has another length".to_owned(),
            })
        });
        value.transpose()
    };
    wells.iter().zip(values).map(node).collect()
}

/// How RocksDB is set up, for its tables and for all else.
pub(crate) fn options(cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(32 << 10);
    table.set_block_restart_interval(16);
    table.set_ribbon_filter(10.0);
    table.set_whole_key_filtering(true);
    table.set_block_cache(cache);
    // Otherwise an open table keeps its filter in memory: 1.3 bytes a well.
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
    // A lost or cut table must not keep the other depths from being read: reading it tells.
    options.set_paranoid_checks(false);
    options
}

/// Calls `work` with each of `0..count` on up to `threads` threads, and gives the results in that order. After an error no more are begun.
///
/// # Errors
/// The first error of `work`.
pub fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<T, StoreError> + Sync,
) -> Result<Vec<T>, StoreError> {
    let next = AtomicUsize::new(0);
    // What is logged by a helper belongs to what is done here.
    let span = tracing::Span::current();
    let worker = || {
        let _inside = span.enter();
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(done);
            }
            match work(at) {
                Ok(result) => done.push((at, result)),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let parts: Vec<Result<Vec<(usize, T)>, StoreError>> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(count))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut parts = vec![worker()];
        for helper in helpers {
            parts.push(
                helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        parts
    });
    let mut all = Vec::with_capacity(count);
    for part in parts {
        all.extend(part?);
    }
    all.sort_unstable_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// What was written of a depth.
pub(crate) struct Written {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
}

/// Writes the tables of a depth into a folder, each flushed to the disk. Checks the order.
pub(crate) fn write(
    options: &Options,
    folder: &Path,
    geometry: Geometry,
    depth: u32,
    shards: &[&[Node]],
    threads: usize,
) -> Result<Written, StoreError> {
    in_parallel(threads, shards.len(), |shard| {
        check_order(depth, shard, shards[shard])
    })?;
    let cuts = cuts(shards, threads);
    let tables = in_parallel(threads, cuts.len() + 1, |at| {
        let from = at.checked_sub(1).map(|before| &cuts[before]);
        let to = cuts.get(at);
        let parts: Vec<&[Node]> = shards
            .iter()
            .map(|shard| {
                let place = |cut: &NodeWell| shard.partition_point(|node| node.well < *cut);
                &shard[from.map_or(0, place)..to.map_or(shard.len(), place)]
            })
            .filter(|part| !part.is_empty())
            .collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let path = folder.join(format!("{depth}-{at}.sst"));
        let table = write_one(options, &path, geometry, depth, &parts)?;
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(StoreError::io(&path))?;
        Ok(Some(table))
    })?;
    let mut written = Written {
        paths: Vec::new(),
        bytes: 0,
        digest: Digest::default(),
    };
    for (path, bytes, digest) in tables.into_iter().flatten() {
        written.paths.push(path);
        written.bytes += bytes;
        written.digest.join(digest);
    }
    Ok(written)
}

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

/// The first wells of all tables but the first.
fn cuts(shards: &[&[Node]], threads: usize) -> Vec<NodeWell> {
    let count: u64 = shards.iter().map(|shard| shard.len() as u64).sum();
    let tables = (threads as u64)
        .min(count / LEAST_IN_A_TABLE)
        .max(count.div_ceil(MOST_IN_A_TABLE))
        .max(1);
    let step = (count / SAMPLES).max(1) as usize;
    let mut samples: Vec<NodeWell> = shards
        .iter()
        .flat_map(|shard| shard.iter().step_by(step))
        .map(|node| node.well)
        .collect();
    samples.sort_unstable();
    let mut cuts: Vec<NodeWell> = (1..tables)
        .filter_map(|at| {
            let place = u128::from(at) * samples.len() as u128 / u128::from(tables);
            samples.get(place as usize).copied()
        })
        .collect();
    cuts.dedup();
    cuts
}

/// Merges these parts into a table, which is not flushed to the disk yet.
pub(crate) fn write_one(
    options: &Options,
    path: &Path,
    geometry: Geometry,
    depth: u32,
    parts: &[&[Node]],
) -> Result<(PathBuf, u64, Digest), StoreError> {
    let failed = || StoreError::db(path);
    let mut writer = SstFileWriter::create(options);
    writer.open(path).map_err(failed())?;
    let mut digest = Digest::default();
    let mut put = |node: &Node| {
        digest.add(node);
        let key = Key::new(geometry, depth, &node.well);
        writer.put(&key, value_of(node)).map_err(failed())
    };
    let mut rest: Vec<std::slice::Iter<'_, Node>> = parts.iter().map(|part| part.iter()).collect();
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
            return Err(StoreError::Twice {
                depth,
                well: crate::run::hex_of(geometry, &well),
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
    writer.finish().map_err(failed())?;
    Ok((path.to_path_buf(), writer.file_size(), digest))
}

/// Removes tables that were written and are not wanted.
pub(crate) fn discard(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(file = %entry.path().display(), %error, "a scratch table stays");
        }
    }
}

/// Removes the tables of the depths `from..=to` from RocksDB.
pub(crate) fn delete(db: &DB, path: &Path, from: u32, to: u32) -> Result<(), StoreError> {
    let begin = from.to_be_bytes().to_vec();
    // Above all keys of `to`, and below all of the next.
    let mut end = to.to_be_bytes().to_vec();
    end.extend([0xff; KEY_ROOM]);
    db.delete_file_in_range(begin, end)
        .map_err(StoreError::db(path))
}
