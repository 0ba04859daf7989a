//! The workers' connections to their coordinator and to each other, over the simulated network.

use crate::machine::Machine;
use crate::network::{Broken, Connection, End, NodeId, Side};
use crate::process::Process;
use crate::serving::{LastOrders, Listening, Serving};
use crate::tamper;
use crate::world::World;
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_proto::messages::{FromWorker, Hello, Peer, PeerRequest, PeerResponse, ToWorker};
use hatebeam_proto::{BoxStream, LinkError};
use hatebeam_runs::lease_id;
use hatebeam_worker::{CoordinatorLink, PeerLink, Session};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};

/// Timeout for connecting to the coordinator.
const CONNECT: Duration = Duration::from_secs(5);
/// Time without data from the coordinator after which a worker closes the connection. Over gRPC, a worker sends a ping
/// after 5 seconds, and waits 5 seconds for its answer.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Time without data from a client after which a server closes the connection.
const SERVER_KEEPALIVE: Duration = Duration::from_secs(30);

/// Returns the address of a machine.
pub(crate) fn address(node: NodeId) -> String {
    format!("sim://{}", node.0)
}

fn node_of(address: &str) -> Option<NodeId> {
    address.strip_prefix("sim://")?.parse().ok().map(NodeId)
}

fn lost(broken: Broken) -> LinkError {
    LinkError::transient(broken.to_string())
}

/// A stream of messages received over the network.
struct Incoming<T>(mpsc::Receiver<Result<T, Broken>>);

impl<T> Stream for Incoming<T> {
    type Item = Result<T, LinkError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = self.0.poll_recv(cx);
        item.map(|item| item.map(|message| message.map_err(lost)))
    }
}

/// The worker process at the local end of a connection.
#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) world: Arc<World>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) env: Env,
    pub(crate) orders: LastOrders,
    /// Whether the search of the worker's program differs from the coordinator's search.
    pub(crate) is_skewed: bool,
}

impl Here {
    /// Opens a connection to a process that is listening.
    fn connect(
        &self,
        node: NodeId,
        process: &Arc<Process>,
        keepalive: Duration,
    ) -> Arc<Connection> {
        let client = End {
            node: self.machine.node,
            process: Arc::clone(&self.process),
            keepalive,
        };
        let server = End {
            node,
            process: Arc::clone(process),
            keepalive: SERVER_KEEPALIVE,
        };
        self.world.network.connect(client, server)
    }

    pub(crate) fn log(&self, what: impl FnOnce() -> String) {
        self.world.trace.detail(&self.process.name, what);
    }
}

/// A worker's connector to the coordinators. Each connection goes to a random serving coordinator, as if all
/// coordinators shared one host name.
pub(crate) struct ToCoordinator {
    pub(crate) here: Here,
    /// The worker's object store, which contains the lease.
    pub(crate) objects: Objects,
}

#[tonic::async_trait]
impl CoordinatorLink for ToCoordinator {
    async fn open(&self, mut hello: Hello) -> Result<Session, LinkError> {
        let here = &self.here;
        let serving = here.world.serving.all();
        let Some(serving) = here.world.rng.pick(&serving).cloned() else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            return Err(LinkError::transient("connection refused"));
        };
        let (from, to) = (here.machine.node, serving.machine.node);
        let reached = here.world.network.reach(from, to, CONNECT).await;
        reached.map_err(lost)?;
        hello.lease = lease_id(&self.objects)
            .await
            .map_err(|error| LinkError::transient(error.to_string()))?;
        if serving.process.has_crashed() {
            return Err(lost(Broken::Reset));
        }
        tamper::hello(here, &mut hello);
        here.log(|| format!("joins {}", serving.process.name));
        let connection = here.connect(to, &serving.process, KEEPALIVE);
        let (outbound, arriving) = connection.pipe(Side::Client);
        let (sending, orders) = connection.pipe(Side::Server);
        accept(&serving, hello, arriving, sending);
        let of = here.clone();
        let orders = Incoming(orders).map(Result::flatten);
        let inbound = orders.map(move |order| order.map(|order| tamper::order(&of, order)));
        Ok(Session {
            outbound: record(here, outbound),
            inbound: Box::pin(inbound),
        })
    }
}

