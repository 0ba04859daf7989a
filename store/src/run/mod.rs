//! A run on disk, which is a folder with these files:
//!
//! - `lock`: a file that is locked while the run is open for writing.
//! - `manifest.json`: the format number, the geometry, the caller's specification, and the result.
//! - `depths.jsonl`: a record for each depth, which is a number of placed pieces (see `records.rs`). A
//!   depth is committed when its record is written.
//! - `db/`: the RocksDB database with the tables of the depths (see `table.rs`).
//! - `tables/`: tables that are being written. This folder is emptied when the run is opened for
//!   writing.
//! - `.hatebeam-*.tmp`: files that are being written. They are deleted when the run is opened for
//!   writing.
//!
//! A commit writes the tables, flushes them to disk, and ingests them into RocksDB atomically. Then
//! it appends one line with the records of its depths. A crash or a failed removal may leave tables
//! in RocksDB without a record that marks them as kept. Such tables are removed when the run is
//! opened for writing.

mod commit;
mod list;
mod manifest;
mod read;

pub use commit::NewDepth;
pub use list::{RunList, RunSummary, UnreadableRun, list_runs};
pub use manifest::{FORMAT, MANIFEST};

use crate::error::StoreError;
use crate::files::{bytes_below, empty_dir};
use crate::records::Records;
use crate::table::{self, DB_DIR, TABLES};
use hatebeam_files::{FolderLock, LOCK, create_dir_durably, is_temporary, remove_temporaries};
use hatebeam_game::Geometry;
use hatebeam_search::DepthRecord;
use manifest::Manifest;
use rocksdb::{Cache, DB, Options};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file in a run's folder that contains a record for each depth.
pub const DEPTHS: &str = "depths.jsonl";
const CACHE_BYTES: usize = 64 << 20;

/// The part of a run's manifest that the caller stores.
#[derive(Clone, Debug)]
pub struct StoredHead {
    /// The specification that was passed to [`RunStore::create`] or [`RunStore::set_spec`].
    pub spec: Value,
    /// The result that [`RunStore::finish`] stored, if any.
    pub result: Option<Value>,
}

impl StoredHead {
    /// Reads the manifest of the run in `dir`, and neither opens nor changes any other file.
    ///
    /// # Errors
    /// Returns [`StoreError::NoRun`] if the folder contains no run, [`StoreError::Newer`] if its format is not
    /// supported, or another error if the manifest cannot be read.
    pub fn read(dir: &Path) -> Result<StoredHead, StoreError> {
        let (Manifest { spec, result, .. }, _) = Manifest::read(dir)?;
        Ok(StoredHead { spec, result })
    }
}

/// A run on disk.
pub struct RunStore {
    dir: PathBuf,
    geometry: Geometry,
    manifest: Manifest,
    records: Records,
    options: Options,
    /// The database, or `None` if it could not be reopened after an error.
    db: Option<DB>,
    /// The lock on the folder, or `None` if the run is open for reading only.
    lock: Option<FolderLock>,
}

impl std::fmt::Debug for RunStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStore")
            .field("dir", &self.dir)
            .field("geometry", &self.geometry)
            .field("depths", &self.records.list().len())
            .field("writes", &self.lock.is_some())
            .finish_non_exhaustive()
    }
}

