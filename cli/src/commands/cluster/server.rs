//! Arguments that the coordinator and the worker share.

use super::args::{StoreArgs, TlsArgs};
use super::observe::MetricsArgs;
use crate::args::{SpanArgs, log_format_parser};
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatebeam_cost::{MAX_PRICE, Market, Micros};
use hatebeam_host::GivenMachine;
use hatebeam_net::{check_address, check_bind};
use hatebeam_telemetry::{LogFormat, Logs};
use std::net::SocketAddr;
use tracing::level_filters::LevelFilter;

#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) store: StoreArgs,
    #[command(flatten)]
    pub(super) tls: TlsArgs,
    /// Allow listening without certificates on addresses that other machines can reach; anyone who can reach the address
    /// then has full control. --metrics on such an address always requires this flag, because metrics are served without
    /// TLS
    #[arg(long)]
    pub(super) insecure_bind: bool,
    #[command(flatten)]
    pub(super) rent: RentArgs,
    #[command(flatten)]
    pub(super) metrics: MetricsArgs,
    /// Stop when standard input ends, for example because the parent process has died
    #[arg(long)]
    pub(super) stop_with_stdin: bool,
    /// Format of log lines; the variable HATEBEAM_LOG selects levels and modules, such as debug or
    /// hatebeam_coordinator=debug,info
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = log_format_parser())]
    log_format: LogFormat,
    #[command(flatten)]
    spans: SpanArgs,
}

impl ServerArgs {
    /// Starts the log, and checks the addresses to listen on.
    pub(super) fn start(&self, process: &'static str, listen: SocketAddr) -> anyhow::Result<Logs> {
        let logs = self
            .spans
            .start_logs(self.log_format, LevelFilter::INFO, process)?;
        check_bind(listen, self.tls.dir().is_some(), self.insecure_bind)?;
        self.metrics.check(self.insecure_bind)?;
        Ok(logs)
    }

    /// Checks the address of --advertise.
    pub(super) fn check_advertised(&self, uri: Option<&str>) -> anyhow::Result<()> {
        let Some(uri) = uri else {
            return Ok(());
        };
        check_address(uri, self.tls.dir().is_some()).context("invalid --advertise")
    }
}

/// Arguments that describe the machine of this process.
#[derive(Debug, clap::Args)]
pub(super) struct RentArgs {
    /// Price of this machine in dollars per hour [default: the price of its type in the table of `hatebeam plan`]
    #[arg(long, value_name = "DOLLARS", value_parser = parse_price)]
    price_per_hour: Option<Micros>,
    /// AWS instance type of this machine [default: from the AWS metadata service]
    #[arg(long, value_name = "KIND")]
    machine: Option<String>,
    /// Market on which this machine is rented [default: from the AWS metadata service, or else on-demand]
    #[arg(long, value_name = "MARKET", value_parser = market_parser())]
    market: Option<Market>,
}

/// Returns a parser for markets.
pub(super) fn market_parser() -> impl TypedValueParser<Value = Market> {
    let value = |market: Market| {
        PossibleValue::new(market.name()).help(match market {
            Market::OnDemand => "The list price",
            Market::Spot => "A lower price that varies; AWS can reclaim the machine",
        })
    };
    PossibleValuesParser::new(Market::ALL.map(value))
        .map(|name| Market::from_name(&name).unwrap_or(Market::OnDemand))
}

impl RentArgs {
    pub(super) fn given(&self) -> GivenMachine {
        GivenMachine {
            kind: self.machine.clone(),
            market: self.market,
            price_per_hour: self.price_per_hour,
        }
    }
}

/// Parses a price per hour.
fn parse_price(text: &str) -> Result<Micros, String> {
    let price = text.parse().ok().filter(|price| *price <= MAX_PRICE);
    price.ok_or_else(|| format!("give a number of dollars from 0 to {}", MAX_PRICE.dollars()))
}
