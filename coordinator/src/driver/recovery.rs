//! Recovery from a failed depth.

use super::error::DriverError;
use super::state::RunDriver;
use super::workers::EpochWorkers;
use crate::registry::{WorkerError, WorkerErrorKind};
use hatebeam_notify::EventKind;
use std::time::Duration;

impl RunDriver {
    /// Handles a failed depth, and returns the pause before it is retried. Quarantines a worker that failed too often.
    ///
    /// Returns an error if the depth failed too often, so that the run fails.
    pub(super) fn recover(
        &mut self,
        error: WorkerError,
        workers: &EpochWorkers,
    ) -> Result<Duration, DriverError> {
        let depth = self.depth() + 1;
        let (worker, reason) = (&error.worker, &error.reason);
        let is_gone = error.kind == WorkerErrorKind::Gone;
        let cause = if is_gone { "lost" } else { "failed" };
        let failures = &self.parts.metrics.coordinator.failures;
        failures.add(cause, 1);
        tracing::warn!(depth, worker, reason, "restarting failed depth");
        self.note(format!("{worker}: {reason}"));
        if is_gone {
            self.send_worker_lost(error.worker, error.reason);
            return Ok(Duration::ZERO);
        }
        self.failures.note(&error);
        if let Some(exclusion) = self.failures.exclude(&workers.names()) {
            let (worker, reason) = (&exclusion.worker, &exclusion.reason);
            let seconds = exclusion.how_long.as_secs();
            tracing::warn!(worker, reason, seconds, "quarantined worker");
            let registry = &self.parts.registry;
            registry.quarantine(worker, exclusion.how_long, reason);
            return Ok(Duration::ZERO);
        }
        let is_transient = error.kind == WorkerErrorKind::Transient;
        let pause = self.retries.pause_after(depth, is_transient);
        pause.ok_or(DriverError::Failing {
            depth,
            worker: error.worker,
            reason: error.reason,
        })
    }

    /// Sends an event for each worker of an ended epoch that is no longer connected.
    pub(super) fn report_lost(&self, workers: &EpochWorkers) {
        for worker in workers.names() {
            if !self.parts.registry.is_connected(worker) {
                self.send_worker_lost(worker.to_owned(), "disconnected".to_owned());
            }
        }
    }

    fn send_worker_lost(&self, worker: String, reason: String) {
        let event = EventKind::WorkerLost { worker, reason };
        self.parts.notifier.send(self.manifest(), event);
    }
}
