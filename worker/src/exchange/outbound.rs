//! The sending side of the exchange of children (candidate wells for the next depth) with peers, the other workers.
//! Each child goes to the worker that owns the child's shard (a range of well hashes).

use super::{ShardWells, Traffic};
use crate::error::OrderError;
use crate::link::PeerLink;
use crate::lock;
use hatebeam_env::Env;
use hatebeam_game::Geometry;
use hatebeam_proto::batch::{self, BATCH_CHILDREN};
use hatebeam_proto::messages::{Batch, FrontierPart, Peer, PeerRequest, StreamHeader};
use hatebeam_search::{Cancelled, Candidates, ChildSink, Node, Origin, Owner, REMOTE_BATCH};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tracing::Span;

/// Parameters of the streams to open for one attempt at a depth.
pub(crate) struct Outbound<'a> {
    pub(crate) env: &'a Env,
    pub(crate) link: &'a Arc<dyn PeerLink>,
    pub(crate) peers: &'a [Peer],
    /// Header of all streams. Each stream replaces the secret with the one that this worker shares with the peer.
    pub(crate) header: StreamHeader,
    pub(crate) owners: &'a Arc<Vec<Owner>>,
    pub(crate) geometry: Geometry,
    pub(crate) compress: bool,
    /// Maximum number of batches that are queued for a peer. Must be at least 1.
    pub(crate) queued_batches: usize,
    /// The candidates of the attempt. The floor of a peer's shard is the lowest rank (score with tie-breaks) that the
    /// shard still accepts. It is raised to the value that the peer reports.
    pub(crate) candidates: &'a Arc<Candidates>,
    pub(crate) traffic: &'a Arc<Traffic>,
}

/// The streams to all peers for one attempt at a depth.
pub(crate) struct PeerStreams {
    geometry: Geometry,
    compress: bool,
    streams: Vec<PeerStream>,
    /// Number of bytes sent to all peers.
    bytes: AtomicU64,
    /// Total microseconds for which search threads have waited for full queues.
    stalled: AtomicU64,
    traffic: Arc<Traffic>,
    /// Tracing span of the depth, for log messages from the search threads.
    span: Span,
    tasks: JoinSet<Result<(), OrderError>>,
}

#[derive(Default)]
struct Outgoing {
    children: Vec<Node>,
    /// The origin of each child. Empty if the run ignores the loop rule.
    origins: Vec<Origin>,
}

struct PeerStream {
    buffer: Mutex<Outgoing>,
    queue: mpsc::Sender<PeerRequest>,
    name: String,
    /// Number of children sent.
    sent: Arc<AtomicU64>,
}

impl PeerStreams {
    /// Opens a stream to each peer. Returns the streams, and for each stream a handle that aborts it.
    pub(crate) fn open(outbound: Outbound<'_>) -> (PeerStreams, Vec<AbortHandle>) {
        let mut tasks = JoinSet::new();
        let mut handles = Vec::new();
        let mut streams = Vec::new();
        for (index, peer) in outbound.peers.iter().enumerate() {
            let (queue, requests) = mpsc::channel(outbound.queued_batches);
            let header = StreamHeader {
                secret: peer.send_secret,
                ..outbound.header.clone()
            };
            // The queue is empty, so this cannot fail.
            let _ = queue.try_send(PeerRequest::Header(header));
            let sent = Arc::new(AtomicU64::new(0));
            let task = StreamTask {
                link: Arc::clone(outbound.link),
                peer: peer.clone(),
                owner: Owner::Peer(index as u16),
                owners: Arc::clone(outbound.owners),
                candidates: Arc::clone(outbound.candidates),
                sent: Arc::clone(&sent),
            };
            handles.push(tasks.spawn(outbound.env.guard(task.run(requests))));
            streams.push(PeerStream {
                buffer: Mutex::default(),
                queue,
                name: peer.name.clone(),
                sent,
            });
        }
        *lock(&outbound.traffic.queues) = streams
            .iter()
            .map(|stream| stream.queue.downgrade())
            .collect();
        let streams = PeerStreams {
            geometry: outbound.geometry,
            compress: outbound.compress,
            streams,
            bytes: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            traffic: Arc::clone(outbound.traffic),
            span: Span::current(),
            tasks,
        };
        (streams, handles)
    }

