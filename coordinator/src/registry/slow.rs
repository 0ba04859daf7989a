//! Workers that hold up the others.

use super::state::{Worker, WorkerRegistry};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A worker that is far behind for longer than this is slow. Depths that take less time say nothing.
const TOLERANCE: Duration = Duration::from_secs(2);

impl Worker {
    /// Returns the part of its parents that is expanded, from 0 to 1.
    fn share(&self) -> f64 {
        match self.heartbeat.parents {
            0 => 1.0,
            parents => self.heartbeat.expanded as f64 / parents as f64,
        }
    }

    /// Whether it has expanded its part and uploads tables of the depth before.
    fn waits_for_uploads(&self) -> bool {
        let beat = &self.heartbeat;
        beat.parents > 0 && beat.expanded >= beat.parents && beat.uploading_bytes > 0
    }

    /// Whether the other workers have waited for it for a while.
    pub(super) fn is_slow(&self) -> bool {
        self.behind.is_some_and(|since| since.elapsed() > TOLERANCE)
    }

    /// Whether the search has waited for its uploads for a while.
    pub(super) fn is_uploading_late(&self) -> bool {
        self.uploads
            .is_some_and(|since| since.elapsed() > TOLERANCE)
    }

    /// Takes note of whether it is far behind: not half as far as the median, when that is more than half.
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
                "slow worker holds up the others"
            );
        }
    }

    fn is_expanding(&self, epoch: u64) -> bool {
        self.heartbeat.epoch == epoch && self.heartbeat.parents > 0
    }
}

impl WorkerRegistry {
    /// Looks for slow workers once per heartbeat.
    pub(crate) async fn watch_slow(self: Arc<Self>) -> Infallible {
        loop {
            tokio::time::sleep(self.heartbeat).await;
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
