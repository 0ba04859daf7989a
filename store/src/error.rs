//! Errors of run stores.

use hatebeam_game::Geometry;
use hatebeam_search::NodeWell;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Errors of run stores, by what the caller can do.
///
/// | the caller can | variants |
/// |---|---|
/// | correct its input | `DoesNotFit`, `NotNext`, `BadRecord`, `Unsorted`, `DuplicateWell`, `ReadOnly` |
/// | ask for another depth or well | `NoDepth`, `NoWell` |
/// | choose another folder | `Exists`, `NoRun` |
/// | free space, or use another disk | `DiskFull` |
/// | update the program | `Newer` |
/// | wait for the other process | `InUse` |
/// | fetch the tables, and continue | `MissingTables` |
/// | retry later | some `Io`: see [`is_transient`](StoreError::is_transient) |
/// | repair the depth | `DamagedDepth`, `NoParent` |
/// | restore the file | `Damaged`, `Db` |
/// | do without the wells | `Dropped`, `TooMany` |
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// No space is left on the disk.
    #[error("no space is left for {}", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
    },
    /// RocksDB failed.
    #[error("RocksDB in {}: {reason}", path.display())]
    Db {
        /// The folder of the database, or the table.
        path: PathBuf,
        /// RocksDB's message.
        reason: String,
    },
    /// Another process has the run open for writing.
    #[error("the run in {} is in use by another process", dir.display())]
    InUse {
        /// The run's folder.
        dir: PathBuf,
    },
    /// The folder of a new run contains something.
    #[error("{} is not empty: choose an empty folder for a new run", dir.display())]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder contains no run.
    #[error("{} contains no run", dir.display())]
    NoRun {
        /// The folder.
        dir: PathBuf,
    },
    /// A later version of this program wrote the run.
    #[error("the run has format {found}, this program supports formats up to {known}: update it")]
    Newer {
        /// The run's format.
        found: u64,
        /// The newest supported format.
        known: u64,
    },
    /// A file is not what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The tables of a depth are missing or not what was written.
    #[error("depth {depth} is damaged{}: {reason}", in_file(file.as_deref()))]
    DamagedDepth {
        /// The depth.
        depth: u32,
        /// The table, if it is known.
        file: Option<PathBuf>,
        /// The reason.
        reason: String,
    },
    /// The tables of a depth are in an object store, and these are not fetched yet.
    #[error("{} tables of depth {depth} are not fetched yet", shards.len())]
    MissingTables {
        /// The depth.
        depth: u32,
        /// The shards whose tables are missing, ascending.
        shards: Vec<u32>,
    },
    /// The store was opened for reading only.
    #[error("the run in {} is open for reading only", dir.display())]
    ReadOnly {
        /// The run's folder.
        dir: PathBuf,
    },
    /// A node has no room for wells of this size.
    #[error("wells of {width} x {height} do not fit into a node")]
    DoesNotFit {
        /// Columns.
        width: usize,
        /// Rows below the bar.
        height: usize,
    },
    /// A commit skips or repeats a depth.
    #[error("cannot commit depth {found}: the next depth is {expected}")]
    NotNext {
        /// The next depth.
        expected: u32,
        /// The given depth.
        found: u32,
    },
    /// A record contradicts the nodes or cannot be stored.
    #[error("the record of depth {depth} is invalid: {reason}")]
    BadRecord {
        /// The depth.
        depth: u32,
        /// The reason.
        reason: String,
    },
    /// The wells of a shard are not in ascending order.
    #[error("shard {shard} of depth {depth} is not sorted: see node {index}")]
    Unsorted {
        /// The depth.
        depth: u32,
        /// The shard.
        shard: usize,
        /// The first node that is not greater than its predecessor.
        index: usize,
    },
    /// A well is in two shards of a depth.
    #[error("depth {depth} contains the well {well} twice")]
    DuplicateWell {
        /// The depth.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// The run does not have this depth.
    #[error("the run has no depth {depth}")]
    NoDepth {
        /// The depth.
        depth: u32,
    },
    /// The tables of the depth were dropped to save space.
    #[error("the wells of depth {depth} were not kept")]
    Dropped {
        /// The depth.
        depth: u32,
    },
    /// The depth does not contain the well.
    #[error("depth {depth} does not hold the well {well}")]
    NoWell {
        /// The depth.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// An earlier depth contains no ancestor of a well.
    #[error("depth {kept} holds no ancestor of the well {well} of depth {depth}")]
    NoParent {
        /// The depth of the well.
        depth: u32,
        /// The depth that should contain the ancestor.
        kept: u32,
        /// The well in hex.
        well: String,
    },
    /// The search for an ancestor across dropped depths was too long.
    #[error("no path from depth {depth} back to depth {kept} among {tried} wells")]
    TooMany {
        /// The depth where the search began.
        depth: u32,
        /// The nearest kept depth before it.
        kept: u32,
        /// Wells tried.
        tried: u64,
    },
}

fn in_file(file: Option<&Path>) -> String {
    file.map_or_else(String::new, |file| format!(" in {}", file.display()))
}

/// Returns a well in hex for a message.
pub(crate) fn hex_of(geometry: Geometry, well: &NodeWell) -> String {
    match well.unpack(geometry) {
        Ok(well) => well.to_hex(geometry),
        Err(_) => format!("{well:?}"),
    }
}

impl StoreError {
    /// Whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::Interrupted
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::ResourceBusy
                    | io::ErrorKind::StaleNetworkFileHandle
            ),
            _ => false,
        }
    }

    /// Wraps an error of the operating system. A full disk gets a variant of its own.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
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

    /// Wraps an error of RocksDB. A full disk gets a variant of its own.
    pub(crate) fn db(path: &Path) -> impl FnOnce(rocksdb::Error) -> StoreError + '_ {
        move |error| {
            let (path, reason) = (path.to_path_buf(), error.into_string());
            if reason.contains("No space left") || reason.contains("quota exceeded") {
                return StoreError::DiskFull { path };
            }
            StoreError::Db { path, reason }
        }
    }

    /// Wraps an error of RocksDB that occurred while it read the tables of a depth.
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

/// Returns the first table that a message of RocksDB names.
fn table_named_in(message: &str) -> Option<PathBuf> {
    let end = message.find(".sst")? + ".sst".len();
    let start = message[..end]
        .find(" /")
        .map(|at| at + 1)
        .or_else(|| message[..end].rfind(' ').map(|at| at + 1))
        .unwrap_or(0);
    Some(PathBuf::from(&message[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_transient_by_their_kind() {
        let io = |kind: io::ErrorKind| StoreError::io(Path::new("x"))(kind.into());
        assert!(io(io::ErrorKind::TimedOut).is_transient());
        assert!(!io(io::ErrorKind::PermissionDenied).is_transient());
        assert!(matches!(
            io(io::ErrorKind::StorageFull),
            StoreError::DiskFull { .. }
        ));
    }

    #[test]
    fn messages_of_rocksdb_name_their_table() {
        for (message, table) in [
            (
                "Corruption: block checksum mismatch in /r/db/000012.sst offset 0",
                "/r/db/000012.sst",
            ),
            (
                "IO error: while open db/000012.sst: No such file",
                "db/000012.sst",
            ),
        ] {
            assert_eq!(
                table_named_in(message),
                Some(PathBuf::from(table)),
                "{message}"
            );
        }
        assert_eq!(table_named_in("Corruption: bad magic number"), None);
    }
}
