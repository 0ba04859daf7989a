//! The workers that attend: who they are, when they were last heard of, what they were asked.

use crate::metrics::Metrics;
use hatebeam_proto::v1;
use hatebeam_proto::v1::answer::What as Answer;
use hatebeam_proto::v1::from_worker::Say as FromWorker;
use hatebeam_proto::v1::order::What as Order;
use hatebeam_proto::v1::to_worker::Say as ToWorker;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Orders that wait to be sent to a worker at most: there are never more than two.
const QUEUE: usize = 16;
/// The most workers.
const MAX_WORKERS: usize = 4096;
/// The longest name of a worker.
const MAX_NAME: usize = 128;

/// A worker that was lost, or could not do what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) worker: String,
    pub(crate) reason: String,
    /// It is not there any more; otherwise it said that it could not.
    pub(crate) is_gone: bool,
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
    beat: v1::Beat,
    is_leaving: bool,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
}

#[derive(Default)]
struct Inner {
    workers: BTreeMap<String, Worker>,
    sessions: u64,
    orders: u64,
}

/// The workers that attend.
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
    beat: Duration,
    lost_after: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl Hub {
    pub(crate) fn new(beat: Duration, lost_after: Duration, metrics: Arc<Metrics>) -> Arc<Hub> {
        Arc::new(Hub {
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
        let staying = inner.workers.values().filter(|worker| !worker.is_leaving);
        staying
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
        let share = |worker: &Worker| {
            let (done, of) = (worker.beat.expanded, worker.beat.parents);
            if of == 0 {
                1.0
            } else {
                done as f64 / of as f64
            }
        };
        let mut working: Vec<f64> = inner
            .workers
            .values()
            .filter(|worker| worker.beat.epoch == epoch)
            .map(share)
            .collect();
        working.sort_by(f64::total_cmp);
        let median = working.get(working.len() / 2).copied().unwrap_or(1.0);
        let status = |worker: &Worker| {
            let is_working = worker.beat.epoch == epoch && epoch > 0;
            let silent = worker.heard.elapsed();
            v1::WorkerStatus {
                name: worker.hello.name.clone(),
                address: worker.hello.address.clone(),
                state: match (worker.is_leaving, is_working) {
                    (true, _) => "draining",
                    (false, true) => "working",
                    (false, false) => "idle",
                }
                .to_owned(),
                threads: worker.hello.threads,
                shards: 0,
                expanded: worker.beat.expanded,
                parents: worker.beat.parents,
                rss_bytes: worker.beat.rss_bytes,
                memory_bytes: worker.hello.memory_bytes,
                disk_free_bytes: worker.beat.disk_free_bytes,
                silent_ms: silent.as_millis() as u64,
                // Half as far as the others, once these are well on their way; or not heard of.
                slow: is_working && median > 0.5 && share(worker) < median / 2.0
                    || silent > self.beat * 3,
            }
        };
        inner.workers.values().map(status).collect()
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
                say: Some(ToWorker::Released(v1::Released {})),
            }));
            false
        });
    }

    /// Whether all of these are still there and none wants to go, and nobody else has come.
    pub(crate) fn is_crew(&self, crew: &[Member]) -> bool {
        let now = self.members();
        now.len() == crew.len() && now.iter().all(|member| crew.contains(member))
    }

    /// Gives a worker an order, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        member: &Member,
        epoch: u64,
        what: Order,
    ) -> Result<Answer, Lost> {
        self.metrics.all.orders.add(what.name(), 1);
        let gone = || Lost {
            worker: member.name.clone(),
            reason: "it is not there any more".to_owned(),
            is_gone: true,
        };
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
                what: Some(what),
            };
            (worker.orders.clone(), answer, order)
        };
        let say = Some(ToWorker::Order(order));
        let sent = orders.send(Ok(v1::ToWorker { say })).await;
        sent.map_err(|_| gone())?;
        drop(orders);
        match answer.await.map_err(|_| gone())? {
            Answer::Failed(failed) => Err(Lost {
                worker: member.name.clone(),
                reason: failed.reason,
                is_gone: false,
            }),
            answer => Ok(answer),
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
        if inner.workers.len() >= MAX_WORKERS && !inner.workers.contains_key(&hello.name) {
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
            beat: v1::Beat::default(),
            is_leaving: false,
            waiting: HashMap::new(),
            hello,
        };
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
            drop(inner);
            self.metrics.all.lost.add(1);
            tracing::warn!(worker = name, reason, "lost");
            self.changed();
        }
    }

    /// Takes note of what a worker says; whether it still attends.
    fn heard(&self, name: &str, session: u64, say: Option<FromWorker>) -> bool {
        let mut inner = self.inner();
        let worker = inner.workers.get_mut(name);
        let Some(worker) = worker.filter(|worker| worker.session == session) else {
            return false;
        };
        worker.heard = Instant::now();
        match say {
            None | Some(FromWorker::Hello(_)) => {}
            Some(FromWorker::Beat(beat)) => worker.beat = beat,
            Some(FromWorker::Answer(answer)) => {
                if let (Some(tell), Some(what)) = (worker.waiting.remove(&answer.id), answer.what) {
                    let _ = tell.send(what);
                }
            }
            Some(FromWorker::Leaving(_)) => {
                tracing::info!(worker = name, "wants to go");
                worker.is_leaving = true;
                drop(inner);
                self.changed();
            }
        }
        true
    }

    /// A worker's attendance.
    pub(crate) async fn attend(
        self: &Arc<Self>,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<OrderStream>, Status> {
        let mut said = request.into_inner();
        let first = tokio::time::timeout(self.lost_after, said.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no hello came"))??;
        let Some(FromWorker::Hello(hello)) = first.and_then(|first| first.say) else {
            return Err(Status::invalid_argument("a worker says hello first"));
        };
        let name = hello.name.clone();
        let (orders, stream) = mpsc::channel(QUEUE);
        let welcome = v1::Welcome {
            beat_ms: self.beat.as_millis() as u64,
        };
        let welcome = v1::ToWorker {
            say: Some(ToWorker::Welcome(welcome)),
        };
        // The queue is empty.
        let _ = orders.try_send(Ok(welcome));
        let session = self.join(hello, orders)?;
        let hub = Arc::clone(self);
        tokio::spawn(async move {
            let reason = loop {
                match tokio::time::timeout(hub.lost_after, said.message()).await {
                    Err(_) => break format!("silent for {:?}", hub.lost_after),
                    Ok(Err(status)) => break status.message().to_owned(),
                    Ok(Ok(None)) => break "it hung up".to_owned(),
                    Ok(Ok(Some(message))) => {
                        if !hub.heard(&name, session, message.say) {
                            return;
                        }
                    }
                }
            };
            hub.part(&name, session, &reason);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

pub(crate) type OrderStream = Pin<Box<dyn Stream<Item = Result<v1::ToWorker, Status>> + Send>>;
