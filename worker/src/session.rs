//! Sessions with the coordinator: joining, heartbeats, orders, and reconnection.

use crate::executor::Executor;
use crate::link::Session;
use crate::lock;
use crate::worker::Worker;
use hatebeam_proto::messages::{
    Answer, FromWorker, Heartbeat, Hello, Leaving, Order, ToWorker, Welcome,
};
use hatebeam_proto::{LinkError, LinkErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_stream::StreamExt;

/// Delay before the first attempt to reconnect. The delay doubles with each further attempt.
const MIN_RECONNECT_WAIT: Duration = Duration::from_millis(200);
/// Maximum delay before an attempt to reconnect.
const MAX_RECONNECT_WAIT: Duration = Duration::from_secs(3);

/// Error for a worker that the coordinator rejected. Reconnecting would not help.
#[derive(Debug, Error)]
#[error("the coordinator rejected this worker: {0}")]
pub struct Refused(String);

/// Reason why a session ended.
enum Ended {
    /// The coordinator released the worker, or the worker was stopped before it had joined.
    Released,
    /// The coordinator rejected this worker.
    Refused(String),
    /// The connection failed or was lost.
    Lost {
        reason: String,
        /// Whether the coordinator had welcomed the worker.
        was_welcome: bool,
    },
}

impl Ended {
    fn of(error: LinkError, was_welcome: bool) -> Ended {
        let reason = error.reason;
        match error.kind {
            LinkErrorKind::Refused | LinkErrorKind::BadMessage => Ended::Refused(reason),
            LinkErrorKind::Transient | LinkErrorKind::Superseded => Ended::Lost {
                reason,
                was_welcome,
            },
        }
    }
}

impl Worker {
    /// Works for the coordinator until `stop` contains a reason to leave. The worker then requests its release. This
    /// function returns once the coordinator has released the worker, or immediately if the worker is not connected.
    /// If the connection is lost, the worker tries to reconnect indefinitely.
    ///
    /// # Errors
    /// Returns [`Refused`] if the coordinator rejects this worker.
    pub async fn run(&self, mut stop: watch::Receiver<Option<String>>) -> Result<(), Refused> {
        let metrics = &self.executor.traffic.metrics;
        let mut wait = MIN_RECONNECT_WAIT;
        loop {
            metrics.connect_attempts.add(1);
            let ended = self.run_session(&mut stop).await;
            metrics.connected.set(0);
            self.executor.halt();
            match ended {
                Ended::Released => return Ok(()),
                Ended::Refused(reason) => return Err(Refused(reason)),
                Ended::Lost {
                    reason,
                    was_welcome,
                } => {
                    if was_welcome {
                        wait = MIN_RECONNECT_WAIT;
                    }
                    tracing::warn!(reason, "reconnecting to the coordinator");
                }
            }
            if stop.borrow().is_some() {
                return Ok(());
            }
            tokio::select! {
                biased;
                _ = stop.changed() => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(MAX_RECONNECT_WAIT);
        }
    }

    async fn run_session(&self, stop: &mut watch::Receiver<Option<String>>) -> Ended {
        // A read of the lease can take minutes.
        let opened = tokio::select! {
            biased;
            _ = stop.changed() => return Ended::Released,
            opened = self.coordinator.open(self.hello()) => opened,
        };
        let Session {
            outbound,
            mut inbound,
        } = match opened {
            Ok(session) => session,
            Err(error) => return Ended::of(error, false),
        };
        let mut heartbeats: Option<Interval> = None;
        let mut is_leaving = false;
        loop {
            tokio::select! {
                biased;
                () = tick(&mut heartbeats) => {
                    // If the queue is full, the heartbeat is dropped. The queued messages prove equally well that this
                    // worker is alive.
                    let _ = outbound.try_send(FromWorker::Heartbeat(self.heartbeat()));
                }
                changed = stop.changed(), if !is_leaving => {
                    is_leaving = true;
                    if changed.is_err() || heartbeats.is_none() {
                        return Ended::Released;
                    }
                    let reason = stop.borrow().clone().unwrap_or_default();
                    tracing::info!(reason, "requested release");
                    let _ = outbound.send(FromWorker::Leaving(Leaving { reason })).await;
                }
                message = inbound.next() => match message {
                    Some(Ok(ToWorker::Welcome(welcome))) => {
                        heartbeats = Some(self.begin(welcome));
                        tracing::info!("joined the coordinator");
                    }
                    Some(Ok(ToWorker::Released)) => return Ended::Released,
                    Some(Ok(ToWorker::Order(order))) => self.spawn_order(order, &outbound),
                    Some(Err(error)) => return Ended::of(error, heartbeats.is_some()),
                    None => {
                        let error = LinkError::transient("the coordinator closed the session");
                        return Ended::of(error, heartbeats.is_some());
                    }
                },
            }
        }
    }

    /// Starts a task that carries out an order and sends the answer.
    fn spawn_order(&self, order: Order, outbound: &mpsc::Sender<FromWorker>) {
        let (executor, outbound) = (Arc::clone(&self.executor), outbound.clone());
        let answering = async move {
            let (epoch, id) = (order.epoch, order.id);
            let kind = executor.execute(order).await;
            let answer = Answer { epoch, id, kind };
            // If sending fails, the session is over, and the coordinator does not expect an answer.
            let _ = outbound.send(FromWorker::Answer(answer)).await;
        };
        self.executor.env.spawn(answering);
    }

    /// Applies the settings from the coordinator's welcome message, and returns the heartbeat timer.
    fn begin(&self, welcome: Welcome) -> Interval {
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(3600));
        if !welcome.lost_after.is_zero() {
            let lost_after = welcome.lost_after.clamp(shortest, longest);
            *lock(&self.executor.state.lost_after) = lost_after;
        }
        self.executor.traffic.metrics.connected.set(1);
        let (shortest, longest) = (Duration::from_millis(10), Duration::from_secs(60));
        let mut heartbeats = tokio::time::interval(welcome.heartbeat.clamp(shortest, longest));
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeats
    }

    fn hello(&self) -> Hello {
        let (settings, storage) = (&self.settings, &self.executor.storage);
        Hello {
            name: settings.name.clone(),
            address: settings.address.clone(),
            threads: u32::try_from(settings.threads).unwrap_or(u32::MAX),
            memory_bytes: settings.memory_bytes,
            disk_free_bytes: storage.free_bytes(),
            disk_bytes: storage.disk_bytes(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: settings.machine.clone(),
            started_ms: settings.started_ms,
            search: settings.search.to_string(),
            lease: String::new(),
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        let Executor {
            objects,
            storage,
            traffic,
            state,
            ..
        } = &*self.executor;
        let (store_writes, store_reads) = objects.stats().charged();
        Heartbeat {
            epoch: state.progress.epoch.load(Ordering::Relaxed),
            depth: state.progress.depth.load(Ordering::Relaxed),
            expanded: state.progress.expanded.load(Ordering::Relaxed),
            parents: state.progress.parents.load(Ordering::Relaxed),
            rss_bytes: (self.settings.rss)(),
            disk_free_bytes: storage.free_bytes(),
            store_writes,
            store_reads,
            uploading_bytes: traffic.metrics.uploading.get(),
        }
    }
}

async fn tick(heartbeats: &mut Option<Interval>) {
    match heartbeats {
        Some(heartbeats) => {
            heartbeats.tick().await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::CoordinatorLink;
    use crate::testing::Cluster;
    use hatebeam_proto::messages::{AnswerKind, OrderKind};
    use std::sync::Mutex;
    use tokio_stream::wrappers::ReceiverStream;

    /// The coordinator's side of a session.
    struct Coordinator {
        orders: mpsc::Sender<Result<ToWorker, LinkError>>,
        answers: mpsc::Receiver<FromWorker>,
    }

    impl Coordinator {
        async fn send(&self, message: ToWorker) {
            self.orders.send(Ok(message)).await.unwrap();
        }

        /// Returns the next message that is not a heartbeat.
        async fn next(&mut self) -> FromWorker {
            loop {
                match self.answers.recv().await.unwrap() {
                    FromWorker::Heartbeat(_) => {}
                    message => return message,
                }
            }
        }
    }

    /// A link that returns prepared results, one for each attempt to open a session.
    struct Link {
        sessions: Mutex<Vec<Result<Session, LinkError>>>,
    }

    #[tonic::async_trait]
    impl CoordinatorLink for Link {
        async fn open(&self, hello: Hello) -> Result<Session, LinkError> {
            let session = lock(&self.sessions).pop();
            let session =
                session.unwrap_or_else(|| Err(LinkError::refused("no session is left")))?;
            let sent = session
                .outbound
                .send(FromWorker::Hello(Box::new(hello)))
                .await;
            sent.map_err(|_| LinkError::transient("the coordinator is gone"))?;
            Ok(session)
        }
    }

    fn session() -> (Session, Coordinator) {
        let (outbound, answers) = mpsc::channel(64);
        let (orders, inbound) = mpsc::channel(64);
        let inbound = Box::pin(ReceiverStream::new(inbound));
        (
            Session { outbound, inbound },
            Coordinator { orders, answers },
        )
    }

    fn worker(mut sessions: Vec<Result<Session, LinkError>>) -> Worker {
        sessions.reverse();
        let sessions = Mutex::new(sessions);
        Cluster::new().worker_of("w0", Arc::new(Link { sessions }))
    }

    const WELCOME: ToWorker = ToWorker::Welcome(Welcome {
        heartbeat: Duration::from_secs(1),
        lost_after: Duration::from_secs(5),
    });

    #[tokio::test(start_paused = true)]
    async fn worker_answers_orders_and_exits_once_released() {
        let (session, mut coordinator) = session();
        let worker = worker(vec![Ok(session)]);
        let (stop, stopped) = watch::channel(None);
        let running = tokio::spawn(async move { worker.run(stopped).await });
        let FromWorker::Hello(hello) = coordinator.next().await else {
            panic!("the first message is not a hello");
        };
        assert_eq!((hello.name.as_str(), hello.threads), ("w0", 1));
        coordinator.send(WELCOME).await;
        let first = coordinator.answers.recv().await.unwrap();
        assert!(matches!(first, FromWorker::Heartbeat(_)), "{first:?}");
        let order = Order {
            epoch: 1,
            id: 7,
            kind: OrderKind::Halt,
        };
        coordinator.send(ToWorker::Order(order)).await;
        let answer = Answer {
            epoch: 1,
            id: 7,
            kind: AnswerKind::Halted,
        };
        assert_eq!(coordinator.next().await, FromWorker::Answer(answer));
        stop.send(Some("the machine is going away".to_owned()))
            .unwrap();
        let leaving = Leaving {
            reason: "the machine is going away".to_owned(),
        };
        assert_eq!(coordinator.next().await, FromWorker::Leaving(leaving));
        assert!(!running.is_finished());
        coordinator.send(ToWorker::Released).await;
        running.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_use_interval_from_welcome() {
        let (session, mut coordinator) = session();
        let worker = worker(vec![Ok(session)]);
        let (_stop, stopped) = watch::channel(None);
        tokio::spawn(async move { worker.run(stopped).await });
        coordinator.send(WELCOME).await;
        coordinator.answers.recv().await.unwrap();
        let began = tokio::time::Instant::now();
        for _ in 0..10 {
            let message = coordinator.answers.recv().await.unwrap();
            assert!(matches!(message, FromWorker::Heartbeat(_)), "{message:?}");
        }
        assert_eq!(began.elapsed(), Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn worker_reconnects_with_increasing_delay() {
        let lost = || Err(LinkError::transient("connection refused"));
        let (session, mut coordinator) = session();
        let mut sessions: Vec<_> = (0..6).map(|_| lost()).collect();
        sessions.push(Ok(session));
        let worker = worker(sessions);
        let (_stop, stopped) = watch::channel(None);
        let running = tokio::spawn(async move { worker.run(stopped).await });
        let began = tokio::time::Instant::now();
        assert!(matches!(coordinator.next().await, FromWorker::Hello(_)));
        // The delays are 0.2, 0.4, 0.8, 1.6, 3 and 3 s.
        assert_eq!(began.elapsed(), Duration::from_secs(9));
        // A welcome resets the delay to 0.2 s.
        coordinator.send(WELCOME).await;
        coordinator.answers.recv().await.unwrap();
        let lost = tokio::time::Instant::now();
        drop(coordinator);
        let error = running.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no session is left"), "{error}");
        assert_eq!(lost.elapsed(), MIN_RECONNECT_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn unconnected_worker_exits_immediately_when_stopped() {
        let waiting = Cluster::new().worker("w0");
        let refused = worker(vec![Err(LinkError::transient("connection refused"))]);
        for worker in [waiting, refused] {
            let (stop, stopped) = watch::channel(None);
            let running = tokio::spawn(async move { worker.run(stopped).await });
            tokio::time::sleep(Duration::from_millis(100)).await;
            stop.send(Some(String::new())).unwrap();
            running.await.unwrap().unwrap();
        }
    }
}
