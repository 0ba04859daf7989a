//! The state of runs and workers that clients and metrics receive.

use crate::alerts::{Alert, alerts, deadline_alert};
use crate::coordinator::Coordinator;
use crate::costs::Cost;
use crate::queue::{ListPosition, QueuedRun};
use crate::registry::WorkerStatus;
use crate::status::{CostProjection, RunStatus};
use hatebeam_cost::Micros;
use hatebeam_runs::{CommittedDepth, Manifest, ProgressEstimator, Projection, RunState};

impl Coordinator {
    /// Returns the status of the run with this name.
    pub fn run(&self, name: &str) -> Option<RunStatus> {
        self.0.queue.get(name).map(|run| self.status_of(run))
    }

    /// Returns the status of all runs, most recently submitted first.
    pub fn runs(&self) -> Vec<RunStatus> {
        let runs = self.0.queue.all().into_iter();
        runs.map(|run| self.status_of(run)).collect()
    }

    /// Returns the runs that satisfy `filter` and come after the list position `after`, most recently submitted
    /// first.
    pub(crate) fn list(
        &self,
        after: Option<&ListPosition>,
        filter: impl Fn(&Manifest) -> bool,
    ) -> impl Iterator<Item = RunStatus> {
        let runs = self.0.queue.list(after, filter).into_iter();
        runs.map(|run| self.status_of(run))
    }

    fn status_of(&self, QueuedRun { manifest, note }: QueuedRun) -> RunStatus {
        let cost = self.0.costs.cost(&manifest);
        let is_running = manifest.state == RunState::Running;
        let expansion = is_running.then(|| self.0.registry.expansion(manifest.epoch));
        let projection = is_running.then(|| project(&manifest)).flatten();
        RunStatus {
            expansion: expansion.unwrap_or_default(),
            projection: projection.map(|projection| with_cost(projection, &cost)),
            cost,
            note,
            manifest,
        }
    }

    /// Returns at most `max` committed depths of a run, starting at depth `from`.
    pub fn depths(&self, run: &str, from: u32, max: usize) -> Vec<CommittedDepth> {
        let Some(manifest) = self.0.queue.manifest(run) else {
            return Vec::new();
        };
        let depths = manifest.depths.iter();
        let wanted = depths.filter(|depth| depth.record.depth >= from);
        wanted.take(max).cloned().collect()
    }

    /// Returns the status of all connected workers.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.0.registry.statuses(self.0.queue.epoch())
    }

    /// Returns the alerts about a run and the given workers.
    pub fn alerts(&self, run: &RunStatus, workers: &[WorkerStatus]) -> Vec<Alert> {
        let mut found = alerts(run, workers, &self.0.registry.recently_lost());
        if run.manifest.is_open() {
            found.extend(deadline_alert(self.deadline_ms(), self.0.env.wall_ms()));
        }
        found
    }

    /// Returns the time at which all machines are stopped, even during a run, in milliseconds since the Unix epoch.
    /// Returns `None` if there is no such time.
    pub fn deadline_ms(&self) -> Option<u64> {
        *self.0.settings.deadline.as_ref()?.borrow()
    }

    pub(crate) fn update_metrics(&self) {
        let runs = self.runs();
        let workers = self.workers();
        let rate = self.0.costs.rate();
        self.0.metrics.coordinator_state(&runs, &workers, rate);
        let searched = self.0.queue.last_searched();
        let is_searched = |run: &&RunStatus| {
            searched
                .as_ref()
                .is_some_and(|searched| searched.name == run.manifest.name)
        };
        if let Some(run) = runs.iter().find(is_searched) {
            let expansion = self.0.registry.expansion(run.manifest.epoch);
            self.0.metrics.run_state(run, expansion);
        }
    }
}

/// Estimates the end of a run from its last depths.
fn project(manifest: &Manifest) -> Option<Projection> {
    let mut estimator = ProgressEstimator::new(&manifest.spec, manifest.limits.max_depth);
    let depths = manifest.depths.len();
    let skipped = depths.saturating_sub(ProgressEstimator::DEPTHS);
    for depth in &manifest.depths[skipped..] {
        estimator.add(&depth.record);
    }
    estimator.projection()
}

fn with_cost(projection: Projection, cost: &Cost) -> CostProjection {
    let after = |seconds: f64| {
        let more = cost.rate().per_hour.0 as f64 / 3600.0 * seconds;
        cost.total().saturating_add(Micros(more as u64))
    };
    CostProjection {
        cost_low: after(projection.seconds.0),
        cost_high: after(projection.seconds.1),
        projection,
    }
}
