//! The worker process: a [`Worker`] with gRPC, RocksDB and the system's clock.

use crate::link::{GrpcCoordinator, GrpcPeers, peer_service};
use crate::session::Refused;
use crate::tables::RocksStorage;
use crate::worker::{Parts, Settings, Worker};
use hatebeam_cost::Machine;
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_net::{self as net, Tls, Token, WireError};
use hatebeam_objects::Objects;
use hatebeam_proto::batch::QUEUED_BATCHES;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::watch;

/// Settings of a worker process.
#[derive(Debug)]
pub struct Process {
    /// Name, unique among the workers of the coordinator.
    pub name: String,
    /// Address at which it listens for other workers.
    pub listen: SocketAddr,
    /// URI at which other workers reach it, if it is not `listen`.
    pub advertise: Option<String>,
    /// URI of the coordinator.
    pub coordinator: String,
    /// Threads that search.
    pub threads: usize,
    /// Memory that the worker may use, in bytes.
    pub memory_bytes: u64,
    /// Scratch directory. Its tables are deleted at start.
    pub dir: PathBuf,
    /// The object store.
    pub objects: Objects,
    /// The certificate.
    pub tls: Option<Tls>,
    /// The token for the coordinator.
    pub token: Option<Token>,
    /// Whether batches of children are compressed.
    pub compress: bool,
    /// Returns the resident memory of the process in bytes.
    pub rss: fn() -> u64,
    /// The machine and its price.
    pub machine: Machine,
    /// When the process started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Where the worker's metrics are registered.
    pub registry: Registry,
}

/// Why a worker process ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The address or the certificates cannot be used.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server for other workers failed.
    #[error("the server for other workers failed")]
    Server(#[source] tonic::transport::Error),
    /// The coordinator does not accept this worker.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Runs a worker process until `stop` holds a reason to leave and the coordinator has released it: see
/// [`Worker::run`].
///
/// # Errors
/// [`ProcessError`]. An unreachable coordinator is not an error.
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
        rss: process.rss,
    };
    let mut server = net::server(process.tls.as_ref())?;
    let parts = Parts {
        env: env.clone(),
        objects: process.objects,
        storage: Arc::new(RocksStorage::new(process.dir)),
        coordinator: Arc::new(GrpcCoordinator {
            uri: process.coordinator,
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
            _ => Ok(()),
        },
    }
}
