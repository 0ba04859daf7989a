//! Committing a depth.

use super::error::EpochError;
use super::failures::Retries;
use super::state::RunDriver;
use super::workers::{EpochWorkers, Explored, Uploads, strange};
use hatebeam_cost::Micros;
use hatebeam_runs::{CommittedDepth, DepthWork, FrontierSummary, SpecError, Table};
use hatebeam_search::DepthRecord;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// A depth that was selected, and whose tables are being uploaded.
pub(super) struct Pending {
    record: DepthRecord,
    sent: u64,
    sent_bytes: u64,
    uploads: Uploads,
    workers: usize,
    /// Span of this depth, since the next one is expanded at the same time.
    span: Span,
}

/// A depth that was selected.
pub(super) struct Selected {
    pub(super) depth: u32,
    pub(super) explored: Explored,
    pub(super) frontier: FrontierSummary,
    pub(super) seconds: f64,
    pub(super) span: Span,
}

impl RunDriver {
    /// Begins to commit a depth: waits for its tables in the background.
    pub(super) fn pending(
        &self,
        workers: &EpochWorkers,
        selected: Selected,
    ) -> Result<Pending, SpecError> {
        let Selected {
            depth,
            explored,
            frontier,
            seconds,
            span,
        } = selected;
        let geometry = self.manifest().spec.well.geometry()?;
        let work = DepthWork {
            depth,
            median_eval: explored.median,
            children: explored.children,
            seconds,
        };
        let record = frontier.record(geometry, work);
        Ok(Pending {
            record,
            sent: explored.sent,
            sent_bytes: explored.sent_bytes,
            uploads: workers.uploads(depth),
            workers: workers.members.len(),
            span,
        })
    }

    /// Waits until all tables of a depth are in the object store, and saves the manifest that names them.
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
        let checked = self.manifest().check_tables(&tables, count);
        checked.map_err(|error| strange("a worker", &error))?;
        pending.record.bytes = tables.iter().map(|table| table.bytes).sum();
        let depth = pending.record.depth;
        let list = self.versioned.put_tables(depth, &tables).await?;
        let spent = self.parts.costs.spent(&self.manifest().name);
        let depths = &mut self.manifest_mut().depths;
        let before: Micros = depths.iter().map(|depth| depth.cost).sum();
        depths.push(CommittedDepth {
            cost: spent.saturating_sub(before),
            record: pending.record,
            sent: pending.sent,
            sent_bytes: pending.sent_bytes,
            tables: Some(list),
        });
        // Whatever failed before has passed.
        self.failures.forget();
        self.retries = Retries::default();
        let dropped = self.drop_tables(depth);
        self.save().await?;
        self.report_committed(pending.workers, began);
        self.delete_tables(dropped).await;
        Ok(())
    }

    /// Waits for the tables of all workers. The tables of a wide beam take as long as a depth, so updates of clients are
    /// applied meanwhile.
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
            let uploaded = uploaded.map_err(|error| strange("coordinator", &error))??;
            tables.extend(uploaded);
        }
        tables.sort_by_key(|table| table.shard);
        Ok(tables)
    }

    /// Marks the tables that are not kept any more once this depth is committed, and returns their depths.
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

    /// Logs, counts and announces the last committed depth.
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

    /// Deletes tables that the manifest does not name any more. Tables that remain do no harm.
    async fn delete_tables(&self, depths: Vec<u32>) {
        for depth in depths {
            let prefix = format!("{}/frontier/{depth:05}", self.manifest().prefix());
            if let Err(error) = self.parts.objects.delete_prefix(&prefix).await {
                tracing::warn!(depth, %error, "cannot delete tables that are not kept");
            }
        }
    }
}
