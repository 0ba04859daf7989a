//! Other workers over gRPC.

use super::PeerLink;
use crate::exchange::InboundExchange;
use crate::lock;
use hatebeam_net::{self as net, Limits, MAX_MESSAGE, Tls, explain};
use hatebeam_proto::messages::{Peer, PeerRequest, PeerResponse};
use hatebeam_proto::v1;
use hatebeam_proto::v1::peers_client::PeersClient;
use hatebeam_proto::v1::peers_server::{Peers, PeersServer};
use hatebeam_proto::{BoxStream, LinkError};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

/// Connections to other workers.
#[derive(Debug)]
pub(crate) struct GrpcPeers {
    tls: Option<Tls>,
    /// By address. A channel connects when it is used, and is used in every epoch.
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl GrpcPeers {
    pub(crate) fn new(tls: Option<Tls>) -> GrpcPeers {
        GrpcPeers {
            tls,
            channels: Mutex::default(),
        }
    }

    fn channel(&self, peer: &Peer) -> Option<Channel> {
        lock(&self.channels).get(&peer.address).cloned()
    }
}

#[tonic::async_trait]
impl PeerLink for GrpcPeers {
    async fn prepare(&self, peer: &Peer, lost_after: Duration) -> Result<(), LinkError> {
        if self.channel(peer).is_some() {
            return Ok(());
        }
        let limits = Limits {
            lazy: true,
            connect_timeout: lost_after,
            ping_after: lost_after,
            ping_answer: lost_after,
        };
        let channel = net::connect(&peer.address, self.tls.as_ref(), &limits).await;
        let channel = channel.map_err(|error| LinkError::refused(error.to_string()))?;
        lock(&self.channels).insert(peer.address.clone(), channel);
        Ok(())
    }

    async fn open(
        &self,
        peer: &Peer,
        requests: mpsc::Receiver<PeerRequest>,
    ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError> {
        let channel = self.channel(peer);
        let channel = channel.ok_or_else(|| LinkError::refused("the peer is not prepared"))?;
        let mut client = PeersClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let requests = ReceiverStream::new(requests).map(v1::SendRequest::from);
        let responses = client.send(requests).await;
        let responses = responses.map_err(|status| failed(&status))?.into_inner();
        Ok(Box::pin(responses.map(|response| {
            let response = response.map_err(|status| failed(&status))?;
            PeerResponse::try_from(response)
                .map_err(|error| LinkError::bad_message(error.to_string()))
        })))
    }
}

fn failed(status: &Status) -> LinkError {
    LinkError::from_status(status, explain(status))
}

/// Returns the service that receives children.
pub(crate) fn peer_service(inbound: InboundExchange) -> PeersServer<impl Peers> {
    PeersServer::new(PeerService { inbound })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

struct PeerService {
    inbound: InboundExchange,
}

#[tonic::async_trait]
impl Peers for PeerService {
    type SendStream = BoxStream<Result<v1::SendResponse, Status>>;

    /// Returns the responses at once: the sender waits for their headers before it continues.
    async fn send(
        &self,
        request: Request<Streaming<v1::SendRequest>>,
    ) -> Result<Response<Self::SendStream>, Status> {
        let requests = request.into_inner().map(|request| {
            let request = request.map_err(|status| failed(&status))?;
            PeerRequest::try_from(request)
                .map_err(|error| LinkError::bad_message(error.to_string()))
        });
        let responses = self.inbound.serve(Box::pin(requests));
        Ok(Response::new(Box::pin(responses.map(|response| {
            response.map(v1::SendResponse::from).map_err(Status::from)
        }))))
    }
}
