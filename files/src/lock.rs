//! Locks on folders, each held by one process at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the file that is locked while a process uses a folder.
pub const LOCK: &str = "lock";

/// Error for a folder that cannot be locked.
#[derive(Debug, Error)]
pub enum FolderLockError {
    /// Another process uses the folder.
    #[error("{} is used by another process: wait until it ends, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The file [`LOCK`] cannot be created or locked.
    #[error("{}", .0.display())]
    File(PathBuf, #[source] io::Error),
}

/// A folder that is locked for this process until the value is dropped. The lock is on the empty file [`LOCK`], which
/// remains in the folder.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks an existing folder.
    ///
    /// # Errors
    /// Returns a [`FolderLockError`] if another process has locked the folder, or if the file [`LOCK`] cannot be created
    /// or locked.
    pub fn take(folder: &Path) -> Result<FolderLock, FolderLockError> {
        let path = folder.join(LOCK);
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| FolderLockError::File(path.clone(), error))?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(FolderLockError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(FolderLockError::File(path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_locked_until_value_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        let second = FolderLock::take(folder.path()).unwrap_err();
        assert!(matches!(second, FolderLockError::InUse(path) if path == folder.path()));
        drop(lock);
        FolderLock::take(folder.path()).unwrap();
        let missing = FolderLock::take(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, FolderLockError::File(..)), "{missing}");
    }
}
