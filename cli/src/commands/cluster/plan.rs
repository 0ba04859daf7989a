//! `hatebeam plan`: estimate the time and cost of a search on many machines.

use super::server::market_parser;
use crate::args::{EvaluatorArg, loop_rule_parser, number_in, parse_wells, quiescence_parser};
use crate::output;
use crate::spec::default_loops;
use anyhow::anyhow;
use hatebeam_coordinator::program_constants;
use hatebeam_cost::{
    BENCHMARK_NS, Beam, InstanceType, MachineCounts, Market, ModelInputs, PlannedRun, Plans,
    PriceTable,
};
use hatebeam_host::{available_memory, cores};
use hatebeam_runs::{LoopRule, MEMORY_OF_LOOPS_PER_WELL, Retention, SpecError};
use hatebeam_search::{Network, Quiescence};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::time::UNIX_EPOCH;

/// Allowed range of numbers that must be positive.
const POSITIVE: RangeInclusive<f64> = 1e-3..=1e9;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("plan"))]
pub(crate) struct PlanArgs {
    /// Width of the beam: the maximum number of wells kept per depth, such as 10000, 10k or 2.5M
    #[arg(long, short, value_name = "WELLS", value_parser = parse_wells)]
    width: u64,
    /// AWS instance type of the machines, or local for this machine
    #[arg(long, value_name = "NAME", default_value = "c5d.18xlarge")]
    instance: String,
    /// Number of machines: a number, a list such as 1,2,4, or a range such as 1..64, which stands for 1,2,4,8,16,32,64
    #[arg(long, value_name = "N", default_value = "1")]
    count: MachineCounts,
    /// Number of shards per depth at first, 1 to 4096; they are split for many machines or threads [default: one per
    /// million wells, at least 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    shards: Option<u32>,
    /// Evaluator, which scores the wells: a name that `hatebeam run` accepts, or a network file
    #[arg(long, value_name = "NAME|FILE", default_value = Network::DEFAULT, value_parser = EvaluatorArg::parse)]
    evaluator: EvaluatorArg,
    /// Score a well by the best well that it can reach by clearing lines with consecutive pieces
    #[arg(long, value_name = "MODE", default_value = "off")]
    #[arg(value_parser = quiescence_parser(), ignore_case = true)]
    quiescence: Quiescence,
    /// Loop rule of HATETRIS: `ignore` or `exact` [default: exact for networks that have learned from own games, such as
    /// selftaught, and ignore for others]
    #[arg(long, value_name = "RULE", value_parser = loop_rule_parser(), ignore_case = true)]
    loops: Option<LoopRule>,
    /// Number of depths of the run [default: 250, or 2000 with --loops exact]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    depths: Option<u32>,
    /// Depths whose wells are kept in the object store: all; a number N from 2 to 6 for every Nth depth; or last for only
    /// the last depth; --loops exact needs all [default: all, or 4 for more than 100 million wells without --loops exact]
    #[arg(long, value_name = "DEPTHS")]
    keep: Option<Retention>,
    /// Market on which machines are rented
    #[arg(long, value_name = "MARKET", default_value = "on-demand", value_parser = market_parser())]
    market: Market,
    /// Price of a machine in dollars per hour [default: from the built-in table]
    #[arg(long, value_name = "DOLLARS", value_parser = number_in(0.0..=1e6, "a number of dollars"))]
    price_per_hour: Option<f64>,
    /// Number of physical cores, for a machine that is not in the built-in table
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    #[arg(requires = "memory_gib", requires = "network_gbit")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: Option<u32>,
    /// Memory of a machine in GiB [default: from the built-in table]
    #[arg(long, value_name = "GIB", value_parser = number_in(POSITIVE, "a number"))]
    memory_gib: Option<f64>,
    /// Network throughput of a machine in gigabits per second in each direction [default: from the built-in table]
    #[arg(long, value_name = "GBIT", value_parser = number_in(POSITIVE, "a number"))]
    network_gbit: Option<f64>,
    /// Nanoseconds per child on one thread of the machine, measured as described below [default: an assumption]
    #[arg(long, value_name = "NS", value_parser = number_in(POSITIVE, "a number"))]
    ns_per_child: Option<f64>,
    /// Mean number of distinct children per well; the actual number decreases during a game
    #[arg(long, value_name = "N", default_value_t = 19.0, value_parser = number_in(POSITIVE, "a number"))]
    children_per_well: f64,
    /// Time to write a small object to the object store, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60.0, value_parser = number_in(POSITIVE, "a number"))]
    put_ms: f64,
    /// Number of availability zones that contain the machines; traffic between zones costs money
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=6))]
    zones: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct PlansJson<'a> {
    #[serde(flatten)]
    plans: &'a Plans,
    /// Warning that the built-in prices are old, or null.
    price_warning: Option<&'a str>,
    /// Warning that the times are a rough guess, or null.
    time_warning: Option<&'a str>,
}

