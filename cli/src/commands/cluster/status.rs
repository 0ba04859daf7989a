//! `hatebeam status`: print a coordinator's runs and workers.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{
    ClientError, call, deadline_text, price_warning, run_text, runs, worker_text,
};
use hatebeam_dashboard::{StatusView, WorkerView};
use hatebeam_proto::v1;
use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("status"))]
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
            let warning = runs
                .iter()
                .find_map(|run| price_warning(run, &workers.workers));
            if let Some(warning) = warning {
                output::warn(warning);
            }
            self.print(&runs, &workers)
        })
    }

    fn print(&self, runs: &[v1::RunStatus], workers: &v1::WorkersResponse) -> anyhow::Result<()> {
        if self.json {
            let deadline_ms = (workers.deadline_ms > 0).then_some(workers.deadline_ms);
            let runs: Vec<StatusView<'_>> = runs.iter().map(StatusView::of).collect();
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
            output::note("no runs; submit one with `hatebeam submit`");
        } else if !workers.workers.is_empty() {
            text.push('\n');
        }
        for worker in &workers.workers {
            let _ = writeln!(text, "{}", worker_text(worker));
        }
        if workers.workers.is_empty() {
            output::note("no workers; start one with `hatebeam worker`");
        }
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64;
        text.push_str(&deadline_text(workers.deadline_ms, since_1970));
        output::print(text)
    }
}
