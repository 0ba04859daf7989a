//! Machines and what they cost: the table in `instances.toml`, which comes with the binary.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

/// A kind of machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) processor: String,
    /// Threads that run at once; a worker has as many.
    pub(crate) vcpus: u32,
    /// Physical cores.
    pub(crate) cores: u32,
    /// How fast a core is, against one of the machine that was measured.
    pub(crate) core_speed: f64,
    pub(crate) memory_gib: f64,
    /// Gigabits a second each way, all the time.
    pub(crate) network_gbit: f64,
    /// Gigabits a second each way, for a while.
    pub(crate) burst_gbit: f64,
    /// Gigabytes of local disk.
    pub(crate) disk_gb: f64,
    /// Megabytes a second that the disk takes.
    pub(crate) disk_mb_s: f64,
    /// Dollars an hour.
    pub(crate) on_demand: f64,
    /// Dollars an hour, roughly.
    pub(crate) spot: f64,
}

/// How machines are paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Market {
    /// At the list price, for as long as one likes
    OnDemand,
    /// At the price of the hour, and taken away when somebody pays more
    Spot,
}

impl Market {
    /// As the flag has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Market::OnDemand => "on-demand",
            Market::Spot => "spot",
        }
    }
}

/// What the object store costs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectPrices {
    pub(crate) dollars_per_gb_month: f64,
    pub(crate) dollars_per_1000_puts: f64,
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "only runs of clusters are accounted")
    )]
    pub(crate) dollars_per_1000_gets: f64,
    /// Writes a second that it takes under one prefix.
    pub(crate) puts_per_second: f64,
}

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// The day whose prices these are.
    pub(crate) as_of: String,
    pub(crate) region: String,
    pub(crate) s3: ObjectPrices,
    #[serde(rename = "instance")]
    pub(crate) instances: Vec<Instance>,
}

impl Prices {
    /// The table that comes with the binary.
    pub(crate) fn load() -> anyhow::Result<Prices> {
        toml::from_str(include_str!("instances.toml")).context("the table of machines")
    }

    /// The machine of this name.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<Instance> {
        let found = self
            .instances
            .iter()
            .find(|instance| instance.name.eq_ignore_ascii_case(name));
        match found {
            Some(instance) => Ok(instance.clone()),
            None => {
                let known: Vec<&str> = self.instances.iter().map(|i| i.name.as_str()).collect();
                bail!(
                    "no machine {name:?} is known; known are {}, and local; any other can be described \
                     with --cores, --memory-gib, --network-gbit and --price-per-hour",
                    known.join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_makes_sense() {
        let prices = Prices::load().unwrap();
        assert!(prices.instances.len() >= 5);
        for instance in &prices.instances {
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
            // All of them cost four to ten cents a core and hour, or two to six where a vCPU is one.
            let of_vcpu = instance.on_demand / f64::from(instance.vcpus);
            assert!((0.03..0.07).contains(&of_vcpu), "{name} {of_vcpu}");
            assert_eq!(prices.find(name).unwrap().name, *name);
        }
        assert!(prices.find("c5d.99xlarge").is_err());
    }
}
