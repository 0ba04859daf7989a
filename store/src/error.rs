//! Errors of the run store, which keeps the wells of a beam search on disk.
//!
//! A *depth* is a number of placed pieces. The store keeps a *record* (statistics and a digest) for each
//! depth. It keeps the wells that the search has reached there in *tables*, which are RocksDB files. A
//! *node* is a well with its score. The nodes of a depth are divided into *shards* by hash.

use hatebeam_files::FolderLockError;
use hatebeam_game::Geometry;
use hatebeam_search::NodeWell;
use rocksdb::ErrorKind;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of the run store. The variants have these remedies:
///
/// | remedy | variants |
/// |---|---|
/// | correct the input | `DoesNotFit`, `NotNext`, `BadRecord`, `Unsorted`, `DuplicateWell`, `ReadOnly` |
/// | request another depth or well | `NoDepth`, `NoWell` |
/// | choose another folder | `Exists`, `NoRun` |
/// | free space, or use another disk | `DiskFull` |
/// | update this program | `Newer` |
/// | wait for another process | `InUse` |
/// | fetch the tables and continue | `MissingTables` |
/// | retry later | some `Io` errors: see [`is_transient`](StoreError::is_transient) |
/// | repair the depth | `DamagedDepth`, `NoParent` |
/// | restore the file | `Damaged`, `Db` |
/// | continue without the wells | `Dropped`, `TooMany` |
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file operation failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error. The message contains it, so it is no source.
        error: io::Error,
    },
    /// No space is left on the disk.
    #[error("no space is left on the disk for {}", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
    },
    /// A RocksDB operation failed, but not because of an error of the operating system.
    #[error("RocksDB failed in {}: {reason}", path.display())]
    Db {
        /// The folder of the database, or the table file.
        path: PathBuf,
        /// RocksDB's message.
        reason: String,
    },
    /// The run is already open for writing, usually in another process.
    #[error("the run in {} is in use by another process: wait for it, or stop it", dir.display())]
    InUse {
        /// The run's folder.
        dir: PathBuf,
    },
    /// The folder for a new run is not empty.
    #[error("{} is not empty: choose an empty folder for a new run", dir.display())]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder does not contain a run.
    #[error("{} contains no run: list the runs with `hatebeam runs`", dir.display())]
    NoRun {
        /// The folder.
        dir: PathBuf,
    },
    /// A newer version of this program wrote the run.
    #[error(
        "the run has format {found}, but this program supports only formats up to {known}: update the program"
    )]
    Newer {
        /// The run's format.
        found: u64,
        /// The newest supported format.
        known: u64,
    },
    /// The contents of a file are invalid, usually because the file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The tables of a depth are missing or damaged.
    #[error("depth {depth} is damaged{}: {reason}", in_file(file.as_deref()))]
    DamagedDepth {
        /// The depth.
        depth: u32,
        /// The table file, if it is known.
        file: Option<PathBuf>,
        /// The reason.
        reason: String,
    },
    /// Some tables of a depth are still in an object store and must be fetched first.
    #[error("{} tables of depth {depth} have not been fetched yet", shards.len())]
    MissingTables {
        /// The depth.
        depth: u32,
        /// The shards whose tables are missing, in ascending order.
        shards: Vec<u32>,
    },
    /// A write was attempted on a store that is open for reading only.
    #[error("the run in {} is open for reading only", dir.display())]
    ReadOnly {
        /// The run's folder.
        dir: PathBuf,
    },
    /// Wells of this size are too large to be stored.
    #[error("wells of {width} x {height} are too large: at most 160 cells can be stored")]
    DoesNotFit {
        /// Number of columns.
        width: usize,
        /// Number of rows below the bar.
        height: usize,
    },
    /// A commit skips or repeats a depth.
    #[error("cannot commit depth {found}: the next depth is {expected}")]
    NotNext {
        /// The depth that must be committed next.
        expected: u32,
        /// The depth that was given.
        found: u32,
    },
    /// A record does not match its nodes or cannot be stored.
    #[error("the record of depth {depth} is invalid: {reason}")]
    BadRecord {
        /// The depth.
        depth: u32,
        /// The reason.
        reason: String,
    },
    /// The wells of a shard are not in ascending order.
    #[error(
        "shard {shard} of depth {depth} is not sorted: node {index} is not greater than its predecessor"
    )]
    Unsorted {
        /// The depth.
        depth: u32,
        /// The shard.
        shard: usize,
        /// The index of the first node that is not greater than its predecessor.
        index: usize,
    },
    /// A well occurs in two shards of a depth.
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
    /// The tables of the depth were deleted, to save space or because they were damaged.
    #[error("the wells of depth {depth} were not kept")]
    Dropped {
        /// The depth.
        depth: u32,
    },
    /// The depth does not contain the well.
    #[error("depth {depth} does not contain the well {well}")]
    NoWell {
        /// The depth.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// An earlier depth contains no ancestor of a well.
    #[error("depth {kept} contains no ancestor of the well {well} at depth {depth}")]
    NoParent {
        /// The depth of the well.
        depth: u32,
        /// The depth that should contain the ancestor.
        kept: u32,
        /// The well in hex.
        well: String,
    },
    /// The search for an ancestor across dropped depths (those whose tables were deleted) exceeded
    /// its limit.
    #[error("found no path from depth {depth} back to depth {kept} after trying {tried} wells")]
    TooMany {
        /// The depth at which the search started.
        depth: u32,
        /// The nearest earlier depth with tables.
        kept: u32,
        /// Number of wells tried.
        tried: u64,
    },
}

