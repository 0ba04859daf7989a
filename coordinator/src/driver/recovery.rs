//! Recovery from a failed depth: retries, and quarantines (temporary exclusions) of workers that fail repeatedly. Each
//! retry begins a new epoch (a period with a fixed set of workers).

use super::error::DriverError;
use super::state::RunDriver;
use super::workers::EpochWorkers;
use crate::registry::{WorkerError, WorkerErrorKind};
use hatebeam_notify::EventKind;
use std::time::Duration;

impl RunDriver {
    /// Handles a failed depth, and returns the pause before it is retried. Quarantines a worker that failed or was lost
    /// too often.
    ///
    /// Returns an error if the depth had too many permanent failures, if too many attempts ended with the loss of a
    /// worker, or if a worker reported damaged tables and they cannot be checked.
    pub(super) async fn recover(
        &mut self,
        mut error: WorkerError,
        workers: &EpochWorkers,
    ) -> Result<Duration, DriverError> {
        error.keep_reports_about(&workers.names());
        let depth = self.depth() + 1;
        self.note_failed_attempt();
        let (worker, reason) = (&error.worker, &error.reason);
        let is_gone = error.kind == WorkerErrorKind::Gone;
        let cause = if is_gone { "lost" } else { "failed" };
        let failures = &self.parts.metrics.coordinator.failures;
        failures.add(cause, 1);
        tracing::warn!(depth, worker, reason, "depth failed");
        self.note(format!("{worker}: {reason}"));
        let is_dropped = match &error.kind {
            WorkerErrorKind::Damaged(at) => self.drop_if_damaged(worker, *at).await?,
            WorkerErrorKind::Contradiction(found) => self.drop_if_contradicting(found).await?,
            _ => false,
        };
        if is_dropped {
            return Ok(Duration::ZERO);
        }
        if !is_gone {
            self.failures.note(&error);
        }
        self.note_lost(workers);
        let is_excluded = self.quarantine(workers);
        if is_excluded {
            // The other workers may be able to search the depth without the quarantined one, so this failure must not
            // fail the run. If the other workers keep failing, the run still fails, because failures that do not cause
            // a quarantine are counted.
            return Ok(Duration::ZERO);
        }
        if is_gone {
            let pause = self.retries.pause_after_loss(workers.members.len());
            return pause.ok_or_else(|| self.too_many_losses(depth, &error));
        }
        let is_transient = error.kind == WorkerErrorKind::Transient;
        let pause = self.retries.pause_after(depth, is_transient);
        pause.ok_or(DriverError::Failing {
            depth,
            worker: error.worker,
            reason: error.reason,
        })
    }

    /// Quarantines a worker of the epoch if it failed or was lost too often. Returns `true` if a worker was
    /// quarantined.
    pub(super) fn quarantine(&mut self, workers: &EpochWorkers) -> bool {
        let wanted = self.parts.settings.min_workers;
        let Some(exclusion) = self.failures.exclude(&workers.names(), wanted) else {
            return false;
        };
        let (worker, reason) = (&exclusion.worker, &exclusion.reason);
        let seconds = exclusion.how_long.as_secs();
        tracing::warn!(worker, reason, seconds, "quarantined worker");
        let registry = &self.parts.registry;
        registry.quarantine(worker, exclusion.how_long, reason);
        true
    }

    fn too_many_losses(&self, depth: u32, error: &WorkerError) -> DriverError {
        DriverError::Losing {
            depth,
            losses: self.retries.losses,
            worker: error.worker.clone(),
            reason: error.reason.clone(),
            width: self.manifest().spec.width,
        }
    }

    /// Finds the workers of an epoch whose sessions have ended. Records the loss of each of these workers and sends an
    /// event for it.
    pub(super) fn note_lost(&mut self, workers: &EpochWorkers) {
        for member in &workers.members {
            let Some(reason) = self.parts.registry.reason_of_loss(member) else {
                continue;
            };
            self.failures.note_lost(&member.name);
            let worker = member.name.clone();
            let event = EventKind::WorkerLost { worker, reason };
            self.parts.notifier.send(self.manifest(), event);
        }
    }
}
