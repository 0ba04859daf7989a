//! Metrics of the coordinator and its runs.

use crate::costs::Rate;
use crate::registry::{Expansion, WorkerStatus};
use crate::status::RunStatus;
use hatebeam_metrics::{CoordinatorMetrics, Registry, RunMetrics};

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) coordinator: CoordinatorMetrics,
    /// Metrics of the run whose search began most recently.
    pub(crate) run: RunMetrics,
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> Metrics {
        Metrics {
            run: RunMetrics::register(registry),
            coordinator: CoordinatorMetrics::register(registry),
        }
    }

    /// Sets the gauges for the numbers of runs and workers, and for the hourly price of the machines.
    pub(crate) fn coordinator_state(
        &self,
        runs: &[RunStatus],
        workers: &[WorkerStatus],
        rate: Rate,
    ) {
        let metrics = &self.coordinator;
        for (state, gauge) in metrics.runs.iter() {
            let is_in = |run: &&RunStatus| run.manifest.state.name() == state;
            gauge.set(runs.iter().filter(is_in).count() as u64);
        }
        for (state, gauge) in metrics.workers.iter() {
            let is_in = |worker: &&WorkerStatus| worker.state.name() == state;
            gauge.set(workers.iter().filter(is_in).count() as u64);
        }
        let slow = workers.iter().filter(|worker| worker.slow).count();
        metrics.workers_slow.set(slow as u64);
        metrics.per_hour.set_f64(rate.per_hour.dollars());
        metrics.unpriced.set(u64::from(rate.unpriced));
    }

    /// Sets the gauges that describe `run`.
    pub(crate) fn run_state(&self, run: &RunStatus, expansion: Expansion) {
        let (metrics, manifest) = (&self.run, &run.manifest);
        metrics.info.set(vec![
            ("run", manifest.name.clone()),
            ("state", manifest.state.name().to_owned()),
        ]);
        metrics.depth.set(u64::from(run.depth()));
        metrics.width.set(manifest.spec.width);
        let parts = run.cost.parts();
        for (part, gauge) in metrics.cost.iter() {
            let cost = match part {
                "machines" => parts.machines,
                "requests" => parts.requests,
                _ => parts.storage,
            };
            gauge.set_f64(cost.dollars());
        }
        let budget = manifest.limits.max_cost.unwrap_or_default();
        metrics.budget.set_f64(budget.dollars());
        let wells = manifest.last().map_or(0, |last| last.record.count);
        metrics.wells.set(wells);
        metrics.best_lines.set(u64::from(manifest.best_lines()));
        metrics.stored.set(manifest.stored_bytes());
        metrics.searched.set_f64(manifest.seconds);
        metrics.depth_wells.set(expansion.parents);
        metrics.depth_wells_expanded.set(expansion.expanded);
    }
}
