//! Local tables in RocksDB.

use super::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
use hatebeam_game::Geometry;
use hatebeam_objects::Stored;
use hatebeam_runs::{ArchiveTables, ScratchTables, Table};
use hatebeam_search::Node;
use hatebeam_store::{ColumnFamilies, ShardTable, ShardTables, StoreError, in_parallel};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
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

    fn create_archive(&self, geometry: Geometry) -> Result<Box<dyn ArchiveTables>, StoreError> {
        let dir = self.dir.join("archive");
        std::fs::create_dir_all(&dir).map_err(StoreError::io(&dir))?;
        Ok(Box::new(ScratchTables::create(&dir, geometry)?))
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
        let name = |shard: usize| format!("{depth}-{shard}-{epoch}.sst");
        let bundle = self.path(&format!("{depth}-{epoch}"));
        let write = || {
            let mut tables = in_parallel(threads, filled.len(), |at| {
                let shard = filled[at];
                let table = self.write(&name(shard), depth, shard, &frontier.shards[shard])?;
                Ok(describe(key, shard, &table, &read(&table.path)?))
            })?;
            let files: Vec<PathBuf> = filled
                .iter()
                .map(|&shard| self.path(&name(shard)))
                .collect();
            write_bundle(&bundle, threads, &files, &mut tables)?;
            Ok(WrittenTables {
                tables,
                files,
                bundle: Bundle::File(bundle.clone()),
            })
        };
        write().inspect_err(|_: &StoreError| {
            // The disk may be full, so an incomplete depth must not remain.
            let shards = filled.iter().map(|&shard| self.path(&name(shard)));
            for file in shards.chain([bundle.clone()]) {
                let _ = self.discard(&[file]);
            }
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
        for file in files {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::io(file)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        ShardTables::drop_depth(self, depth)
    }
}

/// Returns the description of a table with these bytes. Its offset is not known yet.
fn describe(key: &str, shard: usize, written: &ShardTable, bytes: &[u8]) -> Table {
    let stored = Stored::of(bytes);
    Table {
        shard: shard as u32,
        key: key.to_owned(),
        offset: 0,
        bytes: stored.bytes,
        checksum: stored.checksum.to_string(),
        count: written.count,
        digest: written.digest.to_string(),
    }
}

/// Concatenates the files of these tables into the file `bundle`, and fills in their offsets. The threads copy different
/// tables, because a depth of a wide beam has hundreds of megabytes.
fn write_bundle(
    bundle: &Path,
    threads: usize,
    files: &[PathBuf],
    tables: &mut [Table],
) -> Result<(), StoreError> {
    let mut offset = 0;
    for table in &mut *tables {
        table.offset = offset;
        offset += table.bytes;
    }
    let file = File::create(bundle).map_err(StoreError::io(bundle))?;
    in_parallel(threads, files.len(), |at| {
        let bytes = read(&files[at])?;
        file.write_all_at(&bytes, tables[at].offset)
            .map_err(StoreError::io(bundle))
    })?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(StoreError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Well;
    use hatebeam_search::{Frontier, NodeWell, ShardLayout};

    /// Returns a frontier with wells in shards 0 and 2 of three.
    fn frontier() -> Frontier {
        let layout = ShardLayout::new(4000, 3);
        let mut shards = vec![Vec::new(); 3];
        for row in 1..1023 {
            let mut rows = [0; 16];
            rows[0] = row;
            let well = NodeWell::pack(Geometry::STANDARD, &Well::from_rows(rows));
            let shard = layout.shard_of(&well);
            if shard != 1 {
                let score = i32::from(row);
                let (lines, hint) = (0, 0);
                shards[shard].push(Node {
                    score,
                    well,
                    lines,
                    hint,
                });
            }
        }
        for shard in &mut shards {
            shard.sort_unstable_by_key(|node| node.well);
        }
        Frontier { depth: 7, shards }
    }

    #[test]
    fn bundle_contains_each_table_at_its_offset_with_any_number_of_threads() {
        let frontier = frontier();
        let bundles = [1, 3].map(|threads| {
            let dir = tempfile::tempdir().unwrap();
            let storage = RocksStorage::new(dir.path().to_owned());
            let tables = storage.create(Geometry::STANDARD).unwrap();
            let written = tables
                .write(&WriteTables {
                    epoch: 2,
                    key: "key",
                    frontier: &frontier,
                    threads,
                })
                .unwrap();
            let Bundle::File(path) = &written.bundle else {
                panic!("the bundle is a file");
            };
            let bundle = std::fs::read(path).unwrap();
            let shards: Vec<u32> = written.tables.iter().map(|table| table.shard).collect();
            assert_eq!(shards, [0, 2]);
            let mut end = 0;
            for (file, table) in written.files.iter().zip(&written.tables) {
                assert_eq!(table.offset, end);
                end += table.bytes;
                let part = &bundle[table.offset as usize..end as usize];
                assert_eq!(part, std::fs::read(file).unwrap());
                assert_eq!(Stored::of(part).checksum.to_string(), table.checksum);
                let nodes = &frontier.shards[table.shard as usize];
                assert_eq!(table.count, nodes.len() as u64);
            }
            assert_eq!(bundle.len() as u64, end);
            written
                .tables
                .iter()
                .map(|table| table.digest.clone())
                .collect::<Vec<_>>()
        });
        assert_eq!(bundles[0], bundles[1]);
    }

    #[test]
    fn depth_that_cannot_be_written_leaves_no_files() {
        let frontier = frontier();
        let dir = tempfile::tempdir().unwrap();
        let storage = RocksStorage::new(dir.path().to_owned());
        let tables = storage.create(Geometry::STANDARD).unwrap();
        let write = |epoch| {
            tables.write(&WriteTables {
                epoch,
                key: "key",
                frontier: &frontier,
                threads: 2,
            })
        };
        let written = write(2).unwrap();
        let Bundle::File(bundle) = written.bundle else {
            panic!("the bundle is a file");
        };
        let files = || {
            let entries = bundle.parent().unwrap().read_dir().unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.starts_with("7-")).count()
        };
        assert_eq!(files(), 3);
        // The bundle cannot be created, because there is a folder with its name.
        std::fs::create_dir(bundle.with_file_name("7-3")).unwrap();
        assert!(write(3).is_err());
        assert_eq!(files(), 4);
    }
}
