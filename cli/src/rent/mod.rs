//! The machine that a process runs on: what it is, what it costs, and whether it is about to be taken away.

#[cfg(feature = "s3")]
mod metadata;

use crate::plan::{Market, Prices, parse_price};
pub(crate) use hatebeam_cost::Machine;
use hatebeam_cost::{Micros, ObjectStorePrices};
#[cfg(feature = "s3")]
pub(crate) use metadata::{Metadata, may_be_here};

/// What a person says of the machine.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RentArgs {
    /// Dollars that this machine costs an hour [default: what the table of `hatebeam plan` says of its kind]
    #[arg(long, value_name = "DOLLARS", value_parser = parse_price)]
    price_per_hour: Option<f64>,
    /// What kind of machine this is, as AWS calls it [default: what a machine of AWS says of itself]
    #[arg(long, value_name = "KIND")]
    machine: Option<String>,
    /// How it is paid for [default: what a machine of AWS says of itself, or else on-demand]
    #[arg(long, value_name = "MARKET")]
    market: Option<Market>,
}

/// Nothing can be asked where nothing of AWS is compiled in.
#[cfg(not(feature = "s3"))]
#[derive(Debug)]
pub(crate) struct Metadata;

#[cfg(not(feature = "s3"))]
impl Metadata {
    pub(crate) async fn find() -> Option<(Metadata, Machine)> {
        None
    }

    pub(crate) async fn is_to_go(&self) -> String {
        std::future::pending().await
    }
}

impl RentArgs {
    /// The machine, and who tells what becomes of it, where there is such a one.
    pub(crate) async fn machine(&self) -> anyhow::Result<(Machine, Option<Metadata>)> {
        let (metadata, found) = match Metadata::find().await {
            Some((metadata, machine)) => (Some(metadata), machine),
            None => (None, Machine::default()),
        };
        let machine = self.priced(found, &Prices::load()?);
        tracing::info!(
            kind = machine.kind,
            market = machine.market,
            zone = machine.zone,
            dollars_per_hour = machine.price_per_hour.map(Micros::dollars),
            price = machine.price_from,
            "the machine"
        );
        Ok((machine, metadata))
    }

    /// What is said here goes before what the machine says, and a price before the table's.
    fn priced(&self, mut machine: Machine, prices: &Prices) -> Machine {
        if let Some(kind) = &self.machine {
            machine.kind.clone_from(kind);
        }
        if let Some(market) = self.market {
            machine.market = market.name().to_owned();
        }
        let listed = prices.find(&machine.kind).ok();
        (machine.price_per_hour, machine.price_from) = match (self.price_per_hour, listed) {
            (Some(dollars), _) => (
                Some(Micros::from_dollars(dollars)),
                "told by --price-per-hour".to_owned(),
            ),
            (None, Some(listed)) => {
                let is_spot = machine.market == Market::Spot.name();
                let dollars = if is_spot {
                    listed.spot
                } else {
                    listed.on_demand
                };
                let table = format!("the table of {} for {}", prices.as_of, prices.region);
                (Some(Micros::from_dollars(dollars)), table)
            }
            (None, None) => (None, String::new()),
        };
        machine
    }
}

/// What the object store charges: AWS what its list says, a folder or a server of one's own nothing.
pub(crate) fn rates(is_of_aws: bool) -> anyhow::Result<ObjectStorePrices> {
    if !is_of_aws {
        return Ok(ObjectStorePrices::default());
    }
    let s3 = Prices::load()?.s3;
    let nanos_each = |dollars_per_1000: f64| (dollars_per_1000 * 1e6).round() as u64;
    Ok(ObjectStorePrices {
        nanos_per_write: nanos_each(s3.dollars_per_1000_puts),
        nanos_per_read: nanos_each(s3.dollars_per_1000_gets),
        per_gb_month: Micros::from_dollars(s3.dollars_per_gb_month),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(price: Option<f64>, kind: Option<&str>, market: Option<Market>) -> Machine {
        let args = RentArgs {
            price_per_hour: price,
            machine: kind.map(str::to_owned),
            market,
        };
        let found = Machine {
            kind: "c5d.18xlarge".to_owned(),
            market: "spot".to_owned(),
            ..Machine::default()
        };
        args.priced(found, &Prices::load().unwrap())
    }

    #[test]
    fn what_is_told_goes_before_what_is_found() {
        assert_eq!(
            told(None, None, None).price_per_hour,
            Some(Micros(1_380_000))
        );
        let on_demand = told(None, None, Some(Market::OnDemand));
        assert_eq!(on_demand.price_per_hour, Some(Micros(3_456_000)));
        assert!(on_demand.price_from.starts_with("the table of 20"));
        let other = told(None, Some("c5d.9xlarge"), None);
        assert_eq!(other.price_per_hour, Some(Micros(690_000)));
        assert_eq!(
            told(Some(0.5), None, None).price_per_hour,
            Some(Micros(500_000))
        );
        let unknown = told(None, Some("my own"), None);
        assert_eq!(
            (unknown.price_per_hour, unknown.price_from.as_str()),
            (None, "")
        );
    }

    #[test]
    fn aws_charges_what_its_list_says_and_others_nothing() {
        assert_eq!(rates(false).unwrap(), ObjectStorePrices::default());
        let s3 = rates(true).unwrap();
        assert_eq!((s3.nanos_per_write, s3.nanos_per_read), (5000, 400));
        assert_eq!(s3.per_gb_month, Micros(23_000));
    }
}
