//! `hatebeam status`: print a coordinator's runs and workers.

use super::args::block_on;
use super::client::ClientArgs;
use super::format::{RunJson, run_text, worker_text};
use crate::output;
use hatebeam_client::{ClientError, call, runs};
use hatebeam_dashboard::WorkerView;
use hatebeam_proto::v1;
use std::fmt::Write as _;

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
            self.print(
                &runs,
                &workers.map_err(ClientError::refused)?.into_inner().workers,
            )
        })
    }

    fn print(&self, runs: &[v1::RunStatus], workers: &[v1::WorkerStatus]) -> anyhow::Result<()> {
        if self.json {
            let runs: Vec<RunJson<'_>> = runs.iter().map(RunJson::of).collect();
            let workers: Vec<WorkerView<'_>> = workers.iter().map(WorkerView::of).collect();
            return output::print_json(&serde_json::json!({ "runs": runs, "workers": workers }));
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
        for worker in workers {
            let _ = writeln!(text, "{}", worker_text(worker));
        }
        if workers.is_empty() {
            text.push_str("There are no workers. Start one with `hatebeam worker`.\n");
        }
        output::print(text)
    }
}
