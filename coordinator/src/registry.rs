//! The workers that attend: who they are, when they were last heard of, what they were asked.

use crate::metrics::Metrics;
use crate::wire::{machine_from_wire, machine_to_wire};
use hatebeam_cost::{ActiveProcess, MAX_WORKERS, Machine};
use hatebeam_proto::v1;
use hatebeam_proto::v1::answer::Kind as Answer;
use hatebeam_proto::v1::from_worker::Message as FromWorker;
use hatebeam_proto::v1::order::Kind as Order;
use hatebeam_proto::v1::to_worker::Message as ToWorker;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Orders that wait to be sent to a worker at most: there are never more than two.
const QUEUE: usize = 16;
/// A worker that gives signs of life, and yet comes no further for so long, hangs. It is longer than a table
/// or an upload can take.
const STALL: Duration = Duration::from_secs(30 * 60);
/// A worker that is far behind for longer than this is slow: depths that take less say nothing.
const BEHIND: Duration = Duration::from_secs(2);
/// The longest reason to go.
const MAX_REASON: usize = 200;
/// Workers that were lost and are remembered.
const LOST: usize = 16;
/// For how long.
const LOST_FOR: Duration = Duration::from_secs(600);
/// The longest name of a worker.
const MAX_NAME: usize = 128;

/// A worker that was lost, or could not do what it was told.
#[derive(Clone, Debug)]
pub(crate) struct WorkerError {
    pub(crate) worker: String,
    pub(crate) reason: String,
    /// It is not there any more; otherwise it said that it could not.
    pub(crate) is_gone: bool,
    /// It may be able to in a while: the object store is out of its reach.
    pub(crate) is_transient: bool,
    /// Who could not reach whom, if that was it.
    pub(crate) unreached: Vec<(String, String)>,
}

impl WorkerError {
    /// A worker that is there, and could not do what it was told.
    pub(crate) fn of(worker: &str, reason: &str) -> WorkerError {
        WorkerError {
            worker: worker.to_owned(),
            reason: reason.to_owned(),
            is_gone: false,
            is_transient: false,
            unreached: Vec::new(),
        }
    }

    /// A worker that is not there any more.
    fn gone(worker: &str) -> WorkerError {
        WorkerError {
            is_gone: true,
            ..WorkerError::of(worker, "it is not there any more")
        }
    }
}

/// A worker, as the one who gives it orders knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) threads: u32,
    pub(crate) session: u64,
}

struct Worker {
    session: u64,
    hello: v1::Hello,
    orders: mpsc::Sender<Result<v1::ToWorker, Status>>,
    heard: Instant,
    beat: v1::Heartbeat,
    /// Since when it is far behind the others.
    behind: Option<Instant>,
    /// Since when it has expanded its part, and the tables of the depth before are still on their way.
    uploads: Option<Instant>,
    is_leaving: bool,
    /// Shards it has.
    shards: u32,
    /// Until when it is given none, and why.
    quarantined: Option<(Instant, String)>,
    machine: Machine,
    /// Whether it has said how many requests it has made, of which none is charged that came before.
    has_counted: bool,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
}

impl Worker {
    /// Why it is left out, if it is.
    fn quarantined(&self, now: Instant) -> Option<&str> {
        let (until, reason) = self.quarantined.as_ref()?;
        (now < *until).then_some(reason.as_str())
    }

    /// How much of its part of the depth is expanded, from 0 to 1.
    fn share(&self) -> f64 {
        match self.beat.parents {
            0 => 1.0,
            parents => self.beat.expanded as f64 / parents as f64,
        }
    }

    /// Tables go to the object store while the next depth is expanded: who is done with that waits for them.
    fn waits_for_uploads(&self) -> bool {
        let beat = &self.beat;
        beat.parents > 0 && beat.expanded >= beat.parents && beat.uploading_bytes > 0
    }

