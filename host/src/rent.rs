//! The type and the price of the machine.

use crate::machine_threads;
use crate::metadata::Metadata;
use hatebeam_cost::{Machine, Market, Micros, PriceTable};
use std::time::UNIX_EPOCH;

/// The machine that this process runs on.
pub struct RentedMachine {
    /// Type, market and price of the machine.
    pub machine: Machine,
    /// A client for the metadata service, or `None` if the machine has no metadata service.
    pub metadata: Option<Metadata>,
}

/// Machine properties that the user specifies. They take precedence over the metadata service and the price table.
#[derive(Clone, Debug, Default)]
pub struct GivenMachine {
    /// AWS instance type.
    pub kind: Option<String>,
    /// Market on which the machine is rented.
    pub market: Option<Market>,
    /// Price per hour.
    pub price_per_hour: Option<Micros>,
}

impl GivenMachine {
    /// Detects the machine, replaces the detected properties with the given ones, and sets the price if it is known.
    pub async fn complete(&self) -> RentedMachine {
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

    /// Replaces the detected type and market with the given ones, and sets the price if it is known.
    fn priced(&self, mut machine: Machine) -> Machine {
        if let Some(kind) = &self.kind {
            machine.kind.clone_from(kind);
        }
        if let Some(market) = self.market {
            machine.market = market.name().to_owned();
        }
        PriceTable::get().set_price(&mut machine, self.price_per_hour, machine_threads());
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(kind: Option<&str>, market: Option<Market>) -> Option<Micros> {
        let given = GivenMachine {
            price_per_hour: None,
            kind: kind.map(str::to_owned),
            market,
        };
        let found = Machine {
            kind: "c5d.18xlarge".to_owned(),
            market: "spot".to_owned(),
            ..Machine::default()
        };
        given.priced(found).price_per_hour
    }

    #[test]
    fn given_type_and_market_take_precedence_over_metadata() {
        assert_eq!(price(None, None), Some(Micros(1_380_000)));
        let on_demand = price(None, Some(Market::OnDemand));
        assert_eq!(on_demand, Some(Micros(3_456_000)));
        assert_eq!(price(Some("c5d.9xlarge"), None), Some(Micros(690_000)));
    }
}