impl RunStore {
    /// Creates a run and opens it for writing. The folder must not exist, must be empty, or must
    /// contain only files from an interrupted call of this function, which are replaced.
    ///
    /// # Errors
    /// Returns [`StoreError::Exists`] if the folder is not empty, [`StoreError::InUse`] if another
    /// process is creating a run there, [`StoreError::DoesNotFit`] if wells with this geometry are
    /// too large, or another error if the files cannot be written.
    pub fn create(dir: &Path, geometry: Geometry, spec: &Value) -> Result<RunStore, StoreError> {
        let manifest = Manifest::new(geometry, spec)?;
        create_dir_durably(dir).map_err(StoreError::io(dir))?;
        check_empty(dir)?;
        let lock = FolderLock::take(dir)?;
        if dir.join(MANIFEST).exists() {
            return Err(StoreError::Exists {
                dir: dir.to_path_buf(),
            });
        }
        remove_temporaries(dir).map_err(StoreError::io(dir))?;
        empty_dir(&dir.join(TABLES))?;
        empty_dir(&dir.join(DB_DIR))?;
        let mut options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        options.create_if_missing(true);
        let db = open_db(&options, dir)?;
        options.create_if_missing(false);
        let records = Records::create(&dir.join(DEPTHS))?;
        manifest.write(dir)?;
        Ok(RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: Some(lock),
        })
    }

    /// Opens a run for writing. Removes everything beyond the last committed depth, which a crash
    /// may have left.
    ///
    /// # Errors
    /// Returns [`StoreError::NoRun`] if the folder contains no run, [`StoreError::InUse`] if
    /// another process has the run open for writing, [`StoreError::Newer`] if its format is not
    /// supported, [`StoreError::Damaged`] if a file is damaged, or another error if the files
    /// cannot be read or written.
    pub fn open(dir: &Path) -> Result<RunStore, StoreError> {
        // This check prevents the creation of a lock file in a folder without a run.
        Manifest::read(dir)?;
        let lock = FolderLock::take(dir)?;
        let (mut manifest, geometry) = Manifest::read(dir)?;
        manifest.upgrade(dir)?;
        let records = Records::read(&dir.join(DEPTHS))?;
        records.trim()?;
        remove_temporaries(dir).map_err(StoreError::io(dir))?;
        empty_dir(&dir.join(TABLES))?;
        let options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        let db = open_db(&options, dir)?;
        let store = RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: Some(lock),
        };
        store.remove_uncommitted()?;
        Ok(store)
    }

    /// Opens a run for reading only. Another process may write to the run at the same time, but later
    /// commits by that process are not visible.
    ///
    /// # Errors
    /// Returns the same errors as [`RunStore::open`], except for [`StoreError::InUse`].
    pub fn open_read_only(dir: &Path) -> Result<RunStore, StoreError> {
        let (manifest, geometry) = Manifest::read(dir)?;
        // The tables of a record are ingested before the record is written. If the records are read
        // first, the database therefore contains all of their tables.
        let records = Records::read(&dir.join(DEPTHS))?;
        let options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        let db = open_db_read_only(&options, dir)?;
        Ok(RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: None,
        })
    }

    /// Returns the specification that was passed to [`RunStore::create`] or [`RunStore::set_spec`].
    pub fn spec(&self) -> &Value {
        &self.manifest.spec
    }

    /// Returns the run's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the geometry of the wells.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the result that [`RunStore::finish`] stored, if any.
    pub fn result(&self) -> Option<&Value> {
        self.manifest.result.as_ref()
    }

    /// Returns the records of the committed depths, in ascending order and without gaps.
    pub fn depths(&self) -> &[DepthRecord] {
        self.records.list()
    }

    /// Stores the result of the run. This does not prevent further commits.
    ///
    /// # Errors
    /// Returns [`StoreError::ReadOnly`] or another error if the manifest cannot be written.
    pub fn finish(&mut self, result: &Value) -> Result<(), StoreError> {
        self.check_writable()?;
        self.change_manifest(|manifest| manifest.result = Some(result.clone()))
    }

    /// Replaces the specification of the run atomically.
    ///
    /// # Errors
    /// Returns [`StoreError::ReadOnly`] or another error if the manifest cannot be written.
    pub fn set_spec(&mut self, spec: Value) -> Result<(), StoreError> {
        self.check_writable()?;
        self.change_manifest(|manifest| manifest.spec = spec)
    }

    /// Changes the manifest in memory after it has been written.
    fn change_manifest(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), StoreError> {
        let mut manifest = self.manifest.clone();
        change(&mut manifest);
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Returns the total size in bytes of the run's files.
    pub fn stored_bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }

    fn db(&self) -> Result<&DB, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::Db {
            path: self.db_dir(),
            reason: "the database could not be reopened after an error".to_owned(),
        })
    }

    fn db_dir(&self) -> PathBuf {
        self.dir.join(DB_DIR)
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(StoreError::ReadOnly {
                dir: self.dir.clone(),
            }),
        }
    }

    /// Returns the record of a depth, or an error if the depth has no tables.
    fn kept(&self, depth: u32) -> Result<&DepthRecord, StoreError> {
        match self.records.get(depth) {
            None => Err(StoreError::NoDepth { depth }),
            Some(record) if !record.kept => Err(StoreError::Dropped { depth }),
            Some(record) => Ok(record),
        }
    }
}

/// Checks that a folder is empty, except for files from an interrupted call of
/// [`RunStore::create`].
fn check_empty(dir: &Path) -> Result<(), StoreError> {
    // Earlier versions gave temporary files these names.
    let unfinished = [MANIFEST, DEPTHS].map(|name| format!("{name}.tmp"));
    let own = [LOCK, DEPTHS, DB_DIR, TABLES, &unfinished[0], &unfinished[1]];
    let mut is_empty = true;
    let mut is_own = true;
    for entry in fs::read_dir(dir).map_err(StoreError::io(dir))? {
        let name = entry.map_err(StoreError::io(dir))?.file_name();
        is_empty = false;
        is_own &= is_temporary(&name) || own.iter().any(|&own| name == own);
    }
    // `RunStore::create` creates the lock before all other files.
    if is_empty || (is_own && dir.join(LOCK).exists()) {
        return Ok(());
    }
    Err(StoreError::Exists {
        dir: dir.to_path_buf(),
    })
}

fn open_db(options: &Options, dir: &Path) -> Result<DB, StoreError> {
    let path = dir.join(DB_DIR);
    DB::open(options, &path).map_err(StoreError::db(&path))
}

/// Opens RocksDB for reading only. An attempt may fail because another process is changing the files,
/// so this function retries.
fn open_db_read_only(options: &Options, dir: &Path) -> Result<DB, StoreError> {
    const MAX_ATTEMPTS: u32 = 4;
    let path = dir.join(DB_DIR);
    let mut attempt = 1;
    loop {
        match DB::open_for_read_only(options, &path, false) {
            Ok(db) => return Ok(db),
            Err(_) if attempt < MAX_ATTEMPTS => attempt += 1,
            Err(error) => return Err(StoreError::db(&path)(error)),
        }
    }
}
