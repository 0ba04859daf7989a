//! A run, depth by depth.
//!
//! An epoch is a workers of workers with their shards. Within it each depth is expanded, the cut is found by
//! counting, the survivors are selected and their tables put into the object store, while the next depth is
//! expanded already. When all tables of a depth are there, the manifest names them: from then on the depth
//! counts. When a worker is lost, comes, or wants to go, the epoch ends, and the next one goes on from the
//! last depth that counts.

use crate::alerts::WARN_AT;
use crate::assign::{WorkerCapacity, assign};
use crate::epoch_workers::{EpochWorkers, strange};
use crate::failures::FailureTracker;
use crate::notifier::Notifier;
use crate::queue::RunQueue;
use crate::registry::{Member, WorkerError, WorkerRegistry};
use crate::results::{self, read_back, with_causes};
use crate::wire::{table_from_wire, table_to_wire};
use hatebeam_cost::Micros;
use hatebeam_notify::EventKind;
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_runs::SpecError;
use hatebeam_runs::{
    CommittedDepth, DepthWork, EndReason, ManifestError, ReadError, Retention, RunState, Table,
    Usage, VersionedManifest, collect_garbage, first_record,
};
use hatebeam_store::DepthRecord;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

/// After the last worker has come, others are waited for so long.
const SETTLE: Duration = Duration::from_millis(400);
/// So often in a row may the same depth fail because a worker cannot do it, before the run fails.
const MAX_FAILURES: u32 = 5;
/// Between two tries of a depth that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// So many times as long at most is waited when the object store is away.
const MAX_PASSING: u32 = 20;
/// How often it is looked whether a limit is reached while nothing is searched.
const LIMITS_EVERY: Duration = Duration::from_secs(1);

/// How often a depth has failed.
#[derive(Default)]
struct Failures {
    depth: u32,
    count: u32,
    /// Failures in a row that may pass by themselves.
    passing: u32,
}

/// Why a run cannot go on here.
#[derive(Debug, Error)]
pub(crate) enum DriverError {
    /// The object store refuses, or another coordinator has the run.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Workers say again and again that they cannot.
    #[error("depth {depth} failed {MAX_FAILURES} times; worker {worker} says: {reason}")]
    Failing {
        depth: u32,
        worker: String,
        reason: String,
    },
    /// The best game cannot be read back.
    #[error("the best game cannot be read back: {0}")]
    Game(String),
}

impl DriverError {
    /// Whether another coordinator has the run.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(
            self,
            DriverError::Manifest(ManifestError::Superseded { .. })
        )
    }

    /// Whether the object store alone is what holds the run up, and only for now.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            DriverError::Manifest(ManifestError::Object(error)) => error.is_transient(),
            _ => false,
        }
    }
}

/// Why an epoch breaks off.
enum Broken {
    /// A worker is lost, or cannot: the next epoch goes on from what counts.
    WorkerError(WorkerError),
    /// The run cannot go on here.
    Run(DriverError),
}

impl From<WorkerError> for Broken {
    fn from(lost: WorkerError) -> Broken {
        Broken::WorkerError(lost)
    }
}

impl<E: Into<DriverError>> From<E> for Broken {
    fn from(error: E) -> Broken {
        Broken::Run(error.into())
    }
}

/// What an epoch came to.
enum EpochEnd {
    /// The search is complete, or a limit is reached.
    Over(EndReason),
    /// Somebody stopped it.
    Cancelled,
    /// Others have come, somebody wants to go, or something is wished.
    WorkersChanged,
}

/// A run that is being searched.
pub(crate) struct RunDriver {
    pub(crate) registry: Arc<WorkerRegistry>,
    pub(crate) queue: Arc<RunQueue>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) objects: Objects,
    pub(crate) kept: VersionedManifest,
    pub(crate) min_workers: usize,
    pub(crate) scratch: PathBuf,
    /// What workers complained of.
    failures: FailureTracker,
    /// The owner of each shard in the last epoch.
    owners: Vec<String>,
    /// Seconds of epochs before this one.
    worked: f64,
    /// It has said that the budget runs out.
    has_warned: bool,
}

/// A depth that is being committed.
struct Pending {
    record: DepthRecord,
    sent: u64,
    sent_bytes: u64,
    tables: JoinSet<Result<Vec<v1::Table>, WorkerError>>,
    workers: usize,
    /// Its depth, as another may be under way while it is committed.
    span: Span,
}

