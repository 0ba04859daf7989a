//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What can go wrong with a run on disk.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// What it refused.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// No space is left on the disk.
    #[error("no space is left for {}", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// RocksDB refused.
    #[error("RocksDB in {}: {reason}", path.display())]
    Db {
        /// Its folder, or the table.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// Another process writes to the run.
    #[error("the run in {} is in use by another process", dir.display())]
    InUse {
        /// The run's folder.
        dir: PathBuf,
    },
    /// There is something already where a run was to be made.
    #[error("{} is no empty folder: a new run needs one", dir.display())]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// There is no run.
    #[error("there is no run in {}", dir.display())]
    NoRun {
        /// The folder.
        dir: PathBuf,
    },
    /// A later version of this program made the run.
    #[error("the run has format {found}; this program knows formats up to {known}")]
    Newer {
        /// The run's format.
        found: u64,
        /// The newest format known.
        known: u64,
    },
    /// A file cannot be what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The tables of a depth cannot be what was written.
    #[error("depth {depth} is damaged{}: {reason}", in_file(file.as_deref()))]
    DamagedDepth {
        /// The depth.
        depth: u32,
        /// The table, where it is known.
        file: Option<PathBuf>,
        /// What is wrong with it.
        reason: String,
    },
    /// The store was opened for reading only.
    #[error("the run in {} is open for reading only", dir.display())]
    ReadOnly {
        /// The run's folder.
        dir: PathBuf,
    },
    /// Wells of this size do not fit into a node.
    #[error("wells of {width} x {height} do not fit into a node")]
    DoesNotFit {
        /// Columns.
        width: usize,
        /// Rows below the bar.
        height: usize,
    },
    /// A depth was committed out of turn.
    #[error("depth {found} cannot be committed: the next one is {expected}")]
    NotNext {
        /// The depth whose turn it is.
        expected: u32,
        /// The depth given.
        found: u32,
    },
    /// A record cannot be kept.
    #[error("the record of depth {depth} is not valid: {reason}")]
    BadRecord {
        /// The depth.
        depth: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// The wells of a shard do not ascend.
    #[error("shard {shard} of depth {depth} is not sorted: see node {index}")]
    Unsorted {
        /// The depth.
        depth: u32,
        /// The shard.
        shard: usize,
        /// The first node that is not greater than the one before it.
        index: usize,
    },
    /// A well is in two shards of a depth.
    #[error("depth {depth} has a well twice: {well}")]
    Twice {
        /// The depth.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// The run has no such depth.
    #[error("the run has no depth {depth}")]
    NoDepth {
        /// The depth.
        depth: u32,
    },
    /// The tables of the depth were dropped on purpose.
    #[error("the wells of depth {depth} were not kept")]
    Dropped {
        /// The depth.
        depth: u32,
    },
    /// A well is not in the table it should be in.
    #[error("depth {depth} does not hold the well {well}")]
    NoWell {
        /// The depth.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// No well of the depth before leads to a well.
    #[error("depth {kept} holds no ancestor of the well {well} of depth {depth}")]
    NoParent {
        /// The depth of the well.
        depth: u32,
        /// The depth searched for its ancestors.
        kept: u32,
        /// The well in hex.
        well: String,
    },
    /// Too many wells had to be tried to get over depths that were not kept.
    #[error("no way from depth {depth} back to depth {kept} among {tried} wells tried")]
    TooMany {
        /// The depth from which the search went back.
        depth: u32,
        /// The kept depth before it.
        kept: u32,
        /// How many wells were tried.
        tried: u64,
    },
}

fn in_file(file: Option<&Path>) -> String {
    file.map_or_else(String::new, |file| format!(" in {}", file.display()))
}

impl StoreError {
    /// Makes an error of the operating system's; a full disk is told apart.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
        move |source| {
            let path = path.to_path_buf();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    StoreError::DiskFull { path }
                }
                _ => StoreError::Io { path, source },
            }
        }
    }

    /// Makes an error of RocksDB's; a full disk is told apart.
    pub(crate) fn db(path: &Path) -> impl FnOnce(rocksdb::Error) -> StoreError + '_ {
        move |error| {
            let (path, reason) = (path.to_path_buf(), error.into_string());
            match reason.contains("No space left") || reason.contains("quota exceeded") {
                true => StoreError::DiskFull { path },
                false => StoreError::Db { path, reason },
            }
        }
    }

    /// Makes an error of one that RocksDB met reading the tables of a depth.
    pub(crate) fn read(depth: u32) -> impl FnOnce(rocksdb::Error) -> StoreError {
        move |error| {
            let reason = error.into_string();
            StoreError::DamagedDepth {
                depth,
                file: table_named_in(&reason),
                reason,
            }
        }
    }
}

/// The first table that a message of RocksDB's names.
fn table_named_in(message: &str) -> Option<PathBuf> {
    let end = message.find(".sst")? + ".sst".len();
    let start = message[..end]
        .find(" /")
        .map(|at| at + 1)
        .or_else(|| message[..end].rfind(' ').map(|at| at + 1))
        .unwrap_or(0);
    Some(PathBuf::from(&message[start..end]))
}
