//! Commits depths, and removes depths and their tables.

use super::{RunStore, TABLES, open_db};
use crate::error::StoreError;
use crate::files::sync_dir;
use crate::table;
use hatebeam_search::{DepthRecord, Digest, Node};
use rocksdb::{IngestExternalFileOptions, LiveFile};

impl RunStore {
    /// Commits the next depth. The first depth of a run can have any number. Each shard must be
    /// sorted by well. The key ranges of different shards may overlap. Uses up to `threads`
    /// threads.
    ///
    /// After an error, nothing is committed and the store remains usable.
    ///
    /// # Errors
    /// Returns [`StoreError::NotNext`] if the depth is not the next one, [`StoreError::BadRecord`]
    /// if the count or digest in the record does not match the nodes, and [`StoreError::Unsorted`]
    /// or [`StoreError::DuplicateWell`] if the shards are invalid. Returns
    /// [`StoreError::ReadOnly`], [`StoreError::DiskFull`] or another error if the files cannot be
    /// written.
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
            return bad(format!(
                "the record has {} wells, but the shards have {count}",
                record.count
            ));
        }
        let Ok(digest) = record.digest.parse::<Digest>() else {
            return bad(format!("{:?} is not a digest", record.digest));
        };
        if !record.seconds.is_finite() {
            return bad("the duration is not finite".to_owned());
        }
        self.write_and_ingest(record, digest, shards, threads)
    }

    /// Rewrites the tables of a committed depth to repair damage. Each shard must be sorted by
    /// well.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, [`StoreError::BadRecord`] if
    /// the nodes are not the committed ones, or an error of [`RunStore::commit`]. If an error
    /// occurs after the nodes have been checked, the tables of the depth are dropped.
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
            let reason = format!("the restored nodes have a different digest, {digest}");
            return Err(StoreError::BadRecord { depth, reason });
        }
        self.drop_tables(depth)?;
        self.write_and_ingest(record, digest, shards, threads)
    }

    /// Writes and commits a depth. After an error, deletes all files in the folder `tables/`.
    fn write_and_ingest(
        &mut self,
        record: DepthRecord,
        digest: Digest,
        shards: &[&[Node]],
        threads: usize,
    ) -> Result<(), StoreError> {
        let committed = self.try_write_and_ingest(record, digest, shards, threads);
        if committed.is_err() {
            table::discard(&self.dir.join(TABLES));
        }
        committed
    }

    fn try_write_and_ingest(
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
            let reason = format!("the nodes have a different digest, {}", written.digest);
            return Err(StoreError::BadRecord { depth, reason });
        }
        sync_dir(&folder)?;
        if !written.paths.is_empty() {
            let mut ingest = IngestExternalFileOptions::default();
            ingest.set_move_files(true);
            let ingested = self
                .db()?
                .ingest_external_file_opts(&ingest, written.paths)
                .map_err(StoreError::db(&self.db_dir()));
            if let Err(error) = ingested {
                self.reopen();
                return Err(error);
            }
        }
        record.bytes = written.bytes;
        record.kept = true;
        if let Err(error) = self.records.append(record) {
            if let Err(error) = self.remove_tables(depth, depth) {
                tracing::warn!(%error, depth, "cannot remove tables of uncommitted depth");
                self.reopen();
            }
            return Err(error);
        }
        Ok(())
    }

    /// Reopens RocksDB after an error, because it may reject further writes.
    fn reopen(&mut self) {
        self.db = None;
        match open_db(&self.options, &self.dir) {
            Ok(db) => self.db = Some(db),
            Err(error) => tracing::warn!(%error, "cannot reopen RocksDB"),
        }
        if let Err(error) = self.remove_uncommitted() {
            tracing::warn!(%error, "cannot remove tables of uncommitted depths");
        }
    }

    /// Removes the tables of depths that have no record or whose record does not mark them as kept.
    pub(super) fn remove_uncommitted(&self) -> Result<(), StoreError> {
        let mut uncommitted: Vec<u32> = Vec::new();
        for file in self.live_files()? {
            let depth = file.start_key.as_deref().and_then(table::depth_of);
            let Some(depth) = depth else {
                tracing::warn!(file = %file.name, "ignored table whose keys contain no depth");
                continue;
            };
            if !self.records.get(depth).is_some_and(|record| record.kept) {
                uncommitted.push(depth);
            }
        }
        uncommitted.sort_unstable();
        uncommitted.dedup();
        for depth in uncommitted {
            self.remove_tables(depth, depth)?;
            tracing::info!(depth, "removed tables of uncommitted depth");
        }
        Ok(())
    }

    pub(super) fn live_files(&self) -> Result<Vec<LiveFile>, StoreError> {
        self.db()?
            .live_files()
            .map_err(StoreError::db(&self.db_dir()))
    }

    fn remove_tables(&self, from: u32, to: u32) -> Result<(), StoreError> {
        table::delete(self.db()?, &self.db_dir(), from, to)?;
        let remain = self.live_files()?.iter().any(|file| {
            let depth = file.start_key.as_deref().and_then(table::depth_of);
            depth.is_some_and(|depth| (from..=to).contains(&depth))
        });
        if remain {
            return Err(StoreError::Db {
                path: self.db_dir(),
                reason: format!("cannot remove the tables of depths {from} to {to}"),
            });
        }
        Ok(())
    }

    /// Removes all depths greater than `depth` with their records and tables, and the result of the
    /// run.
    ///
    /// # Errors
    /// Returns [`StoreError::ReadOnly`] or another error if the files cannot be written.
    pub fn truncate(&mut self, depth: u32) -> Result<(), StoreError> {
        self.remove_result()?;
        self.records.retain(|of| of <= depth)?;
        match depth.checked_add(1) {
            Some(next) => self.remove_tables(next, u32::MAX),
            None => Ok(()),
        }
    }

    /// Removes all depths and the result of the run. The next depth to be committed can have any
    /// number.
    ///
    /// # Errors
    /// Returns the same errors as [`RunStore::truncate`].
    pub fn clear(&mut self) -> Result<(), StoreError> {
        self.remove_result()?;
        self.records.retain(|_| false)?;
        self.remove_tables(0, u32::MAX)
    }

    fn remove_result(&mut self) -> Result<(), StoreError> {
        self.check_writable()?;
        if self.manifest.result.is_some() {
            self.write_result(None)?;
        }
        Ok(())
    }

    /// Deletes (drops) the tables of a depth to save space. Its record remains.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, and [`StoreError::ReadOnly`]
    /// or another error if the files cannot be written.
    pub fn drop_tables(&mut self, depth: u32) -> Result<(), StoreError> {
        self.check_writable()?;
        let mut record = match self.kept(depth) {
            Err(StoreError::Dropped { .. }) => return Ok(()),
            record => record?.clone(),
        };
        record.kept = false;
        record.bytes = 0;
        // Append the record first. After a crash between the two steps, the next open removes the
        // tables.
        self.records.append(record)?;
        self.remove_tables(depth, depth)
    }
}