impl RunDriver {
    pub(crate) fn new(
        (registry, queue, notifier, objects): (
            Arc<WorkerRegistry>,
            Arc<RunQueue>,
            Arc<Notifier>,
            Objects,
        ),
        kept: VersionedManifest,
        min_workers: usize,
        scratch: PathBuf,
    ) -> RunDriver {
        let worked = kept.manifest.seconds;
        RunDriver {
            registry,
            queue,
            notifier,
            objects,
            kept,
            min_workers,
            scratch,
            failures: FailureTracker::default(),
            owners: Vec::new(),
            worked,
            has_warned: false,
        }
    }

    fn name(&self) -> String {
        self.kept.manifest.name.clone()
    }

    /// Searches the run to its end.
    pub(crate) async fn run(&mut self) -> Result<(), DriverError> {
        if self.kept.manifest.depths.is_empty() {
            let record = first_record(&self.kept.manifest.spec)?;
            self.kept.manifest.depths.push(CommittedDepth {
                record,
                sent: 0,
                sent_bytes: 0,
                tables: None,
                cost: Micros::ZERO,
            });
        }
        self.kept.manifest.state = RunState::Running;
        self.kept.manifest.note = String::new();
        self.notifier.started(&self.kept.manifest);
        let mut failures = Failures::default();
        loop {
            self.apply_pending().await?;
            let members = match self.workers().await {
                Ok(members) => members,
                Err(EpochEnd::Over(end)) => return self.finish(end).await,
                Err(EpochEnd::Cancelled) => return self.cancelled().await,
                Err(EpochEnd::WorkersChanged) => continue,
            };
            self.kept.manifest.epoch += 1;
            self.registry.metrics.all.epochs.add(1);
            self.save().await?;
            let epoch = self.kept.manifest.epoch;
            let workers = EpochWorkers::new(Arc::clone(&self.registry), members, epoch);
            let span = tracing::info_span!("epoch", epoch);
            let ended = self.epoch(&workers).instrument(span).await;
            self.kept.manifest.seconds = self.worked;
            match ended {
                Ok(EpochEnd::Over(end)) => return self.finish(end).await,
                Ok(EpochEnd::Cancelled) => {
                    workers.halt().await;
                    return self.cancelled().await;
                }
                Ok(EpochEnd::WorkersChanged) => {
                    tracing::info!(epoch, "the workers changes");
                    self.tell_lost(&workers);
                }
                Err(Broken::Run(error)) => return Err(error),
                Err(Broken::WorkerError(lost)) => match self.after(lost, &workers, &mut failures) {
                    Ok(pause) => tokio::time::sleep(pause).await,
                    Err(error) => {
                        workers.halt().await;
                        return Err(error);
                    }
                },
            }
            self.registry.release(&[]);
        }
    }

    /// What follows from a depth that failed: how long to wait before it is begun anew.
    fn after(
        &mut self,
        lost: WorkerError,
        workers: &EpochWorkers,
        failures: &mut Failures,
    ) -> Result<Duration, DriverError> {
        let (run, depth) = (self.name(), self.depth() + 1);
        let cause = if lost.is_gone { "lost" } else { "failed" };
        self.registry.metrics.all.failures.add(cause, 1);
        let (worker, reason) = (&lost.worker, &lost.reason);
        tracing::warn!(depth, worker, reason, "the depth is begun anew");
        self.queue.note(&run, format!("{worker}: {reason}"));
        if lost.is_gone {
            let what = EventKind::WorkerLost {
                worker: lost.worker,
                reason: lost.reason,
            };
            self.notifier.tell(&self.kept.manifest, what);
            return Ok(Duration::ZERO);
        }
        self.failures.note(&lost);
        if let Some(verdict) = self.failures.verdict(&workers.names()) {
            let (worker, reason) = (&verdict.worker, &verdict.reason);
            let seconds = verdict.how_long.as_secs();
            tracing::warn!(worker, reason, seconds, "the worker is left out");
            self.registry.quarantine(worker, verdict.how_long, reason);
            return Ok(Duration::ZERO);
        }
        if lost.is_transient {
            // Nothing is wrong but that the object store is away: that can last.
            failures.passing = (failures.passing + 1).min(MAX_PASSING);
            return Ok(PAUSE * failures.passing);
        }
        if failures.depth != depth {
            *failures = Failures {
                depth,
                ..Failures::default()
            };
        }
        failures.count += 1;
        match failures.count {
            MAX_FAILURES.. => Err(DriverError::Failing {
                depth,
                worker: lost.worker,
                reason: lost.reason,
            }),
            _ => Ok(PAUSE),
        }
    }

