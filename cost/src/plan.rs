//! Plans, which predict the time and cost of a run with different numbers of machines.

use crate::instances::{InstanceType, Market, PriceTable};
use crate::model::{Beam, DepthModel, MAX_WORKERS, ModelInputs, fewest_workers, model_depth};
use serde::Serialize;
use std::str::FromStr;
use thiserror::Error;

/// A run to plan.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Inputs of the model.
    pub model: ModelInputs,
    /// Name of the evaluator.
    pub evaluator: String,
    /// Width and number of shards.
    pub beam: Beam,
    /// Number of depths.
    pub depths: u32,
    /// Fraction of the depths whose tables (the stored wells) are kept.
    pub kept_share: f64,
    /// Type of the machines.
    pub instance: InstanceType,
    /// Price model under which the machines are rented.
    pub market: Market,
    /// Number of zones over which the machines are spread.
    pub zones: u32,
}

/// Machine counts to plan for. The text form is a number, a list such as `1,2,4`, or a range such as `1..64`. A range
/// contains its first number, the numbers that doubling gives, and its last number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCounts(pub Vec<u32>);

/// Error for text that is not a valid [`MachineCounts`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "give a number of machines from 1 to {MAX_WORKERS}, a list such as 1,2,4, or a range such as 1..64"
)]
pub struct NotCounts;

impl FromStr for MachineCounts {
    type Err = NotCounts;

    fn from_str(text: &str) -> Result<MachineCounts, NotCounts> {
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|number| (1..=MAX_WORKERS).contains(number))
        };
        let counts = match text.split_once("..") {
            Some((from, to)) => number(from).zip(number(to)).and_then(doubling),
            None => text.split(',').map(number).collect(),
        };
        counts.map(MachineCounts).ok_or(NotCounts)
    }
}

/// Returns the numbers from `from` to `to`, each of which is twice the previous one. `to` is included even if doubling
/// skips it. Returns `None` if the range is empty.
fn doubling((from, to): (u32, u32)) -> Option<Vec<u32>> {
    let doubling = std::iter::successors(Some(from), |n| n.checked_mul(2));
    let below = doubling.take_while(|&n| n < to);
    (from <= to).then(|| below.chain([to]).collect())
}

/// Plans for a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plans {
    /// Width of the beam.
    pub width: u64,
    /// Number of shards before they are split for many machines.
    pub shards: u64,
    /// Number of depths.
    pub depths: u32,
    /// Name of the evaluator.
    pub evaluator: String,
    /// Type of the machines.
    pub instance: InstanceType,
    /// Name of the price model under which the machines are rented.
    pub market: &'static str,
    /// Number of zones over which the machines are spread.
    pub zones: u32,
    /// Price of a machine in dollars per hour.
    pub dollars_per_hour: f64,
    /// Date of the prices.
    pub prices_as_of: String,
    /// Region of the prices.
    pub region: String,
    /// Total size of the tables that are kept, in bytes.
    pub stored_bytes: f64,
    /// Price of storing `stored_bytes`, in dollars per month.
    pub storage_dollars_per_month: f64,
    /// One plan for each number of machines.
    pub plans: Vec<Plan>,
}

/// Predicted time and cost with a given number of machines.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Number of machines.
    pub count: u32,
    /// Prediction for a depth at full width.
    pub depth: DepthModel,
    /// Time of the run in seconds.
    pub seconds: f64,
    /// Cost of the machines for a depth.
    pub machine_dollars_per_depth: f64,
    /// Cost of the machines for the run.
    pub machine_dollars: f64,
    /// Cost of writes to the object store for the run.
    pub request_dollars: f64,
    /// Cost of sending children to other zones, for the run.
    pub zone_dollars: f64,
    /// Cost of machines, writes and zones for a depth.
    pub dollars_per_depth: f64,
    /// Cost of machines, writes and zones for the run.
    pub dollars: f64,
}

/// Error for a run that does not fit in memory with any of the given numbers of machines.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "a width of {width} does not fit in {machines} {name}: a worker needs {:.1} GB of memory, and can use nine tenths of \
     {memory_gib} GiB; {}",
    need_bytes / 1e9,
    remedy(*fewest)
)]
pub struct TooSmall {
    /// Width of the beam.
    pub width: u64,
    /// Largest of the given numbers of machines.
    pub machines: u32,
    /// Name of the machine type.
    pub name: String,
    /// Memory in bytes that a worker needs if the run uses `machines` machines.
    pub need_bytes: f64,
    /// Memory of a machine in GiB.
    pub memory_gib: f64,
    /// Smallest number of machines that have enough memory; `None` if even [`MAX_WORKERS`] do not.
    pub fewest: Option<u32>,
}

fn remedy(fewest: Option<u32>) -> String {
    match fewest {
        Some(fewest) => format!("use at least {fewest} machines"),
        None => format!("even {MAX_WORKERS} machines are too few"),
    }
}

