//! The coordinator without its servers: it acquires the lease, reads the manifest of each run (the object that contains
//! the run's state), and searches the runs one at a time.

use crate::costs::CostTracker;
use crate::driver::{DriverError, Failed, RunDriver, mark_failed};
use crate::error::CoordinatorError;
use crate::games::Games;
use crate::lease::{Heartbeat, Holder, Lease, LeaseError};
use crate::metrics::Metrics;
use crate::outbox::Notifier;
use crate::parts::{CoreSettings, Parts};
use crate::queue::RunQueue;
use crate::read_back::GameReader;
use crate::registry::{RegistrySettings, WorkerRegistry};
use crate::submissions::keep_adopting;
use hatebeam_cost::UsageLedger;
use hatebeam_env::{Env, watch};
use hatebeam_metrics::Registry;
use hatebeam_runs::{VersionedManifest, fetch_network, list_manifests};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tracing::Instrument;

/// Maximum number of times that this coordinator reloads a manifest because another coordinator has written it. A
/// coordinator that has lost the lease notices the loss after fewer writes. More writes therefore mean that the other
/// coordinator remains active.
const MAX_SUPERSEDED: u32 = 10;
/// Maximum time to save a run's usage ledger at shutdown.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Pause before a failed run is retried.
const RETRY: Duration = Duration::from_secs(2);

/// A running part of a coordinator. It is boxed because a crate that awaits an `async` function compiles the whole function
/// again, with all functions that it awaits: here, the coordinator.
pub type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T, CoordinatorError>> + Send + 'a>>;
/// A future that completes when a coordinator should stop.
pub type Stop<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A cloneable handle through which clients and workers send requests to a coordinator.
#[derive(Clone)]
pub struct Coordinator(pub(crate) Arc<Parts>);

/// A coordinator that has acquired the lease. It searches runs only while [`run`](CoordinatorTask::run) executes.
pub struct CoordinatorTask {
    parts: Arc<Parts>,
    heartbeat: Heartbeat,
    deletion: JoinHandle<()>,
}

impl Coordinator {
    /// Acquires the lease on the object store, starts to renew it, and reads the manifests of all runs. The
    /// coordinator searches no run until [`CoordinatorTask::run`] is called on the returned task.
    ///
    /// # Errors
    /// Returns a [`CoordinatorError`] if the object store cannot be used, if it ignores conditional writes although
    /// other coordinators may use it, or if another coordinator holds the lease.
    pub fn start<'a>(
        env: &'a Env,
        settings: CoreSettings,
        registry: &'a Registry,
    ) -> Running<'a, (Coordinator, CoordinatorTask)> {
        Box::pin(Coordinator::acquire(env, settings, registry))
    }

    async fn acquire(
        env: &Env,
        settings: CoreSettings,
        registry: &Registry,
    ) -> Result<(Coordinator, CoordinatorTask), CoordinatorError> {
        let conditional = is_conditional(&settings).await?;
        let holder = Holder {
            name: settings.name.clone(),
            address: settings.address.clone(),
        };
        let lease = Lease::acquire(env, &settings.objects, conditional, holder).await;
        let lease = lease.map_err(|error| match error {
            LeaseError::Object(source) => in_store(&settings, source),
            error => CoordinatorError::Lease(error),
        })?;
        let id = lease.id().to_owned();
        let heartbeat = Heartbeat::start(env, lease);
        let (parts, deletion) = assemble(env, settings, conditional, id, registry);
        if let Err(error) = read_runs(&parts).await {
            heartbeat.release().await;
            return Err(error);
        }
        let task = CoordinatorTask {
            parts: Arc::clone(&parts),
            heartbeat,
            deletion,
        };
        Ok((Coordinator(parts), task))
    }

    /// Returns the registry that workers join.
    pub fn registry(&self) -> &Arc<WorkerRegistry> {
        &self.0.registry
    }
}

