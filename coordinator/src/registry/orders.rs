//! Orders to one worker, and its answers.

use super::state::{Member, WorkerRegistry};
use hatebeam_proto::messages::{AnswerKind, Failed, FailureKind, Order, OrderKind, ToWorker};
use std::time::Duration;
use tokio::sync::oneshot;

/// A worker that sends heartbeats without progress for this long hangs. Longer than a table or an upload can take.
const STALL: Duration = Duration::from_secs(30 * 60);

/// Error of an order that a worker did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerError {
    pub(crate) worker: String,
    pub(crate) reason: String,
    pub(crate) kind: WorkerErrorKind,
    /// Pairs of workers that cannot reach each other, if that is the reason.
    pub(crate) unreachable: Vec<(String, String)>,
}

/// Kind of a [`WorkerError`], by the coordinator's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerErrorKind {
    /// The worker has disconnected: continue without it.
    Gone,
    /// The worker may succeed later: the object store is unavailable to it.
    Transient,
    /// The worker failed.
    Failed,
}

impl WorkerError {
    /// A worker that is connected and failed.
    pub(crate) fn failed(worker: &str, reason: &str) -> WorkerError {
        WorkerError {
            worker: worker.to_owned(),
            reason: reason.to_owned(),
            kind: WorkerErrorKind::Failed,
            unreachable: Vec::new(),
        }
    }

    fn gone(worker: &str) -> WorkerError {
        WorkerError {
            kind: WorkerErrorKind::Gone,
            ..WorkerError::failed(worker, "disconnected")
        }
    }

    fn answered(worker: &str, failed: Failed) -> WorkerError {
        let mut error = WorkerError::failed(worker, &failed.reason);
        match failed.kind {
            FailureKind::Unavailable | FailureKind::Superseded => {
                error.kind = WorkerErrorKind::Transient;
            }
            FailureKind::PeerUnreachable { peer } => {
                error.unreachable.push((worker.to_owned(), peer));
            }
            FailureKind::BadOrder | FailureKind::Damaged | FailureKind::Worker => {}
        }
        error
    }
}

/// Progress of a worker: its epoch, depth, and expanded parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress(u64, u32, u64);

impl WorkerRegistry {
    /// Gives a worker an order and waits for the answer.
    pub(crate) async fn ask(
        &self,
        member: &Member,
        epoch: u64,
        kind: OrderKind,
    ) -> Result<AnswerKind, WorkerError> {
        self.metrics.orders.add(kind.name(), 1);
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
        // The worker's session ends with the last sender.
        drop(outbound);
        match self.wait_for_answer(member, answer).await? {
            AnswerKind::Failed(failed) => Err(WorkerError::answered(&member.name, failed)),
            answer => Ok(answer),
        }
    }

    /// Waits for an answer for as long as the worker makes progress.
    async fn wait_for_answer(
        &self,
        member: &Member,
        mut answer: oneshot::Receiver<AnswerKind>,
    ) -> Result<AnswerKind, WorkerError> {
        let mut before = self.progress_of(member);
        loop {
            match tokio::time::timeout(STALL, &mut answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(WorkerError::gone(&member.name)),
                Err(_) => {}
            }
            let now = self.progress_of(member);
            if before == now {
                let minutes = STALL.as_secs() / 60;
                let reason = format!("made no progress in {minutes} minutes");
                return Err(WorkerError::failed(&member.name, &reason));
            }
            before = now;
        }
    }

    fn progress_of(&self, member: &Member) -> Option<Progress> {
        let sessions = self.sessions();
        let beat = &sessions.workers.get(&member.name)?.heartbeat;
        Some(Progress(beat.epoch, beat.depth, beat.expanded))
    }
}
