//! Tables in memory: for a worker's local disk, and for reading back a game.

use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_objects::Stored;
use hatebeam_runs::{ArchiveTables, Table};
use hatebeam_search::{Digest, Node, NodeWell, WELL_BYTES};
use hatebeam_store::StoreError;
use hatebeam_worker::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of an encoded node in bytes.
const NODE: usize = 7 + WELL_BYTES;

/// Encodes the nodes of a table.
fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(nodes.len() * NODE);
    for node in nodes {
        bytes.extend(node.score.to_le_bytes());
        bytes.extend(node.lines.to_le_bytes());
        bytes.push(node.hint);
        bytes.extend(node.well.0);
    }
    bytes
}

/// Decodes the nodes of a table. Returns `None` if the length is invalid.
fn decode(bytes: &[u8]) -> Option<Vec<Node>> {
    let chunks = bytes.chunks_exact(NODE);
    if !chunks.remainder().is_empty() {
        return None;
    }
    let node = |chunk: &[u8]| {
        Some(Node {
            score: i32::from_le_bytes(chunk.get(..4)?.try_into().ok()?),
            lines: u16::from_le_bytes(chunk.get(4..6)?.try_into().ok()?),
            hint: *chunk.get(6)?,
            well: NodeWell(chunk.get(7..)?.try_into().ok()?),
        })
    };
    chunks.map(node).collect()
}

fn damaged(depth: u32) -> StoreError {
    StoreError::DamagedDepth {
        depth,
        file: None,
        reason: "the table is truncated".to_owned(),
    }
}

/// The local disk of a worker process. It is empty after a restart, like a worker's scratch directory.
#[derive(Debug, Default)]
pub(crate) struct MemoryStorage;

impl LocalStorage for MemoryStorage {
    fn create(&self, _: Geometry) -> Result<Arc<dyn LocalTables>, StoreError> {
        Ok(Arc::new(MemoryTables::default()))
    }

    fn free_bytes(&self) -> u64 {
        1 << 30
    }

    fn disk_bytes(&self) -> u64 {
        1 << 31
    }
}

#[derive(Debug, Default)]
struct Tables {
    staged: BTreeMap<PathBuf, Vec<Node>>,
    depths: BTreeMap<u32, BTreeMap<NodeWell, Node>>,
}

/// The tables of one run on a worker's disk.
#[derive(Debug, Default)]
struct MemoryTables(Mutex<Tables>);

impl MemoryTables {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalTables for MemoryTables {
    fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        let tables = self.lock();
        let nodes = tables
            .depths
            .get(&depth)
            .ok_or(StoreError::NoDepth { depth })?;
        Ok(nodes.values().copied().collect())
    }

    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError> {
        let depth = work.frontier.depth;
        let mut bundle = Vec::new();
        let (mut written, mut files) = (Vec::new(), Vec::new());
        for (shard, nodes) in work.frontier.shards.iter().enumerate() {
            if nodes.is_empty() {
                continue;
            }
            let bytes = encode(nodes);
            let stored = Stored::of(&bytes);
            written.push(Table {
                shard: shard as u32,
                key: work.key.to_owned(),
                offset: bundle.len() as u64,
                bytes: stored.bytes,
                checksum: stored.checksum.to_string(),
                count: nodes.len() as u64,
                digest: Digest::of(nodes).to_string(),
            });
            bundle.extend(bytes);
            let file = PathBuf::from(format!("{depth}-{shard}-{}", work.epoch));
            self.lock().staged.insert(file.clone(), nodes.clone());
            files.push(file);
        }
        Ok(WrittenTables {
            tables: written,
            files,
            bundle: Bundle::Memory(Bytes::from(bundle)),
        })
    }

    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError> {
        let nodes = decode(table).ok_or_else(|| damaged(depth))?;
        let file = PathBuf::from(format!("{depth}-{shard}"));
        self.lock().staged.insert(file.clone(), nodes);
        Ok(file)
    }

    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError> {
        let mut tables = self.lock();
        for file in files {
            let nodes = tables.staged.remove(&file).unwrap_or_default();
            let of_depth = tables.depths.entry(depth).or_default();
            of_depth.extend(nodes.into_iter().map(|node| (node.well, node)));
        }
        Ok(())
    }

    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError> {
        let mut tables = self.lock();
        for file in files {
            tables.staged.remove(file);
        }
        Ok(())
    }

    fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        self.lock().depths.remove(&depth);
        Ok(())
    }
}

/// Temporary tables for reading back a game.
#[derive(Debug, Default)]
pub(crate) struct MemoryArchive(BTreeMap<u32, BTreeMap<NodeWell, Node>>);

impl ArchiveTables for MemoryArchive {
    fn add(&mut self, depth: u32, _: u32, table: Bytes) -> Result<(), StoreError> {
        let nodes = decode(&table).ok_or_else(|| damaged(depth))?;
        let of_depth = self.0.entry(depth).or_default();
        of_depth.extend(nodes.into_iter().map(|node| (node.well, node)));
        Ok(())
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        let nodes = self.0.get(&depth);
        let find = |well| nodes.and_then(|nodes| nodes.get(well)).copied();
        Ok(wells.iter().map(find).collect())
    }
}
