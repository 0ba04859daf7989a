//! The coordinator of a beam search over many machines.
//!
//! It knows runs, workers and depths, and nothing of wells: it assigns shards (`assign`), drives each depth
//! through expanding, finding the cut, selecting and committing (`drive`), and shows clients how all
//! stands (`service`). All that it must not forget is in the object store, so that another one can take its
//! place anywhere; the conditions on the writes there see to it that only one goes on.

mod alerts;
mod assign;
mod costs;
mod driver;
mod epoch_workers;
mod failures;
mod games;
mod lease;
mod metrics;
mod notifier;
mod queue;
mod registry;
mod results;
mod service;
mod wire;

use costs::CostTracker;
use driver::{DriverError, RunDriver};
use games::Games;
pub use hatebeam_cost::{Machine, ObjectStorePrices};
use hatebeam_dashboard::Estimator;
use hatebeam_metrics::Registry;
use hatebeam_net::{self as net, Guard, MAX_MESSAGE, Tls, Token, WireError};
use hatebeam_notify::EventKind;
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_proto::v1;
use hatebeam_proto::v1::members_server::MembersServer;
use hatebeam_proto::v1::runs_server::RunsServer;
use hatebeam_runs::{ManifestError, RunState, VersionedManifest, list_manifests};
use lease::{BEAT, Lease, LeaseError};
use metrics::Metrics;
use notifier::Notifier;
pub use notifier::NotifierSettings;
use queue::RunQueue;
use registry::WorkerRegistry;
use service::Service;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};
use tracing::Instrument;

/// Signs of life may fail for so long before the coordinator stops: another may have taken its place.
const PATIENCE: Duration = Duration::from_secs(300);

/// So often may somebody who does not have the place change a run: more is not one that was slow to notice.
const MAX_SUPERSEDED: u32 = 10;

/// How long it waits before a run is tried again that the object store holds up.
const RETRY: Duration = Duration::from_secs(2);

/// A dashboard that listens already.
pub struct Dashboard {
    /// Where it is served.
    pub server: hatebeam_dashboard::Server,
    /// What it says that a run would take.
    pub estimator: Estimator,
}

/// What a coordinator is told at its start.
pub struct Settings {
    /// What it is called in messages.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where runs are.
    pub objects: Objects,
    /// Its certificate.
    pub tls: Option<Tls>,
    /// What callers must show.
    pub token: Option<Token>,
    /// What the object store charges.
    pub prices: ObjectStorePrices,
    /// The machine it runs on, which is paid for as well.
    pub machine: Machine,
    /// It ends by itself when no run was open for so long.
    pub idle_stop: Option<Duration>,
    /// It is said to be the only one: the object store need not honour conditional writes.
    pub single: bool,
    /// Workers that a run is begun with at least.
    pub min_workers: usize,
    /// Between two signs of life of a worker.
    pub beat: Duration,
    /// A worker that gives no sign for so long is lost.
    pub lost_after: Duration,
    /// Where tables are put while a game is read back.
    pub scratch: PathBuf,
    /// Where it counts what it does.
    pub registry: Registry,
    /// Whom it tells what happens to runs.
    pub notifications: NotifierSettings,
    /// How it is shown in a browser, if it is.
    pub dashboard: Option<Dashboard>,
}

/// Why a coordinator ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// It cannot listen, or knows no certificates.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The object store cannot be used.
    #[error("the object store {store} cannot be used")]
    Store {
        /// Its location.
        store: String,
        /// What it says.
        source: ObjectError,
    },
    /// The runs there cannot be listed.
    #[error("the runs in the object store cannot be listed")]
    Runs(#[source] ManifestError),
    /// Two coordinators would corrupt each other in silence.
    #[error(
        "the object store {store} does not honour conditional writes, so that two coordinators could corrupt \
         each other's runs unnoticed. If this is the only one, and will be, say so: --single-coordinator"
    )]
    Unconditional {
        /// Its location.
        store: String,
    },
    /// Another one works there.
    #[error("{0}")]
    Taken(String),
    /// Its server ended.
    #[error("the coordinator's server")]
    Server(#[source] tonic::transport::Error),
}

