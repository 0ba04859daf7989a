//! The network between simulated machines: delays, cuts in one or both directions, lost connections, silent machines.
//!
//! A connection behaves as HTTP/2 over TCP does. A message waits while its direction is cut, and arrives in order. Each
//! end gives the connection up when it has heard nothing for its keepalive time; the other end learns of that if the
//! network lets it. A process that crashes resets its connections; a machine that loses power says nothing.

mod pipe;
#[cfg(test)]
mod tests;

use crate::process::Process;
use crate::rng::Rng;
use crate::trace::Trace;
use hatebeam_env::watch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// One message in this many takes much longer than the others, per mille.
const SLOW_PER_MILLE: u64 = 10;

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A connection that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// An end gave it up.
    Timeout,
    /// The other process is gone, or something on the way reset it.
    Reset,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Broken::Timeout => "keepalive timed out",
            Broken::Reset => "connection reset",
        })
    }
}

/// One process's end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    pub(crate) process: Arc<Process>,
    /// How long this end waits in silence before it gives the connection up.
    pub(crate) keepalive: Duration,
}

/// A connection between two processes.
#[derive(Debug)]
pub(crate) struct Connection {
    network: Arc<Network>,
    client: End,
    server: End,
    client_broken: watch::Sender<Option<Broken>>,
    server_broken: watch::Sender<Option<Broken>>,
    /// Counts the times at which the connection was blocked or not any more.
    blocks: Mutex<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    number: u64,
    is_blocked: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Directions in which nothing arrives.
    cuts: BTreeSet<(NodeId, NodeId)>,
    /// Machines without power.
    silent: BTreeSet<NodeId>,
    connections: BTreeMap<u64, Weak<Connection>>,
    opened: u64,
}

