//! The parts of one coordinator and its settings.

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
use std::sync::Arc;
use std::time::Duration;

/// Settings of the coordinator without its servers.
#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// Name of the coordinator in messages and in the lease.
    pub name: String,
    /// Address of the coordinator, for the lease.
    pub address: String,
    /// The runs.
    pub objects: Objects,
    /// Prices of the object store.
    pub prices: ObjectStorePrices,
    /// The machine of this process, which is charged too.
    pub machine: Machine,
    /// Whether this is the store's only coordinator: then the store need not honor conditional writes.
    pub single: bool,
    /// Idle timeout: the coordinator stops after this long without an open run.
    pub idle_stop: Option<Duration>,
    /// Workers that a run needs to begin or to resume.
    pub min_workers: usize,
    /// Interval between two heartbeats of a worker.
    pub heartbeat: Duration,
    /// A worker that is silent for this long is lost.
    pub lost_after: Duration,
    /// Tables for reading a game back.
    pub tables: TableSource,
    /// Receiver of the runs' events.
    pub notifications: NotifierSettings,
}

/// The parts of one coordinator.
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
    /// Held while the current run is chosen, and while the manifest of a run that is not current is written: a
    /// manifest has one writer at a time.
    pub(crate) idle_manifests: tokio::sync::Mutex<()>,
}
