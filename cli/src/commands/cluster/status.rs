//! `hatebeam status`: print a coordinator's runs and workers.

use super::args::block_on;
use super::client::ClientArgs;
use super::format::{RunJson, run_text, worker_text};
use crate::output;
use hatebeam_client::{ClientError, call, runs};
use hatebeam_dashboard::WorkerView;
use hatebeam_proto::v1;
use hatebeam_report::duration;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

const HELP: &str = "\
Prints the given run and the workers. Without RUN, prints all runs, most recently submitted first, and the workers.

Examples:
  hatebeam status
  hatebeam status patterns-1000000-5f3a9c1e --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct StatusArgs {
    /// Name of the run, or the beginning of the name [default: all runs]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Show queued and running runs only
    #[arg(long, conflicts_with = "run")]
    open: bool,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let (mut client, runs) = if self.run.is_some() {
                let (client, run) = self.client.find(self.run.as_deref()).await?;
                (client, vec![run])
            } else {
                let mut client = self.client.connect().await?;
                let request = v1::ListRequest {
                    open_only: self.open,
                    ..v1::ListRequest::default()
                };
                let runs = runs(&mut client, request).await?;
                (client, runs)
            };
            let workers = client.workers(call(v1::WorkersRequest {})).await;
            let workers = workers.map_err(ClientError::refused)?.into_inner();
            self.print(&runs, &workers)
        })
    }

    fn print(&self, runs: &[v1::RunStatus], workers: &v1::WorkersResponse) -> anyhow::Result<()> {
        if self.json {
            let deadline_ms = (workers.deadline_ms > 0).then_some(workers.deadline_ms);
            let runs: Vec<RunJson<'_>> = runs.iter().map(RunJson::of).collect();
            let workers: Vec<WorkerView<'_>> = workers.workers.iter().map(WorkerView::of).collect();
            return output::print_json(&serde_json::json!({
                "runs": runs, "workers": workers, "deadline_ms": deadline_ms,
            }));
        }
        let mut text = String::new();
        for run in runs {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", run_text(run));
        }
        if runs.is_empty() {
            text.push_str("There are no runs. Submit one with `hatebeam submit`.\n");
        }
        text.push('\n');
        for worker in &workers.workers {
            let _ = writeln!(text, "{}", worker_text(worker));
        }
        if workers.workers.is_empty() {
            text.push_str("There are no workers. Start one with `hatebeam worker`.\n");
        }
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64;
        text.push_str(&deadline_text(workers.deadline_ms, since_1970));
        output::print(text)
    }
}

/// Describes the time until all machines stop; both times are in milliseconds since 1970.
fn deadline_text(deadline_ms: u64, now_ms: u64) -> String {
    match deadline_ms.checked_sub(now_ms).map(Duration::from_millis) {
        _ if deadline_ms == 0 => String::new(),
        Some(left) => format!("\nAll machines stop in {}.\n", duration(left)),
        None => "\nThe deadline of the machines has passed: no worker starts.\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_is_shown_if_there_is_one() {
        assert_eq!(deadline_text(0, 5), "");
        let hour = 3_600_000;
        let left = deadline_text(3 * hour, hour);
        assert!(left.contains("stop in 2:00:00"), "{left}");
        assert!(deadline_text(hour, 3 * hour).contains("has passed"));
    }
}