    /// Cost of the run so far.
    fn spent(&self) -> Micros {
        let costs = &self.queue.costs;
        let ledger = costs.ledger(&self.kept.manifest.name);
        ledger.map_or(Micros::ZERO, |ledger| ledger.cost(&costs.prices))
    }

    /// Tells of those of a workers that are gone, though nobody has waited for them.
    fn tell_lost(&self, workers: &EpochWorkers) {
        let there = self.registry.statuses(workers.epoch);
        for worker in workers.names() {
            if !there.iter().any(|status| status.name == worker) {
                let reason = "it is not there any more".to_owned();
                let worker = worker.to_owned();
                let what = EventKind::WorkerLost { worker, reason };
                self.notifier.tell(&self.kept.manifest, what);
            }
        }
    }

    /// The last depth that counts.
    fn depth(&self) -> u32 {
        let last = self.kept.manifest.last();
        last.map_or(0, |last| last.record.depth)
    }

    async fn save(&mut self) -> Result<(), ManifestError> {
        if let Some(ledger) = self.queue.costs.ledger(&self.kept.manifest.name) {
            self.kept.manifest.ledger = ledger;
        }
        if self.kept.manifest.state != RunState::Running {
            self.kept.manifest.ledger.close();
        }
        self.kept.save().await?;
        let stored = self.kept.manifest.stored_bytes();
        self.queue.costs.stored(stored);
        self.registry.metrics.all.manifests.add(1);
        self.queue.put(&self.kept.manifest);
        Ok(())
    }

    /// Writes down what somebody updates.
    async fn apply_pending(&mut self) -> Result<(), ManifestError> {
        let Some(update) = self.queue.take_update(&self.name()) else {
            return Ok(());
        };
        let before = update.put(&mut self.kept.manifest);
        if let Err(error) = self.save().await {
            // What is not written down does not count, and is tried again with the run.
            before.put(&mut self.kept.manifest);
            self.queue.update(&self.name(), update);
            return Err(error);
        }
        self.has_warned &= update.limits.is_none();
        tracing::info!(?update, "so it shall be");
        Ok(())
    }

    /// The same until `done` is gone.
    async fn apply_pending_until(
        &mut self,
        mut done: oneshot::Receiver<Infallible>,
    ) -> Result<(), ManifestError> {
        let mut updates = self.queue.updates();
        loop {
            updates.mark_unchanged();
            self.apply_pending().await?;
            tokio::select! {
                _ = &mut done => return Ok(()),
                _ = updates.changed() => {}
            }
        }
    }

    /// Waits until there are workers enough, the run is to be stopped, or something is wished.
    async fn workers(&self) -> Result<Vec<Member>, EpochEnd> {
        let mut changes = self.registry.changes();
        let mut updates = self.queue.updates();
        loop {
            changes.mark_unchanged();
            if self.queue.has_update(&self.name()) {
                return Err(EpochEnd::WorkersChanged);
            }
            if self.kept.manifest.stop_requested {
                return Err(EpochEnd::Cancelled);
            }
            if let Some(limit) = self.limit() {
                return Err(EpochEnd::Over(limit));
            }
            self.registry.release(&[]);
            let members = self.registry.members();
            if members.len() >= self.min_workers.max(1) {
                // They often come together.
                if tokio::time::timeout(SETTLE, changes.changed())
                    .await
                    .is_err()
                {
                    return Ok(members);
                }
                continue;
            }
            self.queue.note(
                &self.name(),
                format!(
                    "waiting for workers: {} of {}",
                    members.len(),
                    self.min_workers.max(1)
                ),
            );
            tokio::select! {
                _ = changes.changed() => {}
                _ = updates.changed() => {}
                // Waiting costs time and money, too.
                () = tokio::time::sleep(LIMITS_EVERY) => {}
            }
        }
    }

