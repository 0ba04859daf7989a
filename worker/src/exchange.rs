//! The exchange of children between workers.
//!
//! A worker has a stream to each other worker while a depth is expanded. What a stream holds is bounded: a
//! buffer of one batch, [`QUEUED_BATCHES`] batches that wait, and the windows of HTTP/2; whoever has more waits, so
//! that a slow worker slows the others down rather than filling their memory. Taking children in never
//! waits for sending any, so that nobody waits in a circle.

use crate::executor::lock;
use bytes::Bytes;
use hatebeam_game::Geometry;
use hatebeam_metrics::WorkerMetrics;
use hatebeam_net::{MAX_MESSAGE, explain};
use hatebeam_proto::batch::{self, BATCH_CHILDREN, FLOOR_INTERVAL, QUEUED_BATCHES};
use hatebeam_proto::v1::peers_client::PeersClient;
use hatebeam_proto::v1::peers_server::Peers;
use hatebeam_proto::v1::{SendRequest, SendResponse, StreamHeader};
use hatebeam_search::{Cancelled, Candidates, ChildSink, Node, REMOTE_BATCH, SortBuffer};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// How long a stream waits for its depth to be begun here, which the coordinator tells all at once.
const WAIT: Duration = Duration::from_secs(30);

/// What is taken in at present.
#[derive(Clone)]
pub(crate) struct InboundExchange {
    pub(crate) run: String,
    pub(crate) epoch: u64,
    pub(crate) depth: u32,
    pub(crate) attempt: u32,
    pub(crate) geometry: Geometry,
    /// Nothing, before the depth is begun and after it was selected.
    pub(crate) candidates: Option<Arc<Candidates>>,
    /// The shards that are here.
    pub(crate) owned: Arc<Vec<bool>>,
    /// The names of the others.
    pub(crate) peers: Arc<Vec<String>>,
}

/// What goes through, counted.
pub(crate) struct Traffic {
    pub(crate) metrics: WorkerMetrics,
    /// Of the streams_to_peers that are open; perhaps of some that were.
    queues: Mutex<Vec<mpsc::WeakSender<SendRequest>>>,
}

impl Traffic {
    pub(crate) fn new(metrics: WorkerMetrics) -> Arc<Traffic> {
        Arc::new(Traffic {
            metrics,
            queues: Mutex::default(),
        })
    }

    /// Batches that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        let queues = lock(&self.queues);
        let open = queues.iter().filter_map(mpsc::WeakSender::upgrade);
        open.map(|queue| queue.max_capacity() - queue.capacity())
            .sum()
    }
}

/// A link to a peer.
struct PeerStream {
    buffer: Mutex<Vec<Node>>,
    queue: mpsc::Sender<SendRequest>,
    name: String,
    sent: Arc<AtomicU64>,
}

/// The streams_to_peers to all peers for one depth.
pub(crate) struct PeerStreams {
    geometry: Geometry,
    compress: bool,
    streams_to_peers: Vec<PeerStream>,
    bytes: AtomicU64,
    traffic: Arc<Traffic>,
    /// The depth, for what is logged on threads that know nothing of it.
    span: Span,
    streams: JoinSet<Result<(), PeerError>>,
}

/// A peer that cannot be reached.
#[derive(Clone, Debug)]
pub(crate) struct PeerError {
    pub(crate) peer: String,
    pub(crate) reason: String,
}

