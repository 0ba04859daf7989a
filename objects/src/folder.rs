//! Objects stored as files in a folder, which machines may share over a network file system.
//!
//! A write creates a temporary file in `.tmp` and then renames it, so that a reader never sees a partial
//! object.
//!
//! A lock on the file `.lock` protects three steps against concurrent writers in this and other processes:
//!
//! - the check and rename of a conditional write,
//! - the removal of folders that a deletion leaves empty, and
//! - the creation of folders for a new object.
//!
//! Unconditional writes do not conflict with each other, so they hold the lock in shared mode while they rename
//! the file. Conditional writes and deletions hold the lock exclusively. The operating system releases the lock
//! when a process dies. An operation that cannot take the lock for a minute changes nothing and fails.

use crate::checksum::Stored;
use crate::entry::{Condition, Entry, Version};
use crate::error::ObjectError;
use crate::key::check_key;
use crate::local::copy;
use crate::random::Random;
use bytes::Bytes;
use hatebeam_files::{Temporary, create_dir_durably, sync_dir};
use std::fs::{self, DirEntry, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which a temporary file is considered abandoned.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);
/// Maximum time for which an operation waits for the lock: as long as an attempt in S3 by default. Other operations hold the
/// lock for milliseconds, but a process that is suspended meanwhile holds it until it is resumed or ends.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// First pause between two attempts to take the lock. Later pauses are a hundredth of the time waited so far, so that many
/// waiting machines do not burden the server of a network file system.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Objects stored as files in a folder. All methods block.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
    lock_timeout: Duration,
}

enum LockMode {
    Shared,
    Exclusive,
}

impl Folder {
    pub(crate) fn open(root: &Path) -> Result<Folder, ObjectError> {
        let folder = Folder::at(root);
        let temporaries = folder.temporaries();
        create_dir_durably(&temporaries).map_err(ObjectError::io(&temporaries))?;
        if let Err(error) = folder.remove_abandoned() {
            tracing::warn!(%error, "cannot look for abandoned temporary files");
        }
        Ok(folder)
    }

