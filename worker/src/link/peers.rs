//! Connections to other workers over gRPC.

use super::{PeerLink, failed};
use crate::exchange::InboundExchange;
use crate::lock;
use hatebeam_net::{self as net, Guard, Limits, MAX_MESSAGE, Role, Tls, WireError};
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
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

/// Connector to other workers, with a cache of connections.
#[derive(Debug)]
pub(crate) struct GrpcPeers {
    tls: Option<Tls>,
    /// Channels to the peers of the last epoch, by address. A channel connects on first use. The next epoch reuses the
    /// channels to its peers and drops the others.
    channels: Mutex<BTreeMap<String, PeerChannel>>,
}

#[derive(Clone, Debug)]
struct PeerChannel {
    channel: Channel,
    /// The time from which the timeouts of the channel are derived.
    lost_after: Duration,
}

impl GrpcPeers {
    pub(crate) fn new(tls: Option<Tls>) -> GrpcPeers {
        GrpcPeers {
            tls,
            channels: Mutex::default(),
        }
    }

    fn channel(&self, peer: &Peer) -> Option<PeerChannel> {
        lock(&self.channels).get(&peer.address).cloned()
    }

    /// Returns the channel of an earlier epoch if its timeouts are the same, or creates one.
    async fn prepare_channel(
        &self,
        peer: &Peer,
        lost_after: Duration,
    ) -> Result<PeerChannel, WireError> {
        let before = self.channel(peer);
        if let Some(channel) = before.filter(|before| before.lost_after == lost_after) {
            return Ok(channel);
        }
        let limits = Limits {
            lazy: true,
            connect_timeout: lost_after,
            ping_timeout: lost_after,
        };
        let channel = net::connect(&peer.address, self.tls.as_ref(), Role::Worker, &limits).await?;
        Ok(PeerChannel {
            channel,
            lost_after,
        })
    }
}