impl PeerStreams {
    /// Opens a link to each of these peers. The handles end the streams, and with them the streams_to_peers.
    pub(crate) fn open(
        peers: &[(String, Channel)],
        header: &StreamHeader,
        (geometry, compress): (Geometry, bool),
        candidates: &Arc<Candidates>,
        traffic: &Arc<Traffic>,
    ) -> (PeerStreams, Vec<AbortHandle>) {
        let mut streams = JoinSet::new();
        let mut handles = Vec::new();
        let streams_to_peers = peers.iter().map(|(name, channel)| {
            let (queue, requests) = mpsc::channel(QUEUED_BATCHES);
            let first = SendRequest {
                header: Some(header.clone()),
                batch: Bytes::new(),
            };
            // There is room for the first.
            let _ = queue.try_send(first);
            let sent = Arc::new(AtomicU64::new(0));
            let stream = run_stream(
                channel.clone(),
                requests,
                Arc::clone(candidates),
                Arc::clone(&sent),
            );
            let peer = name.clone();
            let handle = streams
                .spawn(async move { stream.await.map_err(|reason| PeerError { peer, reason }) });
            handles.push(handle);
            PeerStream {
                buffer: Mutex::default(),
                queue,
                name: name.clone(),
                sent,
            }
        });
        let streams_to_peers: Vec<PeerStream> = streams_to_peers.collect();
        *lock(&traffic.queues) = streams_to_peers
            .iter()
            .map(|link| link.queue.downgrade())
            .collect();
        let streams_to_peers = PeerStreams {
            geometry,
            compress,
            streams_to_peers,
            bytes: AtomicU64::new(0),
            traffic: Arc::clone(traffic),
            span: Span::current(),
            streams,
        };
        (streams_to_peers, handles)
    }

    fn push(&self, link: &PeerStream, children: &[Node]) -> Result<(), Cancelled> {
        let batch = batch::pack(self.geometry, children, self.compress);
        let (count, bytes) = (children.len() as u64, batch.len() as u64);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        link.sent.fetch_add(count, Ordering::Relaxed);
        let metrics = &self.traffic.metrics;
        metrics.sent.add(count);
        metrics.sent_bytes.add(bytes);
        metrics.batches_sent.add(1);
        let request = SendRequest {
            header: None,
            batch: batch.into(),
        };
        self.hand_over(link, request).map_err(|()| {
            tracing::debug!(parent: &self.span, peer = %link.name, "the link is gone");
            Cancelled
        })
    }

    /// Puts a batch where it waits to be sent, and waits while that is full.
    fn hand_over(&self, link: &PeerStream, request: SendRequest) -> Result<(), ()> {
        let request = match link.queue.try_send(request) {
            Err(TrySendError::Full(request)) => request,
            sent => return sent.map_err(|_| ()),
        };
        let began = Instant::now();
        let sent = link.queue.blocking_send(request);
        let metrics = &self.traffic.metrics;
        metrics.stalls.add(1);
        metrics.stalled.add(began.elapsed());
        sent.map_err(|_| ())
    }

    /// Sends what is left. Not to be called on a thread that drives a runtime.
    pub(crate) fn flush(&self) -> Result<(), Cancelled> {
        for link in &self.streams_to_peers {
            let rest = std::mem::take(&mut *lock(&link.buffer));
            if !rest.is_empty() {
                self.push(link, &rest)?;
            }
        }
        Ok(())
    }

    /// Ends the streams_to_peers, once all peers have taken everything in; the bytes that were sent.
    pub(crate) async fn finish(mut self) -> Result<u64, PeerError> {
        self.streams_to_peers.clear();
        self.end().await?;
        Ok(self.bytes.load(Ordering::Relaxed))
    }

    /// Why a link was lost.
    pub(crate) async fn lost(mut self) -> Option<PeerError> {
        self.streams_to_peers.clear();
        self.end().await.err()
    }

    async fn end(&mut self) -> Result<(), PeerError> {
        while let Some(stream) = self.streams.join_next().await {
            match stream {
                Ok(ended) => ended?,
                Err(error) => {
                    return Err(PeerError {
                        peer: String::new(),
                        reason: error.to_string(),
                    });
                }
            }
        }
        Ok(())
    }
}

impl ChildSink for PeerStreams {
    fn send(&self, peer: u16, children: &[Node]) -> Result<(), Cancelled> {
        let link = &self.streams_to_peers[usize::from(peer)];
        let full = {
            let mut buffer = lock(&link.buffer);
            buffer.extend_from_slice(children);
            let is_full = buffer.len() >= BATCH_CHILDREN;
            is_full.then(|| {
                std::mem::replace(
                    &mut *buffer,
                    Vec::with_capacity(BATCH_CHILDREN + REMOTE_BATCH),
                )
            })
        };
        match full {
            Some(batch) => self.push(link, &batch),
            None => Ok(()),
        }
    }
}

