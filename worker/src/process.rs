//! The worker process: a [`Worker`] that uses gRPC, RocksDB and the system clock.

use crate::link::{GrpcCoordinator, GrpcPeers, peer_service};
use crate::session::Refused;
use crate::tables::RocksStorage;
use crate::worker::{Parts, Settings, Worker};
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_net::{self as net, Role, Tls, Token, WireError};
use hatebeam_objects::Objects;
use hatebeam_proto::batch::QUEUED_BATCHES;
use hatebeam_search::Fingerprint;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::watch;

/// Settings of a worker process.
#[derive(Debug)]
pub struct Process {
    /// Name of the worker. It must be unique among the workers of the coordinator.
    pub name: String,
    /// Address on which the process listens for other workers.
    pub listen: SocketAddr,
    /// URI at which other workers reach this worker. If `None`, the URI is derived from `listen`.
    pub advertise: Option<String>,
    /// URI of the coordinator.
    pub coordinator: String,
    /// Number of search threads.
    pub threads: usize,
    /// Maximum memory use of the process in bytes.
    pub memory_bytes: u64,
    /// Scratch directory for tables (files of wells). Tables of earlier processes in this directory are deleted.
    pub dir: PathBuf,
    /// The object store.
    pub objects: Objects,
    /// Paths of the TLS certificate, the key and the CA of this process. If `None`, connections are not encrypted.
    pub tls: Option<Tls>,
    /// Token for calls to the coordinator, if the coordinator requires one.
    pub token: Option<Token>,
    /// Whether batches of children (candidate wells for the next depth) are compressed.
    pub compress: bool,
    /// Function that returns the resident memory of the process in bytes.
    pub rss: fn() -> u64,
    /// Machine on which the process runs, and its price.
    pub machine: Machine,
    /// Start time of the process, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Registry for the worker's metrics.
    pub registry: Registry,
}

/// An error that ends a worker process.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The process cannot listen on its address, or its certificates cannot be used.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The gRPC server that receives children from other workers failed.
    #[error("the gRPC server for other workers failed")]
    Server(#[source] tonic::transport::Error),
    /// The gRPC server that receives children from other workers panicked or stopped without an error.
    #[error("the gRPC server for other workers stopped")]
    ServerStopped,
    /// The coordinator rejected this worker.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Runs a worker process until `stop` contains a reason to leave, and then until the coordinator releases the worker.
/// See [`Worker::run`].
///
/// # Errors
/// Returns a [`ProcessError`] if the process cannot listen, if its server fails, or if the coordinator rejects the
/// worker. If the coordinator is unreachable, the worker retries indefinitely.
pub async fn work(
    process: Process,
    stop: watch::Receiver<Option<String>>,
) -> Result<(), ProcessError> {
    let env = Env::system();
    let incoming = net::listen(process.listen)?;
    let address = incoming.local_addr().unwrap_or(process.listen);
    let scheme = match &process.tls {
        Some(_) => "https",
        None => "http",
    };
    let settings = Settings {
        name: process.name,
        address: process
            .advertise
            .unwrap_or_else(|| format!("{scheme}://{address}")),
        threads: process.threads.max(1),
        memory_bytes: process.memory_bytes,
        compress: process.compress,
        queued_batches: QUEUED_BATCHES,
        machine: process.machine,
        started_ms: process.started_ms,
        search: Fingerprint::current(),
        rss: process.rss,
    };
    let mut server = net::server(process.tls.as_ref(), Role::Worker)?;
    let parts = Parts {
        env: env.clone(),
        objects: process.objects.clone(),
        storage: Arc::new(RocksStorage::new(process.dir)),
        coordinator: Arc::new(GrpcCoordinator {
            uri: process.coordinator,
            objects: process.objects,
            tls: process.tls.clone(),
            token: process.token,
        }),
        peers: Arc::new(GrpcPeers::new(process.tls)),
    };
    let (name, address) = (settings.name.clone(), settings.address.clone());
    let worker = Worker::new(settings, parts, &process.registry);
    let server = server
        .add_service(peer_service(worker.inbound()))
        .serve_with_incoming(incoming);
    let mut server = env.spawn(server);
    tracing::info!(name, address, "listening for other workers");
    tokio::select! {
        biased;
        ended = worker.run(stop) => Ok(ended?),
        server = &mut server => match server {
            Ok(Err(error)) => Err(ProcessError::Server(error)),
            Ok(Ok(())) | Err(_) => Err(ProcessError::ServerStopped),
        },
    }
}