    /// The limit that is reached, or that one more depth like the last would break.
    fn limit(&self) -> Option<EndReason> {
        let manifest = &self.kept.manifest;
        let last = manifest.last()?;
        let ledger = self.queue.costs.ledger(&manifest.name).unwrap_or_default();
        manifest.limits.exceeded_by(&Usage {
            depth: last.record.depth,
            cost: ledger.cost(&self.queue.costs.prices),
            depth_cost: last.cost,
            time: Duration::from_millis(ledger.milliseconds),
            depth_time: Duration::try_from_secs_f64(last.record.seconds).unwrap_or_default(),
        })
    }

    /// Searches with a workers for as long as that stays the same.
    async fn epoch(&mut self, workers: &EpochWorkers) -> Result<EpochEnd, Broken> {
        let mut depth = self.prepare(workers).await?;
        self.queue.note(&self.name(), String::new());
        let mut pending: Option<Pending> = None;
        let began = Instant::now();
        let worked = self.worked;
        let width = self.kept.manifest.layout().width();
        loop {
            self.apply_pending().await?;
            if let Some(end) = self.epoch_end(workers, depth) {
                self.commit(pending.take()).await?;
                return Ok(end);
            }
            // Who is left out, or came only to go, need not wait for the workers to change.
            self.registry.release(&workers.members);
            let started = Instant::now();
            depth += 1;
            let span = tracing::info_span!("depth", depth);
            let (done, is_done) = oneshot::channel();
            let exploring = async {
                let explored = workers.explore(depth, width).instrument(span.clone()).await;
                drop(done);
                explored
            };
            let committing = async {
                self.commit(pending.take()).await?;
                Ok::<_, Broken>(self.apply_pending_until(is_done).await?)
            };
            // Both are heard to their end, whatever becomes of the other: a manifest that is being written
            // must not be left alone, and a depth that can be committed should be.
            let (explored, committed) = tokio::join!(exploring, committing);
            committed?;
            let explored = explored?;
            let whole = workers.select(&explored).instrument(span.clone()).await?;
            self.worked = worked + began.elapsed().as_secs_f64();
            self.kept.manifest.seconds = self.worked;
            if whole.count == 0 {
                return Ok(EpochEnd::Over(EndReason::Over));
            }
            let geometry = self.kept.manifest.spec.well.geometry();
            let geometry = geometry.map_err(SpecError::from)?;
            let work = DepthWork {
                depth,
                median_eval: explored.median,
                children: explored.children,
                seconds: started.elapsed().as_secs_f64(),
            };
            pending = Some(Pending {
                record: whole.record(geometry, work),
                sent: explored.sent,
                sent_bytes: explored.sent_bytes,
                tables: workers.tables(depth),
                workers: workers.members.len(),
                span,
            });
        }
    }

    /// Why to stop after this depth, if there is a reason.
    fn epoch_end(&self, workers: &EpochWorkers, depth: u32) -> Option<EpochEnd> {
        let manifest = &self.kept.manifest;
        if manifest.stop_requested {
            Some(EpochEnd::Cancelled)
        } else if manifest.limits.max_depth.is_some_and(|max| depth >= max) {
            Some(EpochEnd::Over(EndReason::MaxDepth))
        } else if let Some(limit) = self.limit() {
            Some(EpochEnd::Over(limit))
        } else if !self.registry.are_workers_unchanged(&workers.members) {
            Some(EpochEnd::WorkersChanged)
        } else {
            None
        }
    }

