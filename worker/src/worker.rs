//! A worker, assembled from its parts.

use crate::exchange::{InboundExchange, Traffic};
use crate::executor::{Executor, State};
use crate::link::{CoordinatorLink, PeerLink};
use crate::tables::LocalStorage;
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_metrics::{Registry, WorkerMetrics};
use hatebeam_objects::Objects;
use std::sync::Arc;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name, unique among the workers of the coordinator.
    pub name: String,
    /// URI at which other workers reach this one.
    pub address: String,
    /// Threads that search.
    pub threads: usize,
    /// Memory that the worker may use, in bytes.
    pub memory_bytes: u64,
    /// Whether batches of children are compressed.
    pub compress: bool,
    /// Batches that wait for a peer at most, usually [`QUEUED_BATCHES`](hatebeam_proto::batch::QUEUED_BATCHES). When the queue is full, search threads block until the peer has taken a
    /// batch. A simulation that runs everything on one thread therefore needs a queue that never fills up.
    pub queued_batches: usize,
    /// The machine and its price.
    pub machine: Machine,
    /// When the process started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Returns the resident memory of the process, for heartbeats.
    pub rss: fn() -> u64,
}

/// What a worker reaches outside itself.
#[derive(Clone)]
pub struct Parts {
    /// Time and tasks.
    pub env: Env,
    /// The object store.
    pub objects: Objects,
    /// The disk.
    pub storage: Arc<dyn LocalStorage>,
    /// The coordinator.
    pub coordinator: Arc<dyn CoordinatorLink>,
    /// The other workers.
    pub peers: Arc<dyn PeerLink>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// A worker.
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
    /// Makes a worker that counts in `registry`.
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

    /// Returns the receiving side of the exchange, which serves the streams of other workers.
    pub fn inbound(&self) -> InboundExchange {
        self.inbound.clone()
    }
}
