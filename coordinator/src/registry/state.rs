//! The state of the registry: the connected workers and the workers that were lost recently. Only workers that are
//! available get shards (ranges of well hashes).

use hatebeam_cost::ActiveProcess;
use hatebeam_env::{Env, watch};
use hatebeam_metrics::CoordinatorMetrics;
use hatebeam_proto::messages::{AnswerKind, Heartbeat, Hello, ToWorker};
use hatebeam_search::Fingerprint;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Number of drained workers at which those that are not connected are removed from the set.
const MAX_DRAINED: usize = 4096;
/// Maximum number of recently lost workers in the list for clients.
pub(super) const MAX_LOST: usize = 16;
/// Time for which a lost worker stays in the list.
pub(super) const LOST_MEMORY: Duration = Duration::from_secs(600);

/// A worker that is available for shards: connected, and not leaving, drained or quarantined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) threads: u32,
    /// Memory limit of the worker in bytes; 0 if unknown.
    pub(crate) memory_bytes: u64,
    /// ID of the worker's session. A worker that reconnects gets a new one.
    pub(crate) session: u64,
}

/// Numbers of object store requests, by price class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    /// Number of write and list requests.
    pub(crate) writes: u64,
    /// Number of read requests.
    pub(crate) reads: u64,
}

/// A worker that was lost recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostWorker {
    pub(crate) name: String,
    /// Reason why its session ended.
    pub(crate) reason: String,
}

pub(super) struct Worker {
    pub(super) session: u64,
    pub(super) hello: Hello,
    pub(super) outbound: mpsc::Sender<ToWorker>,
    /// Time of the last message from the worker.
    pub(super) heard: Instant,
    pub(super) heartbeat: Heartbeat,
    /// Time of the last heartbeat, or `None` before the first one in this session. Requests before the first heartbeat are
    /// not charged.
    pub(super) beaten: Option<Instant>,
    /// Time at which the worker fell far behind the others. `None` if it is not far behind.
    pub(super) behind: Option<Instant>,
    /// Time at which the worker started to wait for its uploads of the previous depth. `None` if it does not wait.
    pub(super) uploads: Option<Instant>,
    pub(super) is_leaving: bool,
    pub(super) shards: u32,
    /// Channels for the answers to outstanding orders, by order ID.
    pub(super) waiting: BTreeMap<u64, oneshot::Sender<AnswerKind>>,
}

pub(super) struct Quarantine {
    pub(super) until: Instant,
    pub(super) reason: String,
}

impl Worker {
    fn member(&self) -> Member {
        Member {
            name: self.hello.name.clone(),
            address: self.hello.address.clone(),
            threads: self.hello.threads,
            memory_bytes: self.hello.memory_bytes,
            session: self.session,
        }
    }
}

#[derive(Default)]
pub(super) struct Sessions {
    pub(super) workers: BTreeMap<String, Worker>,
    /// Quarantines by worker name, so that a restart of the worker does not end its quarantine.
    pub(super) quarantines: BTreeMap<String, Quarantine>,
    /// Number of sessions so far.
    pub(super) sessions: u64,
    /// Number of orders so far.
    pub(super) orders: u64,
    /// Names of the workers that a client has drained.
    pub(super) drained: BTreeSet<String>,
    /// Number of object store requests of all workers so far.
    pub(super) requests: RequestCounts,
    /// Recently lost workers, most recent first.
    pub(super) lost: VecDeque<(Instant, LostWorker)>,
    /// Whether the coordinator is shutting down, so that no worker may join.
    pub(super) is_closed: bool,
}

impl Sessions {
    /// Returns the reason why a worker is quarantined, or `None` if it is not.
    pub(super) fn quarantined(&self, name: &str, now: Instant) -> Option<&str> {
        let quarantine = self.quarantines.get(name)?;
        (now < quarantine.until).then_some(quarantine.reason.as_str())
    }
}

/// Settings of a [`WorkerRegistry`].
#[derive(Clone, Debug)]
pub(crate) struct RegistrySettings {
    /// Interval between the heartbeats of a worker.
    pub(crate) heartbeat: Duration,
    /// Time without a message after which a worker is considered lost.
    pub(crate) lost_after: Duration,
    /// Search fingerprint that workers must have.
    pub(crate) search: Fingerprint,
    /// Identifier of this coordinator's lease, which workers must find in their object store.
    pub(crate) lease: String,
}

/// The registry of connected workers.
pub struct WorkerRegistry {
    pub(super) env: Env,
    pub(super) sessions: Mutex<Sessions>,
    pub(super) changes: watch::Sender<u64>,
    pub(crate) settings: RegistrySettings,
    pub(super) metrics: CoordinatorMetrics,
}

impl WorkerRegistry {
    pub(crate) fn new(
        env: &Env,
        settings: RegistrySettings,
        metrics: &CoordinatorMetrics,
    ) -> Arc<WorkerRegistry> {
        Arc::new(WorkerRegistry {
            env: env.clone(),
            sessions: Mutex::default(),
            changes: watch::Sender::new(0),
            settings,
            metrics: metrics.clone(),
        })
    }

    /// Returns the time without a message after which a worker is considered lost.
    pub(crate) fn lost_after(&self) -> Duration {
        self.settings.lost_after
    }