/// Carries requests to a peer until there are no more and all have arrived, and its floors back.
async fn run_stream(
    channel: Channel,
    requests: mpsc::Receiver<SendRequest>,
    candidates: Arc<Candidates>,
    sent: Arc<AtomicU64>,
) -> Result<(), String> {
    let mut client = PeersClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let answers = client.send(ReceiverStream::new(requests)).await;
    let mut answers = answers.map_err(|status| explain(&status))?.into_inner();
    let shards = candidates.layout().shards();
    let mut received = None;
    while let Some(answer) = answers.message().await.map_err(|status| explain(&status))? {
        for (&shard, &floor) in answer.shards.iter().zip(&answer.floors) {
            if (shard as usize) < shards {
                candidates.raise_floor(shard as usize, floor);
            }
        }
        received = answer.received.or(received);
    }
    let sent = sent.load(Ordering::Relaxed);
    match received {
        Some(received) if received == sent => Ok(()),
        Some(received) => Err(format!("{received} of {sent} children arrived")),
        None => Err("it ended the stream without a word".to_owned()),
    }
}

/// The side that takes children in.
pub(crate) struct PeerService {
    pub(crate) inbound: watch::Receiver<Option<InboundExchange>>,
    pub(crate) traffic: Arc<Traffic>,
}

impl PeerService {
    /// What is taken in under this header, as soon as it is.
    async fn find(
        &self,
        header: &StreamHeader,
    ) -> Result<(InboundExchange, Arc<Candidates>), Status> {
        let mut inbound = self.inbound.clone();
        let found = tokio::time::timeout(WAIT, async {
            loop {
                if let Some(here) = &*inbound.borrow_and_update()
                    && let Some(found) = answer_to(header, here)
                {
                    return found;
                }
                if inbound.changed().await.is_err() {
                    return Err(Status::unavailable("this worker is going"));
                }
            }
        });
        found.await.unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(format!(
                "epoch {} depth {} was not begun here within {} seconds",
                header.epoch,
                header.depth,
                WAIT.as_secs()
            )))
        })
    }
}

/// What there is to say to a header: nothing yet, or no, or yes.
fn answer_to(
    header: &StreamHeader,
    here: &InboundExchange,
) -> Option<Result<(InboundExchange, Arc<Candidates>), Status>> {
    let theirs = (header.epoch, header.depth, header.attempt);
    let refuse = |reason: String| Some(Err(Status::failed_precondition(reason)));
    match theirs.cmp(&(here.epoch, here.depth, here.attempt)) {
        std::cmp::Ordering::Greater => None,
        std::cmp::Ordering::Less => refuse(format!(
            "epoch {} depth {} is over: here it is epoch {} depth {}",
            header.epoch, header.depth, here.epoch, here.depth
        )),
        std::cmp::Ordering::Equal if header.run != here.run => refuse(format!(
            "the run here is {}, not {:?}",
            here.run, header.run
        )),
        std::cmp::Ordering::Equal if !here.peers.contains(&header.from) => Some(Err(
            Status::permission_denied(format!("{:?} is none of this epoch's workers", header.from)),
        )),
        std::cmp::Ordering::Equal => here
            .candidates
            .clone()
            .map(|candidates| Ok((here.clone(), candidates))),
    }
}

#[tonic::async_trait]
impl Peers for PeerService {
    type SendStream = Pin<Box<dyn Stream<Item = Result<SendResponse, Status>> + Send>>;

