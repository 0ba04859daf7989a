//! Worker sessions, from joining to leaving.

use super::state::{LOST_MEMORY, LostWorker, MAX_LOST, RequestCounts, Worker, WorkerRegistry};
use hatebeam_proto::messages::{Answer, FromWorker, Heartbeat, Hello, ToWorker, Welcome};
use hatebeam_proto::{BoxStream, LinkError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::StreamExt;

/// Maximum number of connected workers.
const MAX_WORKERS: usize = 4096;
/// Maximum length of a worker's name in bytes.
const MAX_NAME: usize = 128;
/// Maximum length of a worker's address in bytes.
const MAX_ADDRESS: usize = 1024;
/// Maximum number of threads of a worker.
const MAX_THREADS: u32 = 65_536;
/// Maximum number of object store requests of each price class that a worker is charged for in a second. Object stores
/// answer at most some thousand requests a second for one key prefix, and a worker makes far fewer. Without a maximum, a
/// wrong counter could spend a run's budget.
const MAX_REQUESTS: u64 = 5_000;

impl WorkerRegistry {
    /// Starts the session of a worker: sends it a welcome message, and receives its messages in the background until
    /// the session ends. The channel `outbound` must have capacity for one message.
    ///
    /// # Errors
    /// Returns an error if the worker's hello message is invalid, if its version or search fingerprint differs from the
    /// coordinator's, if its object store does not contain the coordinator's lease, if another worker with the same name
    /// is connected, if too many workers are connected, or if the coordinator is shutting down.
    pub fn join(
        self: &Arc<Self>,
        hello: Hello,
        inbound: BoxStream<Result<FromWorker, LinkError>>,
        outbound: mpsc::Sender<ToWorker>,
    ) -> Result<(), LinkError> {
        check(&hello)?;
        self.check_search(&hello)?;
        self.check_store(&hello)?;
        let welcome = ToWorker::Welcome(Welcome {
            heartbeat: self.settings.heartbeat,
            lost_after: self.settings.lost_after,
        });
        let name = hello.name.clone();
        let session = self.begin_session(hello, &outbound)?;
        // Ignore a closed channel: the worker is gone, and the background task ends the session.
        let _ = outbound.try_send(welcome);
        drop(outbound);
        let registry = Arc::clone(self);
        self.env.spawn(async move {
            if let Some(reason) = registry.receive(&name, session, inbound).await {
                registry.end_session(&name, session, &reason);
            }
        });
        Ok(())
    }

    fn begin_session(
        &self,
        hello: Hello,
        outbound: &mpsc::Sender<ToWorker>,
    ) -> Result<u64, LinkError> {
        let now = self.env.now();
        let mut sessions = self.sessions();
        if sessions.is_closed {
            return Err(LinkError::transient("the coordinator is shutting down"));
        }
        match sessions.workers.get(&hello.name) {
            Some(other) if self.is_alive(other) && !is_same_process(&other.hello, &hello) => {
                return Err(name_taken(&other.hello, &hello));
            }
            None if sessions.workers.len() >= MAX_WORKERS => {
                return Err(LinkError::transient(format!(
                    "the maximum of {MAX_WORKERS} connected workers is reached: try again later"
                )));
            }
            _ => {}
        }
        sessions.sessions += 1;
        let session = sessions.sessions;
        let (name, address, threads) = (hello.name.clone(), &hello.address, hello.threads);
        tracing::info!(worker = name, address, threads, "registered worker");
        let worker = Worker {
            session,
            outbound: outbound.clone(),
            heard: now,
            heartbeat: Heartbeat::default(),
            beaten: None,
            behind: None,
            uploads: None,
            is_leaving: false,
            shards: 0,
            waiting: BTreeMap::new(),
            hello,
        };
        sessions.lost.retain(|(_, lost)| lost.name != name);
        // This replaces and ends an earlier session of the same process, or of a silent process with the same name.
        sessions.workers.insert(name, worker);
        drop(sessions);
        self.metrics.joined.add(1);
        self.changed();
        Ok(session)
    }

    /// Returns an error if the search fingerprint of a worker differs from the coordinator's.
    fn check_search(&self, hello: &Hello) -> Result<(), LinkError> {
        let own = &self.settings.search;
        if hello.search == own.as_str() {
            return Ok(());
        }
        tracing::warn!(
            worker = hello.name,
            search = hello.search,
            own = own.as_str(),
            "refused worker: its search differs"
        );
        Err(LinkError::bad_message(format!(
            "worker {} has search fingerprint {}, but the coordinator has {}: install the same version on all machines",
            hello.name, hello.search, own
        )))
    }

    /// Returns an error if the object store of a worker does not contain this coordinator's lease. Its tables would be lost
    /// to the other processes.
    ///
    /// The error is transient: the worker may have read the lease shortly before this coordinator acquired it, or shortly
    /// after another coordinator took it over.
    fn check_store(&self, hello: &Hello) -> Result<(), LinkError> {
        if hello.lease == self.settings.lease {
            return Ok(());
        }
        tracing::warn!(
            worker = hello.name,
            address = hello.address,
            "refused worker: its object store does not contain the lease of this coordinator"
        );
        let found = match hello.lease.as_str() {
            "" => "no lease: start the worker with the --store of its coordinator",
            _ => {
                "the lease of another coordinator: wait if that one is taking over, or else start the worker with the \
                 --store of its coordinator"
            }
        };
        Err(LinkError::transient(format!(
            "the object store of worker {} contains {found}",
            hello.name
        )))
    }

    /// Whether a worker has sent a message within [`lost_after`](WorkerRegistry::lost_after).
    fn is_alive(&self, worker: &Worker) -> bool {
        worker.heard.elapsed() < self.lost_after()
    }

    /// Receives messages until the session ends, and returns the reason. Returns `None` if the registry has already
    /// ended the session.
    async fn receive(
        &self,
        name: &str,
        session: u64,
        mut inbound: BoxStream<Result<FromWorker, LinkError>>,
    ) -> Option<String> {
        loop {
            match tokio::time::timeout(self.lost_after(), inbound.next()).await {
                Err(_) => return Some(format!("silent for {:?}", self.lost_after())),
                Ok(Some(Err(error))) => return Some(error.reason),
                Ok(None) => return Some("closed the connection".to_owned()),
                Ok(Some(Ok(message))) => {
                    if !self.take(name, session, message) {
                        return None;
                    }
                }
            }
        }
    }

    /// Handles a message from a worker. Returns `false` if the session has ended.
    fn take(&self, name: &str, session: u64, message: FromWorker) -> bool {
        let now = self.env.now();
        let mut guard = self.sessions();
        let sessions = &mut *guard;
        let worker = sessions.workers.get_mut(name);
        let Some(worker) = worker.filter(|worker| worker.session == session) else {
            return false;
        };
        worker.heard = now;
        match message {
            FromWorker::Hello(_) => {}
            FromWorker::Heartbeat(heartbeat) => {
                worker.beat(heartbeat, now, &mut sessions.requests);
            }
            FromWorker::Answer(Answer { id, kind, .. }) => {
                if let Some(waiting) = worker.waiting.remove(&id) {
                    let _ = waiting.send(kind);
                }
            }
            FromWorker::Leaving(leaving) => {
                tracing::info!(
                    worker = name,
                    reason = leaving.reason,
                    "received worker's request to leave"
                );
                worker.is_leaving = true;
                drop(guard);
                self.changed();
            }
        }
        true
    }

    /// Removes a worker whose connection has ended, unless it has already started another session.
    fn end_session(&self, name: &str, session: u64, reason: &str) {
        let now = self.env.now();
        let mut sessions = self.sessions();
        let is_same = |worker: &Worker| worker.session == session;
        if !sessions.workers.get(name).is_some_and(is_same) {
            return;
        }
        sessions.workers.remove(name);
        sessions
            .lost
            .retain(|(when, _)| when.elapsed() < LOST_MEMORY);
        sessions.lost.truncate(MAX_LOST - 1);
        let lost = LostWorker {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        sessions.lost.push_front((now, lost));
        drop(sessions);
        self.metrics.lost.add(1);
        tracing::warn!(worker = name, reason, "lost worker");
        self.changed();
    }
}

impl Worker {
    /// Records a heartbeat, and adds the object store requests since the previous heartbeat to `requests`, at most
    /// [`MAX_REQUESTS`] for each second.
    fn beat(&mut self, heartbeat: Heartbeat, now: Instant, requests: &mut RequestCounts) {
        let before = std::mem::replace(&mut self.heartbeat, heartbeat);
        if let Some(beaten) = self.beaten.replace(now) {
            let seconds = now.saturating_duration_since(beaten).as_secs() + 1;
            let most = MAX_REQUESTS.saturating_mul(seconds);
            let writes = heartbeat.store_writes.saturating_sub(before.store_writes);
            let reads = heartbeat.store_reads.saturating_sub(before.store_reads);
            requests.writes = requests.writes.saturating_add(writes.min(most));
            requests.reads = requests.reads.saturating_add(reads.min(most));
        }
    }
}

fn is_same_process(one: &Hello, other: &Hello) -> bool {
    one.started_ms == other.started_ms && one.address == other.address
}

fn name_taken(connected: &Hello, refused: &Hello) -> LinkError {
    tracing::warn!(
        worker = refused.name,
        address = refused.address,
        connected = connected.address,
        "refused worker: another worker with its name is connected"
    );
    LinkError::transient(format!(
        "a worker named {} is already connected from {}: start the worker at {} with a different --name, or wait until \
         the connected one is lost",
        refused.name, connected.address, refused.address
    ))
}

fn check(hello: &Hello) -> Result<(), LinkError> {
    // The name becomes part of keys in the object store.
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_name = (1..=MAX_NAME).contains(&hello.name.len());
    if !is_name || !hello.name.chars().all(is_allowed) {
        return Err(LinkError::bad_message(format!(
            "invalid worker name: it must consist of 1 to {MAX_NAME} letters, digits, dots, dashes and underscores"
        )));
    }
    if hello.address.len() > MAX_ADDRESS || !(1..=MAX_THREADS).contains(&hello.threads) {
        return Err(LinkError::bad_message(format!(
            "invalid worker: its address must have at most {MAX_ADDRESS} bytes, and its thread count must be 1 to \
             {MAX_THREADS}"
        )));
    }
    let version = env!("CARGO_PKG_VERSION");
    if hello.version != version {
        return Err(LinkError::bad_message(format!(
            "the worker has version {}, but the coordinator has {version}: install the same version on all machines",
            hello.version
        )));
    }
    Ok(())
}