    /// Whether the others have waited for it for a while.
    fn is_slow(&self) -> bool {
        self.behind.is_some_and(|since| since.elapsed() > BEHIND)
    }
}

#[derive(Default)]
struct Inner {
    workers: BTreeMap<String, Worker>,
    sessions: u64,
    orders: u64,
    /// Requests that workers have made to the object store: those that write, those that read.
    requests: (u64, u64),
    /// Workers that went without being let go, and when: the last ones.
    lost: VecDeque<(Instant, String, String)>,
}

/// The workers that attend.
pub(crate) struct WorkerRegistry {
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
    beat: Duration,
    lost_after: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl WorkerRegistry {
    pub(crate) fn new(
        beat: Duration,
        lost_after: Duration,
        metrics: Arc<Metrics>,
    ) -> Arc<WorkerRegistry> {
        Arc::new(WorkerRegistry {
            metrics,
            inner: Mutex::default(),
            changes: watch::Sender::new(0),
            beat,
            lost_after,
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when workers come, go, or want to go.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The workers that may be given shards.
    pub(crate) fn members(&self) -> Vec<Member> {
        let inner = self.inner();
        let now = Instant::now();
        let workers = inner.workers.values();
        workers
            .filter(|worker| !worker.is_leaving && worker.quarantined(now).is_none())
            .map(|worker| Member {
                name: worker.hello.name.clone(),
                address: worker.hello.address.clone(),
                threads: worker.hello.threads,
                session: worker.session,
            })
            .collect()
    }

    /// How all workers stand.
    pub(crate) fn statuses(&self, epoch: u64) -> Vec<v1::WorkerStatus> {
        let inner = self.inner();
        let now = Instant::now();
        let status = |worker: &Worker| {
            let is_working = worker.beat.epoch == epoch && epoch > 0;
            let quarantined = worker.quarantined(now);
            let silent = worker.heard.elapsed();
            v1::WorkerStatus {
                name: worker.hello.name.clone(),
                address: worker.hello.address.clone(),
                state: match (worker.is_leaving, quarantined, is_working) {
                    (true, _, _) => "draining",
                    (false, Some(_), _) => "quarantined",
                    (false, None, true) => "working",
                    (false, None, false) => "idle",
                }
                .to_owned(),
                note: quarantined.unwrap_or_default().to_owned(),
                threads: worker.hello.threads,
                shards: worker.shards,
                expanded: worker.beat.expanded,
                parents: worker.beat.parents,
                rss_bytes: worker.beat.rss_bytes,
                memory_bytes: worker.hello.memory_bytes,
                disk_free_bytes: worker.beat.disk_free_bytes,
                silent_ms: silent.as_millis() as u64,
                slow: worker.is_slow() || silent > self.beat * 3,
                machine: Some(machine_to_wire(worker.machine.clone())),
                uploading_bytes: worker.beat.uploading_bytes,
                disk_bytes: worker.hello.disk_bytes,
                uploads_behind: worker.uploads.is_some_and(|since| since.elapsed() > BEHIND),
            }
        };
        inner.workers.values().map(status).collect()
    }

    /// The processes that attend, and their machines.
    pub(crate) fn present(&self) -> Vec<ActiveProcess> {
        let inner = self.inner();
        let present = |worker: &Worker| ActiveProcess {
            name: worker.hello.name.clone(),
            started_ms: worker.hello.started_ms,
            machine: worker.machine.clone(),
        };
        inner.workers.values().map(present).collect()
    }

    /// Requests that workers have made to the object store so far: those that write, those that read.
    pub(crate) fn requests(&self) -> (u64, u64) {
        self.inner().requests
    }

    /// Workers that were lost in the last minutes, and why, the last one first.
    pub(crate) fn lately_lost(&self) -> Vec<(String, String)> {
        let inner = self.inner();
        let lately = inner
            .lost
            .iter()
            .filter(|(when, ..)| when.elapsed() < LOST_FOR);
        lately
            .map(|(_, name, reason)| (name.clone(), reason.clone()))
            .collect()
    }

    /// Looks who is far behind, time and again: half as far as the others, once these are well on their way.
    pub(crate) async fn look_who_is_slow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.beat).await;
            let mut inner = self.inner();
            let workers = || inner.workers.values();
            let epoch = workers().map(|w| w.beat.epoch).max().unwrap_or(0);
            let working = |worker: &Worker| worker.beat.epoch == epoch && worker.beat.parents > 0;
            let of_epoch = workers().filter(|worker| working(worker));
            let mut shares: Vec<f64> = of_epoch.map(Worker::share).collect();
            shares.sort_by(f64::total_cmp);
            let median = shares.get(shares.len() / 2).copied().unwrap_or(0.0);
            for (name, worker) in &mut inner.workers {
                worker.uploads = match worker.waits_for_uploads() {
                    true => worker.uploads.or_else(|| Some(Instant::now())),
                    false => None,
                };
                let was_slow = worker.is_slow();
                let share = worker.share();
                if !working(worker) || median <= 0.5 || share >= median / 2.0 {
                    worker.behind = None;
                } else {
                    worker.behind.get_or_insert_with(Instant::now);
                }
                if worker.is_slow() && !was_slow {
                    let (share, median) = (share * 100.0, median * 100.0);
                    tracing::warn!(worker = name, share, median, "the others wait for it");
                }
            }
        }
    }

    /// Wells that were expanded in this epoch's depth, and of how many.
    pub(crate) fn progress(&self, epoch: u64) -> (u64, u64) {
        let inner = self.inner();
        let of_epoch = inner.workers.values().filter(|w| w.beat.epoch == epoch);
        of_epoch.fold((0, 0), |(expanded, parents), worker| {
            (
                expanded + worker.beat.expanded,
                parents + worker.beat.parents,
            )
        })
    }

    /// Has a worker go as if it had asked to.
    pub(crate) fn drain(&self, name: &str) -> bool {
        let found = match self.inner().workers.get_mut(name) {
            Some(worker) => {
                worker.is_leaving = true;
                true
            }
            None => false,
        };
        self.changed();
        found
    }

    /// Gives a worker no shards for a while. If it comes again in the meantime, it is tried.
    pub(crate) fn quarantine(self: &Arc<Self>, name: &str, how_long: Duration, reason: &str) {
        if let Some(worker) = self.inner().workers.get_mut(name) {
            worker.quarantined = Some((Instant::now() + how_long, reason.to_owned()));
        }
        self.changed();
        let registry = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(how_long).await;
            registry.changed();
        });
    }

    /// Takes note of how many shards each of these has, and all others none.
    pub(crate) fn set_shards(&self, workers: &[Member], owners: &[u32]) {
        let mut inner = self.inner();
        inner.workers.values_mut().for_each(|w| w.shards = 0);
        for &owner in owners {
            let member = workers.get(owner as usize);
            let worker = member.and_then(|member| inner.workers.get_mut(&member.name));
            if let Some(worker) = worker {
                worker.shards += 1;
            }
        }
    }

    /// Lets the workers go that want to and have nothing to do any more.
    pub(crate) fn release(&self, busy: &[Member]) {
        let mut inner = self.inner();
        let idle = |worker: &Worker| {
            worker.is_leaving && !busy.iter().any(|member| member.session == worker.session)
        };
        inner.workers.retain(|name, worker| {
            if !idle(worker) {
                return true;
            }
            tracing::info!(worker = name, "released");
            let _ = worker.orders.try_send(Ok(v1::ToWorker {
                message: Some(ToWorker::Released(v1::Released {})),
            }));
            false
        });
    }

    /// Whether all of these are still there and none wants to go, and nobody else has come.
    pub(crate) fn are_workers_unchanged(&self, workers: &[Member]) -> bool {
        let now = self.members();
        now.len() == workers.len() && now.iter().all(|member| workers.contains(member))
    }

    /// Gives a worker an order, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        member: &Member,
        epoch: u64,
        what: Order,
    ) -> Result<Answer, WorkerError> {
        self.metrics.all.orders.add(what.name(), 1);
        let gone = || WorkerError::gone(&member.name);
        let (orders, answer, order) = {
            let mut inner = self.inner();
            inner.orders += 1;
            let id = inner.orders;
            let worker = inner.workers.get_mut(&member.name);
            let worker = worker.filter(|worker| worker.session == member.session);
            let worker = worker.ok_or_else(gone)?;
            let (tell, answer) = oneshot::channel();
            worker.waiting.insert(id, tell);
            let order = v1::Order {
                epoch,
                id,
                kind: Some(what),
            };
            (worker.orders.clone(), answer, order)
        };
        let message = Some(ToWorker::Order(order));
        let sent = orders.send(Ok(v1::ToWorker { message })).await;
        sent.map_err(|_| gone())?;
        drop(orders);
        match self.answer(member, answer).await? {
            Answer::Failed(failed) => {
                let pair = || (member.name.clone(), failed.peer.clone());
                Err(WorkerError {
                    is_transient: failed.kind() == v1::FailureKind::Unavailable,
                    unreached: (!failed.peer.is_empty()).then(pair).into_iter().collect(),
                    ..WorkerError::of(&member.name, &failed.reason)
                })
            }
            answer => Ok(answer),
        }
    }

    /// Waits for an answer for as long as its worker comes on.
    async fn answer(
        &self,
        member: &Member,
        mut answer: oneshot::Receiver<Answer>,
    ) -> Result<Answer, WorkerError> {
        let mut before = None;
        loop {
            let now = {
                let inner = self.inner();
                let worker = inner.workers.get(&member.name);
                worker.map(|worker| (worker.beat.epoch, worker.beat.depth, worker.beat.expanded))
            };
            if before.is_some() && before == Some(now) {
                let reason = format!("it came no further in {} minutes", STALL.as_secs() / 60);
                return Err(WorkerError::of(&member.name, &reason));
            }
            before = Some(now);
            match tokio::time::timeout(STALL, &mut answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(WorkerError::gone(&member.name)),
                Err(_) => {}
            }
        }
    }

    /// Takes a worker in.
    fn join(
        &self,
        hello: v1::Hello,
        orders: mpsc::Sender<Result<v1::ToWorker, Status>>,
    ) -> Result<u64, Status> {
        // It becomes part of keys in the object store.
        let fine = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if hello.name.is_empty() || hello.name.len() > MAX_NAME || !hello.name.chars().all(fine) {
            return Err(Status::invalid_argument(
                "a worker's name has 1 to 128 letters, digits, dots, dashes and underscores",
            ));
        }
        if hello.address.len() > 1024 || hello.threads == 0 || hello.threads > 65_536 {
            return Err(Status::invalid_argument(
                "a worker has an address and 1 to 65,536 threads",
            ));
        }
        if hello.version != env!("CARGO_PKG_VERSION") {
            return Err(Status::invalid_argument(format!(
                "the worker has version {}, the coordinator {}: all must have the same",
                hello.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let mut inner = self.inner();
        if inner.workers.len() >= MAX_WORKERS as usize && !inner.workers.contains_key(&hello.name) {
            return Err(Status::resource_exhausted(format!(
                "{MAX_WORKERS} workers are here already"
            )));
        }
        inner.sessions += 1;
        let session = inner.sessions;
        tracing::info!(
            worker = hello.name,
            address = hello.address,
            threads = hello.threads,
            "joined"
        );
        let worker = Worker {
            session,
            orders,
            heard: Instant::now(),
            beat: v1::Heartbeat::default(),
            behind: None,
            uploads: None,
            is_leaving: false,
            shards: 0,
            quarantined: None,
            machine: machine_from_wire(hello.machine.as_ref()),
            has_counted: false,
            waiting: HashMap::new(),
            hello,
        };
        inner.lost.retain(|(_, name, _)| *name != worker.hello.name);
        // One of the same name that was there before is taken to be gone.
        inner.workers.insert(worker.hello.name.clone(), worker);
        drop(inner);
        self.metrics.all.joined.add(1);
        self.changed();
        Ok(session)
    }

    fn part(&self, name: &str, session: u64, reason: &str) {
        let mut inner = self.inner();
        let is_same = |worker: &Worker| worker.session == session;
        if inner.workers.get(name).is_some_and(is_same) {
            inner.workers.remove(name);
            inner.lost.truncate(LOST - 1);
            let lost = (Instant::now(), name.to_owned(), reason.to_owned());
            inner.lost.push_front(lost);
            drop(inner);
            self.metrics.all.lost.add(1);
            tracing::warn!(worker = name, reason, "lost");
            self.changed();
        }
    }

    /// Takes note of what a worker says; whether it still attends.
    fn heard(&self, name: &str, session: u64, say: Option<FromWorker>) -> bool {
        let mut guard = self.inner();
        let inner = &mut *guard;
        let worker = inner.workers.get_mut(name);
        let Some(worker) = worker.filter(|worker| worker.session == session) else {
            return false;
        };
        worker.heard = Instant::now();
        match say {
            None | Some(FromWorker::Hello(_)) => {}
            Some(FromWorker::Heartbeat(beat)) => {
                let before = std::mem::replace(&mut worker.beat, beat);
                let now = (worker.beat.store_writes, worker.beat.store_reads);
                if std::mem::replace(&mut worker.has_counted, true) {
                    let (writes, reads) = &mut inner.requests;
                    *writes = writes.saturating_add(now.0.saturating_sub(before.store_writes));
                    *reads = reads.saturating_add(now.1.saturating_sub(before.store_reads));
                }
            }
            Some(FromWorker::Answer(answer)) => {
                if let (Some(tell), Some(what)) = (worker.waiting.remove(&answer.id), answer.kind) {
                    let _ = tell.send(what);
                }
            }
            Some(FromWorker::Leaving(leaving)) => {
                let reason = leaving.reason.chars().take(MAX_REASON).collect::<String>();
                tracing::info!(worker = name, reason, "wants to go");
                worker.is_leaving = true;
                drop(guard);
                self.changed();
            }
        }
        true
    }

    /// A worker's attendance.
    pub(crate) async fn run_session(
        self: &Arc<Self>,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<OrderStream>, Status> {
        let mut said = request.into_inner();
        let first = tokio::time::timeout(self.lost_after, said.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no hello came"))??;
        let Some(FromWorker::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("a worker says hello first"));
        };
        let name = hello.name.clone();
        let (orders, stream) = mpsc::channel(QUEUE);
        let welcome = v1::Welcome {
            heartbeat_ms: self.beat.as_millis() as u64,
            lost_after_ms: self.lost_after.as_millis() as u64,
        };
        let welcome = v1::ToWorker {
            message: Some(ToWorker::Welcome(welcome)),
        };
        // The queue is empty.
        let _ = orders.try_send(Ok(welcome));
        let session = self.join(hello, orders)?;
        let registry = Arc::clone(self);
        tokio::spawn(async move {
            let reason = loop {
                match tokio::time::timeout(registry.lost_after, said.message()).await {
                    Err(_) => break format!("silent for {:?}", registry.lost_after),
                    Ok(Err(status)) => break status.message().to_owned(),
                    Ok(Ok(None)) => break "it hung up".to_owned(),
                    Ok(Ok(Some(message))) => {
                        if !registry.heard(&name, session, message.message) {
                            return;
                        }
                    }
                }
            };
            registry.part(&name, session, &reason);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

pub(crate) type OrderStream = Pin<Box<dyn Stream<Item = Result<v1::ToWorker, Status>> + Send>>;
