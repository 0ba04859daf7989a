//! Committing, repairing and removing depths. A depth consists of the wells that the search keeps after a
//! number of placed pieces. They are stored in tables (RocksDB files).

use super::{RunStore, open_db};
use crate::error::StoreError;
use crate::table::{self, TABLES};
use hatebeam_files::sync_dir;
use hatebeam_search::{DepthRecord, Digest, Node};
use rocksdb::{IngestExternalFileOptions, LiveFile};
use std::ops::RangeInclusive;

/// A depth to commit.
#[derive(Clone, Debug)]
pub struct NewDepth<'a> {
    /// The depth's record. The commit sets the fields `bytes` and `kept`.
    pub record: DepthRecord,
    /// The nodes of each shard, sorted by well. The key ranges of different shards may overlap.
    pub shards: Vec<&'a [Node]>,
    /// Whether to write tables. If not, only the record is stored.
    pub keep: bool,
}

impl RunStore {
    /// Commits the next depth, with its tables. Uses up to `threads` threads.
    ///
    /// # Errors
    /// Returns the same errors as [`RunStore::commit_group`].
    pub fn commit(
        &mut self,
        record: DepthRecord,
        shards: &[&[Node]],
        threads: usize,
    ) -> Result<(), StoreError> {
        let depth = NewDepth {
            record,
            shards: shards.to_vec(),
            keep: true,
        };
        self.commit_group(vec![depth], None, threads)
    }

    /// Commits the next depths together. They must be consecutive and in ascending order, but the
    /// first depth of a run can have any number. If `dropped` is given, also drops this earlier depth
    /// like [`RunStore::drop_tables`]. Uses up to `threads` threads.
    ///
    /// All depths except the last one share a table, so dropping one of them drops all of them. A
    /// crash leaves either all of these changes or none. After an error, none of the depths is committed.
    ///
    /// # Errors
    /// Returns [`StoreError::NotNext`] if a depth is not the next one, [`StoreError::BadRecord`]
    /// if the count or digest in a record does not match the nodes, and [`StoreError::Unsorted`]
    /// or [`StoreError::DuplicateWell`] if the shards are invalid. Returns
    /// [`StoreError::ReadOnly`], [`StoreError::DiskFull`] or another error if the files cannot be
    /// written. Returns the errors of [`RunStore::drop_tables`] for `dropped`. If only the deletion of its
    /// tables has failed, the new depths are committed, and the next [open](RunStore::open) for writing
    /// deletes the tables.
    pub fn commit_group(
        &mut self,
        depths: Vec<NewDepth<'_>>,
        dropped: Option<u32>,
        threads: usize,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let mut next = self.records.next_depth();
        for NewDepth { record, shards, .. } in &depths {
            let depth = record.depth;
            let expected = next.unwrap_or(depth);
            if depth != expected || depth == u32::MAX {
                return Err(StoreError::NotNext {
                    expected,
                    found: depth,
                });
            }
            check_record(record, shards)?;
            next = Some(depth + 1);
        }
        let dropped = match dropped {
            Some(depth) => self.dropped_with(depth)?,
            None => None,
        };
        self.write_and_ingest(depths, dropped, threads)
    }

