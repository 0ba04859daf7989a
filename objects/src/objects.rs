//! The common interface of all kinds of stores.

use crate::checksum::Stored;
use crate::entry::{Condition, Entry, Version};
use crate::error::ObjectError;
use crate::faults::FaultPlan;
use crate::folder::Folder;
use crate::key::{check_key, check_prefix};
use crate::local::blocking;
use crate::location::Location;
use crate::memory::{self, Memory};
use crate::options::Options;
use crate::probe::{self, Probe};
use crate::random::Random;
#[cfg(feature = "s3")]
use crate::s3::S3;
use crate::stats::{Counters, Stats, count};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};

/// An operation on a store. It is boxed because a crate that awaits an `async` function compiles the whole function again,
/// with all functions that it awaits: here, the S3 client.
pub type Operation<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// An object store. Clones share the store and its counters.
///
/// A *prefix* selects the keys below it, like the path of a folder: `runs/17` selects `runs/17/manifest` but
/// not `runs/170`. The empty prefix selects all keys.
#[derive(Clone)]
pub struct Objects {
    kind: Kind,
    location: Arc<str>,
    random: Random,
    counters: Arc<Counters>,
}

#[derive(Clone)]
enum Kind {
    Folder(Folder),
    Memory(Arc<memory::Client>),
    #[cfg(feature = "s3")]
    S3(Arc<S3>),
}

impl Objects {
    /// Opens the store at a location, which is the path of a folder or `s3://bucket/prefix`. Creates the folder if it
    /// does not exist. This function does not check that an S3 server is reachable: use [`Objects::probe`].
    ///
    /// # Errors
    /// Returns [`ObjectError::Location`] or [`ObjectError::Options`] if an argument is invalid or no S3 region is
    /// configured, and [`ObjectError::Io`] or [`ObjectError::DiskFull`] if the folder cannot be created.
    pub fn open<'a>(location: &'a str, options: &'a Options) -> Operation<'a, Objects> {
        Objects::open_with(location, options, Folder::open)
    }

    /// Opens the store at a location like [`Objects::open`], but does not create or change its folder. Use this function to
    /// read objects: a wrong path is then an error instead of an empty store.
    ///
    /// # Errors
    /// Returns [`ObjectError::Location`] if the folder does not exist, and the errors of [`Objects::open`].
    pub fn open_existing<'a>(location: &'a str, options: &'a Options) -> Operation<'a, Objects> {
        Objects::open_with(location, options, Folder::open_existing)
    }

