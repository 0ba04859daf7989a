//! Functions that replace files atomically, and that measure files and disks.

use crate::error::StoreError;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the creation, renaming and removal of files in a folder durable.
///
/// # Errors
/// Returns [`StoreError::Io`] if the folder cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::io(dir))
}

/// Creates a folder and its missing parents, and makes them durable. An existing folder is made durable too, because an
/// interrupted process may have created it.
///
/// # Errors
/// Returns [`StoreError::Io`] or [`StoreError::DiskFull`] if a folder cannot be created or synced.
pub fn create_dir_durably(dir: &Path) -> Result<(), StoreError> {
    let parents = dir.ancestors().skip(1);
    let missing: Vec<&Path> = parents.take_while(|parent| !parent.exists()).collect();
    fs::create_dir_all(dir).map_err(StoreError::io(dir))?;
    sync_dir(folder_of(dir))?;
    missing.into_iter().map(folder_of).try_for_each(sync_dir)
}

/// Beginning of the name of a temporary file. A process number and a number in the process follow.
const TEMPORARY_PREFIX: &str = ".hatebeam-";
/// End of the name of a temporary file.
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Creates or replaces a file atomically and durably. If the path is a symbolic link, creates or
/// replaces the file to which it leads. Writes directly to a file that is not regular, such as
/// `/dev/null` or a pipe.
///
/// # Errors
/// Returns [`StoreError::DiskFull`] or [`StoreError::Io`] if the file cannot be written. An
/// existing regular file is then unchanged, unless only the final sync of its folder has failed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let is_special = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        meta => {
            let meta = meta.map_err(StoreError::io(path))?;
            !meta.is_file() && !meta.is_dir()
        }
    };
    if is_special {
        let file = File::options().write(true).open(path);
        let written = file.and_then(|mut file| file.write_all(bytes));
        return written.map_err(StoreError::io(path));
    }
    let target = target_of(path);
    let folder = folder_of(&target);
    replace(&target, folder, bytes).map_err(StoreError::io(path))?;
    sync_dir(folder)
}

/// Writes a temporary file in the folder of `target`, and renames it.
fn replace(target: &Path, folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let Temporary { path, mut file } = Temporary::create(folder)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&path, target));
    if written.is_err() {
        // A leftover temporary file is harmless, because no other file has its name.
        let _ = fs::remove_file(&path);
    }
    written
}

/// A new temporary file.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    /// Creates a file with a name that no other file in the folder has.
    fn create(folder: &Path) -> io::Result<Temporary> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let name = format!("{TEMPORARY_PREFIX}{process}-{number}{TEMPORARY_SUFFIX}");
            let path = folder.join(name);
            match File::create_new(&path) {
                // A killed process with the same number has left the file.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => return file.map(|file| Temporary { path, file }),
            }
        }
    }
}

/// Returns whether a file has the name of a temporary file of [`write_whole`].
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(TEMPORARY_PREFIX.as_bytes()) && name.ends_with(TEMPORARY_SUFFIX.as_bytes())
}

/// Removes the temporary files of [`write_whole`] that killed processes have left in a folder, which need
/// not exist. No process may be writing a file there.
///
/// # Errors
/// Returns [`StoreError::Io`] if the folder cannot be read or a file cannot be removed.
pub fn remove_temporaries(folder: &Path) -> Result<(), StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(StoreError::io(folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(StoreError::io(folder))?;
        if is_temporary(&entry.file_name()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
        }
    }
    Ok(())
}

/// Follows symbolic links. The result may not exist.
fn target_of(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    while let Ok(link) = fs::read_link(&target) {
        target = folder_of(&target).join(link);
    }
    target
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

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn written_file_replaces_only_a_file_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game");
        let other = folder.path().join("game.tmp");
        fs::write(&other, "mine").unwrap();
        for text in ["a", "b"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(names_in(folder.path()), ["game", "game.tmp"]);
        let error = write_whole(folder.path(), b"c").unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        write_whole(&folder.path().join("none/game"), b"c").unwrap_err();
        assert_eq!(names_in(folder.path()), ["game", "game.tmp"]);
    }

    #[test]
    fn temporary_files_have_unique_names_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let first = Temporary::create(folder).unwrap();
        let names = names_in(folder);
        assert!(is_temporary(OsStr::new(&names[0])), "{names:?}");
        let second = Temporary::create(folder).unwrap();
        assert_ne!(first.path, second.path);
        for name in ["file", "manifest.json.tmp", ".hatebeam-1", ".tmp"] {
            assert!(!is_temporary(OsStr::new(name)), "{name}");
            fs::write(folder.join(name), "").unwrap();
        }
        remove_temporaries(folder).unwrap();
        assert_eq!(
            names_in(folder),
            [".hatebeam-1", ".tmp", "file", "manifest.json.tmp"]
        );
        remove_temporaries(&folder.join("none")).unwrap();
        remove_temporaries(&folder.join("file")).unwrap_err();
    }

    #[test]
    fn missing_folder_is_created_with_its_parents() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b/c");
        for _ in 0..2 {
            create_dir_durably(&dir).unwrap();
            assert!(dir.is_dir());
        }
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        create_dir_durably(&file.join("a")).unwrap_err();
    }

    #[test]
    fn symbolic_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&there).unwrap();
        let link = here.join("link");
        std::os::unix::fs::symlink("second", &link).unwrap();
        std::os::unix::fs::symlink("../there/file", here.join("second")).unwrap();
        // The file does not exist at first.
        for text in ["a", "b"] {
            write_whole(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(there.join("file")).unwrap(), text);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names_in(&here), ["link", "second"]);
        assert_eq!(names_in(&there), ["file"]);
        let circle = here.join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        write_whole(&circle, b"c").unwrap_err();
    }

    #[test]
    fn pipe_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write_whole(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), b"text");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names_in(folder.path()), ["pipe"]);
    }

    #[test]
    fn folder_of_returns_parent_or_current_folder() {
        for (path, folder) in [("a", "."), ("./a", "."), ("a/b", "a"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
