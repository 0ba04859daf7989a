//! A run's folder.
//!
//! - `lock`: locked while a process has the run open for writing.
//! - `manifest.json`: the format, the geometry, what the caller says of the run, and its result.
//! - `depths.jsonl`: a record a depth (see `records.rs`). A depth is committed when its line is there.
//! - `db/`: RocksDB with the tables of the depths (see `table.rs`).
//! - `tables/`: tables being written; emptied at opening.
//!
//! A commit writes and flushes the tables, has RocksDB take them all in one step, and then adds the
//! record. Tables in RocksDB without a record that says they are kept are what a crash left, or what
//! could not be removed: opening the run removes them.

use crate::error::StoreError;
use crate::files::{bytes_below, empty_dir, sync_dir, write_whole};
use crate::path::Lookup;
use crate::records::{DepthRecord, Records};
use crate::table::{self, Key};
use hatebeam_game::Geometry;
use hatebeam_search::{Digest, Node, NodeWell};
use rocksdb::{Cache, DB, IngestExternalFileOptions, Options, ReadOptions};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The format of runs that this version writes.
pub const FORMAT: u64 = 1;

const LOCK: &str = "lock";
const MANIFEST: &str = "manifest.json";
const DEPTHS: &str = "depths.jsonl";
const DB_DIR: &str = "db";
const TABLES: &str = "tables";
const CACHE_BYTES: usize = 64 << 20;

#[derive(Serialize, Deserialize, Clone, Copy)]
struct Size {
    width: usize,
    height: usize,
}

#[derive(Serialize, Deserialize, Clone)]
struct Manifest {
    format: u64,
    geometry: Size,
    spec: Value,
    result: Option<Value>,
}

impl Manifest {
    fn read(dir: &Path) -> Result<(Manifest, Geometry), StoreError> {
        let path = dir.join(MANIFEST);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreError::NoRun {
                dir: dir.to_path_buf(),
            },
            _ => StoreError::io(&path)(error),
        })?;
        let damaged = |reason: String| StoreError::Damaged {
            path: path.clone(),
            reason,
        };
        // The format first: what follows it may mean something else in another.
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let found = value
            .get("format")
            .and_then(Value::as_u64)
            .ok_or_else(|| damaged("it names no format".to_owned()))?;
        if found > FORMAT {
            return Err(StoreError::Newer {
                found,
                known: FORMAT,
            });
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        let Size { width, height } = manifest.geometry;
        let geometry = Geometry::new(width, height).map_err(|error| damaged(error.to_string()))?;
        if !NodeWell::fits(geometry) {
            return Err(StoreError::DoesNotFit { width, height });
        }
        Ok((manifest, geometry))
    }

    fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| StoreError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        text.push(b'\n');
        write_whole(&path, &text)
    }
}

/// A well in hex for a message.
pub(crate) fn hex_of(geometry: Geometry, well: &NodeWell) -> String {
    match well.unpack(geometry) {
        Ok(well) => well.to_hex(geometry),
        Err(_) => format!("{well:?}"),
    }
}

/// A run on disk.
pub struct RunStore {
    dir: PathBuf,
    geometry: Geometry,
    manifest: Manifest,
    records: Records,
    options: Options,
    /// Gone only after an error that RocksDB did not get over.
    db: Option<DB>,
    /// Locked; `None` when open for reading only.
    lock: Option<File>,
}

impl std::fmt::Debug for RunStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStore")
            .field("dir", &self.dir)
            .field("geometry", &self.geometry)
            .field("depths", &self.records.list().len())
            .field("writes", &self.lock.is_some())
            .finish_non_exhaustive()
    }
}

