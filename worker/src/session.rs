//! A worker: it attends a coordinator for as long as it lives.

use crate::exchange::{InboundExchange, PeerService, Traffic};
use crate::executor::{Executor, lock};
use hatebeam_cost::Machine;
use hatebeam_metrics::{Registry, WorkerMetrics};
use hatebeam_net::{self as net, Bearer, Limits, MAX_MESSAGE, Tls, Token, WireError, explain};
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_proto::v1::from_worker::Message as FromWorker;
use hatebeam_proto::v1::members_client::MembersClient;
use hatebeam_proto::v1::peers_server::PeersServer;
use hatebeam_proto::v1::to_worker::Message as ToWorker;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

/// How long a worker waits before it knocks again, at first and at most.
const RECONNECT_WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(3));
/// How long a coordinator may say nothing before it is asked whether it is there, and then until it answers.
const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Answers and beats that wait to be sent.
const QUEUE: usize = 64;

/// What a worker is told at its start.
#[derive(Debug)]
pub struct Membership {
    /// Its name, which no other may have.
    pub name: String,
    /// Where it listens for other workers.
    pub listen: SocketAddr,
    /// Where these reach it, if not there: a URI.
    pub advertise: Option<String>,
    /// The coordinator's URI.
    pub coordinator: String,
    /// Threads that search.
    pub threads: usize,
    /// Bytes of memory it may fill.
    pub memory_bytes: u64,
    /// A folder of its own, which is emptied.
    pub dir: PathBuf,
    /// Where tables go.
    pub objects: Objects,
    /// Its certificate.
    pub tls: Option<Tls>,
    /// What it shows the coordinator.
    pub token: Option<Token>,
    /// Whether batches are compressed.
    pub compress: bool,
    /// What is said of the process in a beat: its memory in bytes.
    pub rss: fn() -> u64,
    /// The machine it runs on, and what that costs.
    pub machine: Machine,
    /// When the process was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Where it counts what it does.
    pub registry: Registry,
}

/// Why a worker ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemberError {
    /// It cannot listen, or knows no certificates.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Its folder cannot be used.
    #[error(transparent)]
    Store(#[from] hatebeam_store::StoreError),
    /// Its server ended.
    #[error("the worker's server")]
    Server(#[source] tonic::transport::Error),
    /// The coordinator will not have it.
    #[error("the coordinator refuses this worker: {0}")]
    Refused(String),
}

/// Attends the coordinator until `stop` says why it is to go: then the worker asks to be let go, and goes when it is, or
/// at once where there is no coordinator to ask. A coordinator that is lost is looked for again and again.
///
/// # Errors
/// [`MemberError`]; a coordinator that cannot be reached is none.
pub async fn work(
    membership: Membership,
    mut stop: watch::Receiver<Option<String>>,
) -> Result<(), MemberError> {
    let incoming = net::listen(membership.listen)?;
    let address = incoming.local_addr().ok().unwrap_or(membership.listen);
    let scheme = if membership.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let advertise = membership.advertise.clone();
    let advertise = advertise.unwrap_or_else(|| format!("{scheme}://{address}"));
    let metrics = WorkerMetrics::register(&membership.registry);
    metrics.threads.set(membership.threads.max(1) as u64);
    let traffic = Traffic::new(metrics.clone());
    let (inbound, taken_in): (_, watch::Receiver<Option<InboundExchange>>) = watch::channel(None);
    let service = PeersServer::new(PeerService {
        inbound: taken_in,
        traffic: Arc::clone(&traffic),
    })
    .max_decoding_message_size(MAX_MESSAGE)
    .max_encoding_message_size(MAX_MESSAGE);
    let server = net::server(membership.tls.as_ref())?
        .add_service(service)
        .serve_with_incoming(incoming);
    let mut server = tokio::spawn(server);
    tracing::info!(
        name = membership.name,
        address = advertise,
        "the worker listens"
    );
    let executor = Arc::new(Executor::new(
        (
            membership.name.clone(),
            membership.threads.max(1),
            membership.dir.clone(),
        ),
        membership.objects.clone(),
        membership.tls.clone(),
        membership.compress,
        (inbound, traffic),
    ));
    let shown = Arc::downgrade(&executor);
    membership.registry.before_scrape(move || {
        if let Some(executor) = shown.upgrade() {
            executor.show();
        }
    });
    let mut wait = RECONNECT_WAIT.0;
    loop {
        metrics.connect_attempts.add(1);
        let session = join(&membership, &advertise, &executor, &mut stop);
        let ended = tokio::select! {
            ended = session => ended,
            server = &mut server => {
                return match server {
                    Ok(Err(error)) => Err(MemberError::Server(error)),
                    _ => Ok(()),
                };
            }
        };
        metrics.connected.set(0);
        executor.halt();
        match ended {
            Ended::Released => return Ok(()),
            Ended::Refused(reason) => return Err(MemberError::Refused(reason)),
            Ended::PeerError {
                reason,
                was_welcome,
            } => {
                if was_welcome {
                    wait = RECONNECT_WAIT.0;
                }
                tracing::warn!(reason, "no coordinator: knocking again");
            }
        }
        if stop.borrow().is_some() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop.changed() => return Ok(()),
        }
        wait = (wait * 2).min(RECONNECT_WAIT.1);
    }
}

enum Ended {
    Released,
    Refused(String),
    PeerError { reason: String, was_welcome: bool },
}

