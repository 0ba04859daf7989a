//! Receiving children from other workers.

use super::Traffic;
use super::spot_check::{PeerFault, Sample, Scorer, SpotCheck};
use hatebeam_env::{Env, watch};
use hatebeam_game::Geometry;
use hatebeam_proto::batch::{self, FLOOR_INTERVAL, QUEUED_BATCHES};
use hatebeam_proto::messages::{PeerRequest, PeerResponse, Secret, ShardFloor, StreamHeader};
use hatebeam_proto::{BoxStream, LinkError};
use hatebeam_search::{Candidates, Node, SortBuffer};
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

/// Maximum time for which a stream waits until its attempt begins on this worker. The coordinator sends an order to all
/// workers at the same time, so the wait is normally short.
const WAIT: Duration = Duration::from_secs(30);

/// The epoch, depth and attempt to which children belong. A greater position supersedes a lesser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    epoch: u64,
    depth: u32,
    attempt: u32,
}

/// The current attempt, whose children this worker accepts.
#[derive(Clone)]
struct Inbound {
    position: Position,
    epoch: Arc<EpochExchange>,
    /// Destination of received children. `None` before the epoch's first attempt and after the survivors of a depth are
    /// selected.
    candidates: Option<Arc<Candidates>>,
    /// Whether the epoch has ended.
    is_closed: bool,
}

/// Parameters of the exchange that stay constant for an epoch.
pub(crate) struct EpochExchange {
    pub(crate) run: String,
    pub(crate) epoch: u64,
    /// Depth of the frontier with which the epoch begins.
    pub(crate) depth: u32,
    pub(crate) geometry: Geometry,
    /// For each shard, whether this worker owns it.
    pub(crate) owned: Arc<Vec<bool>>,
    /// The other workers by name, with the secret that each presents.
    pub(crate) peers: BTreeMap<String, Secret>,
    /// Checks a sample of the children.
    pub(crate) spot_check: SpotCheck,
}

/// Control of the receiving side: begins and ends epochs and attempts.
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
            is_closed: false,
        }));
    }

    /// Begins an attempt at a depth. Children from its streams are added to `candidates`. Streams of earlier attempts
    /// end.
    pub(crate) fn open(&self, depth: u32, attempt: u32, candidates: &Arc<Candidates>) {
        self.modify(|inbound| {
            inbound.position.depth = depth;
            inbound.position.attempt = attempt;
            inbound.candidates = Some(Arc::clone(candidates));
        });
    }

    /// Drops the reference to the candidates of the current depth.
    pub(crate) fn release_candidates(&self) {
        self.modify(|inbound| inbound.candidates = None);
    }

    /// Ends the epoch. Its streams end, and new ones are refused.
    pub(crate) fn close(&self) {
        self.modify(|inbound| {
            inbound.candidates = None;
            inbound.is_closed = true;
        });
    }

    /// Returns the peer of the current epoch that has sent a wrong child, and what is wrong.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        let current = self.current.borrow();
        current.as_ref()?.epoch.spot_check.fault()
    }

    fn modify(&self, modify: impl FnOnce(&mut Inbound)) {
        self.current.send_if_modified(|inbound| {
            let inbound = inbound.as_mut();
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
struct Accepted {
    position: Position,
    epoch: Arc<EpochExchange>,
    candidates: Arc<Candidates>,
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

    /// Receives the children of one stream. The first request must be the header. The responses contain the floors of
    /// this worker's shards (the lowest rank that each still accepts). The last response also contains the number of
    /// children received.
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
                tracing::warn!(reason = error.reason, "refused stream from peer");
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
                "epoch {} depth {} attempt {} did not begin within {} seconds",
                header.epoch,
                header.depth,
                header.attempt,
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
                () = &mut is_over => return Err(LinkError::superseded("the depth is over")),
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
                Some(PeerRequest::Header(_)) => {
                    return Err(LinkError::bad_message("the stream contains two headers"));
                }
            };
            let bytes = batch.len() as u64;
            let (epoch, candidates) = (
                Arc::clone(&accepted.epoch),
                Arc::clone(&accepted.candidates),
            );
            let sample = Sample {
                from: from.to_owned(),
                depth: accepted.position.depth,
                random: self.env.random(),
            };
            let offered = self
                .env
                .run_blocking(move || buffers.offer(&batch, &epoch, &candidates, &sample));
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
        drop(current.wait_for(is_other).await);
    }
}

impl Inbound {
    /// Accepts or refuses a stream, based on its header. Returns `None` if the attempt has not begun yet.
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
                "epoch {} depth {} attempt {} is over",
                theirs.epoch, theirs.depth, theirs.attempt
            ))));
        }
        if theirs != here {
            return None;
        }
        let EpochExchange { run, peers, .. } = &*self.epoch;
        // Says nothing about this epoch to anyone who is not part of it.
        let is_member = |secret: &Secret| secret.is(&header.secret);
        if !peers.get(&header.from).is_some_and(is_member) {
            return Some(Err(LinkError::refused(format!(
                "{:?} is not a worker of this epoch",
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
        }))
    }
}