    async fn send(
        &self,
        request: Request<Streaming<SendRequest>>,
    ) -> Result<Response<Self::SendStream>, Status> {
        let mut requests = request.into_inner();
        let (answers, stream) = mpsc::channel(QUEUED_BATCHES);
        let service = PeerService {
            inbound: self.inbound.clone(),
            traffic: Arc::clone(&self.traffic),
        };
        // The answer begins at once: the other side waits for its head before it sends on.
        let span = tracing::info_span!(
            "inbound",
            run = Empty,
            epoch = Empty,
            depth = Empty,
            from = Empty
        );
        let taking_in = async move {
            if let Err(status) = service.take_in(&mut requests, &answers).await {
                service.traffic.metrics.refused.add(1);
                tracing::warn!(reason = status.message(), "children of a peer are refused");
                let _ = answers.send(Err(status)).await;
            }
        };
        tokio::spawn(taking_in.instrument(span));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

impl PeerService {
    async fn take_in(
        &self,
        requests: &mut Streaming<SendRequest>,
        answers: &mpsc::Sender<Result<SendResponse, Status>>,
    ) -> Result<(), Status> {
        let first = tokio::time::timeout(WAIT, requests.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no header came"))??;
        let header = first.and_then(|first| first.header);
        let header = header.ok_or_else(|| Status::invalid_argument("the header is missing"))?;
        let (run, from) = (header.run.as_str(), header.from.as_str());
        Span::current()
            .record("run", run)
            .record("epoch", header.epoch)
            .record("depth", header.depth)
            .record("from", from);
        let (inbound, candidates) = self.find(&header).await?;
        let layout = candidates.layout();
        let mut work = (Vec::new(), SortBuffer::default());
        let mut received = 0;
        let mut telling = tokio::time::interval(FLOOR_INTERVAL);
        telling.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut now = self.inbound.clone();
        let mut is_over = std::pin::pin!(async move {
            let other = |now: &Option<InboundExchange>| {
                let now = now.as_ref().map(|now| (now.epoch, now.depth, now.attempt));
                now != Some((inbound.epoch, inbound.depth, inbound.attempt))
            };
            // If nobody says so any more, it is over as well.
            let _ = now.wait_for(other).await;
        });
        loop {
            // A peer that has gone silent must not hold on to the candidates of a depth that is over.
            let request = tokio::select! {
                biased;
                () = &mut is_over => return Err(Status::failed_precondition("the depth is over")),
                _ = telling.tick() => {
                    // Nobody waits for it: a sender that does not listen is told less.
                    let _ = answers.try_send(Ok(floors(&inbound, &candidates, None)));
                    continue;
                }
                request = requests.message() => request?,
            };
            let Some(request) = request else {
                break;
            };
            let (here, into) = (inbound.clone(), Arc::clone(&candidates));
            let bytes = request.batch.len() as u64;
            let taken = tokio::task::spawn_blocking(move || {
                let (nodes, sorted) = &mut work;
                batch::unpack(here.geometry, &request.batch, nodes)
                    .map_err(|error| Status::invalid_argument(error.to_string()))?;
                let stray = nodes
                    .iter()
                    .map(|node| layout.shard_of(&node.well))
                    .find(|&shard| !here.owned[shard]);
                if let Some(shard) = stray {
                    return Err(Status::invalid_argument(format!(
                        "shard {shard} is not here"
                    )));
                }
                into.offer_nodes(nodes, sorted);
                Ok((nodes.len() as u64, work))
            });
            let (count, back) = taken
                .await
                .map_err(|error| Status::internal(error.to_string()))??;
            work = back;
            received += count;
            let metrics = &self.traffic.metrics;
            metrics.received.add(count);
            metrics.received_bytes.add(bytes);
            metrics.batches_received.add(1);
        }
        let last = floors(&inbound, &candidates, Some(received));
        let _ = answers.send(Ok(last)).await;
        Ok(())
    }
}

/// The floors of the shards that are here.
fn floors(
    inbound: &InboundExchange,
    candidates: &Candidates,
    received: Option<u64>,
) -> SendResponse {
    let mut answer = SendResponse {
        received,
        ..SendResponse::default()
    };
    for (shard, _) in inbound.owned.iter().enumerate().filter(|(_, here)| **here) {
        let floor = candidates.floor(shard);
        if floor > 0 {
            answer.shards.push(shard as u32);
            answer.floors.push(floor);
        }
    }
    answer
}