impl RunStore {
    /// Makes a new run, open for writing. The folder must not exist or be empty; what an interrupted
    /// call left in it does not count.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::InUse`], [`StoreError::DoesNotFit`], and what writing
    /// files may meet.
    pub fn create(dir: &Path, geometry: Geometry, spec: &Value) -> Result<RunStore, StoreError> {
        let size = Size {
            width: geometry.width(),
            height: geometry.height(),
        };
        if !NodeWell::fits(geometry) {
            let Size { width, height } = size;
            return Err(StoreError::DoesNotFit { width, height });
        }
        fs::create_dir_all(dir).map_err(StoreError::io(dir))?;
        let unfinished = format!("{MANIFEST}.tmp");
        let unfinished_depths = format!("{DEPTHS}.tmp");
        let ours = [
            LOCK,
            DEPTHS,
            DB_DIR,
            TABLES,
            &unfinished,
            &unfinished_depths,
        ];
        for entry in fs::read_dir(dir).map_err(StoreError::io(dir))? {
            let name = entry.map_err(StoreError::io(dir))?.file_name();
            if !ours.iter().any(|&ours| name == ours) {
                return Err(StoreError::Exists {
                    dir: dir.to_path_buf(),
                });
            }
        }
        // Without the lock file nothing of it is an interrupted call's.
        let is_empty = fs::read_dir(dir)
            .map_err(StoreError::io(dir))?
            .next()
            .is_none();
        if !is_empty && !dir.join(LOCK).exists() {
            return Err(StoreError::Exists {
                dir: dir.to_path_buf(),
            });
        }
        let lock = take_lock(dir)?;
        if dir.join(MANIFEST).exists() {
            return Err(StoreError::Exists {
                dir: dir.to_path_buf(),
            });
        }
        empty_dir(&dir.join(TABLES))?;
        empty_dir(&dir.join(DB_DIR))?;
        let mut options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        options.create_if_missing(true);
        let db = open_db(&options, dir)?;
        options.create_if_missing(false);
        let records = Records::create(&dir.join(DEPTHS))?;
        let manifest = Manifest {
            format: FORMAT,
            geometry: size,
            spec: spec.clone(),
            result: None,
        };
        manifest.write(dir)?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_dir(parent)?;
        }
        Ok(RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: Some(lock),
        })
    }

    /// Opens a run for writing, and removes what a crash left beyond the last committed depth.
    ///
    /// # Errors
    /// [`StoreError::NoRun`], [`StoreError::InUse`], [`StoreError::Newer`], [`StoreError::Damaged`],
    /// and what reading and writing files may meet.
    pub fn open(dir: &Path) -> Result<RunStore, StoreError> {
        // Read before the lock is taken, lest a lock file come to be where no run is.
        Manifest::read(dir)?;
        let lock = take_lock(dir)?;
        let (manifest, geometry) = Manifest::read(dir)?;
        let records = Records::read(&dir.join(DEPTHS))?;
        records.trim()?;
        empty_dir(&dir.join(TABLES))?;
        let options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        let db = open_db(&options, dir)?;
        let store = RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: Some(lock),
        };
        store.sweep()?;
        Ok(store)
    }

    /// Opens a run for reading only. Another process may write to it meanwhile; what it commits
    /// later is not seen.
    ///
    /// # Errors
    /// As for [`RunStore::open`], but never [`StoreError::InUse`].
    pub fn open_read_only(dir: &Path) -> Result<RunStore, StoreError> {
        let (manifest, geometry) = Manifest::read(dir)?;
        // The records first: RocksDB then has the tables of all of them.
        let records = Records::read(&dir.join(DEPTHS))?;
        let options = table::options(&Cache::new_lru_cache(CACHE_BYTES));
        let db = open_db_read_only(&options, dir)?;
        Ok(RunStore {
            dir: dir.to_path_buf(),
            geometry,
            manifest,
            records,
            options,
            db: Some(db),
            lock: None,
        })
    }

    /// What the caller said of the run when it was made.
    pub fn spec(&self) -> &Value {
        &self.manifest.spec
    }

    /// The run's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The size of its wells.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The result, once the run is [finished](RunStore::finish).
    pub fn result(&self) -> Option<&Value> {
        self.manifest.result.as_ref()
    }

    /// The records of the committed depths, ascending without a gap.
    pub fn depths(&self) -> &[DepthRecord] {
        self.records.list()
    }

    /// Commits the next depth (the first may be any). Each shard must be sorted by well; shards may
    /// overlap. Up to `threads` threads write.
    ///
    /// On an error nothing is committed, and the store can be used on.
    ///
    /// # Errors
    /// [`StoreError::NotNext`]; [`StoreError::BadRecord`] if count or digest are not those of the
    /// nodes; [`StoreError::Unsorted`] and [`StoreError::Twice`]; [`StoreError::DiskFull`];
    /// [`StoreError::ReadOnly`]; and what writing files may meet.
    pub fn commit(
        &mut self,
        record: DepthRecord,
        shards: &[&[Node]],
        threads: usize,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let depth = record.depth;
        let expected = self.records.next_depth().unwrap_or(depth);
        if depth != expected || depth == u32::MAX {
            return Err(StoreError::NotNext {
                expected,
                found: depth,
            });
        }
        let bad = |reason: String| Err(StoreError::BadRecord { depth, reason });
        let count: u64 = shards.iter().map(|shard| shard.len() as u64).sum();
        if count != record.count {
            return bad(format!("it has {count} wells, not {}", record.count));
        }
        let Ok(digest) = record.digest.parse::<Digest>() else {
            return bad(format!("{:?} is no digest", record.digest));
        };
        if !record.seconds.is_finite() {
            return bad("its seconds are no number".to_owned());
        }
        let folder = self.dir.join(TABLES);
        let committed = self.write_and_ingest(record, digest, shards, threads);
        if committed.is_err() {
            table::discard(&folder);
        }
        committed
    }

    fn write_and_ingest(
        &mut self,
        mut record: DepthRecord,
        digest: Digest,
        shards: &[&[Node]],
        threads: usize,
    ) -> Result<(), StoreError> {
        let depth = record.depth;
        let folder = self.dir.join(TABLES);
        let written = table::write(
            &self.options,
            &folder,
            self.geometry,
            depth,
            shards,
            threads,
        )?;
        if written.digest != digest {
            let reason = format!("its nodes have the digest {}", written.digest);
            return Err(StoreError::BadRecord { depth, reason });
        }
        sync_dir(&folder)?;
        if !written.paths.is_empty() {
            let mut ingest = IngestExternalFileOptions::default();
            ingest.set_move_files(true);
            let taken = self
                .db()?
                .ingest_external_file_opts(&ingest, written.paths)
                .map_err(StoreError::db(&self.db_dir()));
            if let Err(error) = taken {
                self.reopen();
                return Err(error);
            }
        }
        record.bytes = written.bytes;
        record.kept = true;
        if let Err(error) = self.records.append(record) {
            if let Err(error) = self.remove_tables(depth, depth) {
                tracing::warn!(%error, depth, "tables of a depth that was not committed stay");
                self.reopen();
            }
            return Err(error);
        }
        Ok(())
    }

    /// Opens RocksDB anew after an error that may have left it refusing to write.
    fn reopen(&mut self) {
        self.db = None;
        match open_db(&self.options, &self.dir) {
            Ok(db) => self.db = Some(db),
            Err(error) => tracing::warn!(%error, "RocksDB cannot be opened again"),
        }
        if let Err(error) = self.sweep() {
            tracing::warn!(%error, "tables of depths that were not committed stay");
        }
    }

    /// Removes the tables of depths without a record, and of those not kept.
    fn sweep(&self) -> Result<(), StoreError> {
        let mut stale: Vec<u32> = Vec::new();
        for file in self.live_files()? {
            let depth = file.start_key.as_deref().and_then(table::depth_of);
            let Some(depth) = depth else {
                tracing::warn!(file = %file.name, "a table has no depth: left alone");
                continue;
            };
            if !self.records.get(depth).is_some_and(|record| record.kept) {
                stale.push(depth);
            }
        }
        stale.sort_unstable();
        stale.dedup();
        for depth in stale {
            tracing::info!(depth, "tables that do not count are removed");
            self.remove_tables(depth, depth)?;
        }
        Ok(())
    }

    fn live_files(&self) -> Result<Vec<rocksdb::LiveFile>, StoreError> {
        self.db()?
            .live_files()
            .map_err(StoreError::db(&self.db_dir()))
    }

    fn remove_tables(&self, from: u32, to: u32) -> Result<(), StoreError> {
        table::delete(self.db()?, &self.db_dir(), from, to)?;
        let is_left = self.live_files()?.iter().any(|file| {
            let depth = file.start_key.as_deref().and_then(table::depth_of);
            depth.is_some_and(|depth| (from..=to).contains(&depth))
        });
        match is_left {
            true => Err(StoreError::Db {
                path: self.db_dir(),
                reason: format!("the tables of depths {from} to {to} could not be removed"),
            }),
            false => Ok(()),
        }
    }

    fn db(&self) -> Result<&DB, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::Db {
            path: self.db_dir(),
            reason: "it could not be opened again after an error".to_owned(),
        })
    }

    fn db_dir(&self) -> PathBuf {
        self.dir.join(DB_DIR)
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(StoreError::ReadOnly {
                dir: self.dir.clone(),
            }),
        }
    }

    fn kept(&self, depth: u32) -> Result<&DepthRecord, StoreError> {
        match self.records.get(depth) {
            None => Err(StoreError::NoDepth { depth }),
            Some(record) if !record.kept => Err(StoreError::Dropped { depth }),
            Some(record) => Ok(record),
        }
    }

    /// The files that hold the wells of a depth.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`], [`StoreError::Dropped`], and what RocksDB may meet.
    pub fn tables(&self, depth: u32) -> Result<Vec<PathBuf>, StoreError> {
        self.kept(depth)?;
        let dir = self.db_dir();
        let files = self
            .live_files()?
            .into_iter()
            .filter(|file| file.start_key.as_deref().and_then(table::depth_of) == Some(depth));
        Ok(files
            .map(|file| dir.join(file.name.trim_start_matches('/')))
            .collect())
    }

    /// All nodes of a depth, sorted by well. Their count and digest are checked.
    ///
    /// # Errors
    /// [`StoreError::DamagedDepth`], [`StoreError::NoDepth`], [`StoreError::Dropped`].
    pub fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        let record = self.kept(depth)?;
        // The count may be anything in a record that was tampered with: no more than it is worth.
        let mut nodes = Vec::with_capacity(record.count.min(1 << 28) as usize);
        self.read_depth(self.db()?, record, |node| nodes.push(node))?;
        Ok(nodes)
    }

    /// Gives each node of a depth to `take`, and checks them all.
    fn read_depth(
        &self,
        db: &DB,
        record: &DepthRecord,
        mut take: impl FnMut(Node),
    ) -> Result<(), StoreError> {
        let depth = record.depth;
        let damaged = |reason: String| StoreError::DamagedDepth {
            depth,
            file: None,
            reason,
        };
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_readahead_size(2 << 20);
        if let Some(next) = depth.checked_add(1) {
            options.set_iterate_upper_bound(next.to_be_bytes());
        }
        let mut digest = Digest::default();
        let mut count = 0;
        let mut cursor = db.raw_iterator_opt(options);
        cursor.seek(depth.to_be_bytes());
        while let Some((key, value)) = cursor.item() {
            let node = table::node_of(self.geometry, key, value)
                .ok_or_else(|| damaged("an entry has another length".to_owned()))?;
            digest.add(&node);
            count += 1;
            if count > record.count {
                break;
            }
            take(node);
            cursor.next();
        }
        cursor.status().map_err(StoreError::read(depth))?;
        if count != record.count {
            let of = record.count;
            return Err(damaged(format!("it has {count} wells or more, not {of}")));
        }
        if record.digest.parse() != Ok(digest) {
            let of = &record.digest;
            return Err(damaged(format!("its digest is {digest}, not {of}")));
        }
        Ok(())
    }

    /// Forgets all depths above `depth`, their records and their tables. The result goes, too.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], and what writing files may meet.
    pub fn truncate(&mut self, depth: u32) -> Result<(), StoreError> {
        self.forget_result()?;
        self.records.retain(|of| of <= depth)?;
        match depth.checked_add(1) {
            Some(next) => self.remove_tables(next, u32::MAX),
            None => Ok(()),
        }
    }

    /// Forgets all depths; the next commit may be of any.
    ///
    /// # Errors
    /// As for [`RunStore::truncate`].
    pub fn clear(&mut self) -> Result<(), StoreError> {
        self.forget_result()?;
        self.records.retain(|_| false)?;
        self.remove_tables(0, u32::MAX)
    }

    fn forget_result(&mut self) -> Result<(), StoreError> {
        self.check_writable()?;
        if self.manifest.result.is_some() {
            let mut manifest = self.manifest.clone();
            manifest.result = None;
            manifest.write(&self.dir)?;
            self.manifest = manifest;
        }
        Ok(())
    }

    /// Gives up the tables of a depth to save space. Its record stays.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`], [`StoreError::ReadOnly`], and what writing files may meet.
    pub fn drop_tables(&mut self, depth: u32) -> Result<(), StoreError> {
        self.check_writable()?;
        let mut record = match self.kept(depth) {
            Err(StoreError::Dropped { .. }) => return Ok(()),
            record => record?.clone(),
        };
        record.kept = false;
        record.bytes = 0;
        // The record first: a crash in between leaves tables that opening removes.
        self.records.append(record)?;
        self.remove_tables(depth, depth)
    }

    /// Writes the tables of a committed depth anew, as they are damaged. Each shard must be sorted by well.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`]; [`StoreError::BadRecord`] if these are not the nodes that were committed; else
    /// as for [`RunStore::commit`]. After an error the depth is one that is not kept.
    pub fn restore(
        &mut self,
        depth: u32,
        shards: &[&[Node]],
        threads: usize,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let record = self.records.get(depth).cloned();
        let record = record.ok_or(StoreError::NoDepth { depth })?;
        let digest = Digest::of(shards.iter().copied().flatten());
        if digest.to_string() != record.digest {
            let reason = format!("what was made anew has the digest {digest}");
            return Err(StoreError::BadRecord { depth, reason });
        }
        self.drop_tables(depth)?;
        let folder = self.dir.join(TABLES);
        let written = self.write_and_ingest(record, digest, shards, threads);
        if written.is_err() {
            table::discard(&folder);
        }
        written
    }

    /// Keeps the run's result; there may be more depths afterwards nonetheless.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], and what writing files may meet.
    pub fn finish(&mut self, result: &Value) -> Result<(), StoreError> {
        self.check_writable()?;
        let mut manifest = self.manifest.clone();
        manifest.result = Some(result.clone());
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        Ok(())
    }

    /// The bytes of all the run's files.
    pub fn stored_bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }

    /// Reads every kept depth from the disk and checks it: the checksums of all blocks, the count
    /// and the digest. Gives the depths that are damaged, and what is wrong with them.
    pub fn verify(&self) -> Vec<(u32, StoreError)> {
        let kept = || self.depths().iter().filter(|record| record.kept);
        // Opened anew, so that nothing comes from a cache.
        let options = table::options(&Cache::new_lru_cache(1 << 20));
        let db = match open_db_read_only(&options, &self.dir) {
            Ok(db) => db,
            Err(error) => {
                let reason = error.to_string();
                return kept()
                    .map(|record| {
                        let error = StoreError::Db {
                            path: self.db_dir(),
                            reason: reason.clone(),
                        };
                        (record.depth, error)
                    })
                    .collect();
            }
        };
        kept()
            .filter_map(|record| {
                let error = self.read_depth(&db, record, |_| {}).err()?;
                Some((record.depth, error))
            })
            .collect()
    }
}

