//! `hatebeam plan`: what a search on many machines would take.

mod estimate;

pub(crate) use estimate::estimate;

use crate::machine::available_memory;
use crate::output::{self, count};
use crate::run::screen::{bytes, duration};
use crate::run::{kind_parser, parse_wells, quiescence_parser};
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatebeam_cost::{
    BENCHMARK_NS, Beam, DepthModel, InstanceType, MAX_WORKERS, Market, ModelInputs, PriceTable,
    ProgramConstants, fewest_workers, model_depth,
};
use hatebeam_objects::Options;
use hatebeam_proto::batch::{BATCH_CHILDREN, FLOOR_INTERVAL, QUEUED_BATCHES};
use hatebeam_runs::Retention;
use hatebeam_search::{EvaluatorKind, Quiescence};
use serde::Serialize;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::time::Duration;

pub(crate) const PLAN_EXAMPLES: &str = "\
It is a model, fed with what was measured on two cores, and checked there; docs/cluster-model.md has the
formula, its inputs, which of them are assumptions, and the check. Prices are those of a table with a date:
look before you spend. Machines that start and wait cost money too, and are not in it. The coordinator is taken
to share a machine with a worker, and all machines to be in one zone, with an S3 endpoint in it: then what
they send each other and S3 costs nothing.

A depth takes as long as what takes longest of cores (searching), network, disk (the worker's own), commit (a
depth's tables on their way to S3, behind the search) and requests (writes to S3), and besides that the
rounds: what all wait for, however many they are. The columns after `limit` say how much of a depth each is busy.

--ns-per-child is what `cargo bench -p hatebeam-search -- --step patterns` prints on one thread of the machine
meant, and takes the place of an assumption. `--instance local` is this machine.

With --json one object: width, depths, instance, dollars_per_hour, prices_as_of, stored_bytes,
storage_dollars_per_month, and `plans`, one for each number of machines, with all that the table is made of.

Examples:
  hatebeam plan --width 25M --instance c5d.18xlarge --count 4
  hatebeam plan --width 1G --instance c5d.18xlarge --count 1..64
  hatebeam plan --width 25M --instance c6id.32xlarge --count 1,2,3 --market spot --keep 4
  hatebeam plan --width 5M --cores 16 --memory-gib 64 --network-gbit 10 --price-per-hour 0.80 --json";

/// What is planned.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// The beam's width: the wells kept of each depth; k, M and G stand for thousands, millions …
    #[arg(long, short, value_name = "WELLS", value_parser = parse_wells)]
    width: u64,
    /// The kind of machine, as AWS calls it, or local
    #[arg(long, value_name = "NAME", default_value = "c5d.18xlarge")]
    instance: String,
    /// How many machines: a number, a list such as 1,2,4, or a range such as 1..64 that doubles
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_counts)]
    count: Counts,
    /// How many shards a depth has, 1 to 4096 [default: 64, or one a million wells]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    shards: Option<u32>,
    /// What a well is worth
    #[arg(long, value_name = "NAME", default_value = "patterns")]
    #[arg(value_parser = kind_parser(), ignore_case = true)]
    evaluator: EvaluatorKind,
    /// Whether to judge a well by what it can reach by clearing lines in a row
    #[arg(long, value_name = "MODE", default_value = "off")]
    #[arg(value_parser = quiescence_parser(), ignore_case = true)]
    quiescence: Quiescence,
    /// How many depths the run has
    #[arg(long, value_name = "N", default_value_t = 250)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    depths: u32,
    /// Of which depths the wells stay in the object store: all; a number N for every Nth, 2 to 6; or last
    #[arg(long, value_name = "DEPTHS", default_value = "all")]
    keep: Retention,
    /// How machines are paid for
    #[arg(long, value_name = "MARKET", default_value = "on-demand")]
    #[arg(value_parser = market_parser())]
    market: Market,
    /// Dollars that a machine costs an hour, rather than what the table says
    #[arg(long, value_name = "DOLLARS", value_parser = parse_price)]
    price_per_hour: Option<f64>,
    /// Physical cores of a machine that the table does not have
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    #[arg(requires = "memory_gib", requires = "network_gbit")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: Option<u32>,
    /// Memory of a machine, in GiB
    #[arg(long, value_name = "GIB", value_parser = parse_positive)]
    memory_gib: Option<f64>,
    /// Gigabits a second that a machine can send, and take in
    #[arg(long, value_name = "GBIT", value_parser = parse_positive)]
    network_gbit: Option<f64>,
    /// Nanoseconds a child that the step's benchmark prints on one thread of the machine
    #[arg(long, value_name = "NS", value_parser = parse_positive)]
    ns_per_child: Option<f64>,
    /// Distinct children that a well has on average; they get fewer in the course of a game
    #[arg(long, value_name = "N", default_value_t = 19.0, value_parser = parse_positive)]
    children_per_well: f64,
    /// Milliseconds until the object store has taken a small object
    #[arg(long, value_name = "MS", default_value_t = 60.0, value_parser = parse_positive)]
    put_ms: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Numbers of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts(Vec<u32>);