    /// Rewrites the tables of a committed depth to repair damage. Each shard must be sorted by
    /// well. Depths that share a table with this depth are dropped, because the table is deleted.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, [`StoreError::BadRecord`] if
    /// the nodes have a different digest than the committed nodes, or an error from
    /// [`RunStore::commit`]. After an error from [`RunStore::commit`], the depth may be dropped.
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
        let depth = NewDepth {
            record,
            shards: shards.to_vec(),
            keep: true,
        };
        self.write_and_ingest(vec![depth], None, threads)
    }

    /// Writes and commits depths. If this fails, deletes all files in the folder `tables/`.
    fn write_and_ingest(
        &mut self,
        depths: Vec<NewDepth<'_>>,
        dropped: Option<DroppedDepths>,
        threads: usize,
    ) -> Result<(), StoreError> {
        let committed = self.try_write_and_ingest(depths, dropped, threads);
        if committed.is_err() {
            table::discard(&self.dir.join(TABLES));
        }
        committed
    }

    fn try_write_and_ingest(
        &mut self,
        depths: Vec<NewDepth<'_>>,
        dropped: Option<DroppedDepths>,
        threads: usize,
    ) -> Result<(), StoreError> {
        let folder = self.dir.join(TABLES);
        let written = table::write(&self.options, &folder, self.geometry, &depths, threads)?;
        for (NewDepth { record, keep, .. }, written) in depths.iter().zip(&written.depths) {
            let digest = written.digest;
            if *keep && record.digest.parse() != Ok(digest) {
                return Err(StoreError::BadRecord {
                    depth: record.depth,
                    reason: format!("the nodes have a different digest, {digest}"),
                });
            }
        }
        if !written.paths.is_empty() {
            sync_dir(&folder).map_err(StoreError::io(&folder))?;
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
        let records = depths.into_iter().zip(written.depths);
        let mut records: Vec<DepthRecord> = records
            .map(|(depth, written)| DepthRecord {
                bytes: written.bytes,
                kept: depth.keep,
                ..depth.record
            })
            .collect();
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Ok(());
        };
        let (first, last) = (first.depth, last.depth);
        let dropped = dropped.map(|dropped| {
            records.extend(dropped.records);
            dropped.range
        });
        if let Err(error) = self.records.append(records) {
            if let Err(error) = self.remove_tables(first, last) {
                tracing::warn!(%error, first, last, "cannot remove tables of uncommitted depths");
                self.reopen();
            }
            return Err(error);
        }
        match dropped {
            Some(range) => self.remove_tables(*range.start(), *range.end()),
            None => Ok(()),
        }
    }

    /// Reopens RocksDB, which may reject all writes after an error.
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
        let is_kept = |depth| self.records.get(depth).is_some_and(|record| record.kept);
        let mut uncommitted: Vec<RangeInclusive<u32>> = Vec::new();
        for file in self.live_files()? {
            let Some(depths) = table::depths_of(&file) else {
                tracing::warn!(file = %file.name, "ignored table whose keys contain no depth");
                continue;
            };
            // The depths in a table are committed and dropped together. The range may include
            // depths that were committed without tables.
            if !depths.clone().any(is_kept) {
                uncommitted.push(depths);
            }
        }
        uncommitted.sort_unstable_by_key(|depths| *depths.start());
        uncommitted.dedup();
        for depths in uncommitted {
            let (first, last) = (*depths.start(), *depths.end());
            self.remove_tables(first, last)?;
            tracing::info!(first, last, "removed tables of uncommitted depths");
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
            let depths = table::depths_of(file);
            depths.is_some_and(|depths| *depths.start() <= to && from <= *depths.end())
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
        let Some(next) = depth.checked_add(1) else {
            return Ok(());
        };
        // Remaining depths that share a table with a removed depth get their own tables below. If a
        // crash prevents this, they are dropped.
        let shared = self.sharing(next)?;
        let mut remaining = Vec::new();
        for depth in *shared.start()..next {
            match self.load(depth) {
                Ok(nodes) => remaining.push((depth, nodes)),
                // A damaged depth cannot be rewritten, so it is dropped.
                Err(
                    StoreError::Dropped { .. }
                    | StoreError::NoDepth { .. }
                    | StoreError::DamagedDepth { .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        // `next` itself may have been committed without tables, although its group has a table.
        if let Some(kept) = shared.into_iter().find(|&depth| self.kept(depth).is_ok()) {
            self.drop_tables(kept)?;
        }
        self.records.retain(|of| of <= depth)?;
        self.remove_tables(next, u32::MAX)?;
        for (depth, nodes) in remaining {
            self.restore(depth, &[&nodes], 1)?;
        }
        Ok(())
    }

    /// Returns the range of depths that share a table with `depth`.
    fn sharing(&self, depth: u32) -> Result<RangeInclusive<u32>, StoreError> {
        let (mut first, mut last) = (depth, depth);
        for depths in self.live_files()?.iter().filter_map(table::depths_of) {
            if depths.contains(&depth) {
                first = first.min(*depths.start());
                last = last.max(*depths.end());
            }
        }
        Ok(first..=last)
    }

    /// Removes all depths and the result of the run. The next commit can begin with any depth.
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
            self.change_manifest(|manifest| manifest.result = None)?;
        }
        Ok(())
    }

    /// Drops a depth: deletes its tables, to save space or because they are damaged, but keeps its
    /// record. Other depths in the same table are dropped too. These are the depths of a
    /// [group](RunStore::commit_group) except for the last one.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, and [`StoreError::ReadOnly`]
    /// or another error if the files cannot be written.
    pub fn drop_tables(&mut self, depth: u32) -> Result<(), StoreError> {
        self.check_writable()?;
        let Some(DroppedDepths { range, records }) = self.dropped_with(depth)? else {
            return Ok(());
        };
        // Append the records first: after a crash between the two steps, the next open removes the
        // tables.
        self.records.append(records)?;
        self.remove_tables(*range.start(), *range.end())
    }

    /// Returns the depths that are dropped with `depth`, or `None` if it has already been dropped.
    fn dropped_with(&self, depth: u32) -> Result<Option<DroppedDepths>, StoreError> {
        match self.kept(depth) {
            Err(StoreError::Dropped { .. }) => return Ok(None),
            record => record?,
        };
        let range = self.sharing(depth)?;
        let kept = range.clone().filter_map(|depth| self.kept(depth).ok());
        let records = kept.map(|record| DepthRecord {
            kept: false,
            bytes: 0,
            ..record.clone()
        });
        let records = records.collect();
        Ok(Some(DroppedDepths { range, records }))
    }
}

/// Depths that are dropped together.
struct DroppedDepths {
    /// The range of depths whose tables are deleted.
    range: RangeInclusive<u32>,
    /// The records that mark them as dropped.
    records: Vec<DepthRecord>,
}

/// Checks the number of wells in a record, and that its digest and its duration are valid.
fn check_record(record: &DepthRecord, shards: &[&[Node]]) -> Result<(), StoreError> {
    let bad = |reason: String| {
        Err(StoreError::BadRecord {
            depth: record.depth,
            reason,
        })
    };
    let count: u64 = shards.iter().map(|shard| shard.len() as u64).sum();
    if count != record.count {
        return bad(format!(
            "the record has {} wells, but the shards have {count}",
            record.count
        ));
    }
    if record.digest.parse::<Digest>().is_err() {
        return bad(format!("{:?} is not a digest", record.digest));
    }
    if !record.seconds.is_finite() {
        return bad("the duration is not finite".to_owned());
    }
    Ok(())
}
