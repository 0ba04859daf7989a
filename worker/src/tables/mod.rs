//! Local tables: copies of the tables of a worker's shards, on the worker's own machine. A table contains the wells
//! of one shard (a range of well hashes) at one depth.
//!
//! Local tables are a cache. The authoritative copies are in the object store.

mod memory;
mod rocks;

pub use memory::MemoryStorage;
pub(crate) use rocks::RocksStorage;

use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_runs::{ArchiveTables, Table};
use hatebeam_search::{Frontier, Node};
use hatebeam_store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;

/// The disk of a worker.
pub trait LocalStorage: Send + Sync + 'static {
    /// Deletes all tables on the disk, and returns an empty set of tables. The previous set must have been dropped.
    /// This method blocks.
    ///
    /// # Errors
    /// Returns an error if files cannot be written.
    fn create(&self, geometry: Geometry) -> Result<Arc<dyn LocalTables>, StoreError>;

    /// Creates empty temporary tables for reading a game back. This method blocks.
    ///
    /// # Errors
    /// Returns an error if files cannot be written.
    fn create_archive(&self, geometry: Geometry) -> Result<Box<dyn ArchiveTables>, StoreError>;

    /// Returns the free space in bytes.
    fn free_bytes(&self) -> u64;

    /// Returns the size of the disk in bytes.
    fn disk_bytes(&self) -> u64;
}

/// The tables of one run on a worker's machine. All methods block.
///
/// A table is first *staged*: it is stored, but not part of its depth. It can be loaded after it is *ingested* into its
/// depth.
pub trait LocalTables: Send + Sync + 'static {
    /// Calls `visit` with each ingested node (a well with its score) of a depth, in the order of their wells. The caller
    /// must check that no table is missing.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if there is no table of this depth, or another error if the tables cannot be
    /// read.
    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError>;

    /// Writes and stages one table for each non-empty shard of a frontier, and concatenates the tables into a bundle. If
    /// this fails, no file remains.
    ///
    /// # Errors
    /// Returns an error if files cannot be written.
    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError>;

    /// Stages a table that was fetched from the object store. Returns its file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError>;

    /// Ingests staged tables into a depth.
    ///
    /// # Errors
    /// Returns an error if files cannot be read or written.
    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError>;

    /// Deletes the files of staged tables and bundles. Ignores files that do not exist.
    ///
    /// # Errors
    /// Returns an error if a file cannot be deleted.
    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError>;

    /// Deletes the tables of a depth, if there are any.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be deleted.
    fn drop_depth(&self, depth: u32) -> Result<(), StoreError>;
}

/// Parameters for [`LocalTables::write`].
#[derive(Clone, Copy, Debug)]
pub struct WriteTables<'a> {
    /// Number of the epoch (a period of a run with a fixed set of workers).
    pub epoch: u64,
    /// Key of the bundle in the object store, relative to the run's prefix.
    pub key: &'a str,
    /// The frontier whose nodes are written. A shard without nodes gets no table.
    pub frontier: &'a Frontier,
    /// Number of threads to use.
    pub threads: usize,
}

/// Result of [`LocalTables::write`].
#[derive(Debug)]
pub struct WrittenTables {
    /// Descriptions of the tables, including their offset and length in the bundle.
    pub tables: Vec<Table>,
    /// Files of the staged tables.
    pub files: Vec<PathBuf>,
    /// The concatenated tables. They are uploaded as one object, because object stores charge per request.
    pub bundle: Bundle,
}

/// The data of one object to upload.
#[derive(Clone, Debug)]
pub enum Bundle {
    /// The content of a file. The file must be deleted with [`LocalTables::discard`].
    File(PathBuf),
    /// Bytes in memory.
    Memory(Bytes),
}
