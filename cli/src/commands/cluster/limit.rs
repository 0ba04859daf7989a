//! `hatebeam limit`: change the limits of a run.

use super::args::{block_on, parse_dollars};
use super::client::{ClientArgs, print_run, warn_of_unknown_prices};
use crate::args::{parse_depth, parse_hours};
use anyhow::Context;
use clap::ArgGroup;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;
use hatebeam_runs::seconds_of_hours;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("limit"))]
#[command(group(ArgGroup::new("limits").required(true).multiple(true).args(["max_depth", "max_cost", "max_hours"])))]
pub(crate) struct LimitArgs {
    /// Name of the run, or the beginning of the name
    #[arg(value_name = "RUN")]
    run: String,
    /// Depth to stop at, or none to remove the limit
    #[arg(long, value_name = "PIECES", value_parser = |text: &str| or_none(text, parse_depth))]
    max_depth: Option<u32>,
    /// Maximum total cost in dollars, or none to remove the limit
    #[arg(long, value_name = "DOLLARS")]
    #[arg(value_parser = |text: &str| or_none(text, |text| parse_dollars(text).map(|cost| cost.0)))]
    max_cost: Option<u64>,
    /// Maximum total hours of searching and waiting for workers, or none to remove the limit
    #[arg(long, value_name = "HOURS")]
    #[arg(value_parser = |text: &str| or_none(text, |text| parse_hours(text).map(seconds_of_hours)))]
    max_hours: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Parses a limit or `none`, which the protocol encodes as 0.
fn or_none<T: Default>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    match text {
        "none" => Ok(T::default()),
        _ => parse(text).map_err(|error| format!("{error}, or none")),
    }
}

impl LimitArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let (mut client, run) = self.client.find(Some(&self.run)).await?;
            let request = call(v1::LimitRequest {
                run: run.name,
                max_depth: self.max_depth,
                max_cost_micros: self.max_cost,
                max_seconds: self.max_hours,
            });
            let limited = client
                .limit(request)
                .await
                .map_err(ClientError::refused)?
                .into_inner();
            let run = limited
                .run
                .context("the coordinator's answer contains no run")?;
            warn_of_unknown_prices(&mut client, &run).await;
            print_run(&run, self.json)
        })
    }
}
