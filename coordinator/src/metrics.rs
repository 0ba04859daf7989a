//! What the coordinator counts. Much of it is known anyway, and looked up when somebody wants to know.

use crate::queue::RunQueue;
use crate::registry::WorkerRegistry;
use hatebeam_metrics::{CoordinatorMetrics, Registry, RunMetrics};
use hatebeam_proto::v1;
use std::sync::Arc;

/// What the coordinator counts.
pub(crate) struct Metrics {
    pub(crate) all: CoordinatorMetrics,
    /// Of the run that is searched.
    pub(crate) run: RunMetrics,
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> Arc<Metrics> {
        Arc::new(Metrics {
            run: RunMetrics::register(registry),
            all: CoordinatorMetrics::register(registry),
        })
    }

    /// Says how runs and workers stand.
    pub(crate) fn show(&self, queue: &RunQueue, registry: &WorkerRegistry) {
        let runs = queue.statuses();
        for (state, gauge) in self.all.runs.iter() {
            let is_so = |run: &&v1::RunStatus| run.state().name() == state;
            gauge.set(runs.iter().filter(is_so).count() as u64);
        }
        let workers = queue.workers();
        for (state, gauge) in self.all.workers.iter() {
            let is_so = |worker: &&v1::WorkerStatus| worker.state == state;
            gauge.set(workers.iter().filter(is_so).count() as u64);
        }
        let slow = workers.iter().filter(|worker| worker.slow).count();
        self.all.workers_slow.set(slow as u64);
        let (per_hour, unpriced) = queue.costs.per_hour();
        self.all.per_hour.set_f64(per_hour.dollars());
        self.all.unpriced.set(u64::from(unpriced));
        let Some(manifest) = queue.searched() else {
            return;
        };
        let run = runs.iter().find(|run| run.name == manifest.name);
        let Some(run) = run else {
            return;
        };
        self.run.info.set(vec![
            ("run", run.name.clone()),
            ("state", run.state().name().to_owned()),
        ]);
        self.run.depth.set(u64::from(run.depth));
        self.run.width.set(run.width);
        let costs = queue.costs.cost(&manifest).parts();
        for ((_, gauge), cost) in self.run.cost.iter().zip(costs) {
            gauge.set_f64(cost.dollars());
        }
        let budget = manifest.limits.max_cost.unwrap_or_default();
        self.run.budget.set_f64(budget.dollars());
        let wells = manifest.last().map_or(0, |last| last.record.count);
        self.run.wells.set(wells);
        self.run.best_lines.set(u64::from(run.best_lines));
        self.run.stored.set(run.stored_bytes);
        self.run.searched.set_f64(run.seconds);
        let (expanded, parents) = registry.progress(manifest.epoch);
        self.run.depth_wells.set(parents);
        self.run.depth_wells_expanded.set(expanded);
    }
}
