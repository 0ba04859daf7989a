//! What a worker does when it is told.
//!
//! Orders are of an epoch. A new epoch (`prepare`) ends whatever was going on of the one before; then the
//! orders of a depth come one after the other, but for the commit, which goes on while the next depth is
//! expanded.

use crate::exchange::{InboundExchange, PeerError, PeerStreams, Traffic};
use crate::tables;
use hatebeam_game::{Emulator, Geometry};
use hatebeam_net::{self as net, Limits, Tls};
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_proto::v1::answer::Kind as Answer;
use hatebeam_proto::v1::order::Kind as Order;
use hatebeam_runs::FrontierSummary;
use hatebeam_runs::RunSpec;
use hatebeam_runs::{ManifestError, Table, first_node};
use hatebeam_search::{
    Candidates, CountQuery, Cut, DIGITS, Exchange, Frontier, MAX_SHARDS, NodeWell, Owner,
    ShardLayout, Step, Ties,
};
use hatebeam_store::{ColumnFamilies, ShardTables};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tonic::transport::Channel;
use tracing::{Instrument, Span};

/// A peer that gives no sign for so long is lost, unless the coordinator says otherwise.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// How long the tables of another run may take to be closed.
const CLOSING: Duration = Duration::from_secs(60);

/// A lock that nobody can leave broken: what panicked while holding it ends the epoch anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a worker has, whatever it works on.
pub(crate) struct Executor {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) dir: PathBuf,
    pub(crate) objects: Objects,
    pub(crate) tls: Option<Tls>,
    pub(crate) compress: bool,
    pub(crate) inbound: watch::Sender<Option<InboundExchange>>,
    pub(crate) progress: Progress,
    pub(crate) traffic: Arc<Traffic>,
    /// The epoch that is worked on.
    current: Mutex<Option<Arc<Epoch>>>,
    /// A peer that gives no sign for so long is lost.
    pub(crate) lost_after: Mutex<Duration>,
    /// VersionedManifest from epoch to epoch.
    channels: Mutex<HashMap<String, Channel>>,
    tables: Mutex<Option<(String, Arc<ShardTables>)>>,
}

/// How far it has come, for the beats.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) epoch: AtomicU64,
    pub(crate) depth: AtomicU32,
    pub(crate) expanded: Arc<AtomicU64>,
    pub(crate) parents: AtomicU64,
}

type Committed = Result<Vec<Table>, OrderError>;

/// What is worked on in one epoch.
pub(crate) struct Epoch {
    pub(crate) number: u64,
    pub(crate) run: String,
    spec: RunSpec,
    emulator: Emulator,
    layout: ShardLayout,
    owners: Vec<Owner>,
    peers: Vec<(String, Channel)>,
    pub(crate) tables: Arc<ShardTables>,
    frontier: Mutex<Arc<Frontier>>,
    candidates: Mutex<Option<(u32, Arc<Candidates>)>>,
    commits: Mutex<HashMap<u32, oneshot::Receiver<Committed>>>,
    /// The last depth that was selected.
    pub(crate) selected: AtomicU32,
    /// Whoever has it gives tables to RocksDB.
    pub(crate) keeping: tokio::sync::Mutex<()>,
    cancel: AtomicBool,
    /// The streams of the depth that is being expanded.
    streams: Mutex<Vec<AbortHandle>>,
    /// The epoch, within its run, for whatever is logged; and the depth that is under way.
    span: Span,
    depth_span: Mutex<Option<(u32, Span)>>,
}

impl Epoch {
    /// Whether another has begun, or there is nothing to do any more: what would be put into the object
    /// store now, nothing would lead to.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// The span of all orders of a depth.
    fn span_of(&self, depth: u32) -> Span {
        let mut current = lock(&self.depth_span);
        match &*current {
            Some((of, span)) if *of == depth => span.clone(),
            _ => {
                let span = tracing::info_span!(parent: &self.span, "depth", depth);
                *current = Some((depth, span.clone()));
                span
            }
        }
    }

    /// Ends what is going on: also threads that wait for a peer that does not take anything any more.
    fn end(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        lock(&self.streams)
            .drain(..)
            .for_each(|stream| stream.abort());
    }
}

/// Why an order was not carried out.
#[derive(Debug)]
pub(crate) struct OrderError {
    pub(crate) reason: String,
    pub(crate) peer: String,
    /// It may work in a while: the object store is out of reach.
    pub(crate) is_transient: bool,
}

