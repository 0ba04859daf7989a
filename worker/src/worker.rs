//! The [`Worker`], its settings and its external dependencies.

use crate::exchange::{InboundExchange, Traffic};
use crate::executor::{Executor, State};
use crate::link::{CoordinatorLink, PeerLink};
use crate::tables::LocalStorage;
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_metrics::{Registry, WorkerMetrics};
use hatebeam_objects::Objects;
use hatebeam_search::Fingerprint;
use std::sync::Arc;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the worker. It must be unique among the workers of the coordinator.
    pub name: String,
    /// URI at which other workers reach this worker.
    pub address: String,
    /// Number of search threads.
    pub threads: usize,
    /// Maximum memory use of the worker in bytes; 0 if unknown. The coordinator assigns only as many wells as fit.
    pub memory_bytes: u64,
    /// Whether batches of children (candidate wells for the next depth) are compressed.
    pub compress: bool,
    /// Maximum number of batches that are queued for a peer, usually
    /// [`QUEUED_BATCHES`](hatebeam_proto::batch::QUEUED_BATCHES). If the queue is full, search threads block until
    /// the peer has received a batch. A simulation that runs everything on one thread therefore needs a queue that
    /// never fills up.
    pub queued_batches: usize,
    /// Machine on which the worker runs, and its price.
    pub machine: Machine,
    /// Start time of the process, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Fingerprint of the program's search. It must equal the coordinator's fingerprint.
    pub search: Fingerprint,
    /// Function that returns the resident memory of the process in bytes, for heartbeats.
    pub rss: fn() -> u64,
}

/// The external dependencies of a worker.
#[derive(Clone)]
pub struct Parts {
    /// Clock and tasks.
    pub env: Env,
    /// The object store.
    pub objects: Objects,
    /// The disk.
    pub storage: Arc<dyn LocalStorage>,
    /// Connections to the coordinator.
    pub coordinator: Arc<dyn CoordinatorLink>,
    /// Connections to the other workers.
    pub peers: Arc<dyn PeerLink>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// A worker, which carries out the orders of one coordinator.
pub struct Worker {
    pub(crate) settings: Settings,
    pub(crate) coordinator: Arc<dyn CoordinatorLink>,
    pub(crate) executor: Arc<Executor>,
    inbound: InboundExchange,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Creates a worker that registers its metrics in `registry`.
    pub fn new(settings: Settings, parts: Parts, registry: &Registry) -> Worker {
        let threads = settings.threads.max(1);
        let metrics = WorkerMetrics::register(registry);
        metrics.threads.set(threads as u64);
        let traffic = Traffic::new(metrics);
        let (control, inbound) = InboundExchange::new(parts.env.clone(), Arc::clone(&traffic));
        let executor = Arc::new(Executor {
            env: parts.env,
            name: settings.name.clone(),
            threads,
            compress: settings.compress,
            queued_batches: settings.queued_batches.max(1),
            search: settings.search.clone(),
            objects: parts.objects,
            storage: parts.storage,
            peers: parts.peers,
            inbound: control,
            traffic,
            state: State::default(),
        });
        let measured = Arc::downgrade(&executor);
        registry.before_scrape(move || {
            if let Some(executor) = measured.upgrade() {
                executor.update_metrics();
            }
        });
        Worker {
            settings,
            coordinator: parts.coordinator,
            executor,
            inbound,
        }
    }

    /// Returns the receiving side of the exchange of children, which serves the streams that other workers open.
    pub fn inbound(&self) -> InboundExchange {
        self.inbound.clone()
    }
}
