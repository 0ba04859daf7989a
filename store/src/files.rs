//! Functions that empty folders, and that measure files and disks.

use crate::error::StoreError;
use std::fs;
use std::io;
use std::path::Path;

/// Creates a folder, or empties it if it exists.
pub(crate) fn empty_dir(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io(dir)(error));
        }
        _ => {}
    }
    fs::create_dir_all(dir).map_err(StoreError::io(dir))
}

/// Returns the total size in bytes of all files below a folder. Ignores files and folders that cannot
/// be accessed, for example because they are deleted during the call.
pub fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the number of free bytes that this user can use on the disk that contains `dir`. If `dir`
/// does not exist, uses its nearest existing ancestor.
///
/// # Errors
/// Returns [`StoreError::Io`] if the file system does not report its size.
pub fn free_bytes(dir: &Path) -> Result<u64, StoreError> {
    let stat = stat_of(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the size in bytes of the disk that contains `dir`. If `dir` does not exist, uses its
/// nearest existing ancestor.
///
/// # Errors
/// Returns [`StoreError::Io`] if the file system does not report its size.
pub fn disk_bytes(dir: &Path) -> Result<u64, StoreError> {
    let stat = stat_of(dir)?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

fn stat_of(dir: &Path) -> Result<rustix::fs::StatVfs, StoreError> {
    let whole = std::path::absolute(dir).map_err(StoreError::io(dir))?;
    let existing = whole.ancestors().find(|folder| folder.exists());
    let existing = existing.unwrap_or(&whole);
    rustix::fs::statvfs(existing).map_err(|error| StoreError::io(existing)(error.into()))
}
