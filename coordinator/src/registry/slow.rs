//! Detection of workers for which the others must wait.

use super::state::{Worker, WorkerRegistry};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time for which a worker must be far behind, or wait for its uploads, before it is reported. Shorter delays are
/// normal, especially at depths that take little time.
const TOLERANCE: Duration = Duration::from_secs(2);

impl Worker {
    /// Returns the share of the worker's parents (the wells to expand) that are expanded, from 0 to 1.
    fn share(&self) -> f64 {
        match self.heartbeat.parents {
            0 => 1.0,
            parents => self.heartbeat.expanded as f64 / parents as f64,
        }
    }

    /// Whether the worker has expanded all its parents and is still uploading tables (files of wells) of the previous
    /// depth.
    fn waits_for_uploads(&self) -> bool {
        let beat = &self.heartbeat;
        beat.parents > 0 && beat.expanded >= beat.parents && beat.uploading_bytes > 0
    }

    /// Whether the worker has been far behind the others for longer than [`TOLERANCE`].
    pub(super) fn is_slow(&self) -> bool {
        self.behind.is_some_and(|since| since.elapsed() > TOLERANCE)
    }

    /// Whether the worker has waited for its uploads for longer than [`TOLERANCE`].
    pub(super) fn is_uploading_late(&self) -> bool {
        self.uploads
            .is_some_and(|since| since.elapsed() > TOLERANCE)
    }

    /// Updates the fields `behind` and `uploads` from the worker's last heartbeat. A worker is far behind if
    /// the workers' median share of expanded parents is above 0.5, and its own share is less than half the median.
    fn compare(&mut self, epoch: u64, median: f64, now: Instant) {
        let uploads = self.uploads.unwrap_or(now);
        self.uploads = self.waits_for_uploads().then_some(uploads);
        let was_slow = self.is_slow();
        let share = self.share();
        let is_behind = self.is_expanding(epoch) && median > 0.5 && share < median / 2.0;
        let behind = self.behind.unwrap_or(now);
        self.behind = is_behind.then_some(behind);
        if self.is_slow() && !was_slow {
            let (worker, percent) = (&self.hello.name, share * 100.0);
            let median_percent = median * 100.0;
            tracing::warn!(
                worker,
                percent,
                median_percent,
                "detected slow worker: the others are waiting for it"
            );
        }
    }

    fn is_expanding(&self, epoch: u64) -> bool {
        self.heartbeat.epoch == epoch && self.heartbeat.parents > 0
    }
}

impl WorkerRegistry {
    /// Checks for slow workers once per heartbeat interval.
    pub(crate) async fn watch_slow(self: Arc<Self>) -> Infallible {
        loop {
            tokio::time::sleep(self.settings.heartbeat).await;
            let now = self.env.now();
            let mut sessions = self.sessions();
            let workers = || sessions.workers.values();
            let epoch = workers().map(|worker| worker.heartbeat.epoch).max();
            let epoch = epoch.unwrap_or(0);
            let expanding = workers().filter(|worker| worker.is_expanding(epoch));
            let mut shares: Vec<f64> = expanding.map(Worker::share).collect();
            shares.sort_by(f64::total_cmp);
            let median = shares.get(shares.len() / 2).copied().unwrap_or(0.0);
            for worker in sessions.workers.values_mut() {
                worker.compare(epoch, median, now);
            }
        }
    }
}