#[tonic::async_trait]
impl PeerLink for GrpcPeers {
    async fn prepare(
        &self,
        peers: &[Peer],
        lost_after: Duration,
    ) -> Result<(), BTreeMap<String, String>> {
        let (mut channels, mut invalid) = (BTreeMap::new(), BTreeMap::new());
        for peer in peers {
            match self.prepare_channel(peer, lost_after).await {
                Ok(channel) => {
                    channels.insert(peer.address.clone(), channel);
                }
                Err(error) => {
                    invalid.insert(peer.name.clone(), error.to_string());
                }
            }
        }
        *lock(&self.channels) = channels;
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
        let channel = self.channel(peer);
        let channel = channel.ok_or_else(|| LinkError::refused("the peer is not prepared"))?;
        let mut client = PeersClient::new(channel.channel)
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

/// Returns the service that receives children. It admits only processes with the role of a worker. `inbound` then
/// verifies the sender's name by the secret in the stream's header.
pub(crate) fn peer_service(
    inbound: InboundExchange,
) -> InterceptedService<PeersServer<impl Peers>, Guard> {
    let service = PeersServer::new(PeerService { inbound })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    InterceptedService::new(service, Guard::new(None).for_roles(&[Role::Worker]))
}

struct PeerService {
    inbound: InboundExchange,
}

#[tonic::async_trait]
impl Peers for PeerService {
    type SendStream = BoxStream<Result<v1::SendResponse, Status>>;

    /// Starts to serve a stream and returns immediately, because the sender waits for the response headers before it
    /// continues.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cluster, SECRET, prepare};
    use hatebeam_proto::LinkErrorKind;
    use hatebeam_proto::messages::{AnswerKind, Batch, Expand, OrderKind, Secret, StreamHeader};
    use hatebeam_search::DEFAULT_SIGMAS;

    const LOST_AFTER: Duration = Duration::from_secs(5);

    /// Starts a server for a worker's inbound streams on the loopback interface. Returns the worker as a peer.
    async fn serve(inbound: InboundExchange) -> Peer {
        let incoming = net::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = format!("http://{}", incoming.local_addr().unwrap());
        let mut server = net::server(None, Role::Worker).unwrap();
        let server = server.add_service(peer_service(inbound));
        tokio::spawn(server.serve_with_incoming(incoming));
        peer("w0", &address)
    }

    /// Sends requests and returns the last response.
    async fn send(
        peer: &Peer,
        requests: Vec<PeerRequest>,
    ) -> Result<Option<PeerResponse>, LinkError> {
        let peers = GrpcPeers::new(None);
        let prepared = peers.prepare(std::slice::from_ref(peer), LOST_AFTER).await;
        prepared.unwrap();
        let (queue, receiver) = mpsc::channel(requests.len().max(1));
        for request in requests {
            queue.send(request).await.unwrap();
        }
        drop(queue);
        let mut responses = peers.open(peer, receiver).await?;
        let mut last = None;
        while let Some(response) = responses.next().await {
            last = Some(response?);
        }
        Ok(last)
    }

    #[tokio::test]
    async fn grpc_preserves_responses_and_error_kinds() {
        let cluster = Cluster::new();
        let worker = cluster.worker("w0");
        // No worker listens at the address of w1, so the expansion does not finish.
        let order = OrderKind::Prepare(Box::new(prepare(100, &["w0", "w1"])));
        let answer = worker.execute(1, order).await;
        assert!(matches!(answer, AnswerKind::Prepared(_)), "{answer:?}");
        let peer = serve(worker.inbound()).await;
        let header_with = |from: &str, epoch, secret| {
            PeerRequest::Header(StreamHeader {
                run: crate::testing::RUN.to_owned(),
                epoch,
                depth: 1,
                attempt: 1,
                from: from.to_owned(),
                secret,
            })
        };
        let header = |from: &str, epoch| header_with(from, epoch, SECRET);
        let batch = |bytes: &'static [u8]| {
            PeerRequest::Batch(Batch {
                children: bytes.into(),
                origins: Vec::new(),
            })
        };
        let expand = OrderKind::Expand(Expand {
            depth: 1,
            attempt: 1,
            sigmas: DEFAULT_SIGMAS,
            floor: 0,
            wells: 0,
        });
        tokio::spawn(async move { worker.execute(1, expand).await });
        let empty = b"\0\0\0\0\0";
        let last = send(&peer, vec![header("w1", 1), batch(empty)]).await;
        assert_eq!(last.unwrap().unwrap().received, Some(0));
        for (requests, kind) in [
            (vec![header("stranger", 1)], LinkErrorKind::Refused),
            (
                vec![header_with("w1", 1, Secret::default())],
                LinkErrorKind::Refused,
            ),
            (vec![header("w1", 0)], LinkErrorKind::Superseded),
            (
                vec![header("w1", 1), batch(b"noise")],
                LinkErrorKind::BadMessage,
            ),
            (vec![batch(empty)], LinkErrorKind::BadMessage),
        ] {
            let error = send(&peer, requests).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
        }
    }

    fn peer(name: &str, address: &str) -> Peer {
        Peer {
            name: name.to_owned(),
            address: address.to_owned(),
            send_secret: SECRET,
            receive_secret: SECRET,
        }
    }

    #[tokio::test]
    async fn error_for_an_unreachable_peer_is_transient() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = peer("w0", &format!("http://{}", free.local_addr().unwrap()));
        drop(free);
        let error = send(&closed, Vec::new()).await.unwrap_err();
        assert_eq!(error.kind, LinkErrorKind::Transient, "{error}");
    }

    #[tokio::test]
    async fn only_channels_of_the_last_epoch_with_its_timeouts_are_kept() {
        let peers = GrpcPeers::new(None);
        let epoch = |numbers: &[u32]| -> Vec<Peer> {
            let numbered = numbers.iter();
            numbered
                .map(|n| peer(&format!("w{n}"), &format!("http://worker-{n}:7801")))
                .collect()
        };
        peers.prepare(&epoch(&[0, 1]), LOST_AFTER).await.unwrap();
        peers.prepare(&epoch(&[1, 2]), LOST_AFTER).await.unwrap();
        let kept = || -> Vec<(String, Duration)> {
            let channels = lock(&peers.channels);
            let kept = channels.iter();
            kept.map(|(address, kept)| (address.clone(), kept.lost_after))
                .collect()
        };
        let expected = |lost_after| [1, 2].map(|n| (format!("http://worker-{n}:7801"), lost_after));
        assert_eq!(kept(), expected(LOST_AFTER));
        let longer = 2 * LOST_AFTER;
        peers.prepare(&epoch(&[1, 2]), longer).await.unwrap();
        assert_eq!(kept(), expected(longer));
    }

    #[tokio::test]
    async fn all_peers_with_invalid_addresses_are_named() {
        let peers = [
            peer("w0", "worker-0:7801"),
            peer("w1", "http://worker-1:7801"),
            peer("w2", "https://worker-2:7801"),
        ];
        let invalid = GrpcPeers::new(None).prepare(&peers, LOST_AFTER).await;
        let invalid = invalid.unwrap_err();
        assert_eq!(invalid.keys().collect::<Vec<_>>(), ["w0", "w2"]);
        assert!(
            invalid["w0"].contains("write http://HOST:PORT"),
            "{invalid:?}"
        );
    }
}