/// The network.
#[derive(Debug)]
pub(crate) struct Network {
    rng: Rng,
    trace: Arc<Trace>,
    /// The slowest usual message, in milliseconds.
    slowest_ms: u64,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Network {
    pub(crate) fn new(rng: Rng, trace: Arc<Trace>) -> Arc<Network> {
        let slowest_ms = [2, 5, 20][rng.range(0..=2) as usize];
        Arc::new(Network {
            slowest_ms,
            rng,
            trace,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delay(&self) -> Duration {
        match self.rng.chance(SLOW_PER_MILLE) {
            true => self.rng.millis(self.slowest_ms..=self.slowest_ms * 20),
            false => self.rng.millis(1..=self.slowest_ms),
        }
    }

    /// Lets nothing through in this direction.
    pub(crate) fn cut(&self, from: NodeId, to: NodeId) {
        self.state().cuts.insert((from, to));
        self.changed();
    }

    pub(crate) fn heal(&self, from: NodeId, to: NodeId) {
        self.state().cuts.remove(&(from, to));
        self.changed();
    }

    pub(crate) fn heal_all(&self) {
        self.state().cuts.clear();
        self.changed();
    }

    /// A machine loses its power, or has it again.
    pub(crate) fn set_silent(&self, node: NodeId, is_silent: bool) {
        match is_silent {
            true => self.state().silent.insert(node),
            false => self.state().silent.remove(&node),
        };
        self.changed();
    }

    fn is_open(&self, from: NodeId, to: NodeId) -> bool {
        let state = self.state();
        let is_silent = state.silent.contains(&from) || state.silent.contains(&to);
        !is_silent && !state.cuts.contains(&(from, to))
    }

    /// Looks at all connections again: something that blocks them has come or gone.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
        let connections: Vec<Arc<Connection>> = {
            let mut state = self.state();
            state
                .connections
                .retain(|_, connection| connection.strong_count() > 0);
            let connections = state.connections.values();
            connections.filter_map(Weak::upgrade).collect()
        };
        connections.iter().for_each(Connection::look);
    }

    /// Waits until a message gets through in this direction.
    async fn passable(&self, from: NodeId, to: NodeId) {
        let mut changes = self.changes.subscribe();
        while !self.is_open(from, to) {
            changes.mark_unchanged();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// A message on its way.
    async fn travel(&self, from: NodeId, to: NodeId) {
        sleep(self.delay()).await;
        self.passable(from, to).await;
    }

    /// A round trip to a machine and back.
    ///
    /// # Errors
    /// [`Broken::Timeout`] after the time to connect.
    pub(crate) async fn reach(
        &self,
        from: NodeId,
        to: NodeId,
        within: Duration,
    ) -> Result<(), Broken> {
        let round_trip = async {
            self.travel(from, to).await;
            self.travel(to, from).await;
        };
        timeout(within, round_trip)
            .await
            .map_err(|_| Broken::Timeout)
    }

    /// Opens a connection between processes that have reached each other.
    pub(crate) fn connect(self: &Arc<Self>, client: End, server: End) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            network: Arc::clone(self),
            client,
            server,
            client_broken: watch::Sender::new(None),
            server_broken: watch::Sender::new(None),
            blocks: Mutex::default(),
        });
        let mut state = self.state();
        state.opened += 1;
        let number = state.opened;
        state
            .connections
            .insert(number, Arc::downgrade(&connection));
        drop(state);
        connection.look();
        connection
    }

    /// Resets one of the connections, as a router that forgets it does.
    pub(crate) fn reset_one(&self, rng: &Rng) {
        let open: Vec<Arc<Connection>> = {
            let state = self.state();
            state
                .connections
                .values()
                .filter_map(Weak::upgrade)
                .collect()
        };
        if let Some(connection) = rng.pick(&open) {
            self.trace.event(
                "net",
                format_args!(
                    "reset {} - {}",
                    connection.client.process.name, connection.server.process.name
                ),
            );
            connection.break_at(Side::Client, Broken::Reset);
            connection.break_at(Side::Server, Broken::Reset);
        }
    }
}

impl Connection {
    fn end(&self, side: Side) -> &End {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    fn broken_at(&self, side: Side) -> &watch::Sender<Option<Broken>> {
        match side {
            Side::Client => &self.client_broken,
            Side::Server => &self.server_broken,
        }
    }

    fn break_at(&self, side: Side, why: Broken) {
        self.broken_at(side).send_if_modified(|broken| {
            let is_first = broken.is_none();
            broken.get_or_insert(why);
            is_first
        });
    }

    /// Waits until this end has lost the connection.
    async fn lost_at(&self, side: Side) -> Broken {
        let mut broken = self.broken_at(side).subscribe();
        let broken = broken.wait_for(Option::is_some).await;
        broken.ok().and_then(|why| *why).unwrap_or(Broken::Reset)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_blocked(&self) -> bool {
        let (client, server) = (&self.client, &self.server);
        !self.network.is_open(client.node, server.node)
            || !self.network.is_open(server.node, client.node)
            || client.process.is_stalled()
            || server.process.is_stalled()
    }

    /// Starts the keepalive timers when the connection is blocked.
    fn look(self: &Arc<Self>) {
        let is_blocked = self.is_blocked();
        let mut blocks = self.blocks();
        if blocks.is_blocked == is_blocked {
            return;
        }
        blocks.is_blocked = is_blocked;
        blocks.number += 1;
        let number = blocks.number;
        drop(blocks);
        if is_blocked {
            for side in [Side::Client, Side::Server] {
                let connection = Arc::downgrade(self);
                let keepalive = self.end(side).keepalive;
                spawn(async move {
                    sleep(keepalive).await;
                    if let Some(connection) = connection.upgrade() {
                        connection.give_up(side, number).await;
                    }
                });
            }
        }
    }

    /// Gives the connection up at one end, if it has been blocked since.
    async fn give_up(&self, side: Side, number: u64) {
        let is_same = self.blocks().number == number;
        // A stalled process gives nothing up.
        if !is_same || self.end(side).process.is_stalled() {
            return;
        }
        self.break_at(side, Broken::Timeout);
        let (here, there) = (self.end(side).node, self.end(side.other()).node);
        self.network.travel(here, there).await;
        self.break_at(side.other(), Broken::Reset);
    }
}

/// Spawns a task of the network, which belongs to no process.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}
