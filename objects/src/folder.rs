//! Objects as files below a folder, which machines may share over a network file system.
//!
//! A file is written under a temporary name in `.tmp` and renamed, so that it appears whole. Three
//! things must not come between others: the check and the rename of a conditional write, the removal
//! of folders that a deletion left empty, and the making of folders for a new object. A lock on the
//! file `.lock` keeps them apart, between processes too: who only adds an object shares it with
//! others, for the moment of a rename, and who writes on a condition or deletes has it alone. The
//! operating system gives it back when a process dies.

use crate::checksum::Stored;
use crate::error::ObjectError;
use crate::key::check_key;
use crate::local::{Temporary, copy, sync_dir};
use crate::objects::{Condition, Entry, Version};
use crate::random::Random;
use bytes::Bytes;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A temporary file that was not touched for so long is nobody's any more.
const STALE: Duration = Duration::from_secs(3600);

/// Objects as files below a folder. All of its methods wait for the disk.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// How the lock is held.
enum Hold {
    Shared,
    Alone,
}

impl Folder {
    pub(crate) fn open(root: &Path) -> Result<Folder, ObjectError> {
        let root = root.to_path_buf();
        let temporaries = root.join(".tmp");
        fs::create_dir_all(&temporaries).map_err(ObjectError::io(&temporaries))?;
        let folder = Folder { root };
        folder.sweep();
        Ok(folder)
    }

