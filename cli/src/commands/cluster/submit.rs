//! `hatebeam submit`: submit a run to a coordinator.

use super::args::{block_on, parse_dollars};
use super::client::{ClientArgs, print_run, warn_of_unknown_prices};
use super::watch::follow;
use crate::args::{parse_depth, parse_hours};
use crate::spec::SpecArgs;
use anyhow::Context;
use hatebeam_client::{ClientError, call};
use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_runs::{Retention, RunSpec, seconds_of_hours};
use hatebeam_search::{EvaluatorKind, Network};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("submit"))]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Stop at this depth [default: no limit]
    #[arg(long, value_name = "PIECES", value_parser = parse_depth)]
    max_depth: Option<u32>,
    /// Maximum cost in dollars: the run stops before a depth that would exceed the limit, and stores its best game.
    /// To resume the run, submit it again with a higher limit [default: no limit]
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    max_cost: Option<Micros>,
    /// Maximum hours of searching and waiting for workers: like --max-cost, stops the run before a depth that would exceed
    /// the limit [default: no limit]
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    max_hours: Option<f64>,
    /// Depths whose wells are kept in the object store: all; a number N from 2 to 6 for every Nth depth; or last for only
    /// the last depth [default: all, or 4 for more than 100 million wells]
    #[arg(long, value_name = "DEPTHS")]
    keep: Option<Retention>,
    /// Number of shards per depth at first, 1 to 4096; the coordinator splits shards for many workers or threads. A later
    /// submission of the same run cannot change it [default: one per million wells, at least 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    shards: Option<u32>,
    /// Show the progress of the run until it ends; Ctrl-C ends the command, but not the run
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object; with --watch, one per depth and one for the run
    #[arg(long)]
    json: bool,
}

impl SubmitArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let spec = self.spec.spec()?;
        block_on(async {
            let mut client = self.client.connect().await?;
            let request = v1::SubmitRequest {
                spec: serde_json::to_string(&spec)?,
                shards: self.shards.unwrap_or(0),
                keep: self.keep.map_or_else(String::new, String::from),
                max_depth: self.max_depth.unwrap_or(0),
                max_cost_micros: self.max_cost.map_or(0, |cost| cost.0),
                max_seconds: self.max_hours.map_or(0, seconds_of_hours),
                network: network_file(&spec),
            };
            let submitted = client
                .submit(call(request))
                .await
                .map_err(ClientError::refused)?;
            let run = submitted.into_inner().run;
            let run = run.context("the coordinator's answer contains no run")?;
            if self.watch {
                return follow(&self.client, &run.name, self.json, false).await;
            }
            warn_of_unknown_prices(&mut client, &run).await;
            print_run(&run, self.json)
        })
    }
}

/// Returns the encoded network of the specification. Returns no bytes if the evaluator has no network, if the network is
/// part of the program, or if this process has not loaded the network. In the last case, the coordinator looks for the
/// network in the object store.
fn network_file(spec: &RunSpec) -> Vec<u8> {
    match spec.evaluator.kind {
        EvaluatorKind::Network(digest) if !digest.is_shipped() => {
            Network::find(digest).map_or_else(Vec::new, |network| network.encode())
        }
        _ => Vec::new(),
    }
}