/// Registers a worker with a coordinator. The registration runs in the coordinator's process.
fn accept(
    serving: &Serving,
    hello: Hello,
    arriving: mpsc::Receiver<Result<FromWorker, Broken>>,
    sending: mpsc::Sender<Result<ToWorker, LinkError>>,
) {
    let registry = Arc::clone(serving.coordinator.registry());
    serving.env.spawn(async move {
        let (orders, mut ordered) = mpsc::channel(16);
        let inbound: BoxStream<_> = Box::pin(Incoming(arriving));
        if let Err(refused) = registry.join(hello, inbound, orders) {
            let _ = sending.send(Err(refused)).await;
            return;
        }
        while let Some(order) = ordered.recv().await {
            if sending.send(Ok(order)).await.is_err() {
                return;
            }
        }
    });
}

/// Returns a sender whose messages pass through [`tamper::answer`] to `outbound`.
fn record(here: &Here, outbound: mpsc::Sender<FromWorker>) -> mpsc::Sender<FromWorker> {
    let (sender, mut receiver) = mpsc::channel(64);
    let of = here.clone();
    here.env.spawn(async move {
        while let Some(message) = receiver.recv().await {
            if outbound.send(tamper::answer(&of, message)).await.is_err() {
                return;
            }
        }
    });
    sender
}

/// A worker's connector to other workers.
pub(crate) struct ToPeers {
    pub(crate) here: Here,
    /// Time without data after which a peer counts as lost. Each call to `prepare` sets it.
    pub(crate) lost_after: Mutex<Duration>,
}

#[tonic::async_trait]
impl PeerLink for ToPeers {
    async fn prepare(
        &self,
        peers: &[Peer],
        lost_after: Duration,
    ) -> Result<(), BTreeMap<String, String>> {
        *self
            .lost_after
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = lost_after;
        let invalid = peers.iter().filter(|peer| node_of(&peer.address).is_none());
        let invalid: BTreeMap<_, _> = invalid
            .map(|peer| {
                let reason = format!("the address {} is invalid", peer.address);
                (peer.name.clone(), reason)
            })
            .collect();
        match invalid.is_empty() {
            true => Ok(()),
            false => Err(invalid),
        }
    }

    async fn open(
        &self,
        peer: &Peer,
        mut requests: mpsc::Receiver<PeerRequest>,
    ) -> Result<BoxStream<Result<PeerResponse, LinkError>>, LinkError> {
        let here = &self.here;
        let lost_after = *self
            .lost_after
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let node = node_of(&peer.address)
            .ok_or_else(|| LinkError::bad_message("the address is invalid"))?;
        let reached = here
            .world
            .network
            .reach(here.machine.node, node, lost_after);
        reached.await.map_err(lost)?;
        let listening = here.world.joined.get(node);
        let Some(listening) = listening.filter(|there| !there.process.has_crashed()) else {
            return Err(LinkError::transient("connection refused"));
        };
        let connection = here.connect(node, &listening.process, lost_after * 2);
        let (outbound, arriving) = connection.pipe(Side::Client);
        let (sending, responses) = connection.pipe(Side::Server);
        let sender = here.clone();
        here.env.spawn(async move {
            while let Some(mut request) = requests.recv().await {
                tamper::sent_request(&sender, &mut request);
                if outbound.send(request).await.is_err() {
                    return;
                }
            }
        });
        let world = here.world.clone();
        let Listening {
            inbound,
            orders,
            env,
            target,
            ..
        } = listening;
        env.spawn(async move {
            let there = Arc::clone(&world);
            let requests = Incoming(arriving);
            let requests = requests.map(move |request| {
                request.map(|request| tamper::request(&there, &orders, request))
            });
            let mut responses = inbound.serve(Box::pin(requests));
            while let Some(mut response) = responses.next().await {
                if let Ok(response) = &mut response {
                    tamper::response(&world, target, response);
                }
                if sending.send(response).await.is_err() {
                    return;
                }
            }
        });
        Ok(Box::pin(Incoming(responses).map(Result::flatten)))
    }
}
