//! Client requests: submitting and changing runs, reading games, and draining workers.

use crate::coordinator::Coordinator;
use crate::driver::{end_idle, missing_memory};
use crate::games::Game;
use crate::request::RequestError;
use crate::status::RunStatus;
use crate::update::{LimitsChange, RunUpdate};
use hatebeam_env::watch;
use hatebeam_notify::EventKind;
use hatebeam_objects::check_key;
use hatebeam_runs::{
    Limits, Manifest, ManifestError, Retention, RunSpec, RunState, VersionedManifest,
    fetch_network, store_network,
};
use hatebeam_search::{EvaluatorKind, MAX_SHARDS, Network, ShardLayout};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of open runs.
const MAX_OPEN: usize = 1000;
/// Maximum time to wait until an update is saved. It is shorter than the client's own timeout (30 s), so that the
/// client receives the error.
const SAVE_LIMIT: Duration = Duration::from_secs(25);

/// A client's request to search a run.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Specification of the search.
    pub spec: RunSpec,
    /// Rule that selects the depths (numbers of pieces placed) whose wells remain in the object store.
    pub keep: Retention,
    /// Number of shards (ranges of well hashes) at first. If `None`, the coordinator derives it from the width. Epochs
    /// split shards if they have many workers or threads. A later submission of the run cannot change it.
    pub shards: Option<u32>,
    /// Limits of the run.
    pub limits: Limits,
    /// Contents of the network file for the evaluator. Empty if the evaluator uses no network, or if the object store
    /// already contains the network.
    pub network: Vec<u8>,
}

