//! Test workers that use memory instead of a network and a disk.

use crate::exchange::InboundExchange;
use crate::link::{CoordinatorLink, PeerLink, Session};
use crate::lock;
use crate::tables::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
use crate::worker::{Parts, Settings, Worker};
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_game::{Geometry, Rules};
use hatebeam_metrics::Registry;
use hatebeam_objects::{Memory, Objects, Options, Stored};
use hatebeam_proto::messages::{
    AnswerKind, Hello, Order, OrderKind, Peer, PeerRequest, PeerResponse, Prepare, Secret,
};
use hatebeam_proto::{BoxStream, LinkError};
use hatebeam_runs::{RunSpec, Start, Table, WellSpec};
use hatebeam_search::{
    Digest, EvaluatorKind, EvaluatorSpec, Fingerprint, Node, NodeWell, Quiescence, WELL_BYTES,
    Weights,
};
use hatebeam_store::StoreError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Name of the test run.
pub(crate) const RUN: &str = "run";
/// Size in bytes of an encoded node in a [`MemoryTables`] file.
const NODE: usize = 7 + WELL_BYTES;

/// The secret of all pairs of workers in tests.
pub(crate) const SECRET: Secret = Secret([7; 16]);

/// The specification of the run in tests.
pub(crate) fn spec(width: u64) -> RunSpec {
    RunSpec {
        width,
        well: WellSpec::new(Geometry::STANDARD, Rules::default()),
        start: Start::Empty,
        evaluator: EvaluatorSpec {
            kind: EvaluatorKind::Patterns,
            weights: Weights::default(),
            quiescence: Quiescence::Off,
        },
        search: Fingerprint::current(),
    }
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
    }
}

/// Storage that creates its tables in memory.
#[derive(Default)]
pub(crate) struct MemoryStorage;

impl LocalStorage for MemoryStorage {
    fn create(&self, _: Geometry) -> Result<Arc<dyn LocalTables>, StoreError> {
        Ok(Arc::new(MemoryTables::default()))
    }

    fn free_bytes(&self) -> u64 {
        1 << 30
    }

    fn disk_bytes(&self) -> u64 {
        1 << 31
    }
}

#[derive(Default)]
struct MemoryTables {
    staged: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    depths: Mutex<BTreeMap<u32, Vec<Node>>>,
}

fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for node in nodes {
        bytes.extend(node.score.to_le_bytes());
        bytes.extend(node.lines.to_le_bytes());
        bytes.push(node.hint);
        bytes.extend(node.well.0);
    }
    bytes
}

fn decode(bytes: &[u8]) -> Vec<Node> {
    let (nodes, rest) = bytes.as_chunks::<NODE>();
    assert!(rest.is_empty());
    let node = |bytes: &[u8; NODE]| Node {
        score: i32::from_le_bytes(bytes[..4].try_into().unwrap()),
        lines: u16::from_le_bytes(bytes[4..6].try_into().unwrap()),
        hint: bytes[6],
        well: NodeWell(bytes[7..].try_into().unwrap()),
    };
    nodes.iter().map(node).collect()
}

impl LocalTables for MemoryTables {
    fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        let mut nodes = lock(&self.depths).get(&depth).cloned().unwrap_or_default();
        nodes.sort_by_key(|node| node.well);
        nodes.dedup();
        Ok(nodes)
    }

    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError> {
        let (mut bundle, mut tables, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for (shard, nodes) in work.frontier.shards.iter().enumerate() {
            if nodes.is_empty() {
                continue;
            }
            let bytes = encode(nodes);
            let stored = Stored::of(&bytes);
            tables.push(Table {
                shard: shard as u32,
                key: work.key.to_owned(),
                offset: bundle.len() as u64,
                bytes: stored.bytes,
                checksum: stored.checksum.to_string(),
                count: nodes.len() as u64,
                digest: Digest::of(nodes).to_string(),
            });
            bundle.extend(&bytes);
            let file = PathBuf::from(format!("{}-{shard}-{}", work.frontier.depth, work.epoch));
            lock(&self.staged).insert(file.clone(), bytes);
            files.push(file);
        }
        Ok(WrittenTables {
            tables,
            files,
            bundle: Bundle::Memory(bundle.into()),
        })
    }

    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError> {
        let file = Path::new(&format!("{depth}-{shard}")).to_path_buf();
        lock(&self.staged).insert(file.clone(), table.to_vec());
        Ok(file)
    }

    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError> {
        for file in files {
            let bytes = lock(&self.staged).remove(&file).unwrap();
            lock(&self.depths)
                .entry(depth)
                .or_default()
                .extend(decode(&bytes));
        }
        Ok(())
    }

    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError> {
        for file in files {
            lock(&self.staged).remove(file).unwrap();
        }
        Ok(())
    }

    fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        lock(&self.depths).remove(&depth);
        Ok(())
    }
}

/// Connector between the workers of one test.
#[derive(Clone, Default)]
pub(crate) struct MemoryPeers {
    /// The receiving sides of the workers by address. Opening a stream to any other address never completes.
    inbound: Arc<Mutex<BTreeMap<String, InboundExchange>>>,
}

#[tonic::async_trait]
impl PeerLink for MemoryPeers {
    async fn prepare(&self, peer: &Peer, _: Duration) -> Result<(), LinkError> {
        if peer.address.starts_with("mem://") {
            return Ok(());
        }
        Err(LinkError::refused("the address is invalid"))
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

/// Workers that share an object store in memory.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) memory: Memory,
    pub(crate) objects: Objects,
    pub(crate) peers: MemoryPeers,
}

impl Cluster {
    pub(crate) fn new() -> Cluster {
        let memory = Memory::default();
        Cluster {
            objects: Objects::in_memory(&memory, &Options::default()).unwrap(),
            memory,
            peers: MemoryPeers::default(),
        }
    }

    /// Creates a worker that uses this connector to a coordinator, and makes it reachable for other workers.
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
            storage: Arc::new(MemoryStorage),
            coordinator,
            peers: Arc::new(self.peers.clone()),
        };
        let worker = Worker::new(settings, parts, &Registry::default());
        lock(&self.peers.inbound).insert(format!("mem://{name}"), worker.inbound());
        worker
    }

    /// Creates a worker without a coordinator. The test sends its orders with [`Worker::execute`].
    pub(crate) fn worker(&self, name: &str) -> Worker {
        self.worker_of(name, Arc::new(SilentCoordinator))
    }
}

impl Worker {
    /// Carries out an order and returns the answer.
    pub(crate) async fn execute(&self, epoch: u64, kind: OrderKind) -> AnswerKind {
        self.executor.execute(Order { epoch, id: 1, kind }).await
    }
}