fn parse_counts(text: &str) -> Result<Counts, String> {
    let wrong = || {
        Err(format!(
            "give a number of machines from 1 to {MAX_WORKERS}, a list such as 1,2,4, or a range such as 1..64"
        ))
    };
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        number.filter(|number| (1..=MAX_WORKERS).contains(number))
    };
    if let Some((from, to)) = text.split_once("..") {
        let (Some(from), Some(to)) = (number(from), number(to)) else {
            return wrong();
        };
        if from > to {
            return wrong();
        }
        // The end is in it, even where doubling leaps over it.
        let doubling = std::iter::successors(Some(from), |n| n.checked_mul(2));
        let below = doubling.take_while(|&n| n < to);
        return Ok(Counts(below.chain([to]).collect()));
    }
    match text.split(',').map(number).collect() {
        Some(counts) => Ok(Counts(counts)),
        None => wrong(),
    }
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (1e-3..=1e9).contains(&value) => Ok(value),
        _ => Err("give a number from 0.001 to 1000000000".to_owned()),
    }
}

pub(crate) fn parse_price(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("give dollars from 0 to 1000000".to_owned()),
    }
}

/// Parses a market.
pub(crate) fn market_parser() -> impl TypedValueParser<Value = Market> {
    let value = |market: Market| {
        PossibleValue::new(market.name()).help(match market {
            Market::OnDemand => "The list price",
            Market::Spot => "A lower price that varies; AWS can reclaim the machine",
        })
    };
    PossibleValuesParser::new(Market::ALL.map(value))
        .map(|name| Market::from_name(&name).unwrap_or(Market::OnDemand))
}

/// The constants of the program that the model needs.
fn program_constants() -> ProgramConstants {
    let objects = Options::default();
    ProgramConstants {
        batch_children: BATCH_CHILDREN,
        queued_batches: QUEUED_BATCHES,
        floor_interval: FLOOR_INTERVAL,
        part_bytes: objects.part_bytes,
        parallel_parts: objects.parallel_parts,
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    width: u64,
    shards: u64,
    depths: u32,
    evaluator: &'static str,
    instance: InstanceType,
    market: &'static str,
    dollars_per_hour: f64,
    prices_as_of: String,
    region: String,
    /// Of all depths that are kept.
    stored_bytes: f64,
    storage_dollars_per_month: f64,
    plans: Vec<Plan>,
}

/// What a number of machines would take.
#[derive(Debug, Serialize)]
struct Plan {
    count: u32,
    depth: DepthModel,
    /// Of the whole run.
    seconds: f64,
    /// Of machines, for a depth and the run.
    machine_dollars_per_depth: f64,
    machine_dollars: f64,
    /// Of writes to the object store, for the run.
    request_dollars: f64,
    /// Of both.
    dollars_per_depth: f64,
    dollars: f64,
}

/// Runs `hatebeam plan`.
pub(crate) fn plan(args: &PlanArgs) -> anyhow::Result<()> {
    let report = report(args)?;
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&report)?));
    }
    output::print(&text(&report, args.keep))
}

/// The machine that is meant.
fn instance(args: &PlanArgs, prices: &PriceTable) -> anyhow::Result<InstanceType> {
    let mut instance = match args.cores {
        Some(cores) => InstanceType::unnamed("described", cores),
        None if args.instance.eq_ignore_ascii_case("local") => {
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let mut local = InstanceType::unnamed("local", u32::try_from(cores)?);
            local.memory_gib = available_memory().unwrap_or(4 << 30) as f64 / f64::from(1 << 30);
            local
        }
        None => prices.find(&args.instance).cloned().context(
            "--instance: `local` is this machine; --cores, --memory-gib, --network-gbit and --price-per-hour describe \
             any other",
        )?,
    };
    instance.memory_gib = args.memory_gib.unwrap_or(instance.memory_gib);
    if let Some(gbit) = args.network_gbit {
        (instance.network_gbit, instance.burst_gbit) = (gbit, gbit);
    }
    if let Some(ns) = args.ns_per_child {
        instance.core_speed = BENCHMARK_NS / ns;
    }
    if let Some(price) = args.price_per_hour {
        (instance.on_demand, instance.spot) = (price, price);
    }
    Ok(instance)
}

