//! The machine that a process runs on: what it is, what it costs, and whether it is about to be taken away.

#[cfg(feature = "s3")]
mod metadata;

use crate::plan::{market_parser, parse_price};
pub(crate) use hatebeam_cost::Machine;
use hatebeam_cost::{Market, Micros, ObjectStorePrices, PriceTable};
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
    #[arg(long, value_name = "MARKET", value_parser = market_parser())]
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
        let machine = self.priced(found);
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
    fn priced(&self, mut machine: Machine) -> Machine {
        if let Some(kind) = &self.machine {
            machine.kind.clone_from(kind);
        }
        if let Some(market) = self.market {
            machine.market = market.name().to_owned();
        }
        let chosen = self.price_per_hour.map(Micros::from_dollars);
        PriceTable::get().set_price(&mut machine, chosen);
        machine
    }
}

/// Returns the prices of the object store: AWS's list prices, or nothing for a folder or another server.
pub(crate) fn object_store_prices(is_aws: bool) -> ObjectStorePrices {
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
    fn arguments_have_priority_over_the_metadata() {
        assert_eq!(price(None, None), Some(Micros(1_380_000)));
        let on_demand = price(None, Some(Market::OnDemand));
        assert_eq!(on_demand, Some(Micros(3_456_000)));
        assert_eq!(price(Some("c5d.9xlarge"), None), Some(Micros(690_000)));
    }

    #[test]
    fn only_aws_charges_for_the_object_store() {
        assert_eq!(object_store_prices(false), ObjectStorePrices::default());
        assert_ne!(object_store_prices(true), ObjectStorePrices::default());
    }
}
