//! Committing a depth: waiting until the workers have uploaded its tables (files that contain its wells), and saving
//! the manifest that lists these tables.

use super::error::EpochError;
use super::failures::Retries;
use super::state::RunDriver;
use super::workers::{EpochWorkers, Explored, Uploads};
use crate::registry::WorkerError;
use hatebeam_cost::Micros;
use hatebeam_game::Geometry;
use hatebeam_proto::messages::ChangedWell;
use hatebeam_runs::{
    CommittedDepth, DepthTables, DepthWork, FrontierSummary, SpecError, Table, check_tables,
    delete_tables,
};
use hatebeam_search::{ChangedPiece, DepthRecord, NodeWell};
use std::collections::BTreeSet;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// A depth whose frontier (the wells that the search keeps) is selected and whose tables are being uploaded.
pub(super) struct Pending {
    record: DepthRecord,
    /// Wells of the previous depth in which the loop rule changes the piece.
    changed: Vec<ChangedPiece>,
    sent: u64,
    sent_bytes: u64,
    uploads: Uploads,
    /// Names of the workers that searched the depth.
    workers: Vec<String>,
    /// Tracing span of this depth. The next depth is already expanded in another span when this depth is committed.
    span: Span,
}

/// A depth whose frontier is selected.
pub(super) struct Selected {
    pub(super) depth: u32,
    pub(super) explored: Explored,
    pub(super) frontier: FrontierSummary,
    /// The parts of the frontier, one for each worker.
    pub(super) parts: Vec<FrontierSummary>,
    pub(super) seconds: f64,
    pub(super) span: Span,
}

impl RunDriver {
    /// Starts to wait for the table uploads of a depth, in the background.
    pub(super) fn pending(
        &self,
        workers: &EpochWorkers,
        selected: Selected,
    ) -> Result<Pending, EpochError> {
        let Selected {
            depth,
            explored,
            frontier,
            parts,
            seconds,
            span,
        } = selected;
        let geometry = self
            .manifest()
            .spec
            .well
            .geometry()
            .map_err(SpecError::from)?;
        let work = DepthWork {
            depth,
            median_eval: explored.median,
            children: explored.children,
            seconds,
        };
        let mut changed = Vec::new();
        for (member, part) in workers.members.iter().zip(&explored.changed) {
            let part = self.changed_pieces(&member.name, geometry, part);
            let part = part.map_err(|wrong| WorkerError::failed(&member.name, wrong))?;
            changed.extend(part);
        }
        changed.sort_unstable();
        let run = &self.manifest().name;
        Ok(Pending {
            record: frontier.record(geometry, work),
            changed,
            sent: explored.sent,
            sent_bytes: explored.sent_bytes,
            uploads: workers.uploads(run, depth, &parts, &self.owners),
            workers: workers.names().into_iter().map(str::to_owned).collect(),
            span,
        })
    }

    /// Converts the wells in which the loop rule changes the piece, according to a worker. Returns the reason if one of them
    /// cannot be a well of the worker. Whether the pieces are right shows only when a game through these wells is read back.
    fn changed_pieces(
        &self,
        worker: &str,
        geometry: Geometry,
        changed: &[ChangedWell],
    ) -> Result<Vec<ChangedPiece>, String> {
        let layout = self.manifest().layout();
        let is_own = |well: &NodeWell| {
            let owner = self.owners.get(layout.shard_of(well));
            owner.is_some_and(|owner| owner == worker)
        };
        let mut wells = BTreeSet::new();
        let convert = |changed: &ChangedWell| {
            let piece = changed.to_text(geometry).filter(|_| is_own(&changed.well));
            piece.filter(|_| wells.insert(changed.well))
        };
        let pieces: Option<Vec<ChangedPiece>> = changed.iter().map(convert).collect();
        pieces.ok_or_else(|| {
            "a well whose piece the loop rule changes is invalid, listed twice, or in a shard of another worker".to_owned()
        })
    }

    /// Waits until all tables of the pending depth are in the object store, and saves the manifest that lists them.
    /// Does nothing if no depth is pending.
    pub(super) async fn commit(&mut self, pending: Option<Pending>) -> Result<(), EpochError> {
        let Some(pending) = pending else {
            return Ok(());
        };
        let span = pending.span.clone();
        self.commit_depth(pending).instrument(span).await
    }

