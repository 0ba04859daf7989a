//! Files that appear whole or not at all.

use crate::error::StoreError;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes what was created, renamed or removed in a folder last.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::io(dir))
}

/// Puts a file in place of what had the name before, as one step, on the disk when it returns.
///
/// # Errors
/// [`StoreError::DiskFull`] and [`StoreError::Io`]; what had the name is then as it was.
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
        // What is left of it is in nobody's way: the next try writes over it.
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io(path)(error));
    }
    sync_dir(folder_of(path))
}

/// The folder that a file is in, also where it is named without one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a folder, if there is none, and leaves nothing in it.
pub(crate) fn empty_dir(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io(dir)(error));
        }
        _ => {}
    }
    fs::create_dir_all(dir).map_err(StoreError::io(dir))
}

/// The bytes of all files in a folder and those below. Files that go away meanwhile do not count.
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

/// The bytes that this user can still write to the disk that `dir`, or the nearest folder above it
/// that exists, is on.
///
/// # Errors
/// [`StoreError::Io`].
pub fn free_bytes(dir: &Path) -> Result<u64, StoreError> {
    let stat = stat_of(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The bytes of the disk that `dir`, or the nearest folder above it that exists, is on.
///
/// # Errors
/// [`StoreError::Io`].
pub fn disk_bytes(dir: &Path) -> Result<u64, StoreError> {
    let stat = stat_of(dir)?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

fn stat_of(dir: &Path) -> Result<rustix::fs::StatVfs, StoreError> {
    let whole = std::path::absolute(dir).map_err(StoreError::io(dir))?;
    let there = whole.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or(&whole);
    rustix::fs::statvfs(there).map_err(|error| StoreError::io(there)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_a_folder_whatever_it_is_called() {
        for (path, folder) in [("a", "."), ("./a", "."), ("a/b", "a"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