    /// Removes what writers that died have left. What fails is left for the next time.
    fn sweep(&self) {
        let now = SystemTime::now();
        for entry in fs::read_dir(self.root.join(".tmp"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|then| now.duration_since(then).ok());
            if age.is_some_and(|age| age > STALE) {
                let removed = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                    _ => fs::remove_file(entry.path()),
                };
                if let Err(error) = removed {
                    tracing::warn!(path = %entry.path().display(), %error, "cannot remove a stale file");
                }
            }
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Waits for the lock; it is held until the file is dropped.
    fn lock(&self, hold: Hold) -> Result<File, ObjectError> {
        let path = self.root.join(".lock");
        let locked = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .and_then(|file| {
                match hold {
                    Hold::Shared => file.lock_shared()?,
                    Hold::Alone => file.lock()?,
                }
                Ok(file)
            });
        locked.map_err(ObjectError::io(&path))
    }

    /// Makes an error of one that came up with an object. A name that is a folder, or below a file,
    /// is no object.
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

    /// Opens an object and says how long it is.
    fn open_object(&self, key: &str) -> Result<(File, u64), ObjectError> {
        let opened = File::open(self.path(key)).and_then(|file| {
            let meta = file.metadata()?;
            match meta.is_dir() {
                true => Err(io::ErrorKind::IsADirectory.into()),
                false => Ok((file, meta.len())),
            }
        });
        opened.map_err(self.failed(key))
    }

    fn temporary(&self) -> Result<(Temporary, File), ObjectError> {
        Temporary::create_in(&self.root.join(".tmp"))
    }

    fn written(&self, bytes: &[u8]) -> Result<Temporary, ObjectError> {
        let (temporary, mut file) = self.temporary()?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(ObjectError::io(temporary.path()))?;
        Ok(temporary)
    }

    /// Gives a file its key; the lock is held. [`Folder::settle`] makes it last.
    fn place(&self, temporary: Temporary, key: &str) -> Result<(), ObjectError> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)
            .and_then(|()| temporary.place(&path))
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::DirectoryNotEmpty => ObjectError::Refused {
                    store: self.root.display().to_string(),
                    key: key.to_owned(),
                    reason: "in a folder no object can be below another one".to_owned(),
                },
                _ => ObjectError::io(&path)(error),
            })
    }

    /// Makes the name of an object last, and those of the folders above, which may be new.
    fn settle(&self, key: &str) -> Result<(), ObjectError> {
        let path = self.path(key);
        for folder in path.ancestors().skip(1) {
            match sync_dir(folder) {
                // Another process deleted the object since, and its folder with it.
                Err(ObjectError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                }
                synced => synced?,
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
        let lock = self.lock(Hold::Shared)?;
        self.place(temporary, key)?;
        // The disk is waited for without the lock: writers that share it all the time would keep
        // those out who want it alone.
        drop(lock);
        self.settle(key)
    }

    pub(crate) fn put_if(
        &self,
        key: &str,
        bytes: &[u8],
        condition: &Condition,
    ) -> Result<Version, ObjectError> {
        let temporary = self.written(bytes)?;
        let _lock = self.lock(Hold::Alone)?;
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
        self.place(temporary, key)?;
        // With the lock: nobody shall build on what a crash could still undo.
        self.settle(key)?;
        Ok(Version::of(bytes))
    }

    /// A copy and no hard link: through a link, whoever writes to the file would write to the object.
    pub(crate) fn put_file(&self, key: &str, from: &Path) -> Result<Stored, ObjectError> {
        let mut source = File::open(from).map_err(ObjectError::io(from))?;
        let (temporary, mut file) = self.temporary()?;
        let stored = copy((&mut source, from), (&mut file, temporary.path()))?;
        file.sync_all().map_err(ObjectError::io(temporary.path()))?;
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
        let _lock = self.lock(Hold::Alone)?;
        match fs::remove_file(&path) {
            Ok(()) => self.prune(&path),
            Err(error) => match self.failed(key)(error) {
                ObjectError::NotFound { .. } => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Removes the folders above a path as far as they are empty, as they would be gone in S3; the
    /// lock is held alone.
    fn prune(&self, path: &Path) -> Result<(), ObjectError> {
        for folder in path.ancestors().skip(1) {
            if folder == self.root || fs::remove_dir(folder).is_err() {
                return sync_dir(folder);
            }
        }
        Ok(())
    }

    /// Deletes all below a name and says how many objects that were.
    pub(crate) fn delete_prefix(&self, prefix: &str) -> Result<u64, ObjectError> {
        let path = self.path(prefix);
        let away = self.root.join(".tmp").join(Random::default().name());
        {
            let _lock = self.lock(Hold::Alone)?;
            if !path.is_dir() {
                return Ok(0);
            }
            // Gone at once; the files are removed after, without the lock.
            fs::rename(&path, &away).map_err(ObjectError::io(&path))?;
            self.prune(&path)?;
        }
        let mut objects = 0;
        walk(&away, prefix, &mut |_, _| objects += 1)?;
        fs::remove_dir_all(&away).map_err(ObjectError::io(&away))?;
        Ok(objects)
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Entry>, ObjectError> {
        let mut entries = Vec::new();
        walk(&self.path(prefix), prefix, &mut |key, entry| {
            // One that goes away meanwhile is not there.
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
            // A crash may have left an empty folder, which S3 does not know.
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

/// What in a folder has a name that a key can have, and the keys.
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

/// Visits the objects below a folder, in any order.
fn walk(
    dir: &Path,
    prefix: &str,
    visit: &mut impl FnMut(String, &DirEntry),
) -> Result<(), ObjectError> {
    for (entry, key) in named(dir, prefix)? {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &key, visit)?,
            Ok(kind) if kind.is_file() => visit(key, &entry),
            // Neither, or gone meanwhile.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_files_are_swept_at_opening_and_fresh_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let old = dir.path().join(".tmp/.old.tmp");
        let fresh = dir.path().join(".tmp/.fresh.tmp");
        for path in [&old, &fresh] {
            fs::write(path, "x").unwrap();
        }
        let then = SystemTime::now() - STALE - Duration::from_secs(60);
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
    fn a_deletion_leaves_no_empty_folder() {
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
    fn a_crash_between_making_a_folder_and_its_file_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        fs::create_dir_all(dir.path().join("runs/17/depth")).unwrap();
        folder.put("runs/18/manifest", b"1").unwrap();
        assert_eq!(folder.list_dirs("runs").unwrap(), ["18"]);
    }

    #[test]
    fn no_object_is_below_another() {
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
