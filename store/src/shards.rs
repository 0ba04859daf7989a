//! The tables of single shards: what a worker writes, hands to the object store and keeps.
//!
//! One table a shard and depth, with the keys and values of all tables (see `table.rs`). RocksDB takes them
//! into a column family a depth: the shards of a depth overlap, so that its tables lie in level 0, and
//! a depth goes with its column family.
//!
//! Nothing here is the only copy: what counts lies in the object store. So a folder that is
//! [made](ShardTables::create) anew is emptied first.

use crate::error::StoreError;
use crate::files::{bytes_below, empty_dir};
use crate::table::{self, Key};
use hatebeam_game::Geometry;
use hatebeam_search::{Digest, Node, NodeWell};
use rocksdb::{
    Cache, DBWithThreadMode, IngestExternalFileOptions, MultiThreaded, Options, ReadOptions,
};
use std::path::{Path, PathBuf};

const DB_DIR: &str = "db";
const TABLES: &str = "tables";
const CACHE_BYTES: usize = 32 << 20;

/// A table that was written.
#[derive(Clone, Debug)]
pub struct ShardTable {
    /// Where it is.
    pub path: PathBuf,
    /// How many wells it holds.
    pub count: u64,
    /// The digest of its nodes.
    pub digest: Digest,
}

/// The tables of some shards of some depths.
pub struct ShardTables {
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
    /// Makes a folder for tables. What was in it goes.
    ///
    /// # Errors
    /// What writing files may meet.
    pub fn create(dir: &Path, geometry: Geometry) -> Result<ShardTables, StoreError> {
        empty_dir(dir)?;
        empty_dir(&dir.join(TABLES))?;
        let path = dir.join(DB_DIR);
        let mut options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        options.create_if_missing(true);
        let db = DBWithThreadMode::open(&options, &path).map_err(StoreError::db(&path))?;
        options.create_if_missing(false);
        Ok(ShardTables {
            dir: dir.to_path_buf(),
            geometry,
            options,
            db,
        })
    }

    /// Where a table of this name may be put before it is [taken](ShardTables::take).
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(TABLES).join(name)
    }

    /// Writes the table of a shard, flushed to the disk. The nodes must be sorted by well, at least one.
    ///
    /// # Errors
    /// [`StoreError::Unsorted`], [`StoreError::DiskFull`], and what else writing files may meet.
    pub fn write(
        &self,
        name: &str,
        depth: u32,
        shard: usize,
        nodes: &[Node],
    ) -> Result<ShardTable, StoreError> {
        table::check_order(depth, shard, nodes)?;
        let path = self.path(name);
        let (path, _, digest) =
            table::write_one(&self.options, &path, self.geometry, depth, &[nodes])?;
        Ok(ShardTable {
            path,
            count: nodes.len() as u64,
            digest,
        })
    }

    /// Gives tables of a depth to RocksDB: the files are moved.
    ///
    /// # Errors
    /// [`StoreError::Db`].
    pub fn take(&self, depth: u32, paths: Vec<PathBuf>) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let failed = || StoreError::db(&self.dir);
        let name = depth.to_string();
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

    fn family(
        &self,
        depth: u32,
    ) -> Result<std::sync::Arc<rocksdb::BoundColumnFamily<'_>>, StoreError> {
        self.db
            .cf_handle(&depth.to_string())
            .ok_or(StoreError::NoDepth { depth })
    }

    /// All nodes of a depth that are here, sorted by well. Whether they are all that should be, the
    /// caller must check.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`], [`StoreError::DamagedDepth`].
    pub fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        let family = self.family(depth)?;
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_readahead_size(2 << 20);
        let mut cursor = self.db.raw_iterator_cf_opt(&family, options);
        cursor.seek_to_first();
        let mut nodes = Vec::new();
        while let Some((key, value)) = cursor.item() {
            let node = table::node_of(self.geometry, key, value);
            nodes.push(node.ok_or_else(|| StoreError::DamagedDepth {
                depth,
                file: None,
                reason: "an entry has another length".to_owned(),
            })?);
            cursor.next();
        }
        cursor.status().map_err(StoreError::read(depth))?;
        Ok(nodes)
    }

    /// The nodes of a depth that have these wells, in their order.
    ///
    /// # Errors
    /// As for [`ShardTables::load`].
    pub fn multi_get(
        &self,
        depth: u32,
        wells: &[NodeWell],
    ) -> Result<Vec<Option<Node>>, StoreError> {
        let family = self.family(depth)?;
        let keys = wells
            .iter()
            .map(|well| (&family, Key::new(self.geometry, depth, well)));
        table::found(depth, wells, self.db.multi_get_cf(keys))
    }

    /// Lets the tables of a depth go, if there are any.
    ///
    /// # Errors
    /// [`StoreError::Db`].
    pub fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        let name = depth.to_string();
        match self.db.cf_handle(&name) {
            None => Ok(()),
            Some(_) => self.db.drop_cf(&name).map_err(StoreError::db(&self.dir)),
        }
    }

    /// The bytes of all files here.
    pub fn stored_bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }
}
