//! The receiving side of the exchange of children (candidate wells for the next depth) between workers. A worker
//! receives the children of the shards (ranges of well hashes) that it owns.

use super::spot_check::{OriginSamples, Sample, Scorer, SpotCheck};
use super::{ChildQuota, FrontierGather, Traffic};
use hatebeam_env::{Env, watch};
use hatebeam_game::Geometry;
use hatebeam_proto::batch::{self, FLOOR_INTERVAL, QUEUED_BATCHES};
use hatebeam_proto::messages::{
    Batch, FrontierPart, PeerRequest, PeerResponse, Secret, ShardFloor, StreamHeader,
};
use hatebeam_proto::{BoxStream, LinkError};
use hatebeam_search::{Candidates, Edges, Node, Past, SortBuffer};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// Maximum time to wait for a stream's header, and then for its attempt to begin on this worker. The coordinator orders
/// all workers to begin at the same time, so the wait is normally short.
const WAIT: Duration = Duration::from_secs(30);

/// The epoch (a period with a fixed set of workers), depth and attempt (one execution of a depth) of a stream. A
/// greater position supersedes a lesser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    pub(crate) depth: u32,
    pub(crate) attempt: u32,
}

/// The current attempt, whose children this worker accepts.
#[derive(Clone)]
struct Inbound {
    position: Position,
    epoch: Arc<EpochExchange>,
    /// Destination of received children. `None` before the epoch's first attempt, and after the first cut of a depth has
    /// been applied.
    candidates: Option<Arc<Candidates>>,
    /// `None` if the run ignores the loop rule.
    loops: Option<InboundLoops>,
    /// Whether the epoch has ended.
    is_closed: bool,
}

/// Destinations of what peers send only if the run applies the loop rule.
#[derive(Clone)]
pub(crate) struct InboundLoops {
    pub(crate) edges: Arc<Edges>,
    /// `None` if the frontier is known.
    pub(crate) gather: Option<Arc<FrontierGather>>,
    /// Number of wells of each peer in the frontier, if it is known.
    pub(crate) wells_of_peers: Arc<BTreeMap<String, u64>>,
    pub(crate) quota: Arc<ChildQuota>,
    /// Children whose origins are checked when the frontier of all workers is known.
    pub(crate) samples: Arc<OriginSamples>,
    /// Number of wells in the frontier of all workers.
    pub(crate) wells: u64,
}

/// Parameters of the exchange that stay constant for an epoch.
pub(crate) struct EpochExchange {
    pub(crate) run: String,
    pub(crate) epoch: u64,
    /// Depth at which the epoch begins.
    pub(crate) depth: u32,
    pub(crate) geometry: Geometry,
    /// For each shard, whether this worker owns it.
    pub(crate) owned: Arc<Vec<bool>>,
    /// Secrets that the other workers present, by worker name.
    pub(crate) peers: BTreeMap<String, Secret>,
    pub(crate) spot_check: SpotCheck,
}

/// Handle that begins and ends epochs and attempts on the receiving side.
pub(crate) struct InboundControl {
    current: watch::Sender<Option<Inbound>>,
}

impl InboundControl {
    /// Begins an epoch. Streams for its first depth wait until [`open`](InboundControl::open) is called.
    pub(crate) fn begin_epoch(&self, epoch: EpochExchange) {
        self.current.send_replace(Some(Inbound {
            position: Position {
                epoch: epoch.epoch,
                depth: epoch.depth,
                attempt: 0,
            },
            epoch: Arc::new(epoch),
            candidates: None,
            loops: None,
            is_closed: false,
        }));
    }

    /// Begins an attempt at a depth. Children from its streams are added to `candidates`. Streams of earlier attempts
    /// end. Does nothing if another epoch has begun.
    pub(crate) fn open(
        &self,
        position: Position,
        candidates: &Arc<Candidates>,
        loops: Option<InboundLoops>,
    ) {
        self.modify(position.epoch, |inbound| {
            inbound.position = position;
            inbound.candidates = Some(Arc::clone(candidates));
            inbound.loops = loops;
        });
    }

    /// Drops this side's reference to the candidates of the current depth. Streams that are still open keep their
    /// references until they end. Does nothing if another epoch than `epoch` has begun.
    pub(crate) fn release_candidates(&self, epoch: u64) {
        self.modify(epoch, |inbound| {
            inbound.candidates = None;
            inbound.loops = None;
        });
    }

