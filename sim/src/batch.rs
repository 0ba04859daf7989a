//! Simulation of many seeds on several threads.

use crate::options::Options;
use crate::simulate::Report;
use crate::{Class, run_seed};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Totals over all simulated seeds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of seeds.
    pub seeds: u64,
    /// Total virtual time of the simulations.
    pub elapsed: Duration,
    /// Number of committed depths.
    pub depths: u64,
    /// Number of epochs (periods of a run with a fixed set of workers).
    pub epochs: u64,
    /// Number of epochs that have split the shards of the depth at which they began.
    pub splits: u64,
    /// Number of false messages of workers that lie.
    pub lies: u64,
    /// For each class of events, the number of times that committed depths were dropped in seeds that used it.
    pub drops: BTreeMap<Class, u64>,
    /// For each class of events, the number of seeds that used it.
    pub classes: BTreeMap<Class, u64>,
    /// Seeds that violated an invariant, in ascending order.
    pub failed: Vec<u64>,
}

impl Summary {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.elapsed += report.elapsed;
        self.depths += report.totals.depths;
        self.epochs += report.totals.epochs;
        self.splits += report.totals.splits;
        self.lies += report.totals.lies;
        for class in &report.classes {
            *self.classes.entry(*class).or_default() += 1;
            *self.drops.entry(*class).or_default() += report.totals.drops;
        }
        if !report.violations.is_empty() {
            self.failed.push(report.seed);
        }
    }
}

/// Simulates a range of seeds on `threads` threads. Calls `on_failure` with each report that contains violations.
pub fn run_seeds(
    seeds: Range<u64>,
    threads: usize,
    options: &Options,
    on_failure: impl Fn(&Report) + Sync,
) -> Summary {
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return;
            }
            let report = run_seed(seed, options);
            if !report.violations.is_empty() {
                on_failure(&report);
            }
            summary
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(&report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.failed.sort_unstable();
    summary
}