/// Works until `stop` says so. `ready` is told the address once callers are let in.
///
/// # Errors
/// [`CoordinatorError`].
pub async fn coordinate(
    mut settings: Settings,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), CoordinatorError> {
    let store = settings.objects.location().to_owned();
    let in_store = |source| CoordinatorError::Store {
        store: store.clone(),
        source,
    };
    let conditional = is_conditional(&settings).await?;
    let incoming = net::listen(settings.listen)?;
    let address = incoming.local_addr().ok().unwrap_or(settings.listen);
    let at = address.to_string();
    let lease = Lease::take(&settings.objects, conditional, &settings.name, &at);
    let lease = match lease.await {
        Ok(lease) => lease,
        Err(LeaseError::Object(error)) => return Err(in_store(error)),
        Err(error) => return Err(CoordinatorError::Taken(error.to_string())),
    };
    let (registry, queue) = observed(&settings);
    let costs = Arc::clone(&queue.costs);
    let there = list_manifests(&settings.objects, conditional).await;
    for listed in there.map_err(CoordinatorError::Runs)? {
        match listed.manifest {
            Ok(kept) => queue.put(&kept.manifest),
            Err(error) => tracing::warn!(run = listed.name, %error, "the run is passed over"),
        }
    }
    let (notifier, forgetting) = Notifier::new(&settings.notifications, &settings.objects);
    notifier.replay_outbox(|run| queue.manifest(run)).await;
    let service = Service {
        registry: Arc::clone(&registry),
        queue: Arc::clone(&queue),
        games: Games::new(settings.objects.clone(), settings.scratch.clone()),
        objects: settings.objects.clone(),
        conditional,
    };
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<RunsServer<Service>>().await;
    health.set_serving::<MembersServer<Service>>().await;
    // It ends when this does, however that is.
    let mut shown = JoinSet::new();
    if let Some(Dashboard { server, estimator }) = settings.dashboard.take() {
        shown.spawn(server.serve(service.clone(), estimator));
    }
    let runs = RunsServer::new(service.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let members = MembersServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let guard = Guard::new(settings.token.clone());
    let server = net::server(settings.tls.as_ref())?
        .add_service(InterceptedService::new(runs, guard.clone()))
        .add_service(InterceptedService::new(members, guard.clone()))
        .add_service(health_service)
        .add_optional_service(reflection().map(|service| InterceptedService::new(service, guard)))
        .serve_with_incoming(incoming);
    let mut server = tokio::spawn(server);
    tracing::info!(name = settings.name, %address, store, "the coordinator listens");
    ready(address);
    let slow = tokio::spawn(Arc::clone(&registry).look_who_is_slow());
    let costs = tokio::spawn(costs.keep_up());
    let idle = until_idle(Arc::clone(&queue), settings.idle_stop);
    let (quit, quitting) = watch::channel(false);
    let (beat, beating) = watch::channel(0);
    let mut beats = tokio::spawn(keep_alive(lease, beat, quitting));
    let known = (registry, queue, Arc::clone(&notifier));
    let mut work = tokio::spawn(work_off(settings, known, beating, conditional));
    let ended = tokio::select! {
        ended = &mut server => match ended {
            Ok(Err(error)) => Err(CoordinatorError::Server(error)),
            _ => Ok(()),
        },
        ended = &mut work => match ended {
            Ok(error) => Err(CoordinatorError::Taken(error.to_string())),
            Err(_) => Ok(()),
        },
        ended = &mut beats => match ended {
            Ok(Err(error)) => return Err(CoordinatorError::Taken(error.to_string())),
            _ => return Ok(()),
        },
        _ = stop.wait_for(|stop| *stop) => Ok(()),
        () = idle => Ok(()),
    };
    work.abort();
    slow.abort();
    costs.abort();
    server.abort();
    notifier.close(forgetting).await;
    // The place is given up, if it is still this one's, so that the next one need not wait.
    let _ = quit.send(true);
    let _ = beats.await;
    ended
}

/// Whether the object store honours conditional writes; one that does not is for a single coordinator.
async fn is_conditional(settings: &Settings) -> Result<bool, CoordinatorError> {
    let store = settings.objects.location().to_owned();
    let probe = settings.objects.probe("probe").await;
    let conditional = match probe {
        Ok(probe) => probe.conditional(),
        Err(source) => return Err(CoordinatorError::Store { store, source }),
    };
    if !conditional && !settings.single {
        return Err(CoordinatorError::Unconditional { store });
    }
    if !conditional {
        tracing::warn!(
            store,
            "the object store does not honour conditional writes: a second coordinator would not be noticed"
        );
    }
    Ok(conditional)
}

/// What tells gRPC's own tools which services there are.
fn reflection() -> Option<ServerReflectionServer<impl ServerReflection>> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILES)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // Of the files' services, those that are here: workers serve each other another one.
        .with_service_name(<RunsServer<Service> as NamedService>::NAME)
        .with_service_name(<MembersServer<Service> as NamedService>::NAME)
        .with_service_name("grpc.health.v1.Health")
        .build_v1();
    match reflection {
        Ok(reflection) => Some(reflection),
        Err(error) => {
            tracing::warn!(%error, "no reflection");
            None
        }
    }
}

/// The workers and the runs, none known yet, and in sight of the metrics.
fn observed(settings: &Settings) -> (Arc<WorkerRegistry>, Arc<RunQueue>) {
    let metrics = Metrics::register(&settings.registry);
    let registry = WorkerRegistry::new(settings.beat, settings.lost_after, Arc::clone(&metrics));
    let (objects, machine) = (settings.objects.clone(), settings.machine.clone());
    let costs = CostTracker::new(Arc::clone(&registry), objects, settings.prices, machine);
    let queue = RunQueue::new(Arc::clone(&registry), costs);
    let (of_runs, of_workers) = (Arc::clone(&queue), Arc::clone(&registry));
    settings
        .registry
        .before_scrape(move || metrics.show(&of_runs, &of_workers));
    (registry, queue)
}