impl Coordinator {
    /// Returns a receiver that is notified when any run changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.queue.changes()
    }

    /// Returns the game that leads through the best well of a depth (the well with the most rows cleared). For depth 0,
    /// returns the best game so far.
    ///
    /// # Errors
    /// Returns an error if there is no such game, or if it cannot be read back.
    pub async fn game(&self, run: &str, depth: u32) -> Result<Game, RequestError> {
        let manifest = self.manifest(run)?;
        self.0.games.game(manifest, depth).await
    }

    /// Drains a worker: after the current depth, it gets no more shards. It stays connected.
    ///
    /// # Errors
    /// Returns [`RequestError::NoWorker`] if no worker with this name is connected.
    pub fn drain(&self, worker: &str) -> Result<(), RequestError> {
        let drained = self.0.registry.drain(worker);
        let error = || RequestError::NoWorker(worker.to_owned());
        drained.then_some(()).ok_or_else(error)
    }

    /// Makes a drained worker available for shards again.
    ///
    /// # Errors
    /// Returns [`RequestError::State`] if the worker is not drained.
    pub fn undrain(&self, worker: &str) -> Result<(), RequestError> {
        let undrained = self.0.registry.undrain(worker);
        let error = || RequestError::State(format!("the worker {worker} is not drained"));
        undrained.then_some(()).ok_or_else(error)
    }

    /// Submits a run. If a run with the same specification already exists, returns that run, so the call can be
    /// repeated. Reopens the existing run if it was cancelled or has failed, or if it finished and the new limits
    /// allow it to continue. Withdraws a pending stop request.
    ///
    /// # Errors
    /// Returns an error if the run is invalid, conflicts with an existing run, or cannot be saved.
    pub async fn submit(&self, submission: Submission) -> Result<RunStatus, RequestError> {
        let invalid = |error: &dyn std::fmt::Display| RequestError::Invalid(error.to_string());
        let checked = submission.spec.check();
        checked.map_err(|error| invalid(&error))?;
        let checked = submission.spec.check_keep(submission.keep);
        checked.map_err(|error| invalid(&error))?;
        let checked = submission.spec.check_search(&self.0.settings.search);
        checked.map_err(|error| invalid(&error))?;
        let name = submission.spec.name();
        check_key(&name).map_err(|error| invalid(&error))?;
        let accepts_runs = self.0.accepts_runs.read().await;
        if !*accepts_runs {
            return Err(RequestError::Unavailable(
                "the coordinator is stopping because it was idle: start it again, and then submit the run".to_owned(),
            ));
        }
        let existing = match self.0.queue.manifest(&name) {
            Some(existing) => Some(existing),
            None => self.create(&name, &submission).await?,
        };
        if let Some(existing) = existing {
            if existing.spec != submission.spec {
                return Err(RequestError::Conflict(format!(
                    "run {name} already exists with a different specification"
                )));
            }
            check_shards(&existing, submission.shards)?;
            if !submission.network.is_empty() {
                self.store_network(&submission).await?;
            }
            self.resubmit(&existing, &submission).await?;
        }
        self.0.queue.notify_updates();
        self.status(&name)
    }

    /// Creates a run and returns `None`. If the object store already contains a run with this name, returns the
    /// manifest of the existing run instead.
    async fn create(
        &self,
        name: &str,
        submission: &Submission,
    ) -> Result<Option<Arc<Manifest>>, RequestError> {
        let parts = &self.0;
        let shards = shards(submission)?;
        if parts.queue.open() >= MAX_OPEN {
            let reason = format!(
                "the maximum of {MAX_OPEN} open runs is reached: wait until one ends, or cancel one"
            );
            return Err(RequestError::Busy(reason));
        }
        let (name, spec) = (name.to_owned(), submission.spec.clone());
        let now_ms = parts.env.wall_ms();
        let mut manifest = Manifest::new(name.clone(), spec, submission.keep, shards, now_ms);
        let workers = parts.registry.members();
        if workers.len() >= parts.settings.min_workers.max(1)
            && let Some(missing) =
                missing_memory(&workers, &manifest, parts.settings.min_shard_wells)
        {
            return Err(RequestError::State(format!(
                "{missing}: connect more workers first, or choose a smaller width"
            )));
        }
        manifest.limits = submission.limits;
        self.store_network(submission).await?;
        parts.announce(&name).await?;
        let created = VersionedManifest::create(&parts.objects, manifest, parts.conditional).await;
        match created {
            Ok(versioned) => {
                tracing::info!(run = name, "submitted run");
                parts.queue.put(&versioned.manifest);
                Ok(None)
            }
            // The run was created by an earlier request whose answer was lost, or by another coordinator.
            Err(ManifestError::Superseded { .. }) => {
                let loaded = VersionedManifest::load(&parts.objects, &name, parts.conditional);
                parts.queue.put(&loaded.await?.manifest);
                // Notify even if the submission is refused later because of different limits: the list of runs that
                // this coordinator read at takeover may have been stale, and this run may be new to it.
                parts.queue.notify_updates();
                Ok(parts.queue.manifest(&name))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stores the network of a submission. If the submission contains no network file, checks that the object store
    /// contains the network that the evaluator needs.
    async fn store_network(&self, submission: &Submission) -> Result<(), RequestError> {
        let (objects, evaluator) = (&self.0.objects, &submission.spec.evaluator);
        if submission.network.is_empty() {
            let fetched = fetch_network(objects, evaluator).await;
            return fetched.map(drop).map_err(|error| match error.is_damage() {
                true => RequestError::Invalid(error.to_string()),
                false => error.into(),
            });
        }
        let invalid = |error: String| RequestError::Invalid(format!("network: {error}"));
        let network = Network::decode(&submission.network);
        let network = network.map_err(|error| invalid(error.to_string()))?;
        let found = network.digest();
        if evaluator.kind != EvaluatorKind::Network(found) {
            let reason =
                format!("the file has digest {found}, but the specification names another one");
            return Err(invalid(reason));
        }
        Ok(store_network(objects, &network).await?)
    }

    /// Handles the submission of an existing run. Reopens it if it has ended and can continue, and withdraws a stop
    /// request if it is open.
    async fn resubmit(
        &self,
        existing: &Manifest,
        submission: &Submission,
    ) -> Result<(), RequestError> {
        let name = &existing.name;
        check_limits(existing, submission.limits)?;
        if !existing.is_open() {
            return self.reopen(name, submission).await;
        }
        let is_stopping = existing.stop_requested || self.0.queue.has_update(name);
        if is_stopping && !self.save_update(name, RunUpdate::CONTINUE).await? {
            // The run ended before the stop request was withdrawn.
            return self.reopen(name, submission).await;
        }
        Ok(())
    }

    /// Requests that a run stop without the depth in progress. Does nothing if the run has ended.
    ///
    /// # Errors
    /// Returns an error if there is no such run, or if the request cannot be saved.
    pub async fn cancel(&self, name: &str) -> Result<RunStatus, RequestError> {
        if self.manifest(name)?.is_open() {
            self.save_update(name, RunUpdate::STOP).await?;
        }
        self.status(name)
    }

    /// Changes the limits of an open run.
    ///
    /// # Errors
    /// Returns an error if the run has ended or does not exist, or if the limits cannot be saved.
    pub async fn limit(&self, name: &str, change: LimitsChange) -> Result<RunStatus, RequestError> {
        if !self.save_update(name, RunUpdate::limits(change)).await? {
            return Err(RequestError::State(format!(
                "run {name} has ended: submit it again with other limits to continue it"
            )));
        }
        self.status(name)
    }

    fn manifest(&self, name: &str) -> Result<Arc<Manifest>, RequestError> {
        let manifest = self.0.queue.manifest(name);
        manifest.ok_or_else(|| RequestError::NoRun(name.to_owned()))
    }

    fn status(&self, name: &str) -> Result<RunStatus, RequestError> {
        let status = self.run(name);
        status.ok_or_else(|| RequestError::NoRun(name.to_owned()))
    }

    /// Queues an update of a run and waits until it is saved. Returns `false` if the update cannot be applied
    /// because the run has ended.
    async fn save_update(&self, name: &str, update: RunUpdate) -> Result<bool, RequestError> {
        let saved = tokio::time::timeout(SAVE_LIMIT, self.wait_until_saved(name, update)).await;
        saved.unwrap_or_else(|_| {
            Err(RequestError::Timeout(format!(
                "timed out saving the change to run {name}: the run may be ending, or the object store may be \
                 unavailable; `hatebeam status {name}` shows what is saved"
            )))
        })
    }

    async fn wait_until_saved(&self, name: &str, update: RunUpdate) -> Result<bool, RequestError> {
        let queue = &self.0.queue;
        let mut changes = queue.changes();
        if self.manifest(name)?.is_open() {
            queue.update(name, update);
        }
        loop {
            changes.mark_unchanged();
            let manifest = self.manifest(name)?;
            if !manifest.is_open() {
                queue.take_update(name);
                return Ok(false);
            }
            if update.is_in(&manifest) && !queue.has_update(name) {
                return Ok(true);
            }
            // Saving runs in a separate task, so that it completes if the client disconnects or times out. Otherwise, the
            // object store could contain an update that the queue does not.
            let (coordinator, run) = (self.clone(), name.to_owned());
            let saving = self
                .0
                .env
                .spawn(async move { coordinator.update_queued(&run).await });
            let saved = saving.await;
            saved.map_err(|error| RequestError::Internal(error.to_string()))??;
            let _ = changes.changed().await;
        }
    }

    /// Saves the pending update of a run that waits in the queue behind another run, or that this program cannot search.
    /// Does nothing for the current and the next run, because the driver saves their updates.
    async fn update_queued(&self, name: &str) -> Result<(), RequestError> {
        let parts = &self.0;
        let _idle = parts.idle_manifests.lock().await;
        let manifest = self.manifest(name)?;
        let is_idle = manifest.state == RunState::Queued || !parts.queue.can_search(&manifest);
        if !is_idle || parts.queue.is_current_or_next(name) {
            return Ok(());
        }
        let Some(update) = parts.queue.take_update(name) else {
            return Ok(());
        };
        let saved = self.save_queued(name, update).await;
        if saved.is_err() {
            // Other clients may be waiting for this update.
            parts.queue.put_back_update(name, update);
        }
        saved
    }

    async fn save_queued(&self, name: &str, update: RunUpdate) -> Result<(), RequestError> {
        let parts = &self.0;
        let loaded = VersionedManifest::load(&parts.objects, name, parts.conditional).await;
        let mut versioned = loaded?;
        update.put(&mut versioned.manifest);
        let manifest = &versioned.manifest;
        if manifest.stop_requested && manifest.is_open() && !parts.queue.can_search(manifest) {
            // No driver will ever stop this run.
            let event = EventKind::Cancelled {};
            end_idle(parts, &mut versioned, RunState::Cancelled, event).await?;
        } else {
            versioned.save().await?;
        }
        parts.queue.put(&versioned.manifest);
        Ok(())
    }

    /// Puts a run that has ended back into the queue if it can continue. Creates the run again if `hatebeam runs rm` has
    /// removed it.
    async fn reopen(&self, name: &str, submission: &Submission) -> Result<(), RequestError> {
        let (parts, limits) = (&self.0, submission.limits);
        let _idle = parts.idle_manifests.lock().await;
        let loaded = VersionedManifest::load(&parts.objects, name, parts.conditional).await;
        let mut versioned = match loaded {
            Err(ManifestError::Object(error)) if error.is_not_found() => {
                parts.queue.remove(name);
                return self.create(name, submission).await.map(drop);
            }
            loaded => loaded?,
        };
        let manifest = &mut versioned.manifest;
        if !continues(manifest, limits) {
            // The run cannot continue, or another client has reopened it in the meantime, or another coordinator that has
            // lost the lease.
            let known = parts.queue.manifest(name);
            if manifest.is_open() && known.is_none_or(|known| !known.is_open()) {
                parts.queue.put(manifest);
                // The run is searched even if other limits are refused.
                parts.queue.notify_updates();
            }
            return check_limits(manifest, limits);
        }
        manifest.state = RunState::Queued;
        manifest.note = String::new();
        manifest.limits = limits;
        manifest.end = None;
        // The continued search may find a better game.
        manifest.result = None;
        manifest.stop_requested = false;
        parts.queue.take_update(name);
        parts.announce(name).await?;
        versioned.save().await?;
        tracing::info!(run = name, "reopened run");
        parts.queue.put(&versioned.manifest);
        Ok(())
    }
}

/// Returns the requested number of shards, or the default for the width.
fn shards(submission: &Submission) -> Result<u32, RequestError> {
    match submission.shards {
        None => Ok(ShardLayout::default_shards(submission.spec.width)),
        Some(shards) if (1..=MAX_SHARDS).contains(&(shards as usize)) => Ok(shards),
        Some(shards) => Err(RequestError::Invalid(format!(
            "{shards} shards are out of range: give 1 to {MAX_SHARDS}"
        ))),
    }
}

/// Returns an error if a run cannot have begun with the requested number of shards. Later epochs only double the number, so
/// the first submission of a run can be repeated.
fn check_shards(existing: &Manifest, requested: Option<u32>) -> Result<(), RequestError> {
    let (name, shards) = (&existing.name, existing.shards);
    match requested {
        Some(requested) if !is_doubled(requested, shards) => Err(RequestError::State(format!(
            "run {name} has {shards} shards, and its first submission determined their number: submit it without \
             --shards"
        ))),
        _ => Ok(()),
    }
}

/// Whether `shards` is `first` or results from doubling it.
fn is_doubled(first: u32, shards: u32) -> bool {
    let times = shards.checked_div(first);
    times.is_some_and(|times| times.is_power_of_two() && times * first == shards)
}

/// Returns an error if the run is open with different limits.
fn check_limits(existing: &Manifest, limits: Limits) -> Result<(), RequestError> {
    if existing.is_open() && limits.differ_from(&existing.limits) {
        let name = &existing.name;
        return Err(RequestError::State(format!(
            "run {name} is open with other limits: change them with `hatebeam limit {name}`"
        )));
    }
    Ok(())
}

/// Whether submitting a run again with these limits reopens it: it was cancelled, it failed, or it finished at a
/// limit that is higher now.
fn continues(existing: &Manifest, limits: Limits) -> bool {
    match (existing.state, existing.end) {
        (RunState::Cancelled | RunState::Failed, _) => true,
        (RunState::Finished, Some(end)) => limits.allow_more_than(&existing.limits, end),
        (RunState::Finished, None) | (RunState::Queued | RunState::Running, _) => false,
    }
}