    /// Ends the epoch. Its streams end, and new ones are refused.
    pub(crate) fn close(&self) {
        self.current.send_if_modified(|inbound| {
            let Some(inbound) = inbound else {
                return false;
            };
            inbound.candidates = None;
            inbound.loops = None;
            inbound.is_closed = true;
            true
        });
    }

    /// Returns a function that checks the sampled origins of the children that have arrived. `past` are the games that lead to
    /// their parents. The function does nothing if the run ignores the loop rule.
    pub(crate) fn origin_check(&self, past: Arc<Past>) -> impl FnOnce() + Send + use<> {
        let current = self.current.borrow().clone();
        move || {
            if let Some(Inbound { epoch, loops, .. }) = current
                && let Some(loops) = loops
            {
                epoch.spot_check.check_origins(&past, &loops.samples);
            }
        }
    }

    /// Returns the peers whose spot check has failed in the current epoch, each with the reason.
    pub(crate) fn faults(&self) -> BTreeMap<String, String> {
        let current = self.current.borrow();
        let inbound = current.as_ref();
        inbound.map_or_else(BTreeMap::new, |inbound| inbound.epoch.spot_check.faults())
    }

    fn modify(&self, epoch: u64, modify: impl FnOnce(&mut Inbound)) {
        self.current.send_if_modified(|inbound| {
            let inbound = inbound.as_mut();
            let inbound = inbound.filter(|inbound| inbound.position.epoch == epoch);
            inbound.map(modify).is_some()
        });
    }
}

/// The receiving side of the exchange. Clones share the same state.
#[derive(Clone)]
pub struct InboundExchange {
    env: Env,
    current: watch::Receiver<Option<Inbound>>,
    traffic: Arc<Traffic>,
}

impl std::fmt::Debug for InboundExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboundExchange").finish_non_exhaustive()
    }
}

/// The attempt of an accepted stream.
#[derive(Clone)]
struct Accepted {
    position: Position,
    epoch: Arc<EpochExchange>,
    candidates: Arc<Candidates>,
    loops: Option<InboundLoops>,
}

/// Buffers of a stream, reused for every batch.
#[derive(Default)]
struct Buffers {
    nodes: Vec<Node>,
    sorted: SortBuffer,
    scorer: Option<Scorer>,
}

impl InboundExchange {
    pub(crate) fn new(env: Env, traffic: Arc<Traffic>) -> (InboundControl, InboundExchange) {
        let (sender, current) = watch::channel(None);
        let exchange = InboundExchange {
            env,
            current,
            traffic,
        };
        (InboundControl { current: sender }, exchange)
    }

    /// Receives the children of one stream. The first request must be the header. The responses contain the floor of
    /// each of this worker's shards: the lowest rank (score with tie-breaks) that the shard still accepts. The last
    /// response also contains the number of children received.
    pub fn serve(
        &self,
        requests: BoxStream<Result<PeerRequest, LinkError>>,
    ) -> BoxStream<Result<PeerResponse, LinkError>> {
        let (responses, stream) = mpsc::channel(QUEUED_BATCHES);
        let span = tracing::info_span!(
            "inbound",
            run = Empty,
            epoch = Empty,
            depth = Empty,
            from = Empty
        );
        let exchange = self.clone();
        let serving = async move {
            if let Err(error) = exchange.receive(requests, &responses).await {
                exchange.traffic.metrics.refused.add(1);
                tracing::warn!(reason = error.reason, "ended stream from peer");
                let _ = responses.send(Err(error)).await;
            }
        };
        self.env.spawn(serving.instrument(span));
        Box::pin(ReceiverStream::new(stream))
    }

    async fn receive(
        &self,
        mut requests: BoxStream<Result<PeerRequest, LinkError>>,
        responses: &mpsc::Sender<Result<PeerResponse, LinkError>>,
    ) -> Result<(), LinkError> {
        let first = tokio::time::timeout(WAIT, requests.next()).await;
        let first = first.map_err(|_| LinkError::transient("timed out waiting for the header"))?;
        let Some(PeerRequest::Header(header)) = first.transpose()? else {
            return Err(LinkError::bad_message(
                "the stream does not begin with a header",
            ));
        };
        Span::current()
            .record("run", header.run.as_str())
            .record("epoch", header.epoch)
            .record("depth", header.depth)
            .record("from", header.from.as_str());
        let accepted = self.accept(&header).await?;
        let received = self
            .receive_batches(requests, responses, &accepted, &header.from)
            .await?;
        let last = accepted.floors(Some(received));
        // The peer may never read the response, so the tables of the attempt must not stay in memory until then.
        drop(accepted);
        let _ = responses.send(Ok(last)).await;
        Ok(())
    }

