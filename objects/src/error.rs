//! Errors of object stores.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Errors of object stores, by what the caller can do.
///
/// | the caller can | variants |
/// |---|---|
/// | correct its input | `Location`, `Options`, `Key`, `OutOfRange`, `Refused` |
/// | correct the setup | `NoBucket`, `WrongRegion`, `Denied`, `DiskFull` |
/// | retry later | `Unavailable` and some `Io`: see [`is_transient`](ObjectError::is_transient) |
/// | read the object again and decide | `Changed` |
/// | do without the object or restore it | `NotFound`, `Damaged` |
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The location is invalid.
    #[error("'{location}' is not a location of objects: {reason}")]
    Location {
        /// The location.
        location: String,
        /// The reason.
        reason: String,
    },
    /// The options are invalid.
    #[error("invalid options of the object store: {reason}")]
    Options {
        /// The reason.
        reason: String,
    },
    /// The key is invalid.
    #[error("'{key}' cannot be the key of an object: {reason}")]
    Key {
        /// The key.
        key: String,
        /// The reason.
        reason: &'static str,
    },
    /// No object has the key.
    #[error("{store} has no object '{key}'")]
    NotFound {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// The condition of a write does not hold: another writer was faster.
    #[error("'{key}' in {store} was changed by another writer")]
    Changed {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// A range begins after the end of the object.
    #[error("'{key}' in {store} has no byte {start}")]
    OutOfRange {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// The first byte of the range.
        start: u64,
    },
    /// The bucket does not exist.
    #[error("the bucket of {store} does not exist: create it, or check the name and the endpoint")]
    NoBucket {
        /// The store.
        store: String,
    },
    /// The bucket is in another region.
    #[error("the bucket of {store} is in another region: {reason}")]
    WrongRegion {
        /// The store.
        store: String,
        /// The server's message.
        reason: String,
    },
    /// The credentials are missing, wrong or insufficient.
    #[error("access to '{key}' in {store} is denied: {reason}")]
    Denied {
        /// The store.
        store: String,
        /// The key or prefix.
        key: String,
        /// The reason.
        reason: String,
    },
    /// All attempts failed for transient reasons. A write may have been applied nevertheless.
    #[error("'{key}' in {store} is unavailable: {reason}")]
    Unavailable {
        /// The store.
        store: String,
        /// The key or prefix.
        key: String,
        /// The failure of the last attempt.
        reason: String,
    },
    /// The store refuses the operation permanently.
    #[error("{store} refuses '{key}': {reason}")]
    Refused {
        /// The store.
        store: String,
        /// The key or prefix.
        key: String,
        /// The store's message.
        reason: String,
    },
    /// The bytes read are not the bytes written.
    #[error("'{key}' in {store} is damaged: {reason}")]
    Damaged {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// The reason.
        reason: String,
    },
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
}

impl ObjectError {
    /// Whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            ObjectError::Unavailable { .. } => true,
            ObjectError::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::Interrupted
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::ResourceBusy
                    | io::ErrorKind::StaleNetworkFileHandle
            ),
            _ => false,
        }
    }

    /// Whether no object has the key.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ObjectError::NotFound { .. })
    }

    /// Whether the condition of a write did not hold.
    pub fn is_changed(&self) -> bool {
        matches!(self, ObjectError::Changed { .. })
    }

    /// Wraps an error of the operating system. A full disk gets a variant of its own.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ObjectError + '_ {
        move |source| {
            let path = path.to_path_buf();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    ObjectError::DiskFull { path }
                }
                _ => ObjectError::Io { path, source },
            }
        }
    }
}
