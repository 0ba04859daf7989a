//! Machine types and their prices, from the table `instances.toml`, which is compiled into the program.

use crate::machine::Machine;
use crate::model::MachineProfile;
use crate::money::Micros;
use crate::prices::ObjectStorePrices;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;
use thiserror::Error;
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};

/// A machine type.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceType {
    /// Name, such as `c5d.18xlarge`.
    pub name: String,
    /// Human-readable description of the processor.
    pub processor: String,
    /// Number of hardware threads. A worker uses all of them.
    pub vcpus: u32,
    /// Number of physical cores.
    pub cores: u32,
    /// Speed of a core relative to a core of the measured machine (see `docs/cluster-model.md`).
    pub core_speed: f64,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Sustained network throughput in each direction, in gigabits per second.
    pub network_gbit: f64,
    /// Network throughput of a burst in each direction, in gigabits per second.
    pub burst_gbit: f64,
    /// Size of the local disk in gigabytes.
    pub disk_gb: f64,
    /// Write throughput of the disk in megabytes per second.
    pub disk_mb_s: f64,
    /// On-demand price in dollars per hour.
    pub on_demand: f64,
    /// Approximate spot price in dollars per hour.
    pub spot: f64,
}

impl InstanceType {
    /// Returns a machine type with the given number of cores, 1 GiB of memory, a typical network and disk, and the
    /// price 0.
    pub fn unnamed(name: &str, cores: u32) -> InstanceType {
        InstanceType {
            name: name.to_owned(),
            processor: String::new(),
            vcpus: cores,
            cores,
            core_speed: 1.0,
            memory_gib: 1.0,
            network_gbit: 10.0,
            burst_gbit: 10.0,
            disk_gb: 0.0,
            disk_mb_s: 1000.0,
            on_demand: 0.0,
            spot: 0.0,
        }
    }

    /// Returns the capacity in the units of the model.
    pub fn profile(&self) -> MachineProfile {
        MachineProfile {
            threads: f64::from(self.vcpus),
            cores: f64::from(self.cores),
            core_speed: self.core_speed,
            memory_bytes: self.memory_gib * f64::from(1 << 30),
            network_bytes_per_second: self.network_gbit * 1e9 / 8.0,
            disk_bytes_per_second: self.disk_mb_s * 1e6,
        }
    }

    /// Returns the price in dollars per hour.
    pub fn dollars_per_hour(&self, market: Market) -> f64 {
        match market {
            Market::OnDemand => self.on_demand,
            Market::Spot => self.spot,
        }
    }
}

/// Price model under which a machine is rented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Market {
    /// The machine is rented at the list price.
    OnDemand,
    /// The machine is rented at a variable price, and the provider can reclaim it.
    Spot,
}

impl Market {
    /// All variants.
    pub const ALL: [Market; 2] = [Market::OnDemand, Market::Spot];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Market::OnDemand => "on-demand",
            Market::Spot => "spot",
        }
    }

    /// Returns the market with this name, or `None` if the name is unknown.
    pub fn from_name(name: &str) -> Option<Market> {
        Market::ALL.into_iter().find(|market| market.name() == name)
    }
}

impl fmt::Display for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// List prices of S3.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3Prices {
    /// Price of storing a gigabyte for a month.
    pub dollars_per_gb_month: f64,
    /// Price of 1000 requests that write or list.
    pub dollars_per_1000_puts: f64,
    /// Price of 1000 requests that read.
    pub dollars_per_1000_gets: f64,
    /// Maximum number of writes per second that S3 accepts under one prefix.
    pub puts_per_second: f64,
}

impl S3Prices {
    /// Converts the prices to whole numbers.
    pub fn object_store(&self) -> ObjectStorePrices {
        let nanos_each = |dollars_per_1000: f64| (dollars_per_1000 * 1e6).round() as u64;
        ObjectStorePrices {
            nanos_per_write: nanos_each(self.dollars_per_1000_puts),
            nanos_per_read: nanos_each(self.dollars_per_1000_gets),
            per_gb_month: Micros::from_dollars(self.dollars_per_gb_month),
        }
    }
}

/// Table of prices.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// Date of the prices.
    pub as_of: String,
    /// Region of the prices.
    pub region: String,
    /// Other regions with the same on-demand prices.
    pub same_price_regions: Vec<String>,
    /// Assumed maximum ratio of a price in any other region to the price in the table.
    pub ceiling_of_other_regions: f64,
    /// Assumed maximum price of a vCPU per hour, for types that the table does not contain.
    pub ceiling_dollars_per_vcpu: f64,
    /// Price of sending a gigabyte to a machine in another zone.
    pub dollars_per_gb_between_zones: f64,
    /// Prices of S3.
    pub s3: S3Prices,
    /// Machine types.
    #[serde(rename = "instance")]
    pub instances: Vec<InstanceType>,
}

