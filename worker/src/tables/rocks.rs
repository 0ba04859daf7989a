//! Local tables in RocksDB.

use super::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
use hatebeam_game::Geometry;
use hatebeam_objects::Stored;
use hatebeam_runs::Table;
use hatebeam_search::Node;
use hatebeam_store::{ColumnFamilies, ShardTable, ShardTables, StoreError, in_parallel};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Storage in a scratch directory on this machine.
#[derive(Debug)]
pub(crate) struct RocksStorage {
    dir: PathBuf,
}

impl RocksStorage {
    pub(crate) fn new(dir: PathBuf) -> RocksStorage {
        RocksStorage { dir }
    }
}

impl LocalStorage for RocksStorage {
    fn create(&self, geometry: Geometry) -> Result<Arc<dyn LocalTables>, StoreError> {
        let dir = self.dir.join("tables");
        let tables = ShardTables::create(&dir, geometry, ColumnFamilies::PerDepth)?;
        Ok(Arc::new(tables))
    }

    fn free_bytes(&self) -> u64 {
        hatebeam_store::free_bytes(&self.dir).unwrap_or(0)
    }

    fn disk_bytes(&self) -> u64 {
        hatebeam_store::disk_bytes(&self.dir).unwrap_or(0)
    }
}

impl LocalTables for ShardTables {
    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        ShardTables::visit(self, depth, visit)
    }

    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError> {
        let WriteTables {
            epoch,
            key,
            frontier,
            threads,
        } = *work;
        let depth = frontier.depth;
        let filled: Vec<usize> = (0..frontier.shards.len())
            .filter(|&shard| !frontier.shards[shard].is_empty())
            .collect();
        let written = in_parallel(threads, filled.len(), |at| {
            let shard = filled[at];
            let name = format!("{depth}-{shard}-{epoch}.sst");
            self.write(&name, depth, shard, &frontier.shards[shard])
        })?;
        let bundle = self.path(&format!("{depth}-{epoch}"));
        let tables = write_bundle(&bundle, key, &filled, &written)?;
        Ok(WrittenTables {
            tables,
            files: written.into_iter().map(|table| table.path).collect(),
            bundle: Bundle::File(bundle),
        })
    }

    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.path(&format!("{depth}-{shard}.sst"));
        std::fs::write(&path, table).map_err(StoreError::io(&path))?;
        Ok(path)
    }

    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError> {
        ShardTables::ingest(self, depth, files)
    }

    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError> {
        files
            .iter()
            .try_for_each(|file| std::fs::remove_file(file).map_err(StoreError::io(file)))
    }

    fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        ShardTables::drop_depth(self, depth)
    }
}

/// Concatenates the written tables of these shards into the file `bundle`. Returns a description of each table.
fn write_bundle(
    bundle: &Path,
    key: &str,
    shards: &[usize],
    written: &[ShardTable],
) -> Result<Vec<Table>, StoreError> {
    let mut file = File::create(bundle).map_err(StoreError::io(bundle))?;
    let (mut tables, mut offset) = (Vec::new(), 0);
    for (&shard, written) in shards.iter().zip(written) {
        let bytes = std::fs::read(&written.path).map_err(StoreError::io(&written.path))?;
        let stored = Stored::of(&bytes);
        file.write_all(&bytes).map_err(StoreError::io(bundle))?;
        tables.push(Table {
            shard: shard as u32,
            key: key.to_owned(),
            offset,
            bytes: stored.bytes,
            checksum: stored.checksum.to_string(),
            count: written.count,
            digest: written.digest.to_string(),
        });
        offset += stored.bytes;
    }
    Ok(tables)
}