    /// Gives each of a workers its shards, as the last depth that counts has them; and says which that is.
    async fn prepare(&mut self, workers: &EpochWorkers) -> Result<u32, Broken> {
        let manifest = &self.kept.manifest;
        let seat = |member: &Member| WorkerCapacity {
            name: member.name.clone(),
            threads: member.threads,
        };
        let seats: Vec<WorkerCapacity> = workers.members.iter().map(seat).collect();
        let owners = assign(&self.owners, manifest.shards as usize, &seats);
        let name_of = |&place: &u32| workers.members[place as usize].name.clone();
        self.owners = owners.iter().map(name_of).collect();
        let (Some(last), Ok(spec)) = (manifest.last(), serde_json::to_string(&manifest.spec))
        else {
            return Err(strange("coordinator", &"the manifest names no depth").into());
        };
        let depth = last.record.depth;
        let tables = manifest.tables(&self.objects, last).await?;
        let to_wire = |member: &Member| v1::Member {
            name: member.name.clone(),
            address: member.address.clone(),
        };
        let members: Vec<v1::Member> = workers.members.iter().map(to_wire).collect();
        let prepare = |place: usize| {
            let mine = |table: &&Table| owners[table.shard as usize] as usize == place;
            let tables = tables.iter().filter(mine).cloned();
            v1::Prepare {
                run: manifest.name.clone(),
                spec: spec.clone(),
                depth,
                owners: owners.clone(),
                members: members.clone(),
                tables: tables.map(table_to_wire).collect(),
            }
        };
        let prepared = workers.prepare(prepare).await?;
        let wells: u64 = prepared.iter().map(|part| part.wells).sum();
        if wells != last.record.count {
            let wrong = format!("the workers have {wells} wells, not {}", last.record.count);
            return Err(strange("coordinator", &wrong).into());
        }
        let fetched: u32 = prepared.iter().map(|part| part.fetched).sum();
        tracing::info!(depth, workers = prepared.len(), fetched, "began epoch");
        self.registry.set_shards(&workers.members, &owners);
        Ok(depth)
    }

    /// Waits until all tables of a depth are in the object store, and has the manifest name them.
    async fn commit(&mut self, pending: Option<Pending>) -> Result<(), Broken> {
        let Some(pending) = pending else {
            return Ok(());
        };
        let span = pending.span.clone();
        self.commit_within(pending).instrument(span).await
    }

    async fn commit_within(&mut self, mut pending: Pending) -> Result<(), Broken> {
        let began = Instant::now();
        let mut tables: Vec<Table> = Vec::new();
        let mut updates = self.queue.updates();
        loop {
            // The tables of a wide beam take as long as a depth.
            updates.mark_unchanged();
            self.apply_pending().await?;
            let done = tokio::select! {
                done = pending.tables.join_next() => done,
                _ = updates.changed() => continue,
            };
            let Some(done) = done else {
                break;
            };
            let done = done.map_err(|error| strange("coordinator", &error))??;
            tables.extend(done.into_iter().map(table_from_wire));
        }
        tables.sort_by_key(|table| table.shard);
        let checked = self
            .kept
            .manifest
            .check_tables(&tables, pending.record.count);
        checked.map_err(|error| strange("a worker", &error))?;
        let mut record = pending.record;
        record.bytes = tables.iter().map(|table| table.bytes).sum();
        let (depth, digest) = (record.depth, record.digest.clone());
        let expected = self.kept.put_tables(depth, &tables).await?;
        tracing::info!(
            run = self.name(),
            depth,
            wells = record.count,
            points = record.best_lines,
            children = record.children,
            sent = pending.sent,
            seconds = record.seconds,
            bytes = record.bytes,
            workers = pending.workers,
            digest,
            "depth committed"
        );
        let (children, seconds) = (record.children, record.seconds);
        let spent = self.spent();
        let depths = self.kept.manifest.depths.iter();
        let before: Micros = depths.map(|depth| depth.cost).sum();
        self.kept.manifest.depths.push(CommittedDepth {
            cost: spent.saturating_sub(before),
            record,
            sent: pending.sent,
            sent_bytes: pending.sent_bytes,
            tables: Some(expected),
        });
        // Whatever it was that went wrong before has passed.
        self.failures.forget();
        let dropped = self.drop_old(depth);
        self.save().await?;
        self.warn_of_the_budget();
        if let Some(last) = self.kept.manifest.last() {
            self.notifier.committed(&self.kept.manifest, &last.record);
        }
        let metrics = &self.registry.metrics;
        metrics.all.phases.observe("commit", began.elapsed());
        metrics.all.exchanged.add(pending.sent);
        metrics.all.exchanged_bytes.add(pending.sent_bytes);
        metrics.run.depths.add(1);
        metrics.run.children.add(children);
        metrics.run.depth_seconds.observe_seconds(seconds);
        // After the manifest says so: what is left over is in nobody's way.
        for depth in dropped {
            let prefix = format!("{}/frontier/{depth:05}", self.kept.manifest.prefix());
            if let Err(error) = self.objects.delete_prefix(&prefix).await {
                tracing::warn!(depth, %error, "tables that are not kept stay");
            }
        }
        Ok(())
    }