    async fn commit_depth(&mut self, mut pending: Pending) -> Result<(), EpochError> {
        let began = self.parts.env.now();
        let tables = self.wait_for_tables(&mut pending.uploads).await?;
        let count = pending.record.count;
        let checked = check_tables(&tables, self.manifest().shards, count);
        // Each worker's tables match its part of the frontier, so this check cannot fail because of a worker.
        checked.map_err(|error| WorkerError::failed("coordinator", error))?;
        pending.record.bytes = tables.iter().map(|table| table.bytes).sum();
        let depth = pending.record.depth;
        let changed = std::mem::take(&mut pending.changed);
        let tables = DepthTables { tables, changed };
        let list = self.versioned.put_tables(depth, &tables).await?;
        let spent = self.parts.costs.spent(&self.manifest().name);
        let waiting = std::mem::take(&mut self.waiting);
        let depths = &mut self.manifest_mut().depths;
        let before: Micros = depths.iter().map(|depth| depth.cost).sum();
        depths.push(CommittedDepth {
            cost: spent.saturating_sub(before),
            waiting,
            record: pending.record,
            sent: pending.sent,
            sent_bytes: pending.sent_bytes,
            tables: Some(list),
        });
        // Only failures since the last commit count.
        let workers: Vec<&str> = pending.workers.iter().map(String::as_str).collect();
        self.failures.forget(&workers);
        self.retries = Retries::default();
        let dropped = self.drop_tables(depth);
        self.save().await?;
        self.report_committed(workers.len(), began);
        self.delete_tables(dropped).await;
        Ok(())
    }

    /// Waits until all workers have uploaded their tables. For a wide beam the upload takes as long as a depth, so
    /// client updates are applied in the meantime.
    async fn wait_for_tables(&mut self, uploads: &mut Uploads) -> Result<Vec<Table>, EpochError> {
        let mut tables: Vec<Table> = Vec::new();
        let mut updates = self.parts.queue.updates();
        loop {
            updates.mark_unchanged();
            self.apply_pending().await?;
            let uploaded = tokio::select! {
                biased;
                uploaded = uploads.join_next() => uploaded,
                _ = updates.changed() => continue,
            };
            let Some(uploaded) = uploaded else {
                break;
            };
            let uploaded =
                uploaded.map_err(|error| WorkerError::failed("coordinator", error))??;
            tables.extend(uploaded);
        }
        tables.sort_by_key(|table| table.shard);
        Ok(tables)
    }

    /// Marks tables as not stored if the retention rule no longer keeps them after the commit of `depth`. Returns the
    /// depths of these tables.
    fn drop_tables(&mut self, depth: u32) -> Vec<u32> {
        let manifest = self.manifest_mut();
        let keep = manifest.keep;
        let first = manifest.depths.first();
        let first = first.map_or(0, |first| first.record.depth);
        let mut dropped = Vec::new();
        for old in &mut manifest.depths {
            let record = &mut old.record;
            let is_between = first < record.depth && record.depth < depth;
            if is_between && record.kept && !keep.keeps(record.depth, first) {
                record.kept = false;
                record.bytes = 0;
                dropped.push(record.depth);
            }
        }
        dropped
    }

    /// Reports the last committed depth to the log, the metrics and the notification hooks.
    fn report_committed(&mut self, workers: usize, began: Instant) {
        self.warn_of_budget();
        let Some(last) = self.manifest().last() else {
            return;
        };
        let record = &last.record;
        tracing::info!(
            run = self.manifest().name,
            depth = record.depth,
            wells = record.count,
            lines = record.best_lines,
            children = record.children,
            sent = last.sent,
            seconds = record.seconds,
            bytes = record.bytes,
            workers,
            digest = record.digest,
            "committed depth"
        );
        self.parts.notifier.committed(self.manifest(), record);
        let metrics = &self.parts.metrics;
        metrics
            .coordinator
            .phases
            .observe("commit", began.elapsed());
        metrics.coordinator.exchanged.add(last.sent);
        metrics.coordinator.exchanged_bytes.add(last.sent_bytes);
        metrics.run.depths.add(1);
        metrics.run.children.add(record.children);
        metrics.run.depth_seconds.observe_seconds(record.seconds);
    }

    /// Deletes the tables of depths that are no longer kept. An error is only logged, since leftover tables do no harm.
    async fn delete_tables(&self, depths: Vec<u32>) {
        for depth in depths {
            let deleted = delete_tables(&self.parts.objects, self.manifest(), depth).await;
            if let Err(error) = deleted {
                tracing::warn!(depth, %error, "cannot delete tables that are no longer kept");
            }
        }
    }
}