/// Waits until no run was open for so long; for ever, if it is not to be waited for.
async fn until_idle(queue: Arc<RunQueue>, idle_stop: Option<Duration>) {
    let Some(idle_stop) = idle_stop else {
        return std::future::pending().await;
    };
    let mut changes = queue.changes();
    loop {
        changes.mark_unchanged();
        if queue.next().is_some() {
            // Its end is a change.
            let _ = changes.changed().await;
        } else if tokio::time::timeout(idle_stop, changes.changed())
            .await
            .is_err()
        {
            tracing::info!(
                seconds = idle_stop.as_secs(),
                "no run was open for so long: this is the end"
            );
            return;
        }
    }
}

/// Gives signs of life until it is told to quit, or the place is lost; and counts them.
async fn keep_alive(
    mut lease: Lease,
    count: watch::Sender<u64>,
    mut quit: watch::Receiver<bool>,
) -> Result<(), LeaseError> {
    let mut last = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(BEAT) => {}
            _ = quit.changed() => {
                lease.give_up().await;
                return Ok(());
            }
        }
        match lease.beat().await {
            Ok(()) => {
                last = Instant::now();
                count.send_modify(|count| *count += 1);
            }
            Err(LeaseError::Object(error)) if last.elapsed() < PATIENCE => {
                tracing::warn!(%error, "no sign of life can be given");
            }
            Err(error) => return Err(error),
        }
    }
}

/// Works off one run after the other, until one of them turns out to be another coordinator's.
///
/// A manifest that has changed need not mean that. A coordinator that was stopped for a while, and has lost its place to
/// this one, may write one once more before it notices. Then this one still has the place after that, and goes on
/// from what the other wrote: that is a depth of the same search.
async fn work_off(
    settings: Settings,
    (registry, queue, notifier): (Arc<WorkerRegistry>, Arc<RunQueue>, Arc<Notifier>),
    mut beats: watch::Receiver<u64>,
    conditional: bool,
) -> DriverError {
    let mut updates = queue.updates();
    let mut superseded = 0;
    loop {
        updates.mark_unchanged();
        registry.release(&[]);
        let Some(name) = queue.next() else {
            let mut changes = registry.changes();
            tokio::select! {
                _ = updates.changed() => {}
                _ = changes.changed() => {}
            }
            continue;
        };
        let known = (
            Arc::clone(&registry),
            Arc::clone(&queue),
            Arc::clone(&notifier),
        );
        let Err(error) = work_on(&settings, &name, known, conditional).await else {
            continue;
        };
        if error.is_superseded() {
            superseded += 1;
            // The sign of life that is under way may have been given before.
            let after = *beats.borrow() + 2;
            if superseded > MAX_SUPERSEDED || beats.wait_for(|&beats| beats >= after).await.is_err()
            {
                return error;
            }
            tracing::warn!(
                run = name,
                "a coordinator that has lost its place changed the run: it is read anew"
            );
            continue;
        }
        // If the object store is away, nothing is lost, and the run is tried again.
        if !error.is_transient() {
            tracing::error!(run = name, %error, "the run cannot go on");
            match mark_failed(&settings.objects, &name, &error, &notifier, conditional).await {
                Ok(kept) => {
                    queue.put(&kept.manifest);
                    continue;
                }
                Err(error) => tracing::warn!(run = name, %error, "that cannot be written down"),
            }
        }
        tracing::warn!(run = name, %error, "trying again");
        queue.note(&name, error.to_string());
        tokio::time::sleep(RETRY).await;
    }
}

async fn work_on(
    settings: &Settings,
    name: &str,
    (registry, queue, notifier): (Arc<WorkerRegistry>, Arc<RunQueue>, Arc<Notifier>),
    conditional: bool,
) -> Result<(), DriverError> {
    let mut kept = VersionedManifest::load(&settings.objects, name, conditional).await?;
    kept.manifest.coordinator = settings.name.clone();
    let mut drive = RunDriver::new(
        (
            registry,
            Arc::clone(&queue),
            notifier,
            settings.objects.clone(),
        ),
        kept,
        settings.min_workers,
        settings.scratch.clone(),
    );
    let span = tracing::info_span!("run", run = name);
    queue.costs.begin(&drive.kept.manifest);
    let done = drive.run().instrument(span).await;
    queue.costs.end();
    queue.put(&drive.kept.manifest);
    queue.note(name, String::new());
    done
}

/// Takes a run that cannot go on out of the queue.
async fn mark_failed(
    objects: &Objects,
    name: &str,
    error: &DriverError,
    notifier: &Notifier,
    conditional: bool,
) -> Result<VersionedManifest, ManifestError> {
    let mut kept = VersionedManifest::load(objects, name, conditional).await?;
    let reason = error.to_string();
    let owed = notifier
        .stage(&kept.manifest, EventKind::Failed { reason })
        .await;
    kept.manifest.state = RunState::Failed;
    kept.manifest.note = error.to_string();
    kept.save().await?;
    notifier.deliver(owed);
    Ok(kept)
}