    /// Waits until the attempt named in a header begins, and accepts or refuses the stream.
    async fn accept(&self, header: &StreamHeader) -> Result<Accepted, LinkError> {
        let mut current = self.current.clone();
        let accepted = tokio::time::timeout(WAIT, async {
            loop {
                if let Some(inbound) = &*current.borrow_and_update()
                    && let Some(accepted) = inbound.accept(header)
                {
                    return accepted;
                }
                if current.changed().await.is_err() {
                    return Err(LinkError::transient("this worker is shutting down"));
                }
            }
        });
        accepted.await.unwrap_or_else(|_| {
            Err(LinkError::transient(format!(
                "attempt {} at depth {} of epoch {} did not begin within {} seconds",
                header.attempt,
                header.depth,
                header.epoch,
                WAIT.as_secs()
            )))
        })
    }

    /// Receives batches until the sender closes the stream, and returns the number of children received.
    async fn receive_batches(
        &self,
        mut requests: BoxStream<Result<PeerRequest, LinkError>>,
        responses: &mpsc::Sender<Result<PeerResponse, LinkError>>,
        accepted: &Accepted,
        from: &str,
    ) -> Result<u64, LinkError> {
        let mut ticks = tokio::time::interval(FLOOR_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_over = std::pin::pin!(self.is_over(accepted.position));
        let mut buffers = Buffers::default();
        let mut received = 0;
        loop {
            // The stream must end with its attempt. Otherwise a silent peer would keep the candidates in memory.
            let request = tokio::select! {
                biased;
                () = &mut is_over => return Err(LinkError::superseded("the attempt is over")),
                _ = ticks.tick() => {
                    // If the channel is full, the peer is reading slowly, and this response is dropped.
                    let _ = responses.try_send(Ok(accepted.floors(None)));
                    continue;
                }
                request = requests.next() => request.transpose()?,
            };
            let batch = match request {
                None => return Ok(received),
                Some(PeerRequest::Batch(batch)) => batch,
                Some(PeerRequest::Frontier(part)) => {
                    accepted.add_frontier(from, part)?;
                    continue;
                }
                Some(PeerRequest::Header(_)) => {
                    return Err(LinkError::bad_message("the stream contains two headers"));
                }
            };
            let bytes = batch.children.len() as u64;
            let to = accepted.clone();
            let sample = Sample {
                from: from.to_owned(),
                depth: accepted.position.depth,
                random: self.env.random(),
            };
            let offered = self
                .env
                .run_blocking(move || buffers.offer(&batch, &to, &sample));
            let offered = offered.await.map_err(|panicked| {
                LinkError::transient(format!("cannot receive a batch: {panicked}"))
            })?;
            buffers = offered?;
            let count = buffers.nodes.len() as u64;
            received += count;
            let metrics = &self.traffic.metrics;
            metrics.received.add(count);
            metrics.received_bytes.add(bytes);
            metrics.batches_received.add(1);
        }
    }

    /// Waits until another attempt begins or the epoch ends.
    async fn is_over(&self, position: Position) {
        let mut current = self.current.clone();
        let is_other = |now: &Option<Inbound>| {
            now.as_ref()
                .is_none_or(|now| now.is_closed || now.position != position)
        };
        // An error means that the worker is shutting down.
        let _ = current.wait_for(is_other).await;
    }
}

impl InboundLoops {
    /// Returns an error if a peer has sent more children than its wells can have.
    fn check_quota(&self, from: &str, children: usize) -> Result<(), LinkError> {
        let parents = match &self.gather {
            Some(gather) => gather.wells_of(from),
            None => self.wells_of_peers.get(from).copied().unwrap_or(0),
        };
        self.quota.add(from, parents, children)
    }
}

impl Inbound {
    /// Accepts or refuses a stream, based on its header. Returns `None` if the stream must wait for its attempt.
    fn accept(&self, header: &StreamHeader) -> Option<Result<Accepted, LinkError>> {
        let theirs = Position {
            epoch: header.epoch,
            depth: header.depth,
            attempt: header.attempt,
        };
        let here = self.position;
        let is_over = match theirs.epoch.cmp(&here.epoch) {
            Ordering::Greater => false,
            Ordering::Equal => self.is_closed || theirs < here,
            Ordering::Less => true,
        };
        if is_over {
            return Some(Err(LinkError::superseded(format!(
                "attempt {} at depth {} of epoch {} is over",
                theirs.attempt, theirs.depth, theirs.epoch
            ))));
        }
        if theirs != here {
            return None;
        }
        let EpochExchange { run, peers, .. } = &*self.epoch;
        // Checks the secret before the run's name, so that a process outside the epoch does not learn that name.
        let is_member = |secret: &Secret| secret.is(&header.secret);
        if !peers.get(&header.from).is_some_and(is_member) {
            return Some(Err(LinkError::refused(format!(
                "{:?} did not present the secret of a worker of this epoch",
                header.from
            ))));
        }
        if header.run != *run {
            return Some(Err(LinkError::superseded(format!(
                "this worker searches run {run}, not {:?}",
                header.run
            ))));
        }
        let candidates = self.candidates.clone()?;
        Some(Ok(Accepted {
            position: theirs,
            epoch: Arc::clone(&self.epoch),
            candidates,
            loops: self.loops.clone(),
        }))
    }
}

impl Accepted {
    fn add_frontier(&self, from: &str, part: FrontierPart) -> Result<(), LinkError> {
        let gather = self.loops.as_ref().and_then(|loops| loops.gather.as_ref());
        let unexpected = || LinkError::bad_message("this worker expects no wells of the frontier");
        gather.ok_or_else(unexpected)?.add(from, part)
    }