impl Accepted {
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
    /// Unpacks a batch and adds its children to the candidates.
    fn offer(
        mut self,
        batch: &[u8],
        epoch: &EpochExchange,
        candidates: &Candidates,
        sample: &Sample,
    ) -> Result<Buffers, LinkError> {
        batch::unpack(epoch.geometry, batch, &mut self.nodes)
            .map_err(|error| LinkError::bad_message(error.to_string()))?;
        let layout = candidates.layout();
        let mut shards = self.nodes.iter().map(|node| layout.shard_of(&node.well));
        if let Some(shard) = shards.find(|&shard| !epoch.owned[shard]) {
            return Err(LinkError::bad_message(format!(
                "this worker does not own shard {shard}"
            )));
        }
        let check = &epoch.spot_check;
        if check.is_good(&mut self.scorer, &self.nodes, sample) {
            candidates.offer_nodes(&self.nodes, &mut self.sorted);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SECRET, spec};
    use hatebeam_game::Emulator;
    use hatebeam_game::Well;
    use hatebeam_metrics::{Registry, WorkerMetrics};
    use hatebeam_proto::LinkErrorKind;
    use hatebeam_search::{DEFAULT_SIGMAS, Evaluator, Frontier, NodeWell, ShardLayout};

    const GEOMETRY: Geometry = Geometry::STANDARD;

    fn header(epoch: u64, depth: u32, attempt: u32) -> StreamHeader {
        StreamHeader {
            run: "run".to_owned(),
            epoch,
            depth,
            attempt,
            from: "w1".to_owned(),
            secret: SECRET,
        }
    }

    fn nodes(count: u16) -> Vec<Node> {
        let node = |row| {
            let mut rows = [0; 16];
            rows[15] = row;
            Node {
                score: i32::from(row),
                well: NodeWell::pack(GEOMETRY, &Well::from_rows(rows)),
                lines: 0,
                hint: 0,
            }
        };
        let mut nodes: Vec<Node> = (1..=count).map(node).collect();
        let wells: Vec<Well> = nodes
            .iter()
            .map(|node| node.well.unpack(GEOMETRY).unwrap())
            .collect();
        let mut scores = Vec::new();
        let mut evaluator = Evaluator::new(&emulator(), &spec(100).evaluator).unwrap();
        evaluator.score(&wells, &vec![0; wells.len()], &mut scores);
        for (node, score) in nodes.iter_mut().zip(scores) {
            node.score = score;
        }
        nodes
    }

    fn emulator() -> Emulator {
        spec(100).emulator().unwrap()
    }

    /// Returns an exchange at epoch 3, depth 7, attempt 2, on a worker that owns the first of two shards.
    fn exchange() -> (InboundControl, InboundExchange, Arc<Candidates>) {
        let metrics = WorkerMetrics::register(&Registry::default());
        let (control, exchange) = InboundExchange::new(Env::system(), Traffic::new(metrics));
        control.begin_epoch(EpochExchange {
            run: "run".to_owned(),
            epoch: 3,
            depth: 6,
            geometry: GEOMETRY,
            owned: Arc::new(vec![true, false]),
            peers: [("w1".to_owned(), SECRET)].into(),
            spot_check: SpotCheck::new(&emulator(), spec(100).evaluator, &Frontier::default()),
        });
        let layout = ShardLayout::new(1000, 2);
        let candidates = Arc::new(Candidates::new(layout, DEFAULT_SIGMAS));
        control.open(7, 2, &candidates);
        (control, exchange, candidates)
    }

    /// Sends a header and batches, and returns the number of children received.
    async fn send(
        exchange: &InboundExchange,
        header: StreamHeader,
        batches: Vec<Vec<u8>>,
    ) -> Result<u64, LinkError> {
        let batches = batches
            .into_iter()
            .map(|batch| PeerRequest::Batch(batch.into()));
        let requests = std::iter::once(PeerRequest::Header(header)).chain(batches);
        let requests: Vec<_> = requests.map(Ok).collect();
        let mut responses = exchange.serve(Box::pin(tokio_stream::iter(requests)));
        let mut received = None;
        while let Some(response) = responses.next().await {
            received = response?.received;
        }
        Ok(received.unwrap())
    }

    /// Returns the test nodes that are in the first shard, which the worker owns.
    fn here() -> Vec<Node> {
        let layout = ShardLayout::new(1000, 2);
        let mut nodes = nodes(200);
        nodes.retain(|node| layout.shard_of(&node.well) == 0);
        nodes
    }

    #[tokio::test]
    async fn children_of_current_attempt_are_received() {
        let (_control, exchange, candidates) = exchange();
        let nodes = here();
        let batch = batch::pack(GEOMETRY, &nodes, false);
        let received = send(&exchange, header(3, 7, 2), vec![batch]).await.unwrap();
        assert_eq!(received, nodes.len() as u64);
        assert_eq!(candidates.len(), nodes.len());
    }

    #[tokio::test]
    async fn streams_of_other_attempts_runs_and_workers_are_refused() {
        let (_control, exchange, candidates) = exchange();
        let foreign_run = StreamHeader {
            run: "other".to_owned(),
            ..header(3, 7, 2)
        };
        let stranger = StreamHeader {
            from: "stranger".to_owned(),
            ..header(3, 7, 2)
        };
        let without_secret = StreamHeader {
            secret: Secret::default(),
            ..header(3, 7, 2)
        };
        let batch = batch::pack(GEOMETRY, &here(), false);
        for (header, kind) in [
            (header(3, 7, 1), LinkErrorKind::Superseded),
            (header(3, 6, 9), LinkErrorKind::Superseded),
            (header(2, 9, 9), LinkErrorKind::Superseded),
            (foreign_run, LinkErrorKind::Superseded),
            (stranger, LinkErrorKind::Refused),
            (without_secret, LinkErrorKind::Refused),
        ] {
            let refused = send(&exchange, header.clone(), vec![batch.clone()]).await;
            assert_eq!(refused.unwrap_err().kind, kind, "{header:?}");
        }
        assert_eq!(candidates.len(), 0);
    }

    #[tokio::test]
    async fn children_of_a_peer_with_wrong_scores_are_dropped() {
        let (control, exchange, candidates) = exchange();
        let good = batch::pack(GEOMETRY, &here(), false);
        let mut lies = here();
        lies.iter_mut().for_each(|node| node.score = i32::MAX);
        let lies = batch::pack(GEOMETRY, &lies, false);
        let count = here().len() as u64;
        let received = send(&exchange, header(3, 7, 2), vec![lies, good]).await;
        // The peer learns nothing, but nothing of it counts any more.
        assert_eq!(received, Ok(2 * count));
        assert_eq!(candidates.len(), 0);
        let fault = control.fault().unwrap();
        assert_eq!(fault.peer, "w1");
        assert!(fault.reason.contains("2147483647"), "{fault:?}");
    }

    #[test]
    fn lines_must_match_the_cells() {
        let node = here()[0];
        let first = Frontier::new(6, [node], ShardLayout::new(1000, 1));
        let check = SpotCheck::new(&emulator(), spec(100).evaluator, &first);
        let sample = |from: &str| Sample {
            from: from.to_owned(),
            depth: 6,
            random: 0,
        };
        let mut scorer = None;
        assert!(check.is_good(&mut scorer, &[node], &sample("w1")));
        assert!(check.is_good(&mut scorer, &[], &sample("w1")));
        let lie = Node { lines: 3, ..node };
        assert!(!check.is_good(&mut scorer, &[lie], &sample("w1")));
        assert!(!check.is_good(&mut scorer, &[node], &sample("w1")));
        assert!(check.is_good(&mut scorer, &[node], &sample("w2")));
        assert!(check.fault().unwrap().reason.contains("3 lines"));
    }

    #[tokio::test]
    async fn bad_batches_are_refused() {
        let (_control, exchange, candidates) = exchange();
        let whole = batch::pack(GEOMETRY, &here(), false);
        let bad_well = Node {
            well: NodeWell([0xff; 20]),
            ..here()[0]
        };
        for batch in [
            whole[..whole.len() - 1].to_vec(),
            batch::pack(GEOMETRY, &[bad_well], false),
            batch::pack(GEOMETRY, &nodes(200), false),
        ] {
            let refused = send(&exchange, header(3, 7, 2), vec![batch]).await;
            assert_eq!(refused.unwrap_err().kind, LinkErrorKind::BadMessage);
        }
        assert_eq!(candidates.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn stream_waits_for_its_attempt_for_a_limited_time() {
        let (control, exchange, _) = exchange();
        let early = send(&exchange, header(3, 7, 3), Vec::new());
        let begins = async {
            tokio::time::sleep(WAIT / 2).await;
            let layout = ShardLayout::new(1000, 2);
            control.open(7, 3, &Arc::new(Candidates::new(layout, DEFAULT_SIGMAS)));
        };
        let (early, ()) = tokio::join!(early, begins);
        assert_eq!(early, Ok(0));
        let refused = send(&exchange, header(4, 1, 1), Vec::new()).await;
        assert_eq!(refused.unwrap_err().kind, LinkErrorKind::Transient);
    }

    #[tokio::test]
    async fn silent_stream_ends_with_its_attempt() {
        let (control, exchange, candidates) = exchange();
        let (requests, stream) = mpsc::channel(1);
        let mut responses = exchange.serve(Box::pin(ReceiverStream::new(stream)));
        requests
            .send(Ok(PeerRequest::Header(header(3, 7, 2))))
            .await
            .unwrap();
        assert_eq!(responses.next().await, Some(Ok(PeerResponse::default())));
        control.close();
        while let Some(response) = responses.next().await {
            if let Err(error) = response {
                assert_eq!(error.kind, LinkErrorKind::Superseded);
            }
        }
        assert_eq!(Arc::strong_count(&candidates), 1);
    }
}
