//! Frontiers of a beam search, kept on disk and read back.
//!
//! A *run* is a folder ([`RunStore`]): a manifest that says what is searched, a list of records, one a
//! *depth*, and the wells of each depth in RocksDB tables. [`path_to`] walks from any kept well back
//! to the first one, and [`list_runs`] finds the runs in a folder.
//!
//! Three rules hold throughout. A file appears whole or not at all. What is read back is checked. A
//! depth counts from the moment its record is on the disk, and whatever a crash left beyond it is
//! dropped at the next [open](RunStore::open).

mod error;
mod files;
mod path;
mod records;
mod run;
mod shards;
mod table;

pub use error::StoreError;
pub use files::{bytes_below, disk_bytes, free_bytes, write_whole};
pub use path::{Lookup, MAX_CANDIDATES, Path, path_to};
pub use records::DepthRecord;
pub use run::{FORMAT, RunStore, RunSummary, list_runs};
pub use shards::{Families, ShardTable, ShardTables};
pub use table::in_parallel;
