//! Sending an order to a worker, and waiting for its answer.

use super::state::{Member, WorkerRegistry};
use hatebeam_proto::messages::{
    AnswerKind, Failed, FailureKind, Heartbeat, Order, OrderKind, ToWorker,
};
use hatebeam_runs::Contradiction;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time without progress after which a worker that still sends heartbeats counts as failed. The limit exists because
/// its machine costs money in the meantime. Loading and uploading tables (files of wells) take several requests, each
/// of which counts as progress. Expanded wells and children with new scores count too. No other step takes this long.
const STALL: Duration = Duration::from_secs(10 * 60);

/// The error returned when a worker does not carry out an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerError {
    pub(crate) worker: String,
    pub(crate) reason: String,
    pub(crate) kind: WorkerErrorKind,
    /// What workers report about each other. Empty if the error involves no other worker.
    pub(crate) reports: Vec<PeerReport>,
}

/// A worker's report that its exchange with another worker has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerReport {
    /// Name of the reporting worker.
    pub(crate) by: String,
    /// Name of the reported worker.
    pub(crate) of: String,
    pub(crate) fault: PeerFault,
}

/// The reason for a [`PeerReport`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerFault {
    /// The two workers cannot reach each other. Either of them may be the cause.
    Unreachable,
    /// The reported worker has sent wrong children, unless the reporting worker checks them wrongly.
    WrongChildren,
}

/// Kind of a [`WorkerError`], which determines how the coordinator reacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerErrorKind {
    /// The worker has disconnected. The run continues without it.
    Gone,
    /// The worker may succeed later, for example when it can reach the object store again.
    Transient,
    /// A table or the network that the worker needs is missing or damaged. Contains the depth of the table, if it is known.
    Damaged(Option<u32>),
    /// A stored well has no parent.
    Contradiction(Contradiction),
    /// The worker failed, and a retry may fail too.
    Failed,
}

impl WorkerError {
    /// Creates the error of a worker that has failed, or that is the cause of a state that should not occur.
    pub(crate) fn failed(worker: &str, reason: impl Display) -> WorkerError {
        WorkerError {
            worker: worker.to_owned(),
            reason: reason.to_string(),
            kind: WorkerErrorKind::Failed,
            reports: Vec::new(),
        }
    }

    fn gone(worker: &str) -> WorkerError {
        WorkerError {
            kind: WorkerErrorKind::Gone,
            ..WorkerError::failed(worker, "disconnected")
        }
    }

    fn answered(worker: &str, failed: Failed) -> WorkerError {
        let mut error = WorkerError::failed(worker, failed.reason);
        match failed.kind {
            FailureKind::Unavailable | FailureKind::Superseded => {
                error.kind = WorkerErrorKind::Transient;
            }
            FailureKind::PeersUnreachable { peers } => {
                error.report(peers, PeerFault::Unreachable);
            }
            FailureKind::WrongChildren { peers } => {
                error.report(peers, PeerFault::WrongChildren);
            }
            FailureKind::Damaged { depth } => error.kind = WorkerErrorKind::Damaged(depth),
            FailureKind::Contradiction { depth, well } => {
                let well = Some(well);
                error.kind = WorkerErrorKind::Contradiction(Contradiction { depth, well });
            }
            FailureKind::BadOrder | FailureKind::Worker => {}
        }
        error
    }

    fn report(&mut self, peers: Vec<String>, fault: PeerFault) {
        let report = |of| PeerReport {
            by: self.worker.clone(),
            of,
            fault,
        };
        self.reports = peers.into_iter().map(report).collect();
    }

    /// Keeps one report of each kind about each other worker in `members`. Without any, the error counts as the worker's own
    /// failure.
    pub(crate) fn keep_reports_about(&mut self, members: &[&str]) {
        let mut seen = BTreeSet::new();
        self.reports.retain(|PeerReport { by, of, fault }| {
            let is_other = of != by && members.contains(&of.as_str());
            is_other && seen.insert((by.clone(), of.clone(), *fault))
        });
    }
}