impl Lookup for RunStore {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn depths(&self) -> &[DepthRecord] {
        self.records.list()
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        self.kept(depth)?;
        let keys = wells
            .iter()
            .map(|well| Key::new(self.geometry, depth, well));
        table::found(depth, wells, self.db()?.multi_get(keys))
    }
}

fn open_db(options: &Options, dir: &Path) -> Result<DB, StoreError> {
    let path = dir.join(DB_DIR);
    DB::open(options, &path).map_err(StoreError::db(&path))
}

/// Opens RocksDB while another process may be changing it, which takes more than one try at times.
fn open_db_read_only(options: &Options, dir: &Path) -> Result<DB, StoreError> {
    let path = dir.join(DB_DIR);
    let mut tries = 0;
    loop {
        match DB::open_for_read_only(options, &path, false) {
            Ok(db) => return Ok(db),
            Err(_) if tries < 3 => tries += 1,
            Err(error) => return Err(StoreError::db(&path)(error)),
        }
    }
}

fn take_lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(LOCK);
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(StoreError::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse {
            dir: dir.to_path_buf(),
        }),
        Err(error) => Err(StoreError::io(&path)(error.into())),
    }
}

/// A run as [`list_runs`] has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its folder.
    pub dir: PathBuf,
    /// The folder's name.
    pub name: String,
    /// How many depths it has.
    pub depths: usize,
    /// Whether it has a result.
    pub finished: bool,
}

/// The runs in a folder, sorted by name. Whatever is no readable run is passed over.
pub fn list_runs(root: &Path) -> Vec<RunSummary> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut runs: Vec<RunSummary> = entries
        .flatten()
        .filter_map(|entry| {
            let dir = entry.path();
            let (manifest, _) = Manifest::read(&dir).ok()?;
            let records = Records::read(&dir.join(DEPTHS)).ok()?;
            Some(RunSummary {
                name: entry.file_name().to_string_lossy().into_owned(),
                depths: records.list().len(),
                finished: manifest.result.is_some(),
                dir,
            })
        })
        .collect();
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    runs
}