    fn push(&self, stream: &PeerStream, outgoing: Outgoing) -> Result<(), Cancelled> {
        let Outgoing { children, origins } = outgoing;
        let batch = batch::pack(self.geometry, &children, self.compress);
        let (count, bytes) = (children.len() as u64, batch.len() as u64);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        stream.sent.fetch_add(count, Ordering::Relaxed);
        let metrics = &self.traffic.metrics;
        metrics.sent.add(count);
        metrics.sent_bytes.add(bytes);
        metrics.batches_sent.add(1);
        let request = PeerRequest::Batch(Batch {
            children: batch.into(),
            origins,
        });
        self.enqueue(stream, request).map_err(|()| {
            tracing::debug!(parent: &self.span, peer = %stream.name, "lost stream to peer");
            Cancelled
        })
    }

    /// Puts a batch into the stream's queue. Blocks while the queue is full.
    fn enqueue(&self, stream: &PeerStream, request: PeerRequest) -> Result<(), ()> {
        let request = match stream.queue.try_send(request) {
            Err(TrySendError::Full(request)) => request,
            sent => return sent.map_err(|_| ()),
        };
        let began = Instant::now();
        let sent = stream.queue.blocking_send(request);
        let metrics = &self.traffic.metrics;
        metrics.stalls.add(1);
        let stalled = began.elapsed();
        metrics.stalled.add(stalled);
        let micros = stalled.as_micros() as u64;
        self.stalled.fetch_add(micros, Ordering::Relaxed);
        sent.map_err(|_| ())
    }

    /// Returns the total time for which search threads have waited for full queues.
    pub(crate) fn stalled(&self) -> Duration {
        Duration::from_micros(self.stalled.load(Ordering::Relaxed))
    }

    /// Sends the children that are left in the buffers. This function may block, so it must not be called from an async
    /// task.
    pub(crate) fn flush(&self) -> Result<(), Cancelled> {
        for stream in &self.streams {
            let rest = std::mem::take(&mut *lock(&stream.buffer));
            if !rest.children.is_empty() {
                self.push(stream, rest)?;
            }
        }
        Ok(())
    }

    /// Sends this worker's part of the frontier to all peers. An error ends the stream, and
    /// [`failed`](PeerStreams::failed) returns it.
    pub(crate) async fn send_frontier(&self, shards: &[ShardWells]) {
        for stream in &self.streams {
            for part in parts_of(shards) {
                if stream
                    .queue
                    .send(PeerRequest::Frontier(part))
                    .await
                    .is_err()
                {
                    break;
                }
            }
        }
    }

