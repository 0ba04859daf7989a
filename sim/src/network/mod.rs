//! The network between simulated machines, with delays, partitions, resets and machines that lose power.
//!
//! A connection behaves like HTTP/2 over TCP. Messages arrive in order. While a direction is cut, its messages wait.
//! An end closes the connection when the connection has been blocked for the end's keepalive time. The other end
//! receives a reset as soon as the direction toward it is open. A process that crashes resets its connections. A
//! machine that loses power sends no resets.

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

/// Fraction of slow messages, per mille. A slow message takes up to 20 times the usual maximum delay.
const SLOW_PER_MILLE: u64 = 10;

/// Identifier of a machine.
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

/// Reason why a connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The connection was blocked for the keepalive time, or connecting timed out.
    Timeout,
    /// The other end closed the connection, its process ended, or the network reset the connection.
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
    /// Time after which this end closes a blocked connection.
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
    blocks: Mutex<Blocks>,
}

/// The blocking state of a connection.
#[derive(Debug, Default)]
struct Blocks {
    /// Number of times that `is_blocked` has changed.
    number: u64,
    /// Whether a cut, a power loss or a stalled process keeps data from arriving.
    is_blocked: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Pairs of machines (sender, receiver) between which messages are held back.
    cuts: BTreeSet<(NodeId, NodeId)>,
    /// Machines without power.
    silent: BTreeSet<NodeId>,
    connections: BTreeMap<u64, Weak<Connection>>,
    opened: u64,
}

#[derive(Debug)]
pub(crate) struct Network {
    rng: Rng,
    trace: Arc<Trace>,
    /// Maximum delay of a message that is not slow, in milliseconds.
    slowest_ms: u64,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Network {
    pub(crate) fn new(rng: Rng, trace: Arc<Trace>) -> Arc<Network> {
        let slowest_ms = rng.one_of([2, 5, 20]);
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

    /// Holds back all messages from one machine to another until [`heal`](Network::heal) is called.
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

    /// Sets whether a machine is without power.
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

    /// Updates all connections. Must be called when a cause that blocks connections begins or ends.
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

    /// Waits until messages can pass from one machine to another.
    async fn passable(&self, from: NodeId, to: NodeId) {
        let mut changes = self.changes.subscribe();
        while !self.is_open(from, to) {
            changes.mark_unchanged();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits for the time that a message takes from one machine to another.
    async fn travel(&self, from: NodeId, to: NodeId) {
        sleep(self.delay()).await;
        self.passable(from, to).await;
    }

    /// Makes a round trip from one machine to another.
    ///
    /// # Errors
    /// Returns [`Broken::Timeout`] if the round trip takes longer than `within`.
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

    /// Opens a connection between two processes. The caller must have [reached](Network::reach) the server.
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

    /// Resets a random connection.
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

    /// Waits until `side` has lost the connection, and returns the reason.
    async fn lost_at(&self, side: Side) -> Broken {
        let mut broken = self.broken_at(side).subscribe();
        // An error means that the connection no longer exists.
        let _ = broken.wait_for(Option::is_some).await;
        (*broken.borrow()).unwrap_or(Broken::Reset)
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

    /// Updates the blocking state. If the connection has become blocked, starts the keepalive timers of its ends.
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

    /// Closes the connection at one end if the blocking state still has the given `number`, so it has not changed since
    /// the keepalive timer started. The other end then receives a reset.
    async fn give_up(&self, side: Side, number: u64) {
        let is_same = self.blocks().number == number;
        // A stalled process does not run, so it cannot close a connection.
        if !is_same || self.end(side).process.is_stalled() {
            return;
        }
        self.break_at(side, Broken::Timeout);
        let (here, there) = (self.end(side).node, self.end(side.other()).node);
        self.network.travel(here, there).await;
        self.break_at(side.other(), Broken::Reset);
    }
}

/// Spawns a task of the simulation itself, which is not part of any process.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}