fn report(args: &PlanArgs) -> anyhow::Result<Report> {
    let prices = PriceTable::get();
    let instance = instance(args, prices)?;
    let inputs = ModelInputs {
        children_per_well: args.children_per_well,
        put_seconds: args.put_ms / 1e3,
        puts_per_second: prices.s3.puts_per_second,
        ..ModelInputs::measured(args.evaluator, args.quiescence, program_constants())
    };
    let machine = instance.profile();
    let dollars_per_hour = instance.dollars_per_hour(args.market);
    let beam = Beam::new(args.width, args.shards);
    let depths = f64::from(args.depths);
    let plans: Vec<Plan> = args
        .count
        .0
        .iter()
        .map(|&count| {
            let depth = model_depth(&inputs, &machine, beam, count);
            let per_depth = dollars_per_hour / 3600.0 * depth.seconds * f64::from(count);
            let requests = depth.puts * prices.s3.dollars_per_1000_puts / 1000.0;
            Plan {
                count,
                depth,
                seconds: depth.seconds * depths,
                machine_dollars_per_depth: per_depth,
                machine_dollars: per_depth * depths,
                request_dollars: requests * depths,
                dollars_per_depth: per_depth + requests,
                dollars: (per_depth + requests) * depths,
            }
        })
        .collect();
    if !plans.iter().any(|plan| plan.depth.fits) {
        return Err(too_small(
            args,
            &instance,
            &plans,
            fewest_workers(&inputs, &machine, beam),
        ));
    }
    let stored_bytes =
        args.width as f64 * inputs.bytes_per_well * depths * args.keep.share(args.depths);
    Ok(Report {
        width: args.width,
        shards: beam.shards,
        depths: args.depths,
        evaluator: args.evaluator.name(),
        market: args.market.name(),
        dollars_per_hour,
        prices_as_of: prices.as_of.clone(),
        region: prices.region.clone(),
        stored_bytes,
        storage_dollars_per_month: stored_bytes / 1e9 * prices.s3.dollars_per_gb_month,
        instance,
        plans,
    })
}

/// What to say where none of the numbers of machines has the memory.
fn too_small(
    args: &PlanArgs,
    instance: &InstanceType,
    plans: &[Plan],
    fewest: Option<u32>,
) -> anyhow::Error {
    let most = plans.iter().max_by_key(|plan| plan.count);
    let need = most.map_or(0.0, |plan| plan.depth.memory_bytes);
    let machines = most.map_or(0, |plan| plan.count);
    let way_out = match fewest {
        Some(fewest) => format!("at least {} are needed", count(fewest as usize, "machine")),
        None => format!("no number of them up to {MAX_WORKERS} has enough"),
    };
    anyhow::anyhow!(
        "a width of {} does not fit into {} {}: a worker would need {} of memory, and may have nine \
         tenths of {} GiB; {way_out}",
        args.width,
        machines,
        instance.name,
        bytes(need as u64),
        number(instance.memory_gib)
    )
}

/// A number without a needless fraction.
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Dollars with three digits that count.
fn dollars(value: f64) -> String {
    match value {
        value if value >= 99.5 => format!("{value:.0}"),
        value if value >= 0.995 => format!("{value:.2}"),
        value => format!("{value:.5}"),
    }
}

/// Seconds with three digits that count.
fn seconds(value: f64) -> String {
    match value {
        value if value >= 99.5 => format!("{value:.0}"),
        value if value >= 9.95 => format!("{value:.1}"),
        value if value >= 0.995 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

fn text(report: &Report, keep: Retention) -> String {
    let instance = &report.instance;
    let mut text = format!(
        "{} wells wide, {}, {}, {}\n{}: {}, {}, {} GiB, {} Gbit/s; ",
        report.width,
        count(report.depths as usize, "depth"),
        count(report.shards as usize, "shard"),
        report.evaluator,
        instance.name,
        count(instance.vcpus as usize, "vCPU"),
        count(instance.cores as usize, "core"),
        number(instance.memory_gib),
        number(instance.network_gbit),
    );
    let _ = writeln!(
        text,
        "${} an hour {} ({}, {})\n",
        report.dollars_per_hour, report.market, report.region, report.prices_as_of
    );
    text.push_str(
        "machines  s/depth       run    $/depth      $/run  limit     cores network  disk commit rounds memory\n",
    );
    for plan in &report.plans {
        let depth = &plan.depth;
        if !depth.fits {
            let memory = bytes(depth.memory_bytes as u64);
            let _ = writeln!(
                text,
                "{:>8}  does not fit: a worker would need {memory} of memory",
                plan.count
            );
            continue;
        }
        let percent = |part: f64| format!("{:.0}%", 100.0 * part);
        let busy = |seconds: f64| percent(seconds / depth.seconds);
        let memory = depth.memory_bytes / (instance.memory_gib * f64::from(1 << 30));
        let run = duration(Duration::from_secs_f64(plan.seconds.clamp(0.0, 1e12)));
        let _ = writeln!(
            text,
            "{:>8} {:>8} {run:>9} {:>10} {:>10}  {:<8} {:>6} {:>7} {:>5} {:>6} {:>6} {:>6}",
            plan.count,
            seconds(depth.seconds),
            dollars(plan.dollars_per_depth),
            dollars(plan.dollars),
            depth.limit.name(),
            busy(depth.cores_seconds),
            busy(depth.network_seconds),
            busy(depth.disk_seconds),
            busy(depth.commit_seconds),
            busy(depth.rounds_seconds),
            percent(memory),
        );
    }
    let _ = writeln!(
        text,
        "\nkept in S3 (--keep {keep}): {}, ${} a month",
        bytes(report.stored_bytes as u64),
        dollars(report.storage_dollars_per_month)
    );
    text
}

#[cfg(test)]
mod tests;