fn in_file(file: Option<&Path>) -> String {
    file.map_or_else(String::new, |file| format!(" in {}", file.display()))
}

/// Returns a well in hex for an error message.
pub(crate) fn hex_of(geometry: Geometry, well: &NodeWell) -> String {
    match well.unpack(geometry) {
        Ok(well) => well.to_hex(geometry),
        Err(_) => format!("{well:?}"),
    }
}

impl From<FolderLockError> for StoreError {
    fn from(error: FolderLockError) -> StoreError {
        match error {
            FolderLockError::InUse(dir) => StoreError::InUse { dir },
            FolderLockError::File(path, error) => StoreError::io(&path)(error),
        }
    }
}

impl StoreError {
    /// Returns whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Io { error, .. } => matches!(
                error.kind(),
                io::ErrorKind::Interrupted
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::ResourceBusy
                    | io::ErrorKind::StaleNetworkFileHandle
            ),
            _ => false,
        }
    }

    /// Returns whether the contents of a table or of the database are invalid.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::Db { .. } | StoreError::Damaged { .. } | StoreError::DamagedDepth { .. }
        )
    }

    /// Returns a function that converts an I/O error. A full disk becomes [`StoreError::DiskFull`].
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
        move |error| {
            let path = path.to_path_buf();
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    StoreError::DiskFull { path }
                }
                _ => StoreError::Io { path, error },
            }
        }
    }

    /// Returns a function that converts a RocksDB error. A full disk becomes [`StoreError::DiskFull`], and another error
    /// of the operating system becomes [`StoreError::Io`].
    pub(crate) fn db(path: &Path) -> impl FnOnce(rocksdb::Error) -> StoreError + '_ {
        move |error| failed(path, &error.kind(), error.into_string())
    }

    /// Returns a function that converts a RocksDB error of reading a depth. `dir` is the database.
    pub(crate) fn read(depth: u32, dir: &Path) -> impl FnOnce(rocksdb::Error) -> StoreError {
        move |error| unreadable(depth, dir, &error.kind(), error.into_string())
    }
}

/// Converts a RocksDB error of an operation on a database or a table file.
fn failed(path: &Path, kind: &ErrorKind, reason: String) -> StoreError {
    let is_full = reason.contains("No space left") || reason.contains("quota exceeded");
    let path = path.to_path_buf();
    match system_error(&path, kind, &reason) {
        _ if is_full => StoreError::DiskFull { path },
        Some(error) => error,
        None => StoreError::Db { path, reason },
    }
}