const DAY_MS: u64 = 86_400_000;
/// Age in days above which prices cause a warning.
const OLD_DAYS: u64 = 365;

/// Returns the number of days from 1 January 1970 to a date such as `2025-01-31`, or `None` if the text is not a date.
fn days_since_1970(date: &str) -> Option<u64> {
    let date = Date::parse(date, &Iso8601::DATE).ok()?;
    let days = date - OffsetDateTime::UNIX_EPOCH.date();
    u64::try_from(days.whole_days()).ok()
}

/// Error for a machine type that the table does not contain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown machine type {name:?}: known types are {known}")]
pub struct UnknownInstance {
    /// Unknown name.
    pub name: String,
    /// Names in the table, separated by commas.
    pub known: String,
}

impl PriceTable {
    /// Returns the table that is compiled into the program.
    pub fn get() -> &'static PriceTable {
        static TABLE: OnceLock<PriceTable> = OnceLock::new();
        TABLE.get_or_init(|| {
            toml::from_str(include_str!("instances.toml"))
                .expect("the built-in price table is valid: a test parses it")
        })
    }

    /// Returns the machine type with this name. The case of letters does not matter.
    ///
    /// # Errors
    /// Returns [`UnknownInstance`] if the table does not contain the name.
    pub fn find(&self, name: &str) -> Result<&InstanceType, UnknownInstance> {
        let mut instances = self.instances.iter();
        let found = instances.find(|instance| instance.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let known = self.instances.iter().map(|instance| instance.name.as_str());
            UnknownInstance {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Returns the prices of an object store: the list prices of S3, or zero for a folder or another server.
    pub fn object_store(&self, is_aws: bool) -> ObjectStorePrices {
        if is_aws {
            self.s3.object_store()
        } else {
            ObjectStorePrices::default()
        }
    }

    /// Returns whether the prices apply to a region. An unknown region, whose name is empty, is assumed to be one of
    /// the table's regions.
    fn has_region(&self, region: &str) -> bool {
        let mut regions = self.same_price_regions.iter().chain([&self.region]);
        region.is_empty() || regions.any(|known| known == region)
    }

    /// Returns the price of a machine of a listed type, and the source of the price.
    fn listed_price(&self, machine: &Machine, listed: &InstanceType) -> (Micros, String) {
        let market = Market::from_name(&machine.market).unwrap_or(Market::OnDemand);
        let dollars = listed.dollars_per_hour(market);
        let (factor, from) = if self.has_region(&machine.region) {
            let from = format!("the table of {} for {}", self.as_of, self.region);
            (1.0, from)
        } else {
            let factor = self.ceiling_of_other_regions;
            let from = format!(
                "ASSUMED: {factor} times the price of {} in {}, because the table has no prices for this region",
                self.as_of, self.region
            );
            (factor, from)
        };
        (Micros::from_dollars(dollars * factor), from)
    }

    /// Sets the price of a machine and the source of the price. The price is `chosen` if the user chose a price.
    /// Otherwise, it is the price in the table, or the assumed maximum for `vcpus` vCPUs if the table does not contain
    /// the machine's type. A machine without a type is not rented, so it has no price unless the user chose one.
    pub fn set_price(&self, machine: &mut Machine, chosen: Option<Micros>, vcpus: usize) {
        let (price, from) = match (chosen, self.find(&machine.kind)) {
            (Some(price), _) => (Some(price), "set by --price-per-hour".to_owned()),
            (None, Ok(listed)) => {
                let (price, from) = self.listed_price(machine, listed);
                (Some(price), from)
            }
            (None, Err(_)) if machine.kind.is_empty() => (None, String::new()),
            (None, Err(_)) => {
                let ceiling = self.ceiling_dollars_per_vcpu;
                let price = Micros::from_dollars(ceiling * vcpus as f64);
                let from = format!(
                    "ASSUMED: {ceiling} dollars per vCPU, because the table lacks this type"
                );
                (Some(price), from)
            }
        };
        machine.price_per_hour = price;
        machine.price_from = from;
    }

    /// Returns the age of the prices in days. `now_ms` is the current time in milliseconds since 1970.
    fn age_days(&self, now_ms: u64) -> u64 {
        (now_ms / DAY_MS).saturating_sub(days_since_1970(&self.as_of).unwrap_or(0))
    }

    /// Returns a warning if the prices are more than a year old. `now_ms` is the current time in milliseconds since
    /// 1970.
    pub fn age_warning(&self, now_ms: u64) -> Option<String> {
        let days = self.age_days(now_ms);
        (days > OLD_DAYS).then(|| {
            format!(
                "the prices are from {}, {} months ago: check them, or give --price-per-hour",
                self.as_of,
                days * 12 / 365
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_prices_are_plausible() {
        let table = PriceTable::get();
        assert!(table.instances.len() >= 5);
        for instance in &table.instances {
            let name = &instance.name;
            assert!(
                instance.cores > 0 && [1, 2].contains(&(instance.vcpus / instance.cores)),
                "{name}"
            );
            assert!((0.1..=1.5).contains(&instance.core_speed), "{name}");
            assert!(instance.network_gbit <= instance.burst_gbit, "{name}");
            assert!(
                instance.spot > 0.0 && instance.spot < instance.on_demand,
                "{name}"
            );
            // A vCPU costs 3 to 7 cents per hour. A vCPU of a burstable machine may cost less, but at least 0.8 cents.
            let per_vcpu = instance.on_demand / f64::from(instance.vcpus);
            let least = if name.starts_with('t') { 0.008 } else { 0.03 };
            assert!((least..0.07).contains(&per_vcpu), "{name} {per_vcpu}");
            assert!(per_vcpu < table.ceiling_dollars_per_vcpu, "{name}");
            assert_eq!(table.find(name).unwrap().name, *name);
        }
        let error = table.find("c5d.99xlarge").unwrap_err();
        assert!(error.to_string().contains("c5d.18xlarge"), "{error}");
    }

    fn priced(kind: &str, market: &str, chosen: Option<f64>) -> Machine {
        let mut machine = Machine {
            kind: kind.to_owned(),
            market: market.to_owned(),
            ..Machine::default()
        };
        PriceTable::get().set_price(&mut machine, chosen.map(Micros::from_dollars), 8);
        machine
    }

    #[test]
    fn machine_of_unknown_type_costs_the_maximum_per_vcpu() {
        let unknown = priced("u7i-12tb.224xlarge", "spot", None);
        assert_eq!(unknown.price_per_hour, Some(Micros(8 * 250_000)));
        assert!(unknown.price_from.contains("0.25 dollars per vCPU"));
        assert!(unknown.price_from.len() <= crate::MAX_TEXT);
        let chosen = priced("u7i-12tb.224xlarge", "spot", Some(0.5));
        assert_eq!(chosen.price_per_hour, Some(Micros(500_000)));
    }

    #[test]
    fn machine_in_another_region_costs_a_multiple_of_the_table_price() {
        let price_in = |region: &str| {
            let mut machine = priced("c5d.18xlarge", "on-demand", None);
            machine.region = region.to_owned();
            PriceTable::get().set_price(&mut machine, None, 72);
            machine
        };
        for region in ["", "us-east-1", "us-west-2"] {
            let machine = price_in(region);
            assert_eq!(machine.price_per_hour, Some(Micros(3_456_000)), "{region}");
            assert!(machine.price_from.starts_with("the table of 20"));
        }
        let elsewhere = price_in("sa-east-1");
        assert_eq!(elsewhere.price_per_hour, Some(Micros(5_875_200)));
        assert!(elsewhere.price_from.starts_with("ASSUMED: 1.7 times"));
        assert!(elsewhere.price_from.len() <= crate::MAX_TEXT);
    }

    #[test]
    fn price_age_is_counted_from_the_table_date() {
        assert_eq!(days_since_1970("1970-01-01"), Some(0));
        assert_eq!(days_since_1970("2000-02-29"), Some(11_016));
        assert_eq!(days_since_1970("2025-01-01"), Some(20_089));
        assert_eq!(days_since_1970("soon"), None);
        let mut table = PriceTable::get().clone();
        assert!(days_since_1970(&table.as_of).is_some());
        table.as_of = "2025-01-01".to_owned();
        let at = |days: u64| (20_089 + days) * DAY_MS;
        assert_eq!(table.age_days(at(31)), 31);
        assert_eq!(table.age_warning(at(365)), None);
        let warning = table.age_warning(at(690)).unwrap();
        assert!(warning.contains("2025-01-01, 22 months ago"), "{warning}");
        assert_eq!(table.age_days(0), 0);
    }

    #[test]
    fn chosen_price_overrides_the_table() {
        let spot = priced("c5d.18xlarge", "spot", None);
        assert_eq!(spot.price_per_hour, Some(Micros(1_380_000)));
        let on_demand = priced("c5d.18xlarge", "", None);
        assert_eq!(on_demand.price_per_hour, Some(Micros(3_456_000)));
        assert!(on_demand.price_from.starts_with("the table of 20"));
        let chosen = priced("c5d.18xlarge", "spot", Some(0.5));
        assert_eq!(chosen.price_per_hour, Some(Micros(500_000)));
        let unknown = priced("", "", None);
        let price = (unknown.price_per_hour, unknown.price_from.as_str());
        assert_eq!(price, (None, ""));
    }

    #[test]
    fn s3_prices_convert_to_whole_numbers_and_other_stores_are_free() {
        let prices = PriceTable::get().object_store(true);
        assert_eq!((prices.nanos_per_write, prices.nanos_per_read), (5000, 400));
        assert_eq!(prices.per_gb_month, Micros(23_000));
        let other = PriceTable::get().object_store(false);
        assert_eq!(other, ObjectStorePrices::default());
    }
}