    /// Opens a folder without changing it.
    pub(crate) fn open_existing(root: &Path) -> Result<Folder, ObjectError> {
        match fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => Ok(Folder::at(root)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ObjectError::io(root)(error))
            }
            _ => Err(ObjectError::Location {
                location: root.display().to_string(),
                reason: "there is no such folder: check the path".to_owned(),
            }),
        }
    }

    fn at(root: &Path) -> Folder {
        Folder {
            root: root.to_path_buf(),
            lock_timeout: LOCK_TIMEOUT,
        }
    }

    fn temporaries(&self) -> PathBuf {
        self.root.join(".tmp")
    }

    /// Removes abandoned temporary files. A file that cannot be removed causes a warning.
    fn remove_abandoned(&self) -> Result<(), ObjectError> {
        let dir = self.temporaries();
        // The age of a file is its distance from a new file, because the clock of this machine can differ from that of a file
        // server. Otherwise, a clock that is ahead would make the files that other processes are writing look abandoned.
        let newest = self.temporary()?;
        let now = newest.file.metadata().and_then(|meta| meta.modified());
        let now = now.map_err(ObjectError::io(newest.path()))?;
        let entries = fs::read_dir(&dir).map_err(ObjectError::io(&dir))?;
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|then| now.duration_since(then).ok());
            if age.is_some_and(|age| age > ABANDONED_AGE) {
                let removed = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                    _ => fs::remove_file(entry.path()),
                };
                if let Err(error) = removed {
                    tracing::warn!(path = %entry.path().display(), %error, "cannot remove abandoned temporary file");
                }
            }
        }
        Ok(())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Takes the lock for an operation on a key. The lock is held until the returned file is dropped.
    ///
    /// Returns [`ObjectError::Unavailable`] if other processes hold the lock for too long. Their lock remains in force, so
    /// conditional writes stay safe.
    #[allow(
        clippy::disallowed_methods,
        reason = "simulations never use folders, so this code may make its thread sleep"
    )]
    fn lock(&self, mode: LockMode, key: &str) -> Result<File, ObjectError> {
        let path = self.root.join(".lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(ObjectError::io(&path))?;
        let mut waited = Duration::ZERO;
        loop {
            let locked = match mode {
                LockMode::Shared => file.try_lock_shared(),
                LockMode::Exclusive => file.try_lock(),
            };
            match locked {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(ObjectError::io(&path)(error)),
                Err(TryLockError::WouldBlock) if waited >= self.lock_timeout => break,
                Err(TryLockError::WouldBlock) => {}
            }
            let pause = (waited / 100).max(LOCK_PAUSE);
            std::thread::sleep(pause);
            waited += pause;
        }
        Err(ObjectError::Unavailable {
            store: self.root.display().to_string(),
            key: key.to_owned(),
            reason: format!(
                "the lock {} was not free for {} s: resume or end the process that holds it",
                path.display(),
                self.lock_timeout.as_secs()
            ),
        })
    }

    /// Returns a function that converts an I/O error. The object also counts as missing if its path is a folder or is
    /// below a file.
    fn failed<'a>(&'a self, key: &'a str) -> impl FnOnce(io::Error) -> ObjectError + 'a {
        move |error| match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory => ObjectError::NotFound {
                store: self.root.display().to_string(),
                key: key.to_owned(),
            },
            _ => ObjectError::io(&self.path(key))(error),
        }
    }

    /// Opens an object and returns its length.
    fn open_object(&self, key: &str) -> Result<(File, u64), ObjectError> {
        let opened = File::open(self.path(key)).and_then(|file| {
            let meta = file.metadata()?;
            if meta.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok((file, meta.len()))
        });
        opened.map_err(self.failed(key))
    }

    fn temporary(&self) -> Result<Temporary, ObjectError> {
        let folder = self.temporaries();
        Temporary::create(&folder).map_err(ObjectError::io(&folder))
    }

    fn written(&self, bytes: &[u8]) -> Result<Temporary, ObjectError> {
        let mut temporary = self.temporary()?;
        let written = temporary.file.write_all(bytes);
        written
            .and_then(|()| temporary.file.sync_all())
            .map_err(ObjectError::io(temporary.path()))?;
        Ok(temporary)
    }

    /// Renames a temporary file to the path of a key. The caller must hold the lock, and then call
    /// [`Folder::sync_parents`] to make the new name durable.
    fn rename(&self, temporary: Temporary, key: &str) -> Result<(), ObjectError> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)
            .and_then(|()| temporary.rename(&path))
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::DirectoryNotEmpty => ObjectError::Refused {
                    store: self.root.display().to_string(),
                    key: key.to_owned(),
                    reason:
                        "in a folder, the key of an object cannot be a parent path of another key"
                            .to_owned(),
                },
                _ => ObjectError::io(&path)(error),
            })
    }

    /// Makes the directory entries of an object and of its parent folders durable. The folders may be new.
    fn sync_parents(&self, key: &str) -> Result<(), ObjectError> {
        let path = self.path(key);
        for folder in path.ancestors().skip(1) {
            match sync_dir(folder) {
                // Another writer has deleted the object and its folder in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced.map_err(ObjectError::io(folder))?,
            }
            if folder == self.root {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        self.put_temporary(self.written(bytes)?, key)
    }

    fn put_temporary(&self, temporary: Temporary, key: &str) -> Result<(), ObjectError> {
        let lock = self.lock(LockMode::Shared, key)?;
        self.rename(temporary, key)?;
        // Release the lock before waiting for the disk. Otherwise, writers that share the lock could make an exclusive
        // writer wait indefinitely.
        drop(lock);
        self.sync_parents(key)
    }

    pub(crate) fn put_if(
        &self,
        key: &str,
        bytes: &[u8],
        condition: &Condition,
    ) -> Result<Version, ObjectError> {
        let temporary = self.written(bytes)?;
        let _lock = self.lock(LockMode::Exclusive, key)?;
        let found = match self.get(key) {
            Ok((_, version)) => Some(version),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let holds = match condition {
            Condition::Absent => found.is_none(),
            Condition::Is(version) => found.as_ref() == Some(version),
        };
        if !holds {
            return Err(ObjectError::Changed {
                store: self.root.display().to_string(),
                key: key.to_owned(),
            });
        }
        self.rename(temporary, key)?;
        // Keep the lock until the write is durable: another writer must not rely on a write that a crash could undo.
        self.sync_parents(key)?;
        Ok(Version::of(bytes))
    }

    /// Copies the file instead of linking it: with a hard link, a later write to the file would change the object.
    pub(crate) fn put_file(&self, key: &str, from: &Path) -> Result<Stored, ObjectError> {
        let mut source = File::open(from).map_err(ObjectError::io(from))?;
        let mut temporary = self.temporary()?;
        let path = temporary.path().to_owned();
        let stored = copy(&mut source, from, &mut temporary.file, &path)?;
        temporary.file.sync_all().map_err(ObjectError::io(&path))?;
        self.put_temporary(temporary, key)?;
        Ok(stored)
    }

    pub(crate) fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        let (mut file, length) = self.open_object(key)?;
        let mut bytes = Vec::with_capacity(length as usize);
        file.read_to_end(&mut bytes).map_err(self.failed(key))?;
        let version = Version::of(&bytes);
        Ok((bytes.into(), version))
    }

    pub(crate) fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        let (mut file, length) = self.open_object(key)?;
        if range.start >= length {
            return Err(ObjectError::OutOfRange {
                store: self.root.display().to_string(),
                key: key.to_owned(),
                start: range.start,
            });
        }
        let mut bytes = vec![0; (range.end.min(length) - range.start) as usize];
        file.seek(SeekFrom::Start(range.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(self.failed(key))?;
        Ok(bytes.into())
    }

    pub(crate) fn size(&self, key: &str) -> Result<u64, ObjectError> {
        Ok(self.open_object(key)?.1)
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), ObjectError> {
        let path = self.path(key);
        let _lock = self.lock(LockMode::Exclusive, key)?;
        match fs::remove_file(&path) {
            Ok(()) => self.prune(&path),
            Err(error) => match self.failed(key)(error) {
                ObjectError::NotFound { .. } => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Removes empty parent folders of a path, because S3 has no empty folders. The caller must hold the lock
    /// exclusively.
    fn prune(&self, path: &Path) -> Result<(), ObjectError> {
        for folder in path.ancestors().skip(1) {
            if folder == self.root || fs::remove_dir(folder).is_err() {
                return sync_dir(folder).map_err(ObjectError::io(folder));
            }
        }
        Ok(())
    }

    pub(crate) fn delete_prefix(&self, prefix: &str) -> Result<u64, ObjectError> {
        let path = self.path(prefix);
        let removed = self.temporaries().join(Random::default().name());
        {
            let _lock = self.lock(LockMode::Exclusive, prefix)?;
            if !path.is_dir() {
                return Ok(0);
            }
            // The rename deletes all objects at once. Their files are removed after the lock is released.
            fs::rename(&path, &removed).map_err(ObjectError::io(&path))?;
            self.prune(&path)?;
        }
        let mut objects = 0;
        walk(&removed, prefix, &mut |_, _| objects += 1)?;
        fs::remove_dir_all(&removed).map_err(ObjectError::io(&removed))?;
        Ok(objects)
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Entry>, ObjectError> {
        let mut entries = Vec::new();
        walk(&self.path(prefix), prefix, &mut |key, entry| {
            // Skip objects that have been deleted in the meantime.
            if let Ok(meta) = entry.metadata() {
                let bytes = meta.len();
                entries.push(Entry { key, bytes });
            }
        })?;
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    pub(crate) fn list_dirs(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        let mut names = Vec::new();
        for (entry, key) in named(&self.path(prefix), prefix)? {
            // Skip empty folders, which a crash may leave behind. S3 has no empty folders.
            let mut objects = 0;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(&entry.path(), &key, &mut |_, _| objects += 1)?;
            }
            if objects > 0 {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns the entries of a folder and their keys, except for entries with invalid keys.
fn named(dir: &Path, prefix: &str) -> Result<Vec<(DirEntry, String)>, ObjectError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(Vec::new()),
            _ => return Err(ObjectError::io(dir)(error)),
        },
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ObjectError::io(dir))?;
        let name = entry.file_name();
        let key = match (name.to_str(), prefix) {
            (None, _) => continue,
            (Some(name), "") => name.to_owned(),
            (Some(name), _) => format!("{prefix}/{name}"),
        };
        if check_key(&key).is_ok() {
            found.push((entry, key));
        }
    }
    Ok(found)
}

/// Visits the objects below a folder in any order.
fn walk(
    dir: &Path,
    prefix: &str,
    visit: &mut impl FnMut(String, &DirEntry),
) -> Result<(), ObjectError> {
    for (entry, key) in named(dir, prefix)? {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &key, visit)?,
            Ok(kind) if kind.is_file() => visit(key, &entry),
            // The entry is neither a file nor a folder, or has been removed in the meantime.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn open_removes_only_abandoned_temporary_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let old = dir.path().join(".tmp/.old.tmp");
        let fresh = dir.path().join(".tmp/.fresh.tmp");
        for path in [&old, &fresh] {
            fs::write(path, "x").unwrap();
        }
        let then = SystemTime::now() - ABANDONED_AGE - Duration::from_secs(60);
        File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(then)
            .unwrap();
        assert!(folder.list("").unwrap().is_empty());
        Folder::open(dir.path()).unwrap();
        assert!(!old.exists());
        assert!(fresh.exists());
    }

    #[test]
    fn lock_of_a_suspended_process_makes_writes_and_deletions_fail_without_effect() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder {
            lock_timeout: Duration::ZERO,
            ..Folder::open(dir.path()).unwrap()
        };
        folder.put("a/b", b"1").unwrap();
        let version = Version::of(b"1");
        let held = folder.lock(LockMode::Exclusive, "c").unwrap();
        for failed in [
            folder.put("a/b", b"2"),
            folder.put("d", b"2"),
            folder
                .put_if("a/b", b"2", &Condition::Is(version.clone()))
                .map(drop),
            folder.put_if("d", b"2", &Condition::Absent).map(drop),
            folder.delete("a/b"),
            folder.delete_prefix("a").map(drop),
        ] {
            let error = failed.unwrap_err();
            assert!(matches!(error, ObjectError::Unavailable { .. }), "{error}");
            assert!(error.is_transient() && error.to_string().contains(".lock"));
        }
        // Reads do not need the lock.
        assert_eq!(folder.get("a/b").unwrap().0, "1");
        assert_eq!(folder.list("").unwrap().len(), 1);
        assert_eq!(fs::read_dir(folder.temporaries()).unwrap().count(), 0);
        drop(held);
        let written = folder.put_if("a/b", b"2", &Condition::Is(version));
        assert_eq!(written.unwrap(), Version::of(b"2"));
    }

    #[test]
    fn operation_waits_for_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let held = folder.lock(LockMode::Shared, "a").unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| folder.put_if("a", b"1", &Condition::Absent));
            // A write that shares the lock is not blocked.
            folder.put("b", b"1").unwrap();
            drop(held);
            writer.join().unwrap().unwrap();
        });
        assert_eq!(folder.get("a").unwrap().0, "1");
    }

    #[test]
    fn deletion_leaves_no_empty_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.put("a/b/c", b"1").unwrap();
        folder.put("a/d", b"2").unwrap();
        folder.delete("a/b/c").unwrap();
        assert!(!dir.path().join("a/b").exists());
        assert_eq!(folder.delete_prefix("a").unwrap(), 1);
        assert!(!dir.path().join("a").exists());
        assert!(dir.path().exists());
        folder.delete("a/d").unwrap();
    }

    #[test]
    fn empty_folders_are_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        fs::create_dir_all(dir.path().join("runs/17/depth")).unwrap();
        folder.put("runs/18/manifest", b"1").unwrap();
        assert_eq!(folder.list_dirs("runs").unwrap(), ["18"]);
    }

    #[test]
    fn key_above_or_below_another_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.put("a/b", b"1").unwrap();
        for key in ["a", "a/b/c", "a/b/c/d"] {
            let error = folder.put(key, b"2").unwrap_err();
            assert!(
                matches!(error, ObjectError::Refused { .. }),
                "{key}: {error}"
            );
            assert!(folder.get(key).unwrap_err().is_not_found(), "{key}");
            folder.delete(key).unwrap();
        }
        assert_eq!(folder.get("a/b").unwrap().0, "1");
        assert_eq!(fs::read_dir(dir.path().join(".tmp")).unwrap().count(), 0);
    }
}
