//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What can go wrong with objects, sorted by what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// No store can be there.
    #[error("'{location}' is no place for objects: {reason}")]
    Location {
        /// What was given.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The options cannot be meant.
    #[error("the options of the object store are wrong: {reason}")]
    Options {
        /// What is wrong with them.
        reason: String,
    },
    /// There is no such key.
    #[error("'{key}' cannot be the key of an object: {reason}")]
    Key {
        /// What was given.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no such object.
    #[error("{store} has no object '{key}'")]
    NotFound {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// Another writer was first: the condition of a write does not hold.
    #[error("'{key}' in {store} was changed by another writer")]
    Changed {
        /// The store.
        store: String,
        /// The key.
        key: String,
    },
    /// A range begins behind the end of the object.
    #[error("'{key}' in {store} has no byte {start}")]
    OutOfRange {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// Where the range begins.
        start: u64,
    },
    /// There is no such bucket.
    #[error("there is no bucket for {store}: make it, or look at the name and the endpoint")]
    NoBucket {
        /// The store.
        store: String,
    },
    /// The bucket is in another region.
    #[error("the bucket of {store} is not in the region used: {reason}")]
    WrongRegion {
        /// The store.
        store: String,
        /// What the server said.
        reason: String,
    },
    /// The credentials are missing, wrong or not enough.
    #[error("access to '{key}' in {store} is denied: {reason}")]
    Denied {
        /// The store.
        store: String,
        /// The key, or what keys were to begin with.
        key: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The store did not do it after all tries, and may do it later. A write may have been done all
    /// the same.
    #[error("'{key}' in {store} cannot be reached: {reason}")]
    Unavailable {
        /// The store.
        store: String,
        /// The key, or what keys were to begin with.
        key: String,
        /// What happened at the last try.
        reason: String,
    },
    /// The store will not do it.
    #[error("{store} refuses '{key}': {reason}")]
    Refused {
        /// The store.
        store: String,
        /// The key, or what keys were to begin with.
        key: String,
        /// What it said.
        reason: String,
    },
    /// What was read cannot be what was stored.
    #[error("'{key}' in {store} is damaged: {reason}")]
    Damaged {
        /// The store.
        store: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
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
}

impl ObjectError {
    /// Whether the same may well succeed a while later.
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

    /// Whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ObjectError::NotFound { .. })
    }

    /// Whether another writer was first.
    pub fn is_changed(&self) -> bool {
        matches!(self, ObjectError::Changed { .. })
    }

    /// Makes an error of the operating system's; a full disk is told apart.
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
