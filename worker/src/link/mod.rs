//! Connections to the coordinator and to other workers.
//!
//! The traits are what the worker needs. `coordinator` and `peers` implement them over gRPC; no other module of this
//! crate knows the generated protobuf types.

mod coordinator;
mod peers;

pub(crate) use coordinator::GrpcCoordinator;
pub(crate) use peers::{GrpcPeers, peer_service};

use hatebeam_proto::messages::{FromWorker, Hello, Peer, PeerRequest, PeerResponse, ToWorker};
use hatebeam_proto::{BoxStream, LinkError};
use std::time::Duration;
use tokio::sync::mpsc;

/// The way to the coordinator.
#[tonic::async_trait]
pub trait CoordinatorLink: Send + Sync + 'static {
    /// Connects, sends `hello` and returns the session.
    ///
    /// # Errors
    /// [`LinkError`] if the coordinator is unreachable or refuses this worker.
    async fn open(&self, hello: Hello) -> Result<Session, LinkError>;
}

/// A session with the coordinator. Dropping it disconnects.
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

/// The way to other workers.
#[tonic::async_trait]
pub trait PeerLink: Send + Sync + 'static {
    /// Prepares streams to a peer without connecting to it. A peer that is silent for `lost_after` counts as lost.
    ///
    /// # Errors
    /// [`LinkError`] if the address is invalid.
    async fn prepare(&self, peer: &Peer, lost_after: Duration) -> Result<(), LinkError>;

    /// Opens a stream to a peer. It sends `requests`, and ends once the peer has received them all.
    ///
    /// # Errors
    /// [`LinkError`] if the peer is unreachable or refuses the stream.
    async fn open(
        &self,
        peer: &Peer,
        requests: mpsc::Receiver<PeerRequest>,
    ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError>;
}