fn in_store(settings: &CoreSettings, source: hatebeam_objects::ObjectError) -> CoordinatorError {
    CoordinatorError::Store {
        store: settings.objects.location().to_owned(),
        source,
    }
}

/// Checks whether the object store honors conditional writes. If it does not, returns an error unless the settings
/// declare this the only coordinator.
async fn is_conditional(settings: &CoreSettings) -> Result<bool, CoordinatorError> {
    let probe = settings.objects.probe("probe").await;
    let conditional = probe
        .map_err(|source| in_store(settings, source))?
        .conditional();
    let store = settings.objects.location().to_owned();
    if !conditional && !settings.single {
        return Err(CoordinatorError::Unconditional { store });
    }
    if !conditional {
        tracing::warn!(
            store,
            "the object store ignores conditional writes: a second coordinator would not be detected"
        );
    }
    Ok(conditional)
}

/// Creates the components and starts the task that deletes delivered events.
fn assemble(
    env: &Env,
    settings: CoreSettings,
    conditional: bool,
    lease: String,
    registry: &Registry,
) -> (Arc<Parts>, JoinHandle<()>) {
    let metrics = Metrics::register(registry);
    let objects = settings.objects.clone();
    let of_workers = RegistrySettings {
        heartbeat: settings.heartbeat,
        lost_after: settings.lost_after,
        search: settings.search.clone(),
        lease,
    };
    let workers = WorkerRegistry::new(env, of_workers, &metrics.coordinator);
    let machine = settings.machine.clone();
    let reader = GameReader {
        env: env.clone(),
        objects: objects.clone(),
        tables: settings.tables.clone(),
    };
    let (notifier, deletion) = Notifier::start(env, &settings.notifications, &objects);
    let parts = Arc::new(Parts {
        env: env.clone(),
        conditional,
        metrics,
        queue: Arc::new(RunQueue::new(settings.search.clone())),
        costs: CostTracker::new(
            env,
            Arc::clone(&workers),
            objects.clone(),
            settings.prices,
            machine,
        ),
        registry: workers,
        notifier,
        games: Games::new(reader.clone()),
        reader,
        objects,
        settings,
        idle_manifests: tokio::sync::Mutex::default(),
        accepts_runs: tokio::sync::RwLock::new(true),
    });
    let shown = Arc::downgrade(&parts);
    registry.before_scrape(move || {
        if let Some(parts) = shown.upgrade() {
            Coordinator(parts).update_metrics();
        }
    });
    (parts, deletion)
}

/// Adds all readable runs to the queue, remembers those that may be readable later, and delivers the end-of-run events that
/// earlier coordinators left in the object store.
async fn read_runs(parts: &Parts) -> Result<(), CoordinatorError> {
    let found = list_manifests(&parts.objects, parts.conditional).await;
    for listed in found.map_err(CoordinatorError::Runs)? {
        match listed.manifest {
            Ok(versioned) => parts.queue.put(&versioned.manifest),
            Err(error) if error.is_unreadable() => {
                tracing::warn!(run = listed.name, %error, "skipped unreadable run");
            }
            Err(error) => {
                tracing::warn!(run = listed.name, %error, "cannot read run: trying again later");
                parts.queue.add_unread(listed.name);
            }
        }
    }
    let manifest = |run: &str| parts.queue.manifest(run);
    parts.notifier.replay_outbox(manifest).await;
    Ok(())
}

