//! Connections to the coordinator and to other workers.
//!
//! The traits define the connections that a worker requires. The modules `coordinator` and `peers` implement them over
//! gRPC. No other module of this crate uses the generated protobuf types.

mod coordinator;
mod peers;

pub(crate) use coordinator::GrpcCoordinator;
pub(crate) use peers::{GrpcPeers, peer_service};

use hatebeam_net::explain;
use hatebeam_proto::messages::{FromWorker, Hello, Peer, PeerRequest, PeerResponse, ToWorker};
use hatebeam_proto::{BoxStream, LinkError};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::Status;

/// Connector to the coordinator.
#[tonic::async_trait]
pub trait CoordinatorLink: Send + Sync + 'static {
    /// Connects to the coordinator, sends `hello` with the [identifier of the lease](hatebeam_runs::lease_id) in the worker's
    /// object store, and returns the session.
    ///
    /// # Errors
    /// Returns a [`LinkError`] if the coordinator is unreachable or refuses this worker.
    async fn open(&self, hello: Hello) -> Result<Session, LinkError>;
}

/// A session with the coordinator. Dropping it closes the connection.
pub struct Session {
    /// Messages to the coordinator.
    pub outbound: mpsc::Sender<FromWorker>,
    /// Messages from the coordinator.
    pub inbound: BoxStream<Result<ToWorker, LinkError>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Connector to other workers.
#[tonic::async_trait]
pub trait PeerLink: Send + Sync + 'static {
    /// Prepares for streams to the peers of an epoch (a period with a fixed set of workers), without connecting to them.
    /// Streams to the peers of earlier epochs cannot be opened any more. If a peer stops responding, its streams fail after
    /// a timeout that is derived from `lost_after`.
    ///
    /// # Errors
    /// Returns the names of the peers whose addresses are invalid, each with the reason.
    async fn prepare(
        &self,
        peers: &[Peer],
        lost_after: Duration,
    ) -> Result<(), BTreeMap<String, String>>;

    /// Opens a stream to a peer, and sends all `requests` on it. Returns the peer's responses, which end once the peer
    /// has received all requests.
    ///
    /// # Errors
    /// Returns a [`LinkError`] if the peer is unreachable or refuses the stream.
    async fn open(
        &self,
        peer: &Peer,
        requests: mpsc::Receiver<PeerRequest>,
    ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError>;
}

/// Returns the error of a call that ended with `status`.
fn failed(status: &Status) -> LinkError {
    LinkError::from_status(status, explain(status))
}