/// The parts of a heartbeat that change while a worker makes progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// Number of the epoch (a period with a fixed set of workers).
    epoch: u64,
    depth: u32,
    /// Number of parents (the wells to expand) that the worker has expanded, or of children that have got new scores.
    expanded: u64,
    /// Number of object store requests.
    requests: u64,
}

impl Progress {
    fn of(beat: &Heartbeat) -> Progress {
        Progress {
            epoch: beat.epoch,
            depth: beat.depth,
            expanded: beat.expanded,
            requests: beat.store_writes.saturating_add(beat.store_reads),
        }
    }
}

impl WorkerRegistry {
    /// Sends an order to a worker and waits for the answer. Returns an error if the worker disconnects, stalls, or
    /// answers that the order failed.
    pub(crate) async fn ask(
        &self,
        member: &Member,
        epoch: u64,
        kind: OrderKind,
    ) -> Result<AnswerKind, WorkerError> {
        self.metrics.orders.add(kind.name(), 1);
        // Only these orders end when other workers have carried them out, too.
        let is_shared = matches!(kind, OrderKind::Expand(_) | OrderKind::Rescore(_));
        let gone = || WorkerError::gone(&member.name);
        let (outbound, answer, order) = {
            let mut sessions = self.sessions();
            sessions.orders += 1;
            let id = sessions.orders;
            let worker = sessions.workers.get_mut(&member.name);
            let worker = worker.filter(|worker| worker.session == member.session);
            let worker = worker.ok_or_else(gone)?;
            let (tx, answer) = oneshot::channel();
            worker.waiting.insert(id, tx);
            (worker.outbound.clone(), answer, Order { epoch, id, kind })
        };
        let sent = outbound.send(ToWorker::Order(order)).await;
        sent.map_err(|_| gone())?;
        // A session ends when its last sender is dropped, so this sender must not be kept while waiting.
        drop(outbound);
        match self.wait_for_answer(member, answer, is_shared).await? {
            AnswerKind::Failed(failed) => Err(WorkerError::answered(&member.name, failed)),
            answer => Ok(answer),
        }
    }

    /// Waits for an answer while the worker makes progress, or while it waits for other workers if the order `is_shared`.
    /// Returns an error if the worker disconnects or stalls.
    async fn wait_for_answer(
        &self,
        member: &Member,
        mut answer: oneshot::Receiver<AnswerKind>,
        is_shared: bool,
    ) -> Result<AnswerKind, WorkerError> {
        let mut before = self.progress_of(member);
        loop {
            match tokio::time::timeout(STALL, &mut answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(WorkerError::gone(&member.name)),
                Err(_) => {}
            }
            let now = self.progress_of(member);
            if before == now && !(is_shared && self.waits_for_others(member)) {
                let minutes = STALL.as_secs() / 60;
                let reason = format!("made no progress in {minutes} minutes");
                return Err(WorkerError::failed(&member.name, reason));
            }
            before = now;
        }
    }

    /// Returns the depth in a worker's last heartbeat. Returns 0 if the worker is not connected.
    pub(crate) fn depth_of(&self, member: &Member) -> u32 {
        self.progress_of(member)
            .map_or(0, |progress| progress.depth)
    }

    fn progress_of(&self, member: &Member) -> Option<Progress> {
        let sessions = self.sessions();
        let worker = sessions.workers.get(&member.name)?;
        Some(Progress::of(&worker.heartbeat))
    }

    /// Whether a worker has expanded all its parents while another worker of its epoch has not.
    fn waits_for_others(&self, member: &Member) -> bool {
        let sessions = self.sessions();
        let Some(worker) = sessions.workers.get(&member.name) else {
            return false;
        };
        let is_done = |beat: &Heartbeat| beat.expanded >= beat.parents;
        let mut others = sessions.workers.values();
        is_done(&worker.heartbeat)
            && others.any(|other| {
                let epoch = worker.heartbeat.epoch;
                epoch > 0 && other.heartbeat.epoch == epoch && !is_done(&other.heartbeat)
            })
    }
}