    fn open_with<'a>(
        location: &'a str,
        options: &'a Options,
        open_folder: fn(&Path) -> Result<Folder, ObjectError>,
    ) -> Operation<'a, Objects> {
        Box::pin(async move {
            let parsed = Location::parse(location)?;
            options.check()?;
            let counters = Arc::new(Counters::default());
            let kind = match parsed {
                Location::Folder(root) => Kind::Folder(blocking(move || open_folder(&root)).await?),
                #[cfg(feature = "s3")]
                Location::S3 { bucket, prefix } => Kind::S3(Arc::new(
                    S3::open(bucket, prefix, options, counters.clone()).await?,
                )),
                #[cfg(not(feature = "s3"))]
                Location::S3 { .. } => {
                    return Err(ObjectError::Location {
                        location: location.to_owned(),
                        reason: "this program was built without S3 (the Cargo feature 's3')"
                            .to_owned(),
                    });
                }
            };
            Ok(Objects {
                kind,
                location: location.into(),
                random: options.random.clone(),
                counters,
            })
        })
    }

    /// Opens a store in memory. All stores opened for the same [`Memory`] contain the same objects.
    ///
    /// # Errors
    /// Returns [`ObjectError::Options`] if the options are invalid.
    pub fn in_memory(memory: &Memory, options: &Options) -> Result<Objects, ObjectError> {
        Objects::over(memory, options, None)
    }

    /// Opens a store in memory. `plan` injects [faults](crate::faults) into its operations.
    ///
    /// # Errors
    /// Returns [`ObjectError::Options`] if the options are invalid.
    pub fn with_faults(
        memory: &Memory,
        options: &Options,
        plan: Arc<dyn FaultPlan>,
    ) -> Result<Objects, ObjectError> {
        Objects::over(memory, options, Some(plan))
    }

    fn over(
        memory: &Memory,
        options: &Options,
        plan: Option<Arc<dyn FaultPlan>>,
    ) -> Result<Objects, ObjectError> {
        options.check()?;
        let counters = Arc::new(Counters::default());
        let client = memory::Client::new(memory.clone(), plan, options.clone(), counters.clone());
        Ok(Objects {
            kind: Kind::Memory(Arc::new(client)),
            location: memory::STORE.into(),
            random: options.random.clone(),
            counters,
        })
    }

    /// Returns the location passed to [`Objects::open`], or `memory` for a store in memory.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns the counters, which include operations on clones of this store.
    pub fn stats(&self) -> Stats {
        self.counters.snapshot()
    }

    /// Returns the number of seconds by which the server's clock is ahead of this machine's clock, according to the
    /// server's last response. Returns `None` if no response has arrived or the store has no server.
    ///
    /// S3 refuses requests from clients whose clocks are wrong by more than 15 minutes. An error response also
    /// contains the server's time.
    pub fn seconds_ahead(&self) -> Option<i64> {
        let ahead = self.counters.seconds_ahead.lock();
        *ahead.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    /// Writes an object, replacing any object with the same key.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if the object cannot be written. After [`ObjectError::Unavailable`] or
    /// [`ObjectError::Io`], the object may or may not have been written. After any other error, it is unchanged.
    pub fn put<'a>(&'a self, key: &'a str, bytes: Bytes) -> Operation<'a, ()> {
        Box::pin(async move {
            check_key(key)?;
            let length = bytes.len() as u64;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key) = (folder.clone(), key.to_owned());
                    blocking(move || folder.put(&key, &bytes)).await
                }
                Kind::Memory(client) => client.put(key, bytes).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.put(key, bytes).await,
            };
            self.counted(result, |counters, ()| {
                count(&counters.puts, 1);
                count(&counters.bytes_out, length);
            })
        })
    }

    /// Writes an object atomically if a condition holds. If several writers with the same condition run
    /// concurrently, only one of them succeeds.
    ///
    /// Stores in folders and in memory guarantee this. [`Objects::probe`] detects servers that do not.
    ///
    /// # Errors
    /// Returns [`ObjectError::Changed`] if the condition does not hold, and other variants if the object
    /// cannot be written.
    pub fn put_if<'a>(
        &'a self,
        key: &'a str,
        bytes: Bytes,
        condition: &'a Condition,
    ) -> Operation<'a, Version> {
        Box::pin(async move {
            check_key(key)?;
            let length = bytes.len() as u64;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key, condition) =
                        (folder.clone(), key.to_owned(), condition.clone());
                    blocking(move || folder.put_if(&key, &bytes, &condition)).await
                }
                Kind::Memory(client) => client.put_if(key, bytes, condition).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.put_if(key, bytes, condition).await,
            };
            self.counted(result, |counters, _| {
                count(&counters.puts, 1);
                count(&counters.bytes_out, length);
            })
        })
    }

    /// Writes the contents of a file as an object, and returns the length and checksum. A file larger than
    /// [`Options::part_bytes`] is uploaded to S3 in parts: up to [`Options::parallel_parts`] parts are held in memory
    /// and uploaded concurrently.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if the file cannot be read or the object cannot be written.
    pub fn put_file<'a>(&'a self, key: &'a str, path: &'a Path) -> Operation<'a, Stored> {
        Box::pin(async move {
            check_key(key)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key, path) = (folder.clone(), key.to_owned(), path.to_path_buf());
                    blocking(move || folder.put_file(&key, &path)).await
                }
                Kind::Memory(client) => client.put_file(key, path).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.put_file(key, path).await,
            };
            self.counted(result, |counters, stored| {
                count(&counters.puts, 1);
                count(&counters.bytes_out, stored.bytes);
            })
        })
    }

    /// Reads an object and its version.
    ///
    /// # Errors
    /// Returns [`ObjectError::NotFound`] if the object does not exist, and other variants if it cannot be
    /// read.
    pub fn get<'a>(&'a self, key: &'a str) -> Operation<'a, (Bytes, Version)> {
        Box::pin(async move {
            check_key(key)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key) = (folder.clone(), key.to_owned());
                    blocking(move || folder.get(&key)).await
                }
                Kind::Memory(client) => client.get(key).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.get(key).await,
            };
            self.counted(result, |counters, (bytes, _)| {
                count(&counters.gets, 1);
                count(&counters.bytes_in, bytes.len() as u64);
            })
        })
    }

    /// Reads a range of an object. A range that extends past the object's end is truncated. An empty range returns no
    /// bytes without accessing the store.
    ///
    /// # Errors
    /// Returns [`ObjectError::OutOfRange`] if the range starts at or after the object's end,
    /// [`ObjectError::NotFound`] if the object does not exist, and other variants if it cannot be read.
    pub fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> Operation<'a, Bytes> {
        Box::pin(async move {
            check_key(key)?;
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key) = (folder.clone(), key.to_owned());
                    blocking(move || folder.get_range(&key, range)).await
                }
                Kind::Memory(client) => client.get_range(key, range).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.get_range(key, range).await,
            };
            self.counted(result, |counters, bytes| {
                count(&counters.gets, 1);
                count(&counters.bytes_in, bytes.len() as u64);
            })
        })
    }

    /// Returns the length of an object in bytes.
    ///
    /// # Errors
    /// Returns [`ObjectError::NotFound`] if the object does not exist, and other variants if the request
    /// fails.
    pub fn size<'a>(&'a self, key: &'a str) -> Operation<'a, u64> {
        Box::pin(async move {
            check_key(key)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key) = (folder.clone(), key.to_owned());
                    blocking(move || folder.size(&key)).await
                }
                Kind::Memory(client) => client.size(key).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.size(key).await,
            };
            self.counted(result, |_, _| ())
        })
    }

    /// Deletes an object. Succeeds if the object does not exist.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if the object cannot be deleted.
    pub fn delete<'a>(&'a self, key: &'a str) -> Operation<'a, ()> {
        Box::pin(async move {
            check_key(key)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, key) = (folder.clone(), key.to_owned());
                    blocking(move || folder.delete(&key)).await
                }
                Kind::Memory(client) => client.delete(key).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.delete(key).await,
            };
            self.counted(result, |counters, ()| count(&counters.deletes, 1))
        })
    }

    /// Deletes several objects, in S3 up to 1,000 with one request. Ignores keys of objects that do not exist. The operation
    /// is not atomic: after an error, some of the objects may have been deleted.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if an object cannot be deleted.
    pub fn delete_all<'a>(&'a self, keys: &'a [String]) -> Operation<'a, ()> {
        Box::pin(async move {
            keys.iter().try_for_each(|key| check_key(key))?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, keys) = (folder.clone(), keys.to_vec());
                    blocking(move || keys.iter().try_for_each(|key| folder.delete(key))).await
                }
                Kind::Memory(client) => client.delete_all(keys).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.delete_all(keys).await,
            };
            let deleted = keys.len() as u64;
            self.counted(result, |counters, ()| count(&counters.deletes, deleted))
        })
    }

    /// Deletes all objects below a prefix and returns their number. The operation is not atomic: after an
    /// error, some of the objects may have been deleted.
    ///
    /// # Errors
    /// Returns [`ObjectError::Key`] if the prefix is invalid or empty (the empty prefix would delete the
    /// whole store), and other variants if an object cannot be deleted.
    pub fn delete_prefix<'a>(&'a self, prefix: &'a str) -> Operation<'a, u64> {
        Box::pin(async move {
            let prefix = check_prefix(prefix)?;
            check_key(prefix)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, prefix) = (folder.clone(), prefix.to_owned());
                    blocking(move || folder.delete_prefix(&prefix)).await
                }
                Kind::Memory(client) => client.delete_prefix(prefix).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.delete_prefix(prefix).await,
            };
            self.counted(result, |counters, deleted| {
                count(&counters.deletes, *deleted)
            })
        })
    }

    /// Returns all objects below a prefix, sorted by key.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if the objects cannot be listed.
    pub fn list<'a>(&'a self, prefix: &'a str) -> Operation<'a, Vec<Entry>> {
        Box::pin(async move {
            let prefix = check_prefix(prefix)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, prefix) = (folder.clone(), prefix.to_owned());
                    blocking(move || folder.list(&prefix)).await
                }
                Kind::Memory(client) => client.list(prefix).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.list(prefix).await,
            };
            self.counted(result, |counters, _| count(&counters.lists, 1))
        })
    }

    /// Returns the names of the folders directly below a prefix, sorted. For example, a store with the keys `a/1`,
    /// `b/c/2` and `d` has the folders `a` and `b` below the empty prefix.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if the objects cannot be listed.
    pub fn list_dirs<'a>(&'a self, prefix: &'a str) -> Operation<'a, Vec<String>> {
        Box::pin(async move {
            let prefix = check_prefix(prefix)?;
            let result = match &self.kind {
                Kind::Folder(folder) => {
                    let (folder, prefix) = (folder.clone(), prefix.to_owned());
                    blocking(move || folder.list_dirs(&prefix)).await
                }
                Kind::Memory(client) => client.list_dirs(prefix).await,
                #[cfg(feature = "s3")]
                Kind::S3(s3) => s3.list_dirs(prefix).await,
            };
            self.counted(result, |counters, _| count(&counters.lists, 1))
        })
    }

    /// Detects which conditions the store honors. Writes a small object with a random name below a prefix,
    /// reads it, and deletes it.
    ///
    /// # Errors
    /// Returns an [`ObjectError`] if an operation fails or the store returns wrong bytes.
    pub fn probe<'a>(&'a self, prefix: &'a str) -> Operation<'a, Probe> {
        Box::pin(async move { probe::probe(self, check_prefix(prefix)?).await })
    }

    /// Counts the result of an operation: `done` counts a success, and this function counts an error.
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
