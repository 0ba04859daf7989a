//! The tables of a worker's shards on its own machine.
//!
//! They are a cache: the object store has the authoritative copies.

mod rocks;

pub(crate) use rocks::RocksStorage;

use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_runs::Table;
use hatebeam_search::{Frontier, Node};
use hatebeam_store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;

/// The disk of a worker.
pub trait LocalStorage: Send + Sync + 'static {
    /// Deletes all tables and returns an empty set of them. The set before must be dropped. Blocks.
    ///
    /// # Errors
    /// Any error of writing files.
    fn create(&self, geometry: Geometry) -> Result<Arc<dyn LocalTables>, StoreError>;

    /// Free space in bytes.
    fn free_bytes(&self) -> u64;

    /// Size of the disk in bytes.
    fn disk_bytes(&self) -> u64;
}

/// The tables of one run on a worker's machine. All methods block.
///
/// A table is *staged* in a file first and belongs to its depth once it is ingested.
pub trait LocalTables: Send + Sync + 'static {
    /// Returns all nodes of a depth, sorted by well. The caller checks that they are complete.
    ///
    /// # Errors
    /// Any error of reading tables; [`StoreError::NoDepth`] without a table of the depth.
    fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError>;

    /// Writes and stages the tables of a frontier, and writes them one after the other into a bundle.
    ///
    /// # Errors
    /// Any error of writing files.
    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError>;

    /// Stages a table that was fetched from the object store, and returns its file.
    ///
    /// # Errors
    /// Any error of writing files.
    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError>;

    /// Adds staged tables to a depth.
    ///
    /// # Errors
    /// Any error of reading or writing files.
    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError>;

    /// Deletes staged tables and bundles.
    ///
    /// # Errors
    /// Any error of deleting files.
    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError>;

    /// Deletes the tables of a depth, if there are any.
    ///
    /// # Errors
    /// Any error of deleting files.
    fn drop_depth(&self, depth: u32) -> Result<(), StoreError>;
}

/// Tables to write.
#[derive(Clone, Copy, Debug)]
pub struct WriteTables<'a> {
    /// The epoch.
    pub epoch: u64,
    /// Key of the bundle in the object store, below the run's prefix.
    pub key: &'a str,
    /// The nodes of all shards. A shard without nodes has no table.
    pub frontier: &'a Frontier,
    /// Threads to use.
    pub threads: usize,
}

/// Tables that are written and staged.
#[derive(Debug)]
pub struct WrittenTables {
    /// For each table its place in the bundle and its content.
    pub tables: Vec<Table>,
    /// The staged files.
    pub files: Vec<PathBuf>,
    /// All tables, one after the other, to upload as one object: object stores charge per request.
    pub bundle: Bundle,
}

/// Bytes to upload.
#[derive(Clone, Debug)]
pub enum Bundle {
    /// The content of a file, which [`LocalTables::discard`] deletes.
    File(PathBuf),
    /// Bytes in memory.
    Memory(Bytes),
}