    /// Waits until a stream fails, and returns its error.
    pub(crate) async fn failed(&mut self) -> OrderError {
        while let Some(task) = self.tasks.join_next().await {
            if let Err(error) = ended(task) {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Closes the streams, waits until every peer has received all children, and returns the number of bytes sent.
    pub(crate) async fn finish(mut self) -> Result<u64, OrderError> {
        self.close().await?;
        Ok(self.bytes.load(Ordering::Relaxed))
    }

    /// Closes the streams, and returns the error of a failed stream, or `None` if no stream failed.
    pub(crate) async fn failure(mut self) -> Option<OrderError> {
        self.close().await.err()
    }

    async fn close(&mut self) -> Result<(), OrderError> {
        self.streams.clear();
        while let Some(task) = self.tasks.join_next().await {
            ended(task)?;
        }
        Ok(())
    }
}

/// Returns the result of the task of a stream.
fn ended(task: Result<Result<(), OrderError>, JoinError>) -> Result<(), OrderError> {
    match task {
        Ok(ended) => ended,
        Err(error) if error.is_cancelled() => Err(OrderError::superseded("the epoch has ended")),
        Err(error) => Err(OrderError::Worker(error.to_string())),
    }
}

/// Divides the wells of the shards into messages. The last message may be empty.
fn parts_of(shards: &[ShardWells]) -> impl Iterator<Item = FrontierPart> {
    let parts = (0..)
        .zip(shards)
        .flat_map(|(shard, ShardWells { wells, parents })| {
            let parts = wells
                .chunks(BATCH_CHILDREN)
                .zip(parents.chunks(BATCH_CHILDREN));
            parts.map(move |(wells, parents)| FrontierPart {
                shard,
                wells: wells.to_vec(),
                parents: parents.to_vec(),
                last: false,
            })
        });
    let last = FrontierPart {
        shard: 0,
        wells: Vec::new(),
        parents: Vec::new(),
        last: true,
    };
    parts.chain(std::iter::once(last))
}

impl ChildSink for PeerStreams {
    fn send(&self, peer: u16, children: &[Node], origins: &[Origin]) -> Result<(), Cancelled> {
        let stream = &self.streams[usize::from(peer)];
        let full = {
            let mut buffer = lock(&stream.buffer);
            buffer.children.extend_from_slice(children);
            buffer.origins.extend_from_slice(origins);
            let is_full = buffer.children.len() >= BATCH_CHILDREN;
            let empty = || Outgoing {
                children: Vec::with_capacity(BATCH_CHILDREN + REMOTE_BATCH),
                origins: Vec::new(),
            };
            is_full.then(|| std::mem::replace(&mut *buffer, empty()))
        };
        match full {
            Some(batch) => self.push(stream, batch),
            None => Ok(()),
        }
    }
}

/// The task that sends requests to one peer and applies the floors from its responses.
struct StreamTask {
    link: Arc<dyn PeerLink>,
    peer: Peer,
    /// The peer as it appears in `owners`.
    owner: Owner,
    owners: Arc<Vec<Owner>>,
    candidates: Arc<Candidates>,
    sent: Arc<AtomicU64>,
}

impl StreamTask {
    async fn run(self, requests: mpsc::Receiver<PeerRequest>) -> Result<(), OrderError> {
        self.exchange(requests).await.map_err(|reason| {
            OrderError::PeersUnreachable(BTreeMap::from([(self.peer.name.clone(), reason)]))
        })
    }

    /// Runs the stream until all requests are sent and the peer has confirmed that it received all children.
    async fn exchange(&self, requests: mpsc::Receiver<PeerRequest>) -> Result<(), String> {
        let responses = self.link.open(&self.peer, requests).await;
        let mut responses = responses.map_err(|error| error.reason)?;
        let mut received = None;
        while let Some(response) = responses.next().await {
            let response = response.map_err(|error| error.reason)?;
            for floor in &response.floors {
                let shard = floor.shard as usize;
                // A floor from any other worker could drop children that the owner still accepts.
                if self.owners.get(shard) != Some(&self.owner) {
                    return Err(format!(
                        "it sent a floor for shard {shard}, which it does not own"
                    ));
                }
                self.candidates.raise_floor(shard, floor.floor);
            }
            received = response.received.or(received);
        }
        let sent = self.sent.load(Ordering::Relaxed);
        match received {
            Some(received) if received == sent => Ok(()),
            Some(received) => Err(format!("it received {received} of {sent} children")),
            None => Err("it closed the stream before it confirmed the children".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::prepare;
    use hatebeam_proto::messages::{PeerResponse, ShardFloor};
    use hatebeam_proto::{BoxStream, LinkError};
    use hatebeam_search::{DEFAULT_SIGMAS, ShardLayout};

    /// A peer that sends one floor and confirms that it has received no children.
    struct FloorSender(ShardFloor);

    #[tonic::async_trait]
    impl PeerLink for FloorSender {
        async fn prepare(&self, _: &[Peer], _: Duration) -> Result<(), BTreeMap<String, String>> {
            Ok(())
        }

        async fn open(
            &self,
            _: &Peer,
            _: mpsc::Receiver<PeerRequest>,
        ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError> {
            let response = PeerResponse {
                floors: vec![self.0],
                received: Some(0),
            };
            Ok(Box::pin(tokio_stream::iter([Ok(response)])))
        }
    }

    #[tokio::test]
    async fn floors_are_accepted_only_from_the_owner_of_the_shard() {
        let owners = [Owner::Here, Owner::Peer(0), Owner::Peer(1), Owner::Peer(0)];
        let layout = ShardLayout::new(1000, owners.len());
        for shard in 0..owners.len() + 1 {
            let candidates = Arc::new(Candidates::new(layout, DEFAULT_SIGMAS));
            let floor = ShardFloor {
                shard: shard as u32,
                floor: 77,
            };
            let task = StreamTask {
                link: Arc::new(FloorSender(floor)),
                peer: prepare(1000, &["w0"]).members.remove(0),
                owner: Owner::Peer(0),
                owners: Arc::new(owners.to_vec()),
                candidates: Arc::clone(&candidates),
                sent: Arc::default(),
            };
            let (_queue, requests) = mpsc::channel(1);
            let exchanged = task.exchange(requests).await;
            let is_owner = owners.get(shard) == Some(&Owner::Peer(0));
            let refusal = format!("it sent a floor for shard {shard}, which it does not own");
            let expected = if is_owner { Ok(()) } else { Err(refusal) };
            assert_eq!(exchanged, expected);
            for other in 0..owners.len() {
                let raised = if is_owner && other == shard { 77 } else { 0 };
                assert_eq!(candidates.floor(other), raised, "shard {other}");
            }
        }
    }
}
