//! The one interface to all kinds of stores.

use crate::checksum::Stored;
use crate::error::ObjectError;
use crate::folder::Folder;
use crate::key::{check_key, check_prefix};
use crate::local::{Arriving, blocking};
use crate::location::Location;
use crate::options::Options;
use crate::probe::{self, Probe};
#[cfg(feature = "s3")]
use crate::s3::S3;
use crate::stats::{Counters, Stats, count};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// A store of objects. Clones are the same store.
///
/// A *prefix* names what keys are below, as a folder does: `runs/17` holds `runs/17/manifest` and not
/// `runs/170`. The empty prefix holds all.
#[derive(Clone)]
pub struct Objects {
    kind: Kind,
    location: Arc<str>,
    counters: Arc<Counters>,
}

#[derive(Clone)]
enum Kind {
    Folder(Folder),
    #[cfg(feature = "s3")]
    S3(Arc<S3>),
}

/// Which bytes an object has, for [`Condition::Is`]. It is S3's ETag, or made of length and checksum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// The version as text, to be kept somewhere.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Version {
    fn from(text: String) -> Version {
        Version(text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What must hold for a write to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is no object.
    Absent,
    /// The object has this version. An object that was changed and changed back has it too: who must
    /// know puts a number into it that only grows.
    Is(Version),
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// How long it is.
    pub bytes: u64,
}

impl Objects {
    /// Opens the store at a location: the path of a folder, which is made if there is none, or
    /// `s3://bucket/prefix`. A server is not asked anything yet; [`Objects::probe`] does.
    ///
    /// # Errors
    /// [`ObjectError::Location`] and [`ObjectError::Options`] if these cannot be meant, or what the
    /// operating system says of the folder.
    pub async fn open(location: &str, options: &Options) -> Result<Objects, ObjectError> {
        let place = Location::parse(location)?;
        options.check()?;
        let counters = Arc::new(Counters::default());
        let kind = match place {
            Location::Folder(root) => Kind::Folder(blocking(move || Folder::open(&root)).await?),
            #[cfg(feature = "s3")]
            Location::S3 { bucket, prefix } => Kind::S3(Arc::new(
                S3::open(bucket, prefix, options, counters.clone()).await?,
            )),
            #[cfg(not(feature = "s3"))]
            Location::S3 { .. } => {
                return Err(ObjectError::Location {
                    location: location.to_owned(),
                    reason: "this program was built without S3 (the Cargo feature 's3')".to_owned(),
                });
            }
        };
        Ok(Objects {
            kind,
            location: location.into(),
            counters,
        })
    }

    /// Where the store is, as it was given.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// What was done so far, by all clones.
    pub fn stats(&self) -> Stats {
        self.counters.snapshot()
    }

    /// How many seconds the server's clock is ahead of this machine's, as its last answer tells, be it a
    /// refusal: S3 refuses whoever is off by more than 15 minutes. `None` for a folder, and before the first
    /// answer.
    pub fn seconds_ahead(&self) -> Option<i64> {
        let ahead = self.counters.seconds_ahead.lock();
        *ahead.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an object, over what had the key before.
    ///
    /// # Errors
    /// Any [`ObjectError`] of writing; the object is then as it was, or was
    /// [perhaps](ObjectError::Unavailable) written.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<(), ObjectError> {
        check_key(key)?;
        let length = bytes.len() as u64;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key) = (folder.clone(), key.to_owned());
                blocking(move || folder.put(&key, &bytes)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.put(key, bytes).await,
        };
        self.counted(result, |counters, ()| {
            count(&counters.puts, 1);
            count(&counters.bytes_out, length);
        })
    }

    /// Writes an object if a condition holds, in one step: of several that write at once on the same
    /// condition, one wins. That is so in a folder, and with a server where [`Objects::probe`] says
    /// so.
    ///
    /// # Errors
    /// [`ObjectError::Changed`] if the condition does not hold; any other of writing.
    pub async fn put_if(
        &self,
        key: &str,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Version, ObjectError> {
        check_key(key)?;
        let length = bytes.len() as u64;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key, condition) = (folder.clone(), key.to_owned(), condition.clone());
                blocking(move || folder.put_if(&key, &bytes, &condition)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.put_if(key, bytes, condition).await,
        };
        self.counted(result, |counters, _| {
            count(&counters.puts, 1);
            count(&counters.bytes_out, length);
        })
    }

    /// Writes a file's bytes as an object and says what was stored. A long file goes to S3 in parts,
    /// several at once, each held in memory.
    ///
    /// # Errors
    /// Any [`ObjectError`] of writing, or what the operating system says of the file.
    pub async fn put_file(&self, key: &str, path: &Path) -> Result<Stored, ObjectError> {
        check_key(key)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key, path) = (folder.clone(), key.to_owned(), path.to_path_buf());
                blocking(move || folder.put_file(&key, &path)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.put_file(key, path).await,
        };
        self.counted(result, |counters, stored| {
            count(&counters.puts, 1);
            count(&counters.bytes_out, stored.bytes);
        })
    }

    /// Reads an object, and which version it is.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`]; any other of reading.
    pub async fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        check_key(key)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key) = (folder.clone(), key.to_owned());
                blocking(move || folder.get(&key)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.get(key).await,
        };
        self.counted(result, |counters, (bytes, _)| {
            count(&counters.gets, 1);
            count(&counters.bytes_in, bytes.len() as u64);
        })
    }

    /// Reads some of an object: fewer bytes than asked for where it ends before.
    ///
    /// # Errors
    /// [`ObjectError::OutOfRange`] if it ends before the first of them; [`ObjectError::NotFound`];
    /// any other of reading.
    pub async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        check_key(key)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key) = (folder.clone(), key.to_owned());
                blocking(move || folder.get_range(&key, range)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.get_range(key, range).await,
        };
        self.counted(result, |counters, bytes| {
            count(&counters.gets, 1);
            count(&counters.bytes_in, bytes.len() as u64);
        })
    }

    /// Reads an object into a file, which appears whole, over what was there, when all of it has
    /// come and is what was expected.
    ///
    /// # Errors
    /// [`ObjectError::Damaged`] if it is not `expected`; [`ObjectError::NotFound`]; any other of
    /// reading; what the operating system says of the file. The file is then as it was.
    pub async fn get_to_file(
        &self,
        key: &str,
        path: &Path,
        expected: Option<&Stored>,
    ) -> Result<Stored, ObjectError> {
        check_key(key)?;
        let result = self.fetch(key, path, expected).await;
        self.counted(result, |counters, stored| {
            count(&counters.gets, 1);
            count(&counters.bytes_in, stored.bytes);
        })
    }

    async fn fetch(
        &self,
        key: &str,
        path: &Path,
        expected: Option<&Stored>,
    ) -> Result<Stored, ObjectError> {
        let (arriving, stored) = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key, path) = (folder.clone(), key.to_owned(), path.to_path_buf());
                blocking(move || folder.get_to(&key, &path)).await?
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.get_to(key, path).await?,
        };
        if let Some(expected) = expected.filter(|expected| **expected != stored) {
            return Err(ObjectError::Damaged {
                store: self.location.to_string(),
                key: key.to_owned(),
                reason: format!("it is {stored} and should be {expected}"),
            });
        }
        blocking(move || Arriving::finish(arriving)).await?;
        Ok(stored)
    }

    /// How long an object is.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`]; any other of reading.
    pub async fn size(&self, key: &str) -> Result<u64, ObjectError> {
        check_key(key)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key) = (folder.clone(), key.to_owned());
                blocking(move || folder.size(&key)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.size(key).await,
        };
        self.counted(result, |_, _| ())
    }

    /// Deletes an object, if there is one.
    ///
    /// # Errors
    /// Any [`ObjectError`] of writing.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        check_key(key)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, key) = (folder.clone(), key.to_owned());
                blocking(move || folder.delete(&key)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.delete(key).await,
        };
        self.counted(result, |counters, ()| count(&counters.deletes, 1))
    }

    /// Deletes all objects below a prefix and says how many they were. Not in one step: some may be
    /// gone if it fails.
    ///
    /// # Errors
    /// [`ObjectError::Key`] also for the empty prefix: nobody means to delete all. Any other of
    /// writing.
    pub async fn delete_prefix(&self, prefix: &str) -> Result<u64, ObjectError> {
        let prefix = check_prefix(prefix)?;
        check_key(prefix)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, prefix) = (folder.clone(), prefix.to_owned());
                blocking(move || folder.delete_prefix(&prefix)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.delete_prefix(prefix).await,
        };
        self.counted(result, |counters, deleted| {
            count(&counters.deletes, *deleted)
        })
    }

    /// All objects below a prefix, sorted by key.
    ///
    /// # Errors
    /// Any [`ObjectError`] of reading.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ObjectError> {
        let prefix = check_prefix(prefix)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, prefix) = (folder.clone(), prefix.to_owned());
                blocking(move || folder.list(&prefix)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.list(prefix).await,
        };
        self.counted(result, |counters, _| count(&counters.lists, 1))
    }

    /// The names that come right below a prefix and have objects below them, sorted.
    ///
    /// # Errors
    /// Any [`ObjectError`] of reading.
    pub async fn list_dirs(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        let prefix = check_prefix(prefix)?;
        let result = match &self.kind {
            Kind::Folder(folder) => {
                let (folder, prefix) = (folder.clone(), prefix.to_owned());
                blocking(move || folder.list_dirs(&prefix)).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(s3) => s3.list_dirs(prefix).await,
        };
        self.counted(result, |counters, _| count(&counters.lists, 1))
    }

    /// Finds out what the store can do: writes a small object of a random name below a prefix, reads
    /// it, and deletes it again.
    ///
    /// # Errors
    /// Any [`ObjectError`]: the store then cannot be used.
    pub async fn probe(&self, prefix: &str) -> Result<Probe, ObjectError> {
        probe::probe(self, check_prefix(prefix)?).await
    }

    /// Counts what was done, or that it failed.
    fn counted<T>(
        &self,
        result: Result<T, ObjectError>,
        done: impl FnOnce(&Counters, &T),
    ) -> Result<T, ObjectError> {
        match &result {
            Ok(value) => done(&self.counters, value),
            Err(error) if error.is_not_found() || error.is_changed() => {}
            Err(_) => count(&self.counters.errors, 1),
        }
        result
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.location).finish()
    }
}