impl PlannedRun {
    /// Returns a plan for each of the given numbers of machines.
    ///
    /// # Errors
    /// Returns [`TooSmall`] if the run does not fit in memory with any of these numbers of machines.
    pub fn plans(&self, counts: &[u32]) -> Result<Plans, TooSmall> {
        let prices = PriceTable::get();
        let dollars_per_hour = self.instance.dollars_per_hour(self.market);
        let plans: Vec<Plan> = counts.iter().map(|&count| self.plan(count)).collect();
        if !plans.iter().any(|plan| plan.depth.fits) {
            return Err(self.too_small(&plans));
        }
        let stored_bytes = self.beam.width as f64
            * self.model.bytes_per_well
            * f64::from(self.depths)
            * self.kept_share;
        Ok(Plans {
            width: self.beam.width,
            shards: self.beam.shards,
            depths: self.depths,
            evaluator: self.evaluator.clone(),
            instance: self.instance.clone(),
            market: self.market.name(),
            zones: self.zones,
            dollars_per_hour,
            prices_as_of: prices.as_of.clone(),
            region: prices.region.clone(),
            stored_bytes,
            storage_dollars_per_month: stored_bytes / 1e9 * prices.s3.dollars_per_gb_month,
            plans,
        })
    }

    fn plan(&self, count: u32) -> Plan {
        let prices = PriceTable::get();
        let per_hour = self.instance.dollars_per_hour(self.market);
        let depth = model_depth(&self.model, &self.instance.profile(), self.beam, count);
        let machines = per_hour / 3600.0 * depth.seconds * f64::from(count);
        let requests = depth.puts * prices.s3.dollars_per_1000_puts / 1000.0;
        let zones = depth.sent_bytes * self.part_between_zones(count) / 1e9
            * prices.dollars_per_gb_between_zones;
        let per_depth = machines + requests + zones;
        let depths = f64::from(self.depths);
        Plan {
            count,
            seconds: depth.seconds * depths,
            depth,
            machine_dollars_per_depth: machines,
            machine_dollars: machines * depths,
            request_dollars: requests * depths,
            zone_dollars: zones * depths,
            dollars_per_depth: per_depth,
            dollars: per_depth * depths,
        }
    }

    /// Returns the fraction of the exchanged children that go to another zone if the machines are spread evenly.
    fn part_between_zones(&self, count: u32) -> f64 {
        let (count, zones) = (
            f64::from(count),
            f64::from(self.zones.clamp(1, count.max(1))),
        );
        if count < 2.0 {
            return 0.0;
        }
        // Mean number of other machines in the same zone.
        let same_zone = (count / zones - 1.0).max(0.0);
        1.0 - same_zone / (count - 1.0)
    }

    fn too_small(&self, plans: &[Plan]) -> TooSmall {
        let most = plans.iter().max_by_key(|plan| plan.count);
        TooSmall {
            width: self.beam.width,
            machines: most.map_or(0, |plan| plan.count),
            name: self.instance.name.clone(),
            need_bytes: most.map_or(0.0, |plan| plan.depth.memory_bytes),
            memory_gib: self.instance.memory_gib,
            fewest: fewest_workers(&self.model, &self.instance.profile(), self.beam),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::inputs;

    #[test]
    fn counts_are_numbers_lists_or_doubling_ranges() {
        for (text, counts) in [
            ("4", &[4][..]),
            ("1,2,4", &[1, 2, 4]),
            ("1..8", &[1, 2, 4, 8]),
            ("3..20", &[3, 6, 12, 20]),
            ("5..5", &[5]),
            ("4096", &[4096]),
        ] {
            assert_eq!(text.parse(), Ok(MachineCounts(counts.to_vec())), "{text}");
        }
        let invalid = "| 0|-1|4097|1,,2|1,0|8..1|0..4|..|1..|x|1...3|99999999999";
        for text in invalid.split('|') {
            assert!(text.parse::<MachineCounts>().is_err(), "{text}");
        }
    }

    fn plan(count: u32, zones: u32) -> Plan {
        let planned = PlannedRun {
            model: inputs(),
            evaluator: "patterns".to_owned(),
            beam: Beam::new(25_000_000, None),
            depths: 250,
            kept_share: 1.0,
            instance: PriceTable::get().find("c5d.18xlarge").unwrap().clone(),
            market: Market::OnDemand,
            zones,
        };
        planned.plans(&[count]).unwrap().plans.remove(0)
    }

    #[test]
    fn traffic_between_zones_costs_more_than_the_machines() {
        let (one, three) = (plan(8, 1), plan(8, 3));
        assert_eq!(one.zone_dollars, 0.0);
        // 0.33 TB are sent. On average, 5.33 of the seven other machines are in another zone.
        assert!((4.5..6.0).contains(&three.zone_dollars), "{three:?}");
        assert!(three.zone_dollars > three.machine_dollars);
        assert!((three.dollars - one.dollars - three.zone_dollars).abs() < 1e-9);
        assert_eq!(plan(1, 3).zone_dollars, 0.0);
        // Each of the two machines is in a separate zone, so all traffic is between zones.
        let two = plan(2, 6);
        let sent_gb = two.depth.sent_bytes * 250.0 / 1e9;
        assert!((two.zone_dollars - sent_gb * 0.02).abs() < 1e-9);
    }
}
