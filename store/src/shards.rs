//! The tables of single shards: what a worker writes, hands to the object store and keeps.
//!
//! One table a shard and depth, with the keys and values of all tables (see `table.rs`). The shards of a depth
//! overlap, so that RocksDB has to take them into level 0, out of which it removes nothing by range. So that
//! a depth can go nonetheless, it can have a column family of its own, and goes with it.
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

/// Whether depths are to go one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// All stay: cheaper to add to.
    One,
    /// A depth can [go](ShardTables::drop_depth).
    ADepth,
}

/// The tables of some shards of some depths.
pub struct ShardTables {
    families: Families,
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
    pub fn create(
        dir: &Path,
        geometry: Geometry,
        families: Families,
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

    /// Where a table of this name may be put before it is [taken](ShardTables::take).
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(TABLES).join(name)
    }

    /// Writes the table of a shard, not flushed to the disk yet. The nodes must be sorted by well, at least one.
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
        let _inside = tracing::debug_span!("table", shard).entered();
        table::check_order(depth, shard, nodes)?;
        let path = self.path(name);
        let (path, _, digest) =
            table::write_one(&self.options, &path, self.geometry, depth, &[nodes])?;
        tracing::debug!(wells = nodes.len(), "table written");
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
            Families::One => "all".to_owned(),
            Families::ADepth => depth.to_string(),
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
        if let Some(next) = depth.checked_add(1) {
            options.set_iterate_upper_bound(next.to_be_bytes());
        }
        let mut cursor = self.db.raw_iterator_cf_opt(&family, options);
        cursor.seek(depth.to_be_bytes());
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

    /// Lets the tables of a depth go, if there are any, and depths have [families](Families::ADepth).
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
