//! Workers for tests, which use memory instead of a network and a disk.

use crate::exchange::InboundExchange;
use crate::link::{CoordinatorLink, PeerLink, Session};
use crate::lock;
use crate::tables::{LocalStorage, MemoryStorage};
use crate::worker::{Parts, Settings, Worker};
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_objects::faults::{Before, Call, FaultPlan, Hook};
use hatebeam_objects::{Memory, Objects, Options};
use hatebeam_proto::messages::{
    AnswerKind, Hello, Order, OrderKind, Peer, PeerRequest, PeerResponse, Prepare, Secret,
};
use hatebeam_proto::{BoxStream, LinkError};
use hatebeam_runs::RunSpec;
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Fingerprint, Quiescence};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Name of the test run.
pub(crate) const RUN: &str = "run";

/// Secret that every pair of test workers shares.
pub(crate) const SECRET: Secret = Secret([7; 16]);

pub(crate) fn spec(width: u64) -> RunSpec {
    RunSpec::new(
        width,
        EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off),
    )
}

/// Returns a `prepare` order for the first depth of the test run. Its four shards are assigned to the workers in turn.
pub(crate) fn prepare(width: u64, names: &[&str]) -> Prepare {
    let members = names.iter().map(|name| Peer {
        name: (*name).to_owned(),
        address: format!("mem://{name}"),
        send_secret: SECRET,
        receive_secret: SECRET,
    });
    Prepare {
        run: RUN.to_owned(),
        spec: spec(width),
        depth: 0,
        owners: (0..4).map(|shard| shard % names.len() as u32).collect(),
        members: members.collect(),
        tables: Vec::new(),
        table_shards: 4,
    }
}

/// Connector between the workers of one test.
#[derive(Clone, Default)]
pub(crate) struct MemoryPeers {
    /// Receiving sides of the workers, by address. Opening a stream to any other address never completes.
    inbound: Arc<Mutex<BTreeMap<String, InboundExchange>>>,
}

#[tonic::async_trait]
impl PeerLink for MemoryPeers {
    async fn prepare(&self, peers: &[Peer], _: Duration) -> Result<(), BTreeMap<String, String>> {
        let invalid = peers
            .iter()
            .filter(|peer| !peer.address.starts_with("mem://"));
        let invalid: BTreeMap<_, _> = invalid
            .map(|peer| (peer.name.clone(), "the address is invalid".to_owned()))
            .collect();
        match invalid.is_empty() {
            true => Ok(()),
            false => Err(invalid),
        }
    }

    async fn open(
        &self,
        peer: &Peer,
        requests: mpsc::Receiver<PeerRequest>,
    ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError> {
        let inbound = lock(&self.inbound).get(&peer.address).cloned();
        let Some(inbound) = inbound else {
            return std::future::pending().await;
        };
        Ok(inbound.serve(Box::pin(ReceiverStream::new(requests).map(Ok))))
    }
}

/// A coordinator that never answers.
pub(crate) struct SilentCoordinator;

#[tonic::async_trait]
impl CoordinatorLink for SilentCoordinator {
    async fn open(&self, _: Hello) -> Result<Session, LinkError> {
        std::future::pending().await
    }
}

/// A fault plan with which every operation fails.
pub(crate) struct Unavailable;

impl FaultPlan for Unavailable {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        Box::pin(async move { Before::Fail(call.unavailable("connection refused")) })
    }
}

/// Workers that share an object store in memory.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) memory: Memory,
    pub(crate) objects: Objects,
    pub(crate) peers: MemoryPeers,
    pub(crate) storage: Arc<dyn LocalStorage>,
}

impl Cluster {
    pub(crate) fn new() -> Cluster {
        let memory = Memory::default();
        Cluster {
            objects: Objects::in_memory(&memory, &Options::default()).unwrap(),
            memory,
            peers: MemoryPeers::default(),
            storage: Arc::new(MemoryStorage),
        }
    }

    /// Returns a client of the object store whose operations are subject to `faults`.
    pub(crate) fn faulty_objects(&self, faults: impl FaultPlan + 'static) -> Objects {
        Objects::with_faults(&self.memory, &Options::default(), Arc::new(faults)).unwrap()
    }

    /// Creates a worker with a connector to a coordinator, and makes the worker reachable for other workers.
    pub(crate) fn worker_of(&self, name: &str, coordinator: Arc<dyn CoordinatorLink>) -> Worker {
        let settings = Settings {
            name: name.to_owned(),
            address: format!("mem://{name}"),
            threads: 1,
            memory_bytes: 0,
            compress: false,
            queued_batches: 2,
            machine: Machine::default(),
            started_ms: 1,
            search: Fingerprint::current(),
            rss: || 0,
        };
        let parts = Parts {
            env: Env::system(),
            objects: self.objects.clone(),
            storage: Arc::clone(&self.storage),
            coordinator,
            peers: Arc::new(self.peers.clone()),
        };
        let worker = Worker::new(settings, parts, &Registry::default());
        lock(&self.peers.inbound).insert(format!("mem://{name}"), worker.inbound());
        worker
    }

    /// Creates a worker whose coordinator never answers. Tests send orders with [`Worker::execute`].
    pub(crate) fn worker(&self, name: &str) -> Worker {
        self.worker_of(name, Arc::new(SilentCoordinator))
    }
}

impl Worker {
    pub(crate) async fn execute(&self, epoch: u64, kind: OrderKind) -> AnswerKind {
        self.executor.execute(Order { epoch, id: 1, kind }).await
    }
}
