//! Functions that replace files atomically, and that measure files and disks.

use crate::error::StoreError;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes the creation, renaming and removal of files in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::io(dir))
}

/// Creates or replaces a file atomically and durably.
///
/// # Errors
/// Returns [`StoreError::DiskFull`] or [`StoreError::Io`] if the file cannot be written. An
/// existing file is then unchanged, unless only the final sync of its folder has failed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // A leftover temporary file is harmless, because the next call replaces it.
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io(path)(error));
    }
    sync_dir(folder_of(path))
}

/// Returns the folder of a file, or `.` if the path has no folder.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_returns_parent_or_current_folder() {
        for (path, folder) in [("a", "."), ("./a", "."), ("a/b", "a"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