    /// Says once that the budget runs out.
    fn warn_of_the_budget(&mut self) {
        let cost = self.queue.costs.cost(&self.kept.manifest);
        let Some(used) = cost.used_share() else {
            return;
        };
        if used.share >= WARN_AT && !std::mem::replace(&mut self.has_warned, true) {
            let (limit, share) = (used.limit, used.share);
            tracing::warn!(limit = limit.name(), share, "the budget runs out");
            self.tell_of_the_budget(limit, "the budget runs out");
        }
    }

    fn tell_of_the_budget(&self, limit: EndReason, text: &str) {
        let cost = self.queue.costs.cost(&self.kept.manifest);
        let share = cost.used_share().map_or(0.0, |used| used.share);
        let what = EventKind::Budget {
            limit: limit.name().to_owned(),
            percent: (share * 100.0) as u32,
            text: text.to_owned(),
        };
        self.notifier.tell(&self.kept.manifest, what);
    }

    /// Takes note that tables are not kept any more, now that a later depth counts.
    fn drop_old(&mut self, depth: u32) -> Vec<u32> {
        let manifest = &mut self.kept.manifest;
        let keep = manifest.keep;
        let first = manifest
            .depths
            .first()
            .map_or(0, |first| first.record.depth);
        let mut dropped = Vec::new();
        for old in &mut manifest.depths {
            let of = old.record.depth;
            if of < depth && of > first && old.record.kept && !keep.keeps(of, first) {
                old.record.kept = false;
                old.record.bytes = 0;
                dropped.push(of);
            }
        }
        dropped
    }

    async fn cancelled(&mut self) -> Result<(), DriverError> {
        let owed = self
            .notifier
            .stage(&self.kept.manifest, EventKind::Cancelled {})
            .await;
        self.kept.manifest.state = RunState::Cancelled;
        self.kept.manifest.stop_requested = false;
        self.save().await?;
        self.notifier.deliver(owed);
        Ok(())
    }

    /// Reads the best game back, from the object store, and leaves its files there.
    async fn finish(&mut self, end: EndReason) -> Result<(), DriverError> {
        self.kept.manifest.end = Some(end);
        if matches!(end, EndReason::MaxCost | EndReason::MaxHours) {
            self.tell_of_the_budget(end, "one more depth would break the limit");
        }
        let manifest = self.kept.manifest.clone();
        self.queue
            .note(&manifest.name, "reading the best game back".to_owned());
        match read_back(&self.objects, &manifest, &self.scratch, None).await {
            Ok(read) => {
                let fetched = read.fetched;
                let left = results::leave(&self.objects, &manifest, read, SystemTime::now());
                let result = left.await?;
                tracing::info!(
                    run = manifest.name,
                    score = result.lines,
                    pieces = result.pieces,
                    lookups = result.lookups,
                    tables = fetched.tables,
                    bytes = fetched.bytes,
                    "the best game is read back"
                );
                self.kept.manifest.result = Some(result);
                self.kept.manifest.note = String::new();
            }
            Err(ReadError::Manifest(error)) => return Err(error.into()),
            Err(error @ ReadError::Game(_)) if manifest.keep != Retention::All => {
                self.kept.manifest.note = format!("the best game was not kept: {error}");
            }
            Err(error) => return Err(DriverError::Game(with_causes(&error))),
        }
        match collect_garbage(&self.objects, &self.kept.manifest).await {
            Ok((0, _)) => {}
            Ok((objects, bytes)) => {
                tracing::info!(objects, bytes, "what nothing leads to is removed")
            }
            Err(error) => tracing::warn!(%error, "what nothing leads to stays"),
        }
        let result = self.kept.manifest.result.as_ref();
        let finished = EventKind::Finished {
            end: end.name().to_owned(),
            pieces: result.map(|result| result.pieces),
            replay: result.map(|result| result.replay.clone()),
            files: result.map_or_else(Vec::new, |result| result.files.clone()),
        };
        let owed = self.notifier.stage(&self.kept.manifest, finished).await;
        self.kept.manifest.state = RunState::Finished;
        self.kept.manifest.stop_requested = false;
        self.save().await?;
        self.notifier.deliver(owed);
        Ok(())
    }
}