    pub(super) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified when the set of available workers may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the workers that are available for shards, sorted by name.
    pub(crate) fn members(&self) -> Vec<Member> {
        let now = self.env.now();
        let sessions = self.sessions();
        let workers = sessions.workers.values();
        workers
            .filter(|worker| !worker.is_leaving)
            .filter(|worker| !sessions.drained.contains(&worker.hello.name))
            .filter(|worker| sessions.quarantined(&worker.hello.name, now).is_none())
            .map(Worker::member)
            .collect()
    }

    /// Returns the reason why a member's session has ended, or `None` if it has not.
    pub(crate) fn reason_of_loss(&self, member: &Member) -> Option<String> {
        let sessions = self.sessions();
        match sessions.workers.get(&member.name) {
            Some(worker) if worker.session == member.session => None,
            Some(_) => Some("reconnected".to_owned()),
            None => {
                let mut lost = sessions.lost.iter().map(|(_, lost)| lost);
                let reason = lost.find(|lost| lost.name == member.name);
                Some(reason.map_or("disconnected".to_owned(), |lost| lost.reason.clone()))
            }
        }
    }

    /// Returns the connected worker processes. The cost of their machines is charged to the runs.
    pub(crate) fn present(&self) -> Vec<ActiveProcess> {
        let process = |worker: &Worker| ActiveProcess {
            name: worker.hello.name.clone(),
            started_ms: worker.hello.started_ms,
            machine: worker.hello.machine.clone(),
        };
        self.sessions().workers.values().map(process).collect()
    }

    /// Returns the number of object store requests of all workers so far.
    pub(crate) fn requests(&self) -> RequestCounts {
        self.sessions().requests
    }

    /// Returns the workers that were lost within [`LOST_MEMORY`], most recent first.
    pub(crate) fn recently_lost(&self) -> Vec<LostWorker> {
        let sessions = self.sessions();
        let recent = sessions
            .lost
            .iter()
            .filter(|(when, _)| when.elapsed() < LOST_MEMORY);
        recent.map(|(_, lost)| lost.clone()).collect()
    }

    /// Makes a worker unavailable for shards until [`undrain`](WorkerRegistry::undrain) is called, even if it
    /// reconnects. The worker stays connected, because a supervisor would restart a worker that exits. Returns
    /// `false` if no worker with this name is connected.
    pub(crate) fn drain(&self, name: &str) -> bool {
        let mut sessions = self.sessions();
        if !sessions.workers.contains_key(name) {
            return false;
        }
        if sessions.drained.len() >= MAX_DRAINED {
            let Sessions {
                workers, drained, ..
            } = &mut *sessions;
            drained.retain(|name| workers.contains_key(name));
        }
        sessions.drained.insert(name.to_owned());
        drop(sessions);
        self.changed();
        true
    }

    /// Makes a drained worker available for shards again. Returns `false` if it is not drained.
    pub(crate) fn undrain(&self, name: &str) -> bool {
        let was_drained = self.sessions().drained.remove(name);
        if was_drained {
            self.changed();
        }
        was_drained
    }

    /// Makes a worker unavailable for shards for a limited time, even if it reconnects.
    pub(crate) fn quarantine(self: &Arc<Self>, name: &str, how_long: Duration, reason: &str) {
        let now = self.env.now();
        let quarantine = Quarantine {
            until: now + how_long,
            reason: reason.to_owned(),
        };
        let mut sessions = self.sessions();
        sessions.quarantines.retain(|_, other| now < other.until);
        sessions.quarantines.insert(name.to_owned(), quarantine);
        drop(sessions);
        self.changed();
        let registry = Arc::clone(self);
        self.env.spawn(async move {
            tokio::time::sleep(how_long).await;
            registry.changed();
        });
    }

    /// Sets the number of shards of each worker. `owners` contains the index in `members` of each shard's owner.
    /// The number becomes 0 for workers outside `members`.
    pub(crate) fn set_shards(&self, members: &[Member], owners: &[u32]) {
        let mut sessions = self.sessions();
        let workers = sessions.workers.values_mut();
        workers.for_each(|worker| worker.shards = 0);
        for &owner in owners {
            let member = members.get(owner as usize);
            let worker = member.and_then(|member| sessions.workers.get_mut(&member.name));
            if let Some(worker) = worker {
                worker.shards += 1;
            }
        }
    }

    /// Ends the sessions of all leaving workers except those in `busy`, and tells these workers that they may exit.
    pub(crate) fn release(&self, busy: &[Member]) {
        let mut sessions = self.sessions();
        sessions.workers.retain(|name, worker| {
            let is_busy = busy.iter().any(|member| member.session == worker.session);
            if !worker.is_leaving || is_busy {
                return true;
            }
            tracing::info!(worker = name, "released worker");
            let _ = worker.outbound.try_send(ToWorker::Released);
            false
        });
    }

    /// Releases leaving workers, both now and whenever another worker wants to leave.
    pub(crate) async fn keep_releasing(&self) -> Infallible {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            self.release(&[]);
            let _ = changes.changed().await;
        }
    }

    /// Ends all sessions and refuses new ones. The workers can then join the next coordinator while this one still
    /// waits for an object store that does not respond.
    pub(crate) fn close(&self) {
        self.release(&[]);
        let mut sessions = self.sessions();
        sessions.is_closed = true;
        sessions.workers.clear();
    }
}