impl<E: std::fmt::Display> From<E> for OrderError {
    fn from(error: E) -> OrderError {
        OrderError {
            reason: error.to_string(),
            peer: String::new(),
            is_transient: false,
        }
    }
}

impl OrderError {
    /// Of something that was asked of the object store.
    pub(crate) fn of_store(error: &ManifestError) -> OrderError {
        OrderError {
            is_transient: matches!(error, ManifestError::Object(error) if error.is_transient()),
            ..OrderError::from(error)
        }
    }
}

impl From<PeerError> for Box<OrderError> {
    fn from(lost: PeerError) -> Box<OrderError> {
        Box::new(OrderError {
            reason: format!("{} cannot be reached: {}", lost.peer, lost.reason),
            peer: lost.peer,
            is_transient: false,
        })
    }
}

impl Executor {
    pub(crate) fn new(
        (name, threads, dir): (String, usize, PathBuf),
        objects: Objects,
        tls: Option<Tls>,
        compress: bool,
        (inbound, traffic): (watch::Sender<Option<InboundExchange>>, Arc<Traffic>),
    ) -> Executor {
        Executor {
            name,
            threads,
            dir,
            objects,
            tls,
            compress,
            inbound,
            progress: Progress::default(),
            traffic,
            current: Mutex::default(),
            lost_after: Mutex::new(LOST_AFTER),
            channels: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// Ends what is going on.
    pub(crate) fn halt(&self) {
        if let Some(epoch) = lock(&self.current).take() {
            epoch.end();
        }
        self.inbound.send_modify(|inbound| {
            if let Some(inbound) = inbound {
                inbound.candidates = None;
                // No stream of this epoch is heeded any more.
                inbound.depth = u32::MAX;
            }
        });
    }

    /// Carries out an order.
    pub(crate) async fn execute(&self, order: v1::Order) -> Answer {
        let metrics = &self.traffic.metrics;
        let Some(what) = order.kind else {
            metrics.failed.add(1);
            return failed(&"the order is empty".into());
        };
        let (phase, started) = (metrics.phases.get(what.name()), Instant::now());
        let done = match what {
            Order::Halt(_) => {
                self.halt();
                Ok(Answer::Halted(v1::Halted {}))
            }
            Order::Prepare(prepare) => {
                let run = tracing::info_span!("run", run = prepare.run);
                let span = tracing::info_span!(parent: &run, "epoch", epoch = order.epoch);
                self.prepare(order.epoch, prepare).instrument(span).await
            }
            what => match self.epoch(order.epoch) {
                Err(failure) => Err(failure),
                Ok(epoch) => self.execute_in_epoch(&epoch, what).await,
            },
        };
        match done {
            Ok(answer) => {
                if let Some(phase) = phase {
                    phase.observe(started.elapsed());
                }
                answer
            }
            Err(failure) => {
                metrics.failed.add(1);
                failed(&failure)
            }
        }
    }

    /// Carries out an order of an epoch, in the span of its depth.
    async fn execute_in_epoch(
        &self,
        epoch: &Arc<Epoch>,
        what: Order,
    ) -> Result<Answer, OrderError> {
        let span = |depth: u32| epoch.span_of(depth);
        match what {
            Order::Expand(expand) => {
                let span = span(expand.depth);
                self.expand(epoch, expand).instrument(span).await
            }
            Order::Count(count) => {
                let span = span(count.depth);
                self.count(epoch, count).instrument(span).await
            }
            Order::ValidateCut(validate_cut) => {
                let span = span(validate_cut.depth);
                self.validate_cut(epoch, validate_cut)
                    .instrument(span)
                    .await
            }
            Order::Select(select) => {
                let span = span(select.depth);
                self.select(epoch, select).instrument(span).await
            }
            Order::WaitCommit(wait) => wait_commit(epoch, wait.depth).await,
            Order::Halt(_) | Order::Prepare(_) => Err("the order is empty".into()),
        }
    }

    /// Says how it stands, for whoever reads the metrics.
    pub(crate) fn show(&self) {
        let metrics = &self.traffic.metrics;
        let progress = &self.progress;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        metrics.epoch.set(count(&progress.epoch));
        let depth = progress.depth.load(Ordering::Relaxed);
        metrics.depth.set(u64::from(depth));
        metrics.depth_wells.set(count(&progress.parents));
        metrics.depth_wells_expanded.set(count(&progress.expanded));
        metrics.batches_waiting.set(self.traffic.waiting() as u64);
        let free = hatebeam_store::free_bytes(&self.dir).unwrap_or(0);
        metrics.disk_free.set(free);
        let (mut shards, mut frontier, mut candidates) = (0, 0, 0);
        let current = lock(&self.current).clone();
        if let Some(epoch) = current {
            let here = |owner: &&Owner| **owner == Owner::Here;
            shards = epoch.owners.iter().filter(here).count() as u64;
            frontier = lock(&epoch.frontier).len() as u64;
            let tables = lock(&epoch.candidates).clone();
            candidates = tables.map_or(0, |(_, tables)| tables.bytes());
        }
        metrics.shards.set(shards);
        metrics.frontier.set(frontier);
        metrics.candidates.set(candidates);
    }

    fn epoch(&self, number: u64) -> Result<Arc<Epoch>, OrderError> {
        let current = lock(&self.current).clone();
        current
            .filter(|epoch| epoch.number == number)
            .ok_or_else(|| format!("epoch {number} is not the one that is worked on").into())
    }

    async fn prepare(&self, number: u64, order: v1::Prepare) -> Result<Answer, OrderError> {
        // Of another run nothing is to be held.
        let before = lock(&self.current).clone();
        let before = before.filter(|before| before.run == order.run);
        self.halt();
        let spec: RunSpec = serde_json::from_str(&order.spec)?;
        let start = spec.check()?;
        let emulator = spec.emulator()?;
        let geometry = emulator.geometry();
        let width = usize::try_from(spec.width)?;
        let shards = order.owners.len();
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(format!("there are {shards} shards").into());
        }
        let has_shard = |table: &v1::Table| (table.shard as usize) < shards;
        if !order.tables.iter().all(has_shard) {
            return Err("a table is of no shard".into());
        }
        let layout = ShardLayout::new(width, shards);
        let me = order
            .members
            .iter()
            .position(|member| member.name == self.name)
            .ok_or("this worker is none of the epoch's")?;
        let mut peers = Vec::new();
        let mut places = vec![Owner::Here; order.members.len()];
        for (at, member) in order.members.iter().enumerate() {
            if at != me {
                places[at] = Owner::Peer(u16::try_from(peers.len())?);
                peers.push((member.name.clone(), self.channel(&member.address).await?));
            }
        }
        let owner = |&place: &u32| places.get(place as usize).copied();
        let owners: Option<Vec<Owner>> = order.owners.iter().map(owner).collect();
        let owners = owners.ok_or("a shard has no owner")?;
        let owned: Vec<bool> = owners.iter().map(|owner| *owner == Owner::Here).collect();
        let owned = Arc::new(owned);
        let tables = self.tables(&order.run, geometry).await?;
        let (frontier, fetched) = if order.depth == start.depth() {
            let first = first_node(&spec, &start)?;
            let mine = owned[layout.shard_of(&first.well)].then_some(first);
            (Arc::new(Frontier::new(order.depth, mine, layout)), 0)
        } else {
            let held = before.map(|before| lock(&before.frontier).clone());
            let held = held.filter(|held| held.depth == order.depth);
            tables::load(&self.objects, &order, layout, held, &tables).await?
        };
        self.traffic.metrics.tables_fetched.add(u64::from(fetched));
        let wells = frontier.len() as u64;
        let names = peers.iter().map(|(name, _)| name.clone()).collect();
        let depth = frontier.depth;
        let epoch = Epoch {
            number,
            run: order.run.clone(),
            spec,
            emulator,
            layout,
            owners,
            peers,
            tables,
            frontier: Mutex::new(frontier),
            candidates: Mutex::default(),
            commits: Mutex::default(),
            selected: AtomicU32::new(depth),
            keeping: tokio::sync::Mutex::default(),
            cancel: AtomicBool::new(false),
            streams: Mutex::default(),
            span: Span::current(),
            depth_span: Mutex::default(),
        };
        *lock(&self.current) = Some(Arc::new(epoch));
        self.progress.epoch.store(number, Ordering::Relaxed);
        self.progress.depth.store(depth, Ordering::Relaxed);
        self.inbound.send_replace(Some(InboundExchange {
            run: order.run,
            epoch: number,
            depth,
            attempt: 0,
            geometry,
            candidates: None,
            owned,
            peers: Arc::new(names),
        }));
        Ok(Answer::Prepared(v1::Prepared { wells, fetched }))
    }

    async fn channel(&self, address: &str) -> Result<Channel, OrderError> {
        if let Some(channel) = lock(&self.channels).get(address) {
            return Ok(channel.clone());
        }
        let lost_after = *lock(&self.lost_after);
        let limits = Limits {
            lazy: true,
            connect_timeout: lost_after,
            ping_after: lost_after,
            ping_answer: lost_after,
        };
        let channel = net::connect(address, self.tls.as_ref(), &limits).await?;
        lock(&self.channels).insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    /// The tables of a run on this machine. Those of another run go.
    async fn tables(&self, run: &str, geometry: Geometry) -> Result<Arc<ShardTables>, OrderError> {
        let others = {
            let mut tables = lock(&self.tables);
            if let Some((_, tables)) = tables.as_ref().filter(|(of, _)| of == run) {
                return Ok(Arc::clone(tables));
            }
            tables.take()
        };
        if let Some((_, tables)) = others {
            // Whoever still puts something there has them open.
            let closed = tokio::time::timeout(CLOSING, close(tables)).await;
            closed.map_err(|_| "the tables of another run are still being written")?;
        }
        let made = Arc::new(ShardTables::create(
            &self.dir.join("tables"),
            geometry,
            ColumnFamilies::PerDepth,
        )?);
        *lock(&self.tables) = Some((run.to_owned(), Arc::clone(&made)));
        Ok(made)
    }

    async fn expand(&self, epoch: &Arc<Epoch>, order: v1::Expand) -> Result<Answer, OrderError> {
        let frontier = lock(&epoch.frontier).clone();
        if frontier.depth.checked_add(1) != Some(order.depth) {
            return Err(format!("the frontier here is of depth {}", frontier.depth).into());
        }
        if !(order.sigmas.is_finite() && (0.0..1e6).contains(&order.sigmas)) {
            return Err("the room is no number of use".into());
        }
        let candidates = Arc::new(Candidates::new(epoch.layout, order.sigmas));
        *lock(&epoch.candidates) = Some((order.depth, Arc::clone(&candidates)));
        self.progress.depth.store(order.depth, Ordering::Relaxed);
        self.progress.expanded.store(0, Ordering::Relaxed);
        let parents = frontier.len() as u64;
        self.progress.parents.store(parents, Ordering::Relaxed);
        let header = v1::StreamHeader {
            run: epoch.run.clone(),
            epoch: epoch.number,
            depth: order.depth,
            attempt: order.attempt,
            from: self.name.clone(),
        };
        let (streams_to_peers, streams) = PeerStreams::open(
            &epoch.peers,
            &header,
            (epoch.emulator.geometry(), self.compress),
            &candidates,
            &self.traffic,
        );
        *lock(&epoch.streams) = streams;
        if epoch.is_over() {
            epoch.end();
        }
        self.inbound.send_modify(|inbound| {
            if let Some(inbound) = inbound {
                inbound.depth = order.depth;
                inbound.attempt = order.attempt;
                inbound.candidates = Some(Arc::clone(&candidates));
            }
        });
        let (work, threads) = (Arc::clone(epoch), self.threads);
        let progress = Arc::clone(&self.progress.expanded);
        let expanded = tokio::task::spawn_blocking(move || {
            let step = Step::new(&work.emulator, work.spec.evaluator, work.layout, threads);
            let step = match step {
                Ok(step) => step,
                Err(error) => return (Err(error.to_string()), streams_to_peers),
            };
            let exchange = Exchange {
                owners: &work.owners,
                sink: &streams_to_peers,
                peers: work.peers.len() as u16,
            };
            let stats = step
                .expand(
                    &frontier,
                    &candidates,
                    Some(exchange),
                    &work.cancel,
                    &progress,
                )
                .and_then(|stats| streams_to_peers.flush().map(|()| stats));
            let stats = stats.map_err(|_| "it was stopped".to_owned());
            (stats, streams_to_peers)
        });
        let (stats, streams_to_peers) = expanded.await?;
        let metrics = &self.traffic.metrics;
        metrics
            .expanded
            .add(self.progress.expanded.load(Ordering::Relaxed));
        let stats = match stats {
            Ok(stats) => stats,
            Err(reason) => {
                let lost = match epoch.is_over() {
                    true => None,
                    false => streams_to_peers.lost().await,
                };
                return Err(lost.map_or_else(|| reason.into(), lost_failure));
            }
        };
        metrics.children.add(stats.children);
        metrics.offered.add(stats.offered);
        let sent_bytes = streams_to_peers.finish().await.map_err(lost_failure)?;
        let (children, sent) = (stats.children, stats.sent);
        tracing::debug!(children, sent, sent_bytes, "expanded");
        Ok(Answer::Expanded(v1::Expanded {
            children,
            sent,
            sent_bytes,
        }))
    }

    fn candidates(epoch: &Epoch, depth: u32) -> Result<Arc<Candidates>, OrderError> {
        let candidates = lock(&epoch.candidates);
        let candidates = candidates.as_ref().filter(|(of, _)| *of == depth);
        let candidates = candidates.ok_or_else(|| format!("depth {depth} was not expanded"))?;
        Ok(Arc::clone(&candidates.1))
    }

    async fn count(&self, epoch: &Arc<Epoch>, order: v1::Count) -> Result<Answer, OrderError> {
        let candidates = Executor::candidates(epoch, order.depth)?;
        let threads = self.threads;
        let known = |prefix: &v1::Prefix| prefix.known < DIGITS;
        if order.prefixes.len() > 2 || !order.prefixes.iter().all(known) {
            return Err("the count is no question".into());
        }
        let counted = tokio::task::spawn_blocking(move || {
            let histograms = order.prefixes.iter().map(|prefix| {
                let query = CountQuery {
                    known: prefix.known,
                    prefix: prefix.prefix,
                };
                let counts = candidates.count(query, threads);
                let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                let (digits, counts) = some.map(|(digit, count)| (digit as u32, *count)).unzip();
                v1::Histogram { digits, counts }
            });
            histograms.collect()
        });
        let histograms = counted.await?;
        Ok(Answer::Counted(v1::Counted { histograms }))
    }

    async fn validate_cut(
        &self,
        epoch: &Arc<Epoch>,
        order: v1::ValidateCut,
    ) -> Result<Answer, OrderError> {
        let candidates = Executor::candidates(epoch, order.depth)?;
        let cut_verdict = tokio::task::spawn_blocking(move || {
            let tied = match order.tied {
                true => candidates.tied(order.cut),
                false => Vec::new(),
            };
            v1::CutVerdict {
                dropped: candidates.dropped_above(order.cut),
                tied: tied.iter().flat_map(|well| well.0).collect(),
            }
        });
        Ok(Answer::CutVerdict(cut_verdict.await?))
    }

    async fn select(&self, epoch: &Arc<Epoch>, order: v1::Select) -> Result<Answer, OrderError> {
        let depth = order.depth;
        let candidates = Executor::candidates(epoch, depth)?;
        let ties = match order.all_ties {
            true => Ties::All,
            false => Ties::Listed(wells_of(&order.ties)?),
        };
        *lock(&epoch.candidates) = None;
        self.inbound.send_modify(|inbound| {
            if let Some(inbound) = inbound {
                inbound.candidates = None;
            }
        });
        let cut = Cut {
            rank: order.cut,
            ties,
        };
        // The parents go before the next frontier is made, so that the two need not be in memory at once.
        *lock(&epoch.frontier) = Arc::default();
        let threads = self.threads;
        let selected = tokio::task::spawn_blocking(move || {
            let shards = candidates.select(&cut, threads);
            let frontier = Frontier { depth, shards };
            let part = FrontierSummary::of(frontier.nodes());
            (frontier, part)
        });
        let (frontier, part) = selected.await?;
        let frontier = Arc::new(frontier);
        *lock(&epoch.frontier) = Arc::clone(&frontier);
        let (done, result) = oneshot::channel();
        lock(&epoch.commits).insert(depth, result);
        epoch.selected.fetch_max(depth, Ordering::Relaxed);
        let (epoch, objects) = (Arc::clone(epoch), self.objects.clone());
        let (name, traffic) = (self.name.clone(), Arc::clone(&self.traffic));
        let committing = async move {
            let metrics = &traffic.metrics;
            let how = (name.as_str(), threads, metrics);
            // If nobody waits for it any more, the epoch is over.
            let committed = tables::commit(&epoch, &objects, &frontier, how).await;
            match committed {
                Err(failure) => {
                    let _ = done.send(Err(failure));
                }
                Ok((tables, paths)) => {
                    let _ = done.send(Ok(tables));
                    let began = Instant::now();
                    tables::keep(&epoch, depth, paths).await;
                    metrics.phases.observe("cache", began.elapsed());
                }
            }
        };
        tokio::spawn(committing.in_current_span());
        Ok(Answer::Selected(v1::Selected {
            count: part.count,
            digest: part.digest.to_string(),
            best_eval: part.best_eval,
            worst_eval: part.worst_eval,
            best_lines: part.best.map_or(0, |node| u32::from(node.lines)),
            best_well_eval: part.best.map_or(0, |node| node.score),
            best_well_hint: part.best.map_or(0, |node| u32::from(node.hint)),
            best_well: part.best.map_or_else(Vec::new, |node| node.well.0.to_vec()),
        }))
    }
}

/// Waits until nobody else has these tables, and closes them.
async fn close(mut tables: Arc<ShardTables>) {
    while let Err(shared) = Arc::try_unwrap(tables) {
        tables = shared;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn failed(failure: &OrderError) -> Answer {
    Answer::Failed(v1::Failed {
        reason: failure.reason.clone(),
        peer: failure.peer.clone(),
        kind: match (failure.is_transient, failure.peer.is_empty()) {
            (true, _) => v1::FailureKind::Unavailable,
            (false, false) => v1::FailureKind::PeerUnreachable,
            (false, true) => v1::FailureKind::Worker,
        }
        .into(),
    })
}

fn lost_failure(lost: PeerError) -> OrderError {
    *Box::<OrderError>::from(lost)
}

fn wells_of(bytes: &[u8]) -> Result<Vec<NodeWell>, OrderError> {
    let chunks = bytes.chunks_exact(size_of::<NodeWell>());
    if !chunks.remainder().is_empty() {
        return Err("the ties are cut off".into());
    }
    let well = |chunk: &[u8]| chunk.try_into().map(NodeWell);
    Ok(chunks.map(well).collect::<Result<_, _>>()?)
}

async fn wait_commit(epoch: &Epoch, depth: u32) -> Result<Answer, OrderError> {
    let commit = lock(&epoch.commits).remove(&depth);
    let commit = commit.ok_or_else(|| format!("depth {depth} is not being committed"))?;
    let tables = commit.await.map_err(|_| "the commit was given up")??;
    Ok(Answer::Committed(v1::Committed {
        tables: tables.into_iter().map(v1::Table::from).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Rules;
    use hatebeam_metrics::{Registry, WorkerMetrics};
    use hatebeam_runs::{Start, WellSpec};
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};
    use std::path::Path;

    async fn executor(dir: &Path) -> Executor {
        let store = dir.join("store").display().to_string();
        let options = hatebeam_objects::Options::default();
        let objects = Objects::open(&store, &options).await.unwrap();
        std::fs::create_dir(dir.join("w0")).unwrap();
        let (inbound, _) = watch::channel(None);
        let own = ("w0".to_owned(), 1, dir.join("w0"));
        let metrics = WorkerMetrics::register(&Registry::default());
        Executor::new(own, objects, None, false, (inbound, Traffic::new(metrics)))
    }

    fn prepare() -> v1::Prepare {
        let spec = RunSpec {
            width: 50,
            well: WellSpec::new(Geometry::STANDARD, Rules::default()),
            start: Start::Empty,
            evaluator: EvaluatorSpec {
                kind: EvaluatorKind::Patterns,
                weights: Weights::default(),
                quiescence: Quiescence::Off,
            },
        };
        v1::Prepare {
            run: "run".to_owned(),
            spec: serde_json::to_string(&spec).unwrap(),
            depth: 0,
            owners: vec![0; 4],
            members: vec![v1::Member {
                name: "w0".to_owned(),
                address: "http://127.0.0.1:1".to_owned(),
            }],
            tables: Vec::new(),
        }
    }

    async fn execute(executor: &Executor, epoch: u64, what: Order) -> Answer {
        let kind = Some(what);
        executor.execute(v1::Order { epoch, id: 1, kind }).await
    }

    fn bad_prepares() -> Vec<v1::Prepare> {
        let good = prepare();
        let table = |shard| v1::Table {
            shard,
            ..v1::Table::default()
        };
        let with = |change: &dyn Fn(&mut v1::Prepare)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad
        };
        vec![
            v1::Prepare::default(),
            with(&|bad| bad.spec = "{}".to_owned()),
            with(&|bad| bad.spec = bad.spec.replace("50", "0")),
            with(&|bad| bad.owners.clear()),
            with(&|bad| bad.owners = vec![0; MAX_SHARDS + 1]),
            with(&|bad| bad.owners = vec![7; 4]),
            with(&|bad| bad.members.clear()),
            with(&|bad| bad.members[0].name = "w1".to_owned()),
            with(&|bad| bad.tables = vec![table(4)]),
            with(&|bad| (bad.depth, bad.tables) = (3, vec![table(1)])),
            with(&|bad| {
                bad.members.push(v1::Member {
                    name: "w1".to_owned(),
                    address: "no address".to_owned(),
                });
            }),
        ]
    }

    fn bad_orders() -> Vec<Order> {
        let prefix = |known| v1::Prefix { known, prefix: 0 };
        let expand = |depth, sigmas| {
            Order::Expand(v1::Expand {
                depth,
                attempt: 1,
                sigmas,
            })
        };
        let count = |depth, prefixes| Order::Count(v1::Count { depth, prefixes });
        let select = |depth, ties: &[u8]| {
            Order::Select(v1::Select {
                depth,
                cut: 0,
                ties: ties.to_vec(),
                all_ties: false,
            })
        };
        vec![
            expand(0, 1.0),
            expand(u32::MAX, 1.0),
            expand(1, f64::NAN),
            expand(1, -1.0),
            expand(1, f64::INFINITY),
            count(2, vec![prefix(0)]),
            count(1, vec![prefix(DIGITS)]),
            count(1, vec![prefix(0); 3]),
            Order::ValidateCut(v1::ValidateCut {
                depth: 9,
                ..v1::ValidateCut::default()
            }),
            select(9, &[]),
            Order::WaitCommit(v1::WaitCommit { depth: 1 }),
        ]
    }

    /// A coordinator that talks nonsense gets an answer to each order, and can go on with a good one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn orders_that_cannot_be_obeyed_are_answered() {
        let dir = tempfile::tempdir().unwrap();
        let executor = executor(dir.path()).await;
        let failed = |answer: &Answer| matches!(answer, Answer::Failed(_));
        let nothing = v1::Order::default();
        assert!(failed(&executor.execute(nothing).await));
        for bad in bad_prepares() {
            let answer = execute(&executor, 1, Order::Prepare(bad.clone())).await;
            assert!(failed(&answer), "{bad:?}: {answer:?}");
        }
        let answer = execute(&executor, 1, Order::Prepare(prepare())).await;
        assert!(
            matches!(&answer, Answer::Prepared(it) if it.wells == 1),
            "{answer:?}"
        );
        for bad in bad_orders() {
            let answer = execute(&executor, 1, bad.clone()).await;
            assert!(failed(&answer), "{bad:?}: {answer:?}");
        }
        let expand = Order::Expand(v1::Expand {
            depth: 1,
            attempt: 1,
            sigmas: 6.0,
        });
        assert!(
            failed(&execute(&executor, 2, expand.clone()).await),
            "another epoch"
        );
        let answer = execute(&executor, 1, expand).await;
        assert!(
            matches!(&answer, Answer::Expanded(it) if it.children == 17),
            "{answer:?}"
        );
        // Ties that are cut off change nothing: what was expanded can still be selected.
        let mut select = v1::Select {
            depth: 1,
            cut: 0,
            ties: vec![1, 2, 3],
            all_ties: false,
        };
        assert!(failed(
            &execute(&executor, 1, Order::Select(select.clone())).await
        ));
        select.ties.clear();
        select.all_ties = true;
        let answer = execute(&executor, 1, Order::Select(select)).await;
        assert!(
            matches!(&answer, Answer::Selected(it) if it.count == 17),
            "{answer:?}"
        );
        let answer = execute(&executor, 1, Order::WaitCommit(v1::WaitCommit { depth: 1 })).await;
        assert!(
            matches!(&answer, Answer::Committed(it) if !it.tables.is_empty()),
            "{answer:?}"
        );
    }
}
