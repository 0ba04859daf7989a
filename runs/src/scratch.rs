//! Tables in temporary folders, from which games are read back.

use crate::archive::ArchiveTables;
use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_search::{Node, NodeWell};
use hatebeam_store::{ColumnFamilies, ShardTables, StoreError};
use std::fs::{self, File};
use std::path::Path;
use tempfile::TempDir;

/// Start of the name of each folder.
const PREFIX: &str = "hatebeam-archive-";
/// Name of the file that is locked while a folder is in use.
const LOCK: &str = "lock";
/// Name of the folder of the tables. It is created after the file is locked.
const TABLES: &str = "tables";

/// Tables in RocksDB, in a folder that is deleted when this value is dropped.
#[derive(Debug)]
pub struct ScratchTables {
    tables: ShardTables,
    /// Deletes the folder when it is dropped.
    _folder: TempDir,
    /// The locked file.
    _lock: File,
}

impl ScratchTables {
    /// Creates a folder for tables in `scratch`. Deletes the folders of killed processes there.
    ///
    /// # Errors
    /// Returns an error if the folder or the database cannot be created.
    pub fn create(scratch: &Path, geometry: Geometry) -> Result<ScratchTables, StoreError> {
        delete_unused(scratch);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(scratch)
            .map_err(StoreError::io(scratch))?;
        let lock = folder.path().join(LOCK);
        let file = File::create(&lock).map_err(StoreError::io(&lock))?;
        file.lock().map_err(StoreError::io(&lock))?;
        let tables = folder.path().join(TABLES);
        Ok(ScratchTables {
            tables: ShardTables::create(&tables, geometry, ColumnFamilies::Shared)?,
            _folder: folder,
            _lock: file,
        })
    }
}

/// Deletes the folders in `scratch` whose processes have ended. Other users may have folders there, too, so errors are
/// ignored.
fn delete_unused(scratch: &Path) {
    let Ok(entries) = fs::read_dir(scratch) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // The type of a symbolic link is not that of its target.
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let folder = entry.path();
        // A folder without tables may belong to a process that has not locked its file yet.
        if !folder.join(TABLES).exists() {
            continue;
        }
        let lock = File::open(folder.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            match fs::remove_dir_all(&folder) {
                Ok(()) => tracing::info!(folder = %folder.display(), "delete unused tables"),
                Err(error) => {
                    tracing::debug!(folder = %folder.display(), %error, "cannot delete unused tables");
                }
            }
        }
    }
}

impl ArchiveTables for ScratchTables {
    fn add(&mut self, depth: u32, shard: u32, table: Bytes) -> Result<(), StoreError> {
        let path = self.tables.path(&format!("{depth}-{shard}.sst"));
        fs::write(&path, table).map_err(StoreError::io(&path))?;
        self.tables.ingest(depth, vec![path])
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        self.tables.multi_get(depth, wells)
    }

    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        self.tables.visit(depth, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ended_processes_are_deleted() {
        let scratch = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(scratch.path()).unwrap();
            entries.count()
        };
        let create = || ScratchTables::create(scratch.path(), Geometry::STANDARD).unwrap();
        let used = create();
        // The state after a kill: the folder is there, and its file is not locked.
        let ScratchTables {
            tables,
            _folder,
            _lock,
        } = create();
        let killed = _folder.keep();
        drop((tables, _lock));
        let starting = scratch.path().join(format!("{PREFIX}starting"));
        let other = scratch.path().join("other");
        for folder in [&starting, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(LOCK), "").unwrap();
        }
        fs::create_dir(other.join(TABLES)).unwrap();
        assert_eq!(names(), 4);

        let next = create();
        assert!(!killed.exists());
        assert!(used._folder.path().exists() && starting.exists() && other.exists());
        assert_eq!(names(), 4);
        drop((used, next));
        assert_eq!(names(), 2);
    }
}
