//! What a run on one machine counts for `--metrics`, on its way to the screen.

use super::Screen;
use hatebeam_metrics::{Registry, RunMetrics};
use hatebeam_runs::{Observer, Run};
use hatebeam_store::{DepthRecord, StoreError, bytes_below};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what the screen is told.
pub(crate) struct Counts<'a> {
    metrics: RunMetrics,
    /// The count of wells of the depth that is under way.
    expanded: Arc<Mutex<Arc<AtomicU64>>>,
    searched: f64,
    best_lines: u16,
    screen: &'a mut Screen,
}

impl Counts<'_> {
    /// Of a run that is about to be searched.
    pub(crate) fn new<'a>(
        registry: &Registry,
        run: &Run,
        name: &str,
        screen: &'a mut Screen,
    ) -> Counts<'a> {
        let metrics = RunMetrics::register(registry);
        let name = name.to_owned();
        let depths = run.store().depths();
        let counts = Counts {
            expanded: Arc::default(),
            searched: depths.iter().map(|record| record.seconds).sum(),
            best_lines: depths
                .iter()
                .map(|record| record.best_lines)
                .max()
                .unwrap_or(0),
            screen,
            metrics: metrics.clone(),
        };
        metrics.width.set(run.spec().width);
        if let Some(last) = depths.last() {
            counts.show(last);
        }
        let expanded = Arc::clone(&counts.expanded);
        metrics
            .info
            .set(vec![("run", name), ("state", "running".to_owned())]);
        let dir = run.store().dir().to_owned();
        registry.before_scrape(move || {
            metrics.stored.set(bytes_below(&dir));
            let expanded = expanded.lock().unwrap_or_else(PoisonError::into_inner);
            let count = expanded.load(Ordering::Relaxed);
            metrics.depth_wells_expanded.set(count);
        });
        counts
    }

    fn show(&self, record: &DepthRecord) {
        self.metrics.depth.set(u64::from(record.depth));
        self.metrics.wells.set(record.count);
        self.metrics.best_lines.set(u64::from(self.best_lines));
        self.metrics.searched.set_f64(self.searched);
    }
}

impl Observer for Counts<'_> {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        self.metrics.depth_wells.set(parents);
        *self.expanded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(expanded);
        self.screen.begun(depth, parents, expanded);
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.metrics.depths.add(1);
        self.metrics.children.add(record.children);
        self.metrics.depth_seconds.observe_seconds(record.seconds);
        self.searched += record.seconds;
        self.best_lines = self.best_lines.max(record.best_lines);
        self.show(record);
        self.screen.committed(record);
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        self.screen.damaged(depth, error);
    }
}
