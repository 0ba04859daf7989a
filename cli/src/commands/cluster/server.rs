//! Arguments that the coordinator and the worker share, the machine that the process runs on, and signals.

use super::args::{StoreArgs, TlsArgs};
use super::observe::MetricsArgs;
use crate::args::{SpanArgs, log_format_parser, number_in};
use crate::interrupt;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatebeam_cost::{Machine, Market, Micros, ObjectStorePrices, PriceTable};
use hatebeam_host::{Metadata, cores};
use hatebeam_net::check_bind;
use hatebeam_telemetry::{LogFormat, Logs};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;

/// Maximum time for a graceful shutdown after standard input ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of a coordinator or a worker.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) store: StoreArgs,
    #[command(flatten)]
    pub(super) tls: TlsArgs,
    /// Allow listening on addresses other than loopback without certificates; anyone who can reach the address then has
    /// full control. Also needed for --metrics on such an address, even with certificates, because metrics are always served
    /// without TLS
    #[arg(long)]
    pub(super) insecure_bind: bool,
    #[command(flatten)]
    pub(super) rent: RentArgs,
    #[command(flatten)]
    pub(super) metrics: MetricsArgs,
    /// Stop when standard input ends, for example because the parent process has died
    #[arg(long)]
    stop_with_stdin: bool,
    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = log_format_parser())]
    log_format: LogFormat,
    #[command(flatten)]
    spans: SpanArgs,
}

impl ServerArgs {
    /// Starts the logs, and checks the addresses.
    pub(super) fn start(&self, process: &'static str, listen: SocketAddr) -> anyhow::Result<Logs> {
        let logs = self
            .spans
            .start_logs(self.log_format, LevelFilter::INFO, process)?;
        check_bind(listen, self.tls.dir().is_some(), self.insecure_bind)?;
        self.metrics.check(self.insecure_bind)?;
        Ok(logs)
    }

    /// Returns a channel whose value becomes `true` on the first SIGINT or SIGTERM, or with --stop-with-stdin when
    /// standard input ends. A second signal ends the process immediately. Must be called within a tokio runtime.
    pub(super) fn stop(&self) -> anyhow::Result<watch::Receiver<bool>> {
        let flag = interrupt::flag()?;
        if self.stop_with_stdin {
            let flag = Arc::clone(&flag);
            let thread = std::thread::Builder::new().name("stdin".to_owned());
            thread.spawn(move || stop_at_end_of_input(&flag))?;
        }
        let (tx, rx) = watch::channel(false);
        tokio::spawn(async move {
            while !flag.load(Ordering::Relaxed) {
                tokio::time::sleep(SIGNAL_INTERVAL).await;
            }
            let _ = tx.send(true);
            // Receivers treat a closed channel as an error, so the channel stays open until no receiver is left.
            tx.closed().await;
        });
        Ok(rx)
    }
}

/// Sets the flag when standard input ends. Exits the process if it is still running after [`STOP_TIMEOUT`].
fn stop_at_end_of_input(flag: &AtomicBool) {
    // The input is discarded, and a read error counts as the end of the input.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    flag.store(true, Ordering::Relaxed);
    std::thread::sleep(STOP_TIMEOUT);
    std::process::exit(i32::from(interrupt::EXIT_CODE));
}

/// Arguments that describe the machine of this process.
#[derive(Debug, Default, clap::Args)]
pub(super) struct RentArgs {
    /// Price of this machine in dollars per hour [default: the price of its type in the table of `hatebeam plan`]
    #[arg(long, value_name = "DOLLARS", value_parser = number_in(0.0..=1e6, "a number of dollars"))]
    price_per_hour: Option<f64>,
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

/// The machine of this process.
pub(super) struct RentedMachine {
    pub(super) machine: Machine,
    /// The metadata service; `None` if this machine is not on AWS.
    pub(super) metadata: Option<Metadata>,
}

impl RentArgs {
    /// Returns the machine of this process, with its price if the price is known.
    pub(super) async fn machine(&self) -> RentedMachine {
        let (metadata, found) = match Metadata::find().await {
            Some((metadata, machine)) => (Some(metadata), machine),
            None => (None, Machine::default()),
        };
        let machine = self.priced(found);
        tracing::info!(
            kind = machine.kind,
            market = machine.market,
            zone = machine.zone,
            dollars_per_hour = machine.price_per_hour.map(Micros::dollars),
            price = machine.price_from,
            "found machine"
        );
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
        let age_warning = PriceTable::get().age_warning(since_1970.as_millis() as u64);
        if let Some(warning) = age_warning.filter(|_| machine.price_per_hour.is_some()) {
            tracing::warn!("{warning}");
        }
        RentedMachine { machine, metadata }
    }

    /// Replaces the detected type and market by those of the arguments, and sets the price. A price argument takes
    /// precedence over the table.
    fn priced(&self, mut machine: Machine) -> Machine {
        if let Some(kind) = &self.machine {
            machine.kind.clone_from(kind);
        }
        if let Some(market) = self.market {
            machine.market = market.name().to_owned();
        }
        let chosen = self.price_per_hour.map(Micros::from_dollars);
        PriceTable::get().set_price(&mut machine, chosen, cores());
        machine
    }
}

/// Returns the prices of an object store: the AWS list prices, or zero for a folder or another server.
pub(super) fn object_store_prices(is_aws: bool) -> ObjectStorePrices {
    if is_aws {
        PriceTable::get().s3.object_store()
    } else {
        ObjectStorePrices::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(kind: Option<&str>, market: Option<Market>) -> Option<Micros> {
        let args = RentArgs {
            price_per_hour: None,
            machine: kind.map(str::to_owned),
            market,
        };
        let found = Machine {
            kind: "c5d.18xlarge".to_owned(),
            market: "spot".to_owned(),
            ..Machine::default()
        };
        args.priced(found).price_per_hour
    }

    #[test]
    fn arguments_take_precedence_over_metadata() {
        assert_eq!(price(None, None), Some(Micros(1_380_000)));
        let on_demand = price(None, Some(Market::OnDemand));
        assert_eq!(on_demand, Some(Micros(3_456_000)));
        assert_eq!(price(Some("c5d.9xlarge"), None), Some(Micros(690_000)));
    }

    #[test]
    fn object_store_has_prices_only_on_aws() {
        assert_eq!(object_store_prices(false), ObjectStorePrices::default());
        assert_ne!(object_store_prices(true), ObjectStorePrices::default());
    }
}