impl PlanArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let run = self.planned_run()?;
        let plans = run.planned.plans(&self.count.0)?;
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
        let is_listed = self.price_per_hour.is_none() && plans.dollars_per_hour > 0.0;
        let warning = PriceTable::get().age_warning(since_1970.as_millis() as u64);
        let warning = warning.filter(|_| is_listed);
        if self.json {
            output::print_json(&PlansJson {
                plans: &plans,
                price_warning: warning.as_deref(),
                time_warning: run.time_warning,
            })?;
        } else {
            output::print(plans.table(&run.keep.to_string()))?;
        }
        for warning in warning.as_deref().into_iter().chain(run.time_warning) {
            output::warn(warning);
        }
        Ok(())
    }

    /// Returns the machine that the arguments describe.
    fn instance(&self, prices: &PriceTable) -> anyhow::Result<InstanceType> {
        let mut instance = match self.cores {
            Some(cores) => InstanceType::unnamed("described", cores),
            None if self.instance.eq_ignore_ascii_case("local") => {
                let mut local = InstanceType::unnamed("local", u32::try_from(cores())?);
                let memory = available_memory().unwrap_or(4 << 30);
                local.memory_gib = memory as f64 / f64::from(1 << 30);
                local
            }
            None => prices.find(&self.instance).cloned().map_err(|error| {
                anyhow!(
                    "invalid --instance: {error}; pass `local` for this machine, or describe another machine with --cores, \
                     --memory-gib, --network-gbit and --price-per-hour"
                )
            })?,
        };
        instance.memory_gib = self.memory_gib.unwrap_or(instance.memory_gib);
        if let Some(gbit) = self.network_gbit {
            (instance.network_gbit, instance.burst_gbit) = (gbit, gbit);
        }
        if let Some(ns) = self.ns_per_child {
            instance.core_speed = BENCHMARK_NS / ns;
        }
        if let Some(price) = self.price_per_hour {
            (instance.on_demand, instance.spot) = (price, price);
        }
        Ok(instance)
    }

    fn planned_run(&self) -> anyhow::Result<Planned> {
        let prices = PriceTable::get();
        let evaluator = self.evaluator.load()?;
        let loops = self.loops.unwrap_or_else(|| default_loops(evaluator));
        let measured = ModelInputs::measured(evaluator, self.quiescence, program_constants());
        let (measured, keep) = match loops {
            LoopRule::Ignore => (measured, Retention::default_for(self.width)),
            LoopRule::Exact => {
                let exact = measured.with_loop_rule(MEMORY_OF_LOOPS_PER_WELL);
                (exact, Retention::All)
            }
        };
        let keep = self.keep.unwrap_or(keep);
        if loops == LoopRule::Exact && keep != Retention::All {
            return Err(SpecError::Keep(keep).into());
        }
        let depths = self.depths.unwrap_or_else(|| loops.usual_depths());
        let time_warning = match (loops, self.quiescence) {
            (LoopRule::Exact, _) => Some(
                "the times do not include the loop rule, which took 19 % with two workers and 20,000 wells",
            ),
            _ if measured.has_time => None,
            _ => Some(
                "the times are a rough guess with this quiescence: they depend on the evaluator and on the wells",
            ),
        };
        Ok(Planned {
            planned: PlannedRun {
                model: ModelInputs {
                    children_per_well: self.children_per_well,
                    put_seconds: self.put_ms / 1e3,
                    puts_per_second: prices.s3.puts_per_second,
                    ..measured
                },
                beam: Beam::new(self.width, self.shards),
                depths,
                kept_share: keep.share(depths),
                instance: self.instance(prices)?,
                evaluator: self.evaluator.to_string(),
                market: self.market,
                zones: self.zones,
            },
            keep,
            time_warning,
        })
    }
}

/// A run to plan, and how to describe it.
struct Planned {
    planned: PlannedRun,
    keep: Retention,
    time_warning: Option<&'static str>,
}
