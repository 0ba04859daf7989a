//! Object store errors.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An object store error. The variants have these remedies:
///
/// | remedy | variants |
/// |---|---|
/// | correct the input | `Location`, `Options`, `Key`, `OutOfRange`, `Refused` |
/// | correct the setup | `NoBucket`, `WrongRegion`, `Denied`, `DiskFull`, most `Io` errors |
/// | retry later | `Unavailable` and some `Io` errors: see [`is_transient`](ObjectError::is_transient) |
/// | read the object again | `Changed` |
/// | restore the object, or continue without it | `NotFound`, `Damaged` |
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The location is invalid.
    #[error("invalid object store location '{location}': {reason}")]
    Location {
        /// The location.
        location: String,
        /// The reason.
        reason: String,
    },
    /// The options are invalid.
    #[error("invalid object store options: {reason}")]
    Options {
        /// The reason.
        reason: String,
    },
    /// The key is invalid.
    #[error("invalid object key '{key}': {reason}")]
    Key {
        /// The key.
        key: String,
        /// The reason.
        reason: &'static str,
    },
    /// No object with the key exists.
    #[error("{store} has no object '{key}'")]
    NotFound {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// The condition of a write does not hold. Usually, another writer has changed the object.
    #[error("'{key}' in {store} was changed by another writer")]
    Changed {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// The requested range starts at or after the end of the object.
    #[error("'{key}' in {store} ends before byte {start}")]
    OutOfRange {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// First byte of the requested range.
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
    /// All attempts failed for transient reasons. If the operation is a write, it may have been applied.
    #[error("'{key}' in {store} is unavailable: {reason}")]
    Unavailable {
        /// The store.
        store: String,
        /// The key or prefix.
        key: String,
        /// The reason why the last attempt failed.
        reason: String,
    },
    /// The store permanently refuses the operation.
    #[error("{store} refuses '{key}': {reason}")]
    Refused {
        /// The store.
        store: String,
        /// The key or prefix.
        key: String,
        /// The store's message.
        reason: String,
    },
    /// The store does not contain the bytes that were written.
    #[error("'{key}' in {store} is damaged: {reason}")]
    Damaged {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// The reason.
        reason: String,
    },
    /// A file operation failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error. The message contains it, so it is no source.
        error: io::Error,
    },
    /// The disk is full, or a quota is exhausted.
    #[error("no space is left for {}", path.display())]
    DiskFull {
        /// The file or folder that was being written.
        path: PathBuf,
    },
}

impl ObjectError {
    /// Returns whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            ObjectError::Unavailable { .. } => true,
            ObjectError::Io { error, .. } => matches!(
                error.kind(),
                io::ErrorKind::Interrupted
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::ResourceBusy
                    | io::ErrorKind::StaleNetworkFileHandle
            ),
            _ => false,
        }
    }

    /// Returns whether the error is [`ObjectError::NotFound`].
    pub fn is_not_found(&self) -> bool {
        matches!(self, ObjectError::NotFound { .. })
    }

    /// Returns whether the error is [`ObjectError::Changed`].
    pub fn is_changed(&self) -> bool {
        matches!(self, ObjectError::Changed { .. })
    }

    /// Returns a function that converts an I/O error to [`ObjectError::DiskFull`] or [`ObjectError::Io`].
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ObjectError + '_ {
        move |error| {
            let path = path.to_path_buf();
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    ObjectError::DiskFull { path }
                }
                _ => ObjectError::Io { path, error },
            }
        }
    }
}
