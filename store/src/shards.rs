//! Tables of individual shards (ranges of well hashes), for clusters. A worker writes such tables,
//! uploads them to the object store, and keeps a copy. To read a game back, a process fetches tables
//! from the object store and looks up wells.
//!
//! There is one table per shard and depth. The keys and values have the same format as in the
//! tables of a run (see `table.rs`). The key ranges of the shards overlap, so RocksDB ingests the
//! tables into level 0, from which it cannot remove files by key range. Therefore, a depth can be dropped
//! (its tables deleted) only if it has its own column family.
//!
//! The object store contains every table, so [`ShardTables::create`] may delete the contents of its
//! folder.

use crate::error::StoreError;
use crate::files::empty_dir;
use crate::table::{self, DB_DIR, Key, TABLES, TableWriter};
use hatebeam_game::Geometry;
use hatebeam_search::{Digest, Node, NodeWell};
use rocksdb::{Cache, DBWithThreadMode, IngestExternalFileOptions, MultiThreaded, Options};
use std::path::{Path, PathBuf};

const CACHE_BYTES: usize = 32 << 20;

/// A table that has been written to a file.
#[derive(Clone, Debug)]
pub struct ShardTable {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of wells.
    pub count: u64,
    /// Digest of the nodes.
    pub digest: Digest,
}

/// The assignment of depths to RocksDB's column families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnFamilies {
    /// All depths share one column family. Adding a depth is cheaper, but depths cannot be dropped.
    Shared,
    /// Each depth has its own column family, so depths can be [dropped](ShardTables::drop_depth).
    PerDepth,
}

/// A RocksDB database with tables of shards.
pub struct ShardTables {
    families: ColumnFamilies,
    dir: PathBuf,
    geometry: Geometry,
    options: Options,
    db: DBWithThreadMode<MultiThreaded>,
}

impl std::fmt::Debug for ShardTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardTables")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl ShardTables {
    /// Creates a store in a folder. Deletes the contents of the folder.
    ///
    /// # Errors
    /// Returns an error if the files cannot be deleted or written.
    pub fn create(
        dir: &Path,
        geometry: Geometry,
        families: ColumnFamilies,
    ) -> Result<ShardTables, StoreError> {
        empty_dir(dir)?;
        empty_dir(&dir.join(TABLES))?;
        let path = dir.join(DB_DIR);
        let mut options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        options.create_if_missing(true);
        let db = DBWithThreadMode::open(&options, &path).map_err(StoreError::db(&path))?;
        options.create_if_missing(false);
        Ok(ShardTables {
            families,
            dir: dir.to_path_buf(),
            geometry,
            options,
            db,
        })
    }

    /// Returns the path at which to write a table before it is [ingested](ShardTables::ingest).
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(TABLES).join(name)
    }

    /// Writes the table of a shard without flushing it to disk. `nodes` must not be empty and must
    /// be sorted by well.
    ///
    /// # Errors
    /// Returns [`StoreError::Unsorted`] if the nodes are not sorted, and [`StoreError::DiskFull`]
    /// or another error if the table cannot be written.
    pub fn write(
        &self,
        name: &str,
        depth: u32,
        shard: usize,
        nodes: &[Node],
    ) -> Result<ShardTable, StoreError> {
        let _inside = tracing::debug_span!("table", shard).entered();
        table::check_order(depth, shard, nodes)?;
        let path = self.path(name);
        let mut table = TableWriter::create(&self.options, &path)?;
        let digest = table.add(self.geometry, depth, &[nodes])?;
        table.finish()?;
        tracing::debug!(wells = nodes.len(), "wrote table");
        Ok(ShardTable {
            path,
            count: nodes.len() as u64,
            digest,
        })
    }

    /// Moves tables of a depth into RocksDB.
    ///
    /// # Errors
    /// Returns [`StoreError::DiskFull`] or [`StoreError::Io`] if the files cannot be written or read, or
    /// [`StoreError::Db`] if RocksDB fails for another reason, usually because a table is damaged.
    pub fn ingest(&self, depth: u32, paths: Vec<PathBuf>) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let failed = || StoreError::db(&self.dir);
        let name = self.family_name(depth);
        if self.db.cf_handle(&name).is_none() {
            self.db.create_cf(&name, &self.options).map_err(failed())?;
        }
        let family = self.family(depth)?;
        let mut ingest = IngestExternalFileOptions::default();
        ingest.set_move_files(true);
        self.db
            .ingest_external_file_cf_opts(&family, &ingest, paths)
            .map_err(failed())
    }

    fn family_name(&self, depth: u32) -> String {
        match self.families {
            ColumnFamilies::Shared => "all".to_owned(),
            ColumnFamilies::PerDepth => depth.to_string(),
        }
    }

    fn family(
        &self,
        depth: u32,
    ) -> Result<std::sync::Arc<rocksdb::BoundColumnFamily<'_>>, StoreError> {
        self.db
            .cf_handle(&self.family_name(depth))
            .ok_or(StoreError::NoDepth { depth })
    }

    /// Calls `visit` with each stored node of a depth, in the order of their wells. This method does
    /// not detect missing tables.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth's column family does not exist,
    /// [`StoreError::DamagedDepth`] if a table is damaged, or [`StoreError::Io`] if it cannot be read.
    pub fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        let family = self.family(depth)?;
        let options = table::scan_options(depth);
        let mut cursor = self.db.raw_iterator_cf_opt(&family, options);
        cursor.seek(depth.to_be_bytes());
        while let Some((key, value)) = cursor.item() {
            let node = table::node_of(self.geometry, key, value);
            visit(&node.ok_or_else(|| StoreError::DamagedDepth {
                depth,
                file: None,
                reason: table::INVALID_ENTRY.to_owned(),
            })?);
            cursor.next();
        }
        cursor.status().map_err(StoreError::read(depth, &self.dir))
    }

    /// Looks up wells at a depth. Returns one result per well, in the order of `wells`: the node,
    /// or `None` if the tables of the depth do not contain the well.
    ///
    /// # Errors
    /// Returns the same errors as [`ShardTables::visit`].
    pub fn multi_get(
        &self,
        depth: u32,
        wells: &[NodeWell],
    ) -> Result<Vec<Option<Node>>, StoreError> {
        let family = self.family(depth)?;
        let keys = wells
            .iter()
            .map(|well| (&family, Key::new(self.geometry, depth, well)));
        table::nodes_of_values(&self.dir, depth, wells, self.db.multi_get_cf(keys))
    }

    /// Drops a depth: deletes its tables. Does nothing if the depth has no tables, or if the depths
    /// [share](ColumnFamilies::Shared) a column family.
    ///
    /// # Errors
    /// Returns [`StoreError::Db`] or another error if RocksDB fails.
    pub fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        let name = depth.to_string();
        if self.db.cf_handle(&name).is_none() {
            return Ok(());
        }
        self.db.drop_cf(&name).map_err(StoreError::db(&self.dir))
    }
}
