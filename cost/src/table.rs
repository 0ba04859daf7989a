//! Formatting of plans as a human-readable table.

use crate::plan::{Plan, Plans};
use hatebeam_report::{bytes, count, duration};
use std::fmt::Write as _;
use std::time::Duration;

/// Formats a number with one decimal, or without a decimal if it is an integer.
fn number(value: f64) -> String {
    let decimals = usize::from(value.fract() != 0.0);
    format!("{value:.decimals$}")
}

/// Formats an amount of dollars, with more decimals for smaller amounts.
fn dollars(value: f64) -> String {
    match value {
        99.5.. => format!("{value:.0}"),
        0.995.. => format!("{value:.2}"),
        _ => format!("{value:.5}"),
    }
}

/// Formats a number of seconds with about three significant digits.
fn seconds(value: f64) -> String {
    match value {
        99.5.. => format!("{value:.0}"),
        9.95.. => format!("{value:.1}"),
        0.995.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl Plans {
    /// Describes the number of shards, which grows with the number of machines.
    fn shards_in_words(&self) -> String {
        let shards = self.plans.iter().map(|plan| plan.depth.shards);
        let (least, most) = (shards.clone().min(), shards.max());
        match (least, most) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most} shards"),
            _ => count(most.unwrap_or(self.shards), "shard"),
        }
    }

    /// Returns the plans as a table. `keep` is the retention rule of the run.
    pub fn table(&self, keep: &str) -> String {
        let instance = &self.instance;
        let mut text = format!(
            "{} wells wide, {}, {}, {}\n{}: {}, {}, {} GiB, {} Gbit/s; ${} an hour {} ({}, {})\n\n",
            self.width,
            count(u64::from(self.depths), "depth"),
            self.shards_in_words(),
            self.evaluator,
            instance.name,
            count(u64::from(instance.vcpus), "vCPU"),
            count(u64::from(instance.cores), "core"),
            number(instance.memory_gib),
            number(instance.network_gbit),
            self.dollars_per_hour,
            self.market,
            self.region,
            self.prices_as_of
        );
        text.push_str(
            "machines  s/depth       run    $/depth      $/run  limit     cores network  disk commit rounds memory\n",
        );
        for plan in &self.plans {
            text.push_str(&row(plan, instance.memory_gib * f64::from(1 << 30)));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\nkept in S3 (--keep {keep}): {}, ${} a month",
            bytes(self.stored_bytes as u64),
            dollars(self.storage_dollars_per_month)
        );
        for plan in self.plans.iter().filter(|plan| plan.zone_dollars > 0.0) {
            let _ = writeln!(
                text,
                "traffic between {} zones, {}: ${} of the run's ${}",
                self.zones,
                count(u64::from(plan.count), "machine"),
                dollars(plan.zone_dollars),
                dollars(plan.dollars)
            );
        }
        text
    }
}

/// Returns the table row for one machine count.
fn row(plan: &Plan, memory_bytes: f64) -> String {
    let depth = &plan.depth;
    if !depth.fits {
        let memory = bytes(depth.memory_bytes as u64);
        let machines = plan.count;
        return format!("{machines:>8}  does not fit: a worker needs {memory} of memory\n");
    }
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let busy = |seconds: f64| percent(seconds / depth.seconds);
    format!(
        "{:>8} {:>8} {:>9} {:>10} {:>10}  {:<8} {:>6} {:>7} {:>5} {:>6} {:>6} {:>6}\n",
        plan.count,
        seconds(depth.seconds),
        duration(Duration::from_secs_f64(plan.seconds.clamp(0.0, 1e12))),
        dollars(plan.dollars_per_depth),
        dollars(plan.dollars),
        depth.limit.name(),
        busy(depth.cores_seconds),
        busy(depth.network_seconds),
        busy(depth.disk_seconds),
        busy(depth.commit_seconds),
        busy(depth.rounds_seconds),
        percent(depth.memory_bytes / memory_bytes),
    )
}