/// Converts a RocksDB error of reading a depth. Damaged and missing tables become
/// [`StoreError::DamagedDepth`].
fn unreadable(depth: u32, dir: &Path, kind: &ErrorKind, reason: String) -> StoreError {
    system_error(dir, kind, &reason).unwrap_or_else(|| StoreError::DamagedDepth {
        depth,
        file: table_named_in(&reason),
        reason,
    })
}

/// Converts a RocksDB error that comes from the operating system, such as too many open files. Such an error does not mean
/// damage, because the tables may be intact. Returns `None` for other errors, and for missing files. `path` is the database or
/// the table.
fn system_error(path: &Path, kind: &ErrorKind, reason: &str) -> Option<StoreError> {
    let is_of_system = *kind == ErrorKind::IOError && !reason.contains(NOT_FOUND);
    is_of_system.then(|| StoreError::Io {
        path: table_named_in(reason).unwrap_or_else(|| path.to_path_buf()),
        error: io::Error::other(reason.to_owned()),
    })
}

/// Text in RocksDB's message if a file does not exist.
const NOT_FOUND: &str = "No such file or directory";

/// Returns the path of the first table file in a RocksDB message.
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
    fn is_transient_depends_on_kind_of_io_error() {
        let io = |kind: io::ErrorKind| StoreError::io(Path::new("x"))(kind.into());
        assert!(io(io::ErrorKind::TimedOut).is_transient());
        assert!(!io(io::ErrorKind::PermissionDenied).is_transient());
        assert!(matches!(
            io(io::ErrorKind::StorageFull),
            StoreError::DiskFull { .. }
        ));
    }

    #[test]
    fn only_damaged_and_missing_tables_are_damage() {
        use ErrorKind::{Corruption, IOError, Incomplete};
        let read = |kind: &ErrorKind, reason: &str| {
            unreadable(7, Path::new("/r/db"), kind, reason.to_owned())
        };
        let failed =
            |kind: &ErrorKind, reason: &str| failed(Path::new("/r/db"), kind, reason.to_owned());
        for (kind, reason) in [
            (
                Corruption,
                "Corruption: block checksum mismatch in /r/db/12.sst",
            ),
            (
                Corruption,
                "Corruption: truncated block read from /r/db/12.sst",
            ),
            (
                IOError,
                "IO error: No such file or directory: While open a file: /r/db/12.sst: No such file or directory",
            ),
            (Incomplete, "Result incomplete: "),
        ] {
            let error = read(&kind, reason);
            assert!(
                matches!(error, StoreError::DamagedDepth { depth: 7, .. }),
                "{error}"
            );
            let error = failed(&kind, reason);
            assert!(matches!(error, StoreError::Db { .. }), "{error}");
            assert!(error.is_damage() && error.to_string().contains(reason));
        }
        for (reason, expected) in [
            (
                "IO error: While pread offset 0 len 9: /r/db/12.sst: Input/output error",
                "/r/db/12.sst",
            ),
            (
                "IO error: While open a file: /r/db/12.sst: Too many open files",
                "/r/db/12.sst",
            ),
            (
                "IO error: While lock file: /r/db/LOCK: No locks available",
                "/r/db",
            ),
            ("IO error: Stale file handle", "/r/db"),
        ] {
            for error in [read(&IOError, reason), failed(&IOError, reason)] {
                assert!(!error.is_damage(), "{error}");
                let StoreError::Io { path, error } = error else {
                    panic!("{reason}");
                };
                assert_eq!(path, Path::new(expected));
                assert_eq!(error.to_string(), reason);
            }
        }
        let full = failed(
            &IOError,
            "IO error: While appending to file: /r/db/12.sst: No space left on device",
        );
        assert!(matches!(full, StoreError::DiskFull { .. }), "{full}");
    }

    #[test]
    fn table_file_is_found_in_rocksdb_messages() {
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
