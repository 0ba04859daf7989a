//! On-disk storage for the frontiers of a beam search (the wells kept at each depth), based on
//! RocksDB.
//!
//! A *run* is a folder ([`RunStore`]). It contains a manifest that describes the search, one record
//! per *depth* (number of pieces placed), and the wells of each depth in RocksDB tables.
//! [`PathSearch`] finds the path from the first well of a run to a given well, and [`list_runs`]
//! lists the runs in a folder. [`ShardTables`] stores the tables of individual shards for a cluster
//! worker.
//!
//! A depth is committed when its record is on disk. After a crash, the next [open](RunStore::open)
//! removes everything beyond the last record.

mod changes;
mod error;
mod files;
mod parallel;
mod path;
mod records;
mod run;
mod shards;
mod table;

pub use changes::Changes;
pub use error::StoreError;
pub use files::{bytes_below, disk_bytes, free_bytes};
pub use hatebeam_search::DepthRecord;
pub use parallel::in_parallel;
pub use path::{Lookup, MAX_CANDIDATES, Path, PathSearch, parent_of};
pub use run::{
    DEPTHS, FORMAT, MANIFEST, NewDepth, RunList, RunStore, RunSummary, StoredHead, UnreadableRun,
    list_runs,
};
pub use shards::{ColumnFamilies, ShardTable, ShardTables};
