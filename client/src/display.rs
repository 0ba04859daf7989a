//! The progress display for a run on a coordinator.

use crate::text::{cost_text, worker_lines};
use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_runs::{Observer, ProgressEstimator, RunSpec};
use hatebeam_telemetry::{Screen, ScreenOptions};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of workers shown below the progress bar.
const MAX_WORKERS: usize = 16;

/// The work that a progress bar shows. The bar restarts when it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Work {
    /// The last committed depth.
    depth: u32,
    /// The epoch (a period with a fixed set of workers).
    epoch: u64,
    /// Number of wells to expand. It changes within a depth if the best children are scored again.
    parents: u64,
}

/// The progress display for one run.
pub struct RunDisplay {
    json: bool,
    quiet: bool,
    /// Created when the first message arrives, since the message contains the run's specification.
    screen: Option<Screen>,
    expanded: Arc<AtomicU64>,
    /// The work for which the progress bar was last restarted.
    begun: Option<Work>,
    /// The last note shown.
    note: String,
    /// Kind and worker of each alert in the last message.
    alerts: BTreeSet<(String, String)>,
}

impl RunDisplay {
    /// Creates a display. If `json` is set, the display prints a JSON line for each depth on standard output. If `quiet` is
    /// set, it hides the progress.
    pub fn new(json: bool, quiet: bool) -> RunDisplay {
        RunDisplay {
            json,
            quiet,
            screen: None,
            expanded: Arc::default(),
            begun: None,
            note: String::new(),
            alerts: BTreeSet::new(),
        }
    }

    /// Removes the progress bar.
    ///
    /// # Errors
    /// Returns the first error that occurred when writing a JSON line.
    pub fn close(self) -> io::Result<()> {
        self.screen.map_or(Ok(()), |mut screen| screen.close())
    }

    /// Shows a message from [`Endpoint::watch`](crate::Endpoint::watch).
    pub fn show(&mut self, message: &v1::WatchResponse) {
        let Some(run) = &message.run else {
            return;
        };
        let max_depth = (run.max_depth > 0).then_some(run.max_depth);
        let screen = self.screen.get_or_insert_with(|| {
            let spec: Option<RunSpec> = serde_json::from_str(&run.spec).ok();
            Screen::new(ScreenOptions {
                json: self.json,
                quiet: self.quiet,
                estimator: spec.map(|spec| ProgressEstimator::new(&spec, max_depth)),
                stored: 0,
            })
        });
        for record in &message.depths {
            screen.cost(Micros(record.cost_micros).dollars());
            screen.committed(&record.into());
        }
        self.expanded.store(run.expanded, Ordering::Relaxed);
        let current = Some(Work {
            depth: run.depth,
            epoch: run.epoch,
            parents: run.parents,
        });
        let is_below_limit = max_depth.is_none_or(|max| run.depth < max);
        if is_below_limit && run.parents > 0 && self.begun != current {
            self.begun = current;
            screen.begun(run.depth + 1, run.parents, &self.expanded);
        }
        screen.below(&below(run, &message.workers));
        if run.note != self.note {
            self.note.clone_from(&run.note);
            if !run.note.is_empty() {
                screen.note(&run.note);
            }
        }
        let shown = std::mem::take(&mut self.alerts);
        // A `held-up` alert (the run makes no progress) repeats the run's note, which is shown above.
        for alert in message
            .alerts
            .iter()
            .filter(|alert| alert.kind != "held-up")
        {
            let about = (alert.kind.clone(), alert.worker.clone());
            // An alert is shown only once, even if the numbers in its text change.
            if !shown.contains(&about) && !self.alerts.contains(&about) {
                screen.note(format!("{} {}", alert.worker, alert.text).trim());
            }
            self.alerts.insert(about);
        }
    }
}

/// Returns the lines below the progress bar: the cost and the workers.
fn below(run: &v1::RunStatus, workers: &[v1::WorkerStatus]) -> String {
    let cost = cost_text(run);
    let workers = worker_lines(workers, MAX_WORKERS);
    if cost.is_empty() {
        return workers;
    }
    format!("{cost}\n{workers}")
}
