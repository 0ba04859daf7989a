//! Local tables in memory, for tests and simulations.

use super::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_objects::Stored;
use hatebeam_runs::{ArchiveTables, MemoryArchive, Table, decode_nodes, encode_nodes};
use hatebeam_search::{Digest, Node, NodeWell};
use hatebeam_store::StoreError;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// A worker's disk that is simulated in memory. Each set of tables that it creates is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryStorage;

impl LocalStorage for MemoryStorage {
    fn create(&self, _: Geometry) -> Result<Arc<dyn LocalTables>, StoreError> {
        Ok(Arc::new(MemoryTables::default()))
    }

    fn create_archive(&self, _: Geometry) -> Result<Box<dyn ArchiveTables>, StoreError> {
        Ok(Box::new(MemoryArchive::default()))
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

/// The tables of one run on a worker's simulated disk.
#[derive(Debug, Default)]
struct MemoryTables(Mutex<Tables>);

impl MemoryTables {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        crate::lock(&self.0)
    }
}

impl LocalTables for MemoryTables {
    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        let tables = self.lock();
        let nodes = tables
            .depths
            .get(&depth)
            .ok_or(StoreError::NoDepth { depth })?;
        nodes.values().for_each(visit);
        Ok(())
    }

    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError> {
        let depth = work.frontier.depth;
        let mut bundle = Vec::new();
        let (mut written, mut files) = (Vec::new(), Vec::new());
        for (shard, nodes) in work.frontier.shards.iter().enumerate() {
            if nodes.is_empty() {
                continue;
            }
            let bytes = encode_nodes(nodes);
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
        let nodes = decode_nodes(depth, table)?;
        let file = PathBuf::from(format!("{depth}-{shard}"));
        self.lock().staged.insert(file.clone(), nodes);
        Ok(file)
    }

    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError> {
        let mut tables = self.lock();
        for file in files {
            let missing = || StoreError::io(&file)(std::io::ErrorKind::NotFound.into());
            let nodes = tables.staged.remove(&file).ok_or_else(missing)?;
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
