//! `hatebeam watch`: show the progress of a run until it ends.

use super::args::block_on;
use super::client::{ClientArgs, TargetArgs};
use super::format::{cost_text, print_run, worker_lines};
use crate::output::{self, CANNOT_WRITE, Failure};
use anyhow::Context;
use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_runs::{Observer, ProgressEstimator, RunSpec};
use hatebeam_telemetry::{Screen, ScreenOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const HELP: &str = "\
Shows the progress like `hatebeam run`. With --json, prints one object per depth, and one object for the run when it ends.
If the coordinator becomes unreachable, the command reconnects.

Examples:
  hatebeam watch
  hatebeam watch patterns-1000000-5f3a9c1e --json";

/// Maximum number of workers shown below the progress bar.
const MAX_WORKERS: usize = 16;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print one JSON object per depth, and one object for the run
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

impl WatchArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let run = self.target.name().await?;
            follow(&self.target.client, &run, self.json, self.quiet).await
        })
    }
}

/// Shows the progress of a run until it ends, and prints its result.
pub(super) async fn follow(
    client: &ClientArgs,
    run: &str,
    json: bool,
    quiet: bool,
) -> anyhow::Result<()> {
    let mut view = RunView {
        json,
        quiet,
        screen: None,
        expanded: Arc::default(),
        begun: None,
        note: String::new(),
        alerts: BTreeSet::new(),
    };
    let endpoint = client.endpoint()?;
    let ended = endpoint.watch(run, 0, |message| {
        if let Some(run) = &message.run {
            view.show(run, message);
        }
    });
    let ended = ended.await?;
    if let Some(mut screen) = view.screen {
        screen.close().context(CANNOT_WRITE)?;
    }
    print_end(&ended, json)
}

/// The state of the progress display for one run.
struct RunView {
    json: bool,
    quiet: bool,
    /// The screen. It is opened on the first message, which contains the run's specification.
    screen: Option<Screen>,
    expanded: Arc<AtomicU64>,
    /// The depth and the epoch that the progress bar shows.
    begun: Option<(u32, u64)>,
    /// The last note shown.
    note: String,
    /// Kind and worker of each alert in the last message.
    alerts: BTreeSet<(String, String)>,
}

impl RunView {
    fn show(&mut self, run: &v1::RunStatus, message: &v1::WatchResponse) {
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
        let current = Some((run.depth, run.epoch));
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
        // The run's note already contains the text of a `held-up` alert.
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

/// Prints the result of an ended run. Returns [`Failure::Printed`] if the run did not finish.
pub(super) fn print_end(run: &v1::RunStatus, json: bool) -> anyhow::Result<()> {
    print_run(run, json)?;
    if let Some(result) = run.result.as_ref().filter(|_| !json) {
        output::print(format_args!("{}\n", result.replay))?;
    }
    match run.state() {
        v1::State::Finished => Ok(()),
        _ => Err(Failure::Printed.into()),
    }
}