impl CoordinatorTask {
    /// Searches runs until `stop` completes or the idle timeout expires, and then releases the lease.
    ///
    /// # Errors
    /// Returns a [`CoordinatorError`] if the lease is lost, if another coordinator keeps writing the manifests, or if
    /// a task panics.
    pub fn run(self, stop: Stop<'_>) -> Running<'_, ()> {
        Box::pin(self.search_until(stop))
    }

    async fn search_until(self, stop: Stop<'_>) -> Result<(), CoordinatorError> {
        let CoordinatorTask {
            parts,
            mut heartbeat,
            deletion,
        } = self;
        let env = parts.env.clone();
        // An early return drops the set, which aborts its tasks.
        let mut tasks: JoinSet<CoordinatorError> = JoinSet::new();
        let renewals = heartbeat.renewals();
        tasks.spawn(env.guard(search_runs(Arc::clone(&parts), renewals)));
        let adopting = keep_adopting(Arc::clone(&parts), heartbeat.renewals());
        tasks.spawn(env.guard(async move { match adopting.await {} }));
        let busy = heartbeat.busy();
        let watched = Arc::clone(&parts);
        tasks.spawn(env.guard(async move { match watch_open(&watched.queue, &busy).await {} }));
        let registry = Arc::clone(&parts.registry);
        tasks.spawn(env.guard(async move { match registry.watch_slow().await {} }));
        let costs = Arc::clone(&parts.costs);
        tasks.spawn(env.guard(async move { match costs.keep_advancing().await {} }));
        let idle = until_idle(&parts);
        let ended = tokio::select! {
            biased;
            ended = heartbeat.ended() => return Err(match ended {
                Ok(error) => CoordinatorError::Lease(error),
                Err(error) => CoordinatorError::panicked("heartbeat", &error),
            }),
            ended = tasks.join_next() => match ended {
                Some(Ok(error)) => Err(error),
                Some(Err(error)) => Err(CoordinatorError::panicked("search", &error)),
                None => Ok(()),
            },
            () = stop => Ok(()),
            () = idle => Ok(()),
        };
        tasks.shutdown().await;
        // Read the ledger while the workers are still registered, so that it includes their time until now.
        let usage = parts.costs.current_ledger();
        parts.registry.close();
        if let Some((run, ledger)) = usage.filter(|_| ended.is_ok()) {
            close_ledger(&parts, &run, ledger).await;
        }
        parts.notifier.close(deletion).await;
        heartbeat.release().await;
        ended
    }
}

/// Saves the ledger of the run in progress, so that the time until the next coordinator starts is not charged.
///
/// Merges it with the ledger in the stored manifest, which another coordinator may have written after this one read
/// the manifest.
async fn close_ledger(parts: &Parts, run: &str, ledger: UsageLedger) {
    let saving = async {
        let loaded = VersionedManifest::load(&parts.objects, run, parts.conditional).await;
        let mut versioned = loaded?;
        if !versioned.manifest.is_open() {
            return Ok(());
        }
        versioned.manifest.ledger.follow(ledger);
        versioned.manifest.ledger.close();
        versioned.save().await
    };
    match tokio::time::timeout(CLOSE_LIMIT, saving).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(run, %error, "cannot save the ledger"),
        Err(_) => tracing::warn!(run, "cannot save the ledger: timed out"),
    }
}

/// Sets `busy` to `true` while the queue has a run to search, and to `false` otherwise.
async fn watch_open(queue: &RunQueue, busy: &watch::Sender<bool>) -> Infallible {
    let mut changes = queue.changes();
    loop {
        changes.mark_unchanged();
        let is_open = queue.next().is_some();
        busy.send_if_modified(|busy| std::mem::replace(busy, is_open) != is_open);
        let _ = changes.changed().await;
    }
}

/// Waits until the queue has had no run to search for the time `idle_stop`, and refuses runs from then on. Never returns
/// if `idle_stop` is `None`.
async fn until_idle(parts: &Parts) {
    let queue = &parts.queue;
    let Some(idle_stop) = parts.settings.idle_stop else {
        return std::future::pending().await;
    };
    let mut changes = queue.changes();
    loop {
        changes.mark_unchanged();
        if queue.next().is_some() || !queue.unread().is_empty() {
            let _ = changes.changed().await;
            continue;
        }
        let change = tokio::time::timeout(idle_stop, changes.changed()).await;
        if change.is_err() {
            // Waits for runs that are being submitted.
            let mut accepts_runs = parts.accepts_runs.write().await;
            if queue.next().is_some() {
                continue;
            }
            *accepts_runs = false;
            let seconds = idle_stop.as_secs();
            tracing::info!(seconds, "idle timeout expired: shutting down");
            return;
        }
    }
}