    /// Returns a response with the floors of this worker's shards.
    fn floors(&self, received: Option<u64>) -> PeerResponse {
        let owned = self.epoch.owned.iter().enumerate();
        let floors = owned.filter(|(_, here)| **here).filter_map(|(shard, _)| {
            let floor = self.candidates.floor(shard);
            let shard = shard as u32;
            (floor > 0).then_some(ShardFloor { shard, floor })
        });
        PeerResponse {
            floors: floors.collect(),
            received,
        }
    }
}

impl Buffers {
    /// Unpacks a batch, and adds its children to the candidates unless the spot check fails.
    fn offer(
        mut self,
        batch: &Batch,
        to: &Accepted,
        sample: &Sample,
    ) -> Result<Buffers, LinkError> {
        let Accepted {
            epoch, candidates, ..
        } = to;
        batch::unpack(epoch.geometry, &batch.children, &mut self.nodes)
            .map_err(|error| LinkError::bad_message(error.to_string()))?;
        let origins = match &to.loops {
            Some(_) => self.nodes.len(),
            None => 0,
        };
        if batch.origins.len() != origins {
            return Err(LinkError::bad_message(format!(
                "the batch has {} origins of children instead of {origins}",
                batch.origins.len()
            )));
        }
        if let Some(loops) = &to.loops {
            loops.check_quota(&sample.from, self.nodes.len())?;
        }
        let wells = to.loops.as_ref().map_or(0, |loops| loops.wells);
        if let Some(origin) = batch
            .origins
            .iter()
            .find(|origin| u64::from(origin.parent) >= wells)
        {
            return Err(LinkError::bad_message(format!(
                "a child has the parent {} of {wells}",
                origin.parent
            )));
        }
        let layout = candidates.layout();
        let mut shards = self.nodes.iter().map(|node| layout.shard_of(&node.well));
        if let Some(shard) = shards.find(|&shard| !epoch.owned[shard]) {
            return Err(LinkError::bad_message(format!(
                "this worker does not own shard {shard}"
            )));
        }
        let check = &epoch.spot_check;
        if check.is_good(&mut self.scorer, &self.nodes, sample) {
            if let Some(loops) = &to.loops {
                loops.samples.add(&self.nodes, &batch.origins, sample);
                loops.edges.add(candidates, &self.nodes, &batch.origins);
            }
            candidates.offer_nodes(&self.nodes, &mut self.sorted);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
