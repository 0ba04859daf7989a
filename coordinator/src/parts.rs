//! The components of a coordinator, and its settings.

use crate::costs::CostTracker;
use crate::games::Games;
use crate::metrics::Metrics;
use crate::outbox::{Notifier, NotifierSettings};
use crate::queue::RunQueue;
use crate::read_back::{GameReader, TableSource};
use crate::registry::WorkerRegistry;
use hatebeam_cost::{Machine, ObjectStorePrices};
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_search::Fingerprint;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a coordinator, except those of its servers.
#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// Name of the coordinator. It is stored in the lease (the object that identifies the active coordinator) and in
    /// the manifests (the objects with the states of the runs).
    pub name: String,
    /// Address of the coordinator, stored in the lease.
    pub address: String,
    /// The object store that contains the runs.
    pub objects: Objects,
    /// Object store prices.
    pub prices: ObjectStorePrices,
    /// The machine on which this process runs. Its time is charged to the runs.
    pub machine: Machine,
    /// Whether this is the only coordinator that uses the object store. If so, the store need not honor conditional
    /// writes.
    pub single: bool,
    /// Fingerprint of this program's search. Workers and runs with a different fingerprint are refused.
    pub search: Fingerprint,
    /// Receiver of the time at which all machines are stopped, even during a run, in milliseconds since the Unix epoch.
    /// The inner `None` means that no time is known yet, and the outer `None` that none can be received.
    pub deadline: Option<tokio::sync::watch::Receiver<Option<u64>>>,
    /// Idle timeout: the coordinator stops after this time without an open run. `None` disables the timeout.
    pub idle_stop: Option<Duration>,
    /// Minimum number of workers that a run needs to start or to resume.
    pub min_workers: usize,
    /// Minimum average number of wells per shard (range of well hashes) after shards have been split for more workers.
    pub min_shard_wells: usize,
    /// Interval between two heartbeats of a worker.
    pub heartbeat: Duration,
    /// Time without a message after which a worker is considered lost.
    pub lost_after: Duration,
    /// Opens a run's tables (files with its wells) for reading the best game back.
    pub tables: TableSource,
    /// Settings for the delivery of run events.
    pub notifications: NotifierSettings,
}

pub(crate) struct Parts {
    pub(crate) env: Env,
    pub(crate) settings: CoreSettings,
    pub(crate) objects: Objects,
    /// Whether the object store honors conditional writes.
    pub(crate) conditional: bool,
    pub(crate) metrics: Metrics,
    pub(crate) registry: Arc<WorkerRegistry>,
    pub(crate) queue: Arc<RunQueue>,
    pub(crate) costs: Arc<CostTracker>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) reader: GameReader,
    pub(crate) games: Arc<Games>,
    /// Lock for writing the manifest of any run except the current run. It is also held while the current run is
    /// chosen, so each manifest has one writer at a time.
    pub(crate) idle_manifests: tokio::sync::Mutex<()>,
    /// Whether clients can submit runs. Locked for reading while a run is submitted, so that the coordinator does not stop
    /// for idleness at the same time.
    pub(crate) accepts_runs: tokio::sync::RwLock<bool>,
}