/// Searches runs one after another. If another coordinator has written a run's manifest, reloads the manifest. Returns
/// an error if this coordinator has lost the lease, or if more than [`MAX_SUPERSEDED`] reloads are necessary.
///
/// Such a write does not prove that the lease is lost: a coordinator that was suspended may write a manifest once
/// more before it notices that it has lost the lease. The search is deterministic, so this coordinator can resume from
/// that manifest.
async fn search_runs(parts: Arc<Parts>, mut renewals: watch::Receiver<u64>) -> CoordinatorError {
    let mut updates = parts.queue.updates();
    let mut changes = parts.registry.changes();
    let mut superseded = 0;
    loop {
        updates.mark_unchanged();
        changes.mark_unchanged();
        parts.registry.release(&[]);
        let next = {
            let _idle = parts.idle_manifests.lock().await;
            parts.queue.begin_next()
        };
        let Some(run) = next else {
            tokio::select! {
                biased;
                _ = updates.changed() => {}
                _ = changes.changed() => {}
            }
            continue;
        };
        let searched = search_run(&parts, &run).await;
        parts.queue.end_current();
        let is_superseded = matches!(&searched, Err(error) if error.is_superseded());
        if let Err(error) = searched
            && !is_superseded
        {
            handle_failure(&parts, &run, error).await;
        }
        parts.costs.end();
        if !is_superseded {
            continue;
        }
        superseded += 1;
        // A renewal in flight may have been sent before the manifest was written, so only the second renewal from now
        // proves that this coordinator still holds the lease.
        let enough = *renewals.borrow() + 2;
        let is_lost = renewals.wait_for(|&count| count >= enough).await.is_err();
        if is_lost || superseded > MAX_SUPERSEDED {
            return CoordinatorError::Superseded { run };
        }
        tracing::warn!(
            run,
            "reloading manifest that another coordinator has written"
        );
    }
}

async fn search_run(parts: &Arc<Parts>, run: &str) -> Result<(), DriverError> {
    let versioned = VersionedManifest::load(&parts.objects, run, parts.conditional).await?;
    if !versioned.manifest.is_open() {
        // Another coordinator has ended the run, or this one did without getting the answer.
        parts.queue.put(&versioned.manifest);
        parts.notifier.deliver_saved(&versioned.manifest).await;
        return Ok(());
    }
    // If the run's network is missing or damaged, fail here rather than on each worker.
    fetch_network(&parts.objects, &versioned.manifest.spec.evaluator).await?;
    parts.costs.begin(&versioned.manifest);
    let mut driver = RunDriver::new(Arc::clone(parts), versioned);
    let span = tracing::info_span!("run", run);
    let searched = driver.run().instrument(span).await;
    parts.queue.note(run, String::new());
    searched
}

/// Marks a run as failed if a retry cannot succeed. Otherwise, or if the failure cannot be saved, pauses before the
/// retry.
async fn handle_failure(parts: &Parts, run: &str, error: DriverError) {
    if !error.is_transient() {
        tracing::error!(run, %error, "run cannot continue");
        match mark_failed(parts, run, &error).await {
            Failed::Saved(manifest) => return parts.queue.put(&manifest),
            Failed::Missing => {
                tracing::warn!(run, "removed run: its manifest no longer exists");
                return parts.queue.remove(run);
            }
            Failed::Unreadable(error) => {
                tracing::warn!(run, %error, "removed unreadable run from the queue");
                return parts.queue.set_unreadable(run, &error.to_string());
            }
            Failed::NotSaved(error) => {
                tracing::warn!(run, %error, "cannot mark the run as failed")
            }
        }
    }
    tracing::warn!(run, %error, "retrying run");
    parts.queue.note(run, error.to_string());
    tokio::time::sleep(RETRY).await;
}