impl Membership {
    fn hello(&self, advertise: &str) -> v1::Hello {
        v1::Hello {
            name: self.name.clone(),
            address: advertise.to_owned(),
            threads: self.threads as u32,
            memory_bytes: self.memory_bytes,
            disk_free_bytes: self.disk_free(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Some(self.machine.clone().into()),
            started_ms: self.started_ms,
            disk_bytes: hatebeam_store::disk_bytes(&self.dir).unwrap_or(0),
        }
    }

    fn beat(&self, executor: &Executor) -> v1::Heartbeat {
        let progress = &executor.progress;
        let (store_writes, store_reads) = self.objects.stats().charged();
        v1::Heartbeat {
            epoch: progress.epoch.load(Ordering::Relaxed),
            depth: progress.depth.load(Ordering::Relaxed),
            expanded: progress.expanded.load(Ordering::Relaxed),
            parents: progress.parents.load(Ordering::Relaxed),
            rss_bytes: (self.rss)(),
            disk_free_bytes: self.disk_free(),
            store_writes,
            store_reads,
            uploading_bytes: executor.traffic.metrics.uploading.get(),
        }
    }

    fn disk_free(&self) -> u64 {
        hatebeam_store::free_bytes(&self.dir).unwrap_or(0)
    }
}

/// Takes note of what a coordinator says at first; gives when to beat.
fn begin(executor: &Executor, welcome: &v1::Welcome) -> Interval {
    if welcome.lost_after_ms > 0 {
        let lost_after = welcome.lost_after_ms.clamp(100, 3_600_000);
        *lock(&executor.lost_after) = Duration::from_millis(lost_after);
    }
    executor.traffic.metrics.connected.set(1);
    let period = Duration::from_millis(welcome.heartbeat_ms.clamp(10, 60_000));
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn join(
    membership: &Membership,
    advertise: &str,
    executor: &Arc<Executor>,
    stop: &mut watch::Receiver<Option<String>>,
) -> Ended {
    let lost = |reason: String, was_welcome| Ended::PeerError {
        reason,
        was_welcome,
    };
    let limits = Limits {
        connect_timeout: COORDINATOR_TIMEOUT,
        ping_after: COORDINATOR_TIMEOUT,
        ping_answer: COORDINATOR_TIMEOUT,
        ..Limits::default()
    };
    let channel = net::connect(&membership.coordinator, membership.tls.as_ref(), &limits).await;
    let channel = match channel {
        Ok(channel) => channel,
        Err(error) if error.is_transient() => return lost(error.to_string(), false),
        Err(error) => return Ended::Refused(error.to_string()),
    };
    let mut client: MembersClient<InterceptedService<Channel, Bearer>> =
        MembersClient::with_interceptor(channel, Bearer::new(membership.token.as_ref()))
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
    let (say, said) = mpsc::channel(QUEUE);
    let from_worker = |what| v1::FromWorker {
        message: Some(what),
    };
    let _ = say.try_send(from_worker(FromWorker::Hello(membership.hello(advertise))));
    let mut orders = match client.join(ReceiverStream::new(said)).await {
        Ok(orders) => orders.into_inner(),
        Err(status) if is_final(&status) => return Ended::Refused(explain(&status)),
        Err(status) => return lost(explain(&status), false),
    };
    let mut beat: Option<Interval> = None;
    let mut asked = false;
    loop {
        tokio::select! {
            order = orders.message() => {
                let say_what = match order {
                    Ok(Some(order)) => order.message,
                    Ok(None) => return lost("it ended the attendance".to_owned(), beat.is_some()),
                    Err(status) if is_final(&status) => return Ended::Refused(explain(&status)),
                    Err(status) => return lost(explain(&status), beat.is_some()),
                };
                match say_what {
                    None => {}
                    Some(ToWorker::Welcome(welcome)) => {
                        beat = Some(begin(executor, &welcome));
                        tracing::info!(coordinator = membership.coordinator, "welcome");
                    }
                    Some(ToWorker::Released(_)) => return Ended::Released,
                    Some(ToWorker::Order(order)) => {
                        let (executor, say) = (Arc::clone(executor), say.clone());
                        tokio::spawn(async move {
                            let (epoch, id) = (order.epoch, order.id);
                            let kind = Some(executor.execute(order).await);
                            let answer = v1::Answer { epoch, id, kind };
                            // If the session is over, nobody waits for it.
                            let _ = say.send(from_worker(FromWorker::Answer(answer))).await;
                        });
                    }
                }
            }
            () = tick(&mut beat) => {
                // When the queue is full, the answers in it tell that this worker is alive.
                let _ = say.try_send(from_worker(FromWorker::Heartbeat(membership.beat(executor))));
            }
            changed = stop.changed(), if !asked => {
                asked = true;
                if changed.is_err() || beat.is_none() {
                    return Ended::Released;
                }
                let reason = stop.borrow().clone().unwrap_or_default();
                tracing::info!(reason, "asking to be let go");
                let _ = say.send(from_worker(FromWorker::Leaving(v1::Leaving { reason }))).await;
            }
        }
    }
}

async fn tick(beat: &mut Option<Interval>) {
    match beat {
        Some(beat) => {
            beat.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether knocking again is of no use.
fn is_final(status: &tonic::Status) -> bool {
    matches!(
        status.code(),
        tonic::Code::Unauthenticated
            | tonic::Code::PermissionDenied
            | tonic::Code::InvalidArgument
            | tonic::Code::Unimplemented
    )
}
