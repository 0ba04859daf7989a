//! Estimates of a run's time and cost, before the run is submitted.
//!
//! If the price table contains the workers' machine types, the estimate is based on the model in [`crate::model`].
//! Otherwise it is based on the speed of an earlier run. If there is no earlier run either, it is based on the model
//! with typical machines that have the workers' thread counts. The number of depths is known only at the end of a run,
//! so the estimate is a range.

use crate::instances::{InstanceType, PriceTable};
use crate::machine::{Machine, one_per_machine};
use crate::model::{Beam, DepthModel, MachineProfile, ModelInputs, model_depth};
use crate::money::Micros;
use crate::prices::ObjectStorePrices;
use serde::Serialize;

/// Machine type that the estimate assumes if there is no worker.
const DEFAULT_INSTANCE: &str = "c5d.18xlarge";
/// Lowest and highest likely ratio of the real time to the model's time. The range includes a margin, because the
/// machines' capacity is assumed, not measured.
const MODEL_RANGE: [f64; 2] = [0.8, 1.5];
/// Lowest and highest likely ratio of the real time to a time that is computed from an earlier run. The earlier run may
/// have had a different width and different workers.
const MEASURED_RANGE: [f64; 2] = [0.7, 1.6];
/// Lowest and highest likely ratio of the real time to the model's time if only the machines' thread counts are known, or
/// if the model does not contain the quiescence.
const GUESSED_RANGE: [f64; 2] = [0.5, 2.5];
/// Minimum number of depths of an earlier run whose speed is used. The first depths of a run are narrow.
const MIN_DEPTHS: u32 = 30;
/// Approximate number of depths before a beam has its full width.
const NARROW_DEPTHS: u32 = 12;

/// A worker that would search the run.
#[derive(Clone, Debug)]
pub struct EstimateWorker {
    /// Machine of the worker.
    pub machine: Machine,
    /// Number of threads.
    pub threads: u32,
    /// Memory in bytes; 0 if unknown.
    pub memory_bytes: u64,
}

/// An earlier run, whose speed can be used for an estimate.
#[derive(Clone, Debug)]
pub struct EarlierRun {
    /// Name of the run.
    pub name: String,
    /// Width of its beam.
    pub width: u64,
    /// Number of depths that the run has searched.
    pub depths: u32,
    /// Search time in seconds.
    pub seconds: f64,
}

/// Inputs of an estimate.
#[derive(Clone, Debug)]
pub struct EstimateInputs {
    /// Inputs of the model.
    pub model: ModelInputs,
    /// Width and number of shards of the run.
    pub beam: Beam,
    /// Lowest and highest likely number of depths.
    pub depths: [u32; 2],
    /// Fraction of the depths whose tables (the stored wells) are kept.
    pub kept_share: f64,
    /// The workers.
    pub workers: Vec<EstimateWorker>,
    /// Earlier runs, the most recently submitted run first.
    pub runs: Vec<EarlierRun>,
    /// Prices of the object store.
    pub prices: ObjectStorePrices,
}

/// Estimated time and cost of a run. Ranges go from the lowest to the highest likely value.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Estimate {
    /// Number of depths.
    pub depths: [u32; 2],
    /// Search time in seconds.
    pub seconds: [f64; 2],
    /// Cost of machines and of writes to the object store in dollars; `None` if a price is unknown.
    pub dollars: Option<[f64; 2]>,
    /// Price of all machines in dollars per hour; `None` if a price is unknown.
    pub dollars_per_hour: Option<f64>,
    /// Bytes in the object store at the end of the run.
    pub stored_bytes: f64,
    /// Price of storing `stored_bytes`, in dollars per month.
    pub storage_dollars_per_month: f64,
    /// Number of connected workers.
    pub workers: u32,
    /// Human-readable description of the estimate's basis.
    pub basis: String,
    /// Warnings, such as a beam that does not fit in memory.
    pub warnings: Vec<String>,
}

/// Estimates the time and cost of a run.
pub fn estimate(inputs: &EstimateInputs) -> Estimate {
    let mut warnings = Vec::new();
    let machines = machines(&inputs.workers, &mut warnings);
    let models = machines.profiles.iter().map(|profile| {
        let count = u32::try_from(machines.profiles.len()).unwrap_or(u32::MAX);
        model_depth(&inputs.model, profile, inputs.beam, count)
    });
    let models: Vec<DepthModel> = models.collect();
    warnings.extend(memory_warning(&machines, &models));
    if !inputs.model.has_time {
        warnings.push(
            "The time and the cost are rough guesses with this quiescence or loop rule.".to_owned(),
        );
    }
    let speed = speed(inputs, &machines, &models);
    let [few, many] = inputs.depths.map(f64::from);
    let seconds = [
        speed.seconds * speed.range[0] * few,
        speed.seconds * speed.range[1] * many,
    ];
    let request_dollars = speed.puts * inputs.prices.nanos_per_write as f64 / 1e9;
    let dollars = machines.dollars_per_hour.map(|price| {
        [
            price / 3600.0 * seconds[0] + request_dollars * few,
            price / 3600.0 * seconds[1] + request_dollars * many,
        ]
    });
    let stored_bytes =
        inputs.beam.width as f64 * inputs.model.bytes_per_well * many * inputs.kept_share;
    let storage = inputs.prices.storage_per_month(stored_bytes as u64);
    Estimate {
        depths: inputs.depths,
        seconds,
        dollars,
        dollars_per_hour: machines.dollars_per_hour,
        stored_bytes,
        storage_dollars_per_month: storage.dollars(),
        workers: u32::try_from(inputs.workers.len()).unwrap_or(u32::MAX),
        basis: speed.basis,
        warnings,
    }
}

/// Machines that would search the run.
struct Machines {
    profiles: Vec<MachineProfile>,
    /// Whether the price table contains the types of all machines.
    are_known: bool,
    /// Price of all machines; `None` if the price of a machine is unknown.
    dollars_per_hour: Option<f64>,
}

fn machines(workers: &[EstimateWorker], warnings: &mut Vec<String>) -> Machines {
    let table = PriceTable::get();
    if workers.is_empty() {
        let assumed = table.find(DEFAULT_INSTANCE).ok();
        let dollars = assumed.map(|instance| instance.on_demand);
        warnings.push(format!(
            "No worker is connected. The estimate assumes one {DEFAULT_INSTANCE} at ${} per hour.",
            dollars.unwrap_or_default()
        ));
        return Machines {
            profiles: assumed.map(InstanceType::profile).into_iter().collect(),
            are_known: true,
            dollars_per_hour: dollars,
        };
    }
    let all = workers;
    let workers = one_per_machine(workers, |worker| worker.machine.id.as_str());
    let profiles = workers.iter().map(|worker| {
        let known = table.find(&worker.machine.kind);
        known.map_or_else(|_| unknown_profile(worker, all), InstanceType::profile)
    });
    let are_known = workers
        .iter()
        .all(|worker| table.find(&worker.machine.kind).is_ok());
    let prices = workers.iter().map(|worker| worker.machine.price_per_hour);
    let unpriced = prices.clone().filter(Option::is_none).count();
    if unpriced > 0 {
        warnings.push(format!(
            "The price of {unpriced} of {} machines is unknown, so the cost is unknown: start workers with \
             --price-per-hour.",
            workers.len()
        ));
    }
    let total = (unpriced == 0).then(|| prices.flatten().sum::<Micros>());
    Machines {
        profiles: profiles.collect(),
        are_known,
        dollars_per_hour: total.map(Micros::dollars),
    }
}

/// Returns the assumed capacity of a machine whose type is not in the price table. The machine has the threads and the
/// memory of all its workers, one of which is `first`.
fn unknown_profile(first: &EstimateWorker, all: &[EstimateWorker]) -> MachineProfile {
    let id = &first.machine.id;
    let others = all.iter().filter(|worker| {
        !id.is_empty() && worker.machine.id == *id && !std::ptr::eq(*worker, first)
    });
    let (mut threads, mut memory_bytes) = (first.threads, first.memory_bytes as f64);
    for worker in others {
        threads += worker.threads;
        memory_bytes += worker.memory_bytes as f64;
    }
    MachineProfile {
        memory_bytes,
        ..InstanceType::unnamed("worker", threads.max(1)).profile()
    }
}

/// Predicted time and writes of a depth at full width.
struct Speed {
    seconds: f64,
    /// Lowest and highest likely ratio of the real time to `seconds`.
    range: [f64; 2],
    /// Number of writes to the object store per depth.
    puts: f64,
    basis: String,
}

fn speed(inputs: &EstimateInputs, machines: &Machines, models: &[DepthModel]) -> Speed {
    // All machines wait for the slowest one.
    let slowest = models
        .iter()
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let (seconds, puts) = slowest.map_or((0.0, 0.0), |depth| (depth.seconds, depth.puts));
    let by_model = |range, machines: &str| Speed {
        seconds,
        range: match inputs.model.has_time {
            true => range,
            false => GUESSED_RANGE,
        },
        puts,
        basis: format!("`hatebeam plan`'s model of a cluster, with {machines}"),
    };
    if machines.are_known {
        return by_model(MODEL_RANGE, "machine types from the price table");
    }
    let earlier = inputs
        .runs
        .iter()
        .find(|run| run.depths >= MIN_DEPTHS && run.seconds > 0.0 && run.width > 0);
    let Some(run) = earlier else {
        return by_model(
            GUESSED_RANGE,
            "typical machines, because only the thread counts are known",
        );
    };
    let per_depth = run.seconds / f64::from(run.depths - NARROW_DEPTHS);
    Speed {
        seconds: per_depth * inputs.beam.width as f64 / run.width as f64,
        range: MEASURED_RANGE,
        puts,
        basis: format!(
            "the speed of the earlier run {}, on the assumption that the current workers are equally fast",
            run.name
        ),
    }
}

/// Returns a warning if a machine has too little memory for its shards.
fn memory_warning(machines: &Machines, models: &[DepthModel]) -> Option<String> {
    let mut pairs = models.iter().zip(&machines.profiles);
    // A worker whose memory is unknown is assumed to have enough.
    let (depth, profile) =
        pairs.find(|(depth, profile)| profile.memory_bytes > 0.0 && !depth.fits)?;
    Some(format!(
        "The beam may not fit: a worker needs {:.1} GB of memory, and one worker has only {:.1} GB.",
        depth.memory_bytes / 1e9,
        profile.memory_bytes / 1e9
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::inputs;

    const DEPTHS: [u32; 2] = [180, 290];

    fn estimate_of(width: u64, workers: Vec<EstimateWorker>) -> EstimateInputs {
        EstimateInputs {
            model: inputs(),
            beam: Beam::new(width, None),
            depths: DEPTHS,
            kept_share: 1.0,
            workers,
            runs: Vec::new(),
            prices: PriceTable::get().s3.object_store(),
        }
    }

    fn worker(kind: &str, price: Option<f64>) -> EstimateWorker {
        EstimateWorker {
            machine: Machine {
                kind: kind.to_owned(),
                price_per_hour: price.map(Micros::from_dollars),
                ..Machine::default()
            },
            threads: 4,
            memory_bytes: 16 << 30,
        }
    }

    #[test]
    fn estimate_for_known_machines_is_based_on_the_model() {
        let of = |count| {
            let workers = vec![worker(DEFAULT_INSTANCE, Some(3.456)); count];
            estimate(&estimate_of(25_000_000, workers))
        };
        let (one, four) = (of(1), of(4));
        assert!(one.seconds[0] > 0.0 && one.seconds[0] < one.seconds[1]);
        assert!(four.seconds[1] < one.seconds[1] / 2.0, "{one:?} {four:?}");
        assert_eq!(four.dollars_per_hour, Some(4.0 * 3.456));
        // `hatebeam plan` predicts 22:02 and $1.29 for 250 depths.
        assert!(
            (one.seconds[0]..one.seconds[1]).contains(&1322.0),
            "{one:?}"
        );
        let dollars = one.dollars.unwrap();
        assert!((dollars[0]..dollars[1]).contains(&1.29), "{one:?}");
        assert!(one.basis.contains("from the price table") && one.warnings.is_empty());
    }

    #[test]
    fn machine_with_two_workers_counts_once() {
        let mut half = worker(DEFAULT_INSTANCE, Some(3.456));
        half.machine.id = "i-0123456789".to_owned();
        let whole = estimate(&estimate_of(25_000_000, vec![half.clone()]));
        let halves = estimate(&estimate_of(25_000_000, vec![half.clone(), half]));
        let cost = |estimate: &Estimate| (estimate.seconds, estimate.dollars);
        assert_eq!(cost(&halves), cost(&whole));
    }

    #[test]
    fn unknown_machine_has_the_total_capacity_of_its_workers() {
        let of = |threads: &[u32]| {
            let workers = threads.iter().map(|&threads| {
                let mut one = worker("u7i.large", Some(1.0));
                one.machine.id = "i-0123456789".to_owned();
                (one.threads, one.memory_bytes) = (threads, u64::from(threads) << 32);
                one
            });
            let estimated = estimate(&estimate_of(25_000_000, workers.collect()));
            (estimated.seconds, estimated.dollars_per_hour)
        };
        assert_eq!(of(&[4, 4]), of(&[8]));
        assert_ne!(of(&[4, 4]), of(&[4]));
    }

    #[test]
    fn estimate_warns_about_missing_workers_prices_and_memory() {
        let none = estimate(&estimate_of(10_000, Vec::new()));
        assert!(
            none.warnings[0].contains("No worker is connected"),
            "{none:?}"
        );
        assert_eq!(none.workers, 0);
        let odd = estimate(&estimate_of(10_000, vec![worker("under-the-desk", None)]));
        assert_eq!((odd.dollars, odd.dollars_per_hour), (None, None));
        assert!(odd.warnings[0].contains("--price-per-hour"), "{odd:?}");
        assert!(odd.basis.contains("only the thread count"), "{odd:?}");
        let tight = estimate(&estimate_of(1 << 30, vec![worker("", Some(0.0))]));
        assert!(tight.warnings[0].contains("may not fit"), "{tight:?}");
    }

    #[test]
    fn estimate_warns_if_the_model_does_not_contain_the_quiescence() {
        let workers = vec![worker(DEFAULT_INSTANCE, Some(3.456))];
        let mut inputs = estimate_of(25_000_000, workers);
        let known = estimate(&inputs);
        inputs.model.has_time = false;
        let guessed = estimate(&inputs);
        assert!(guessed.warnings[0].contains("rough guesses"), "{guessed:?}");
        assert!(guessed.seconds[0] < known.seconds[0]);
        assert!(guessed.seconds[1] > known.seconds[1]);
    }

    #[test]
    fn earlier_speed_is_preferred_to_guessed_machines() {
        let mut inputs = estimate_of(200_000, vec![worker("", Some(0.0))]);
        inputs.runs = vec![EarlierRun {
            name: "other".to_owned(),
            width: 100_000,
            depths: 112,
            seconds: 50.0,
        }];
        let estimated = estimate(&inputs);
        assert!(estimated.basis.contains("other"), "{estimated:?}");
        // The earlier run searched 100 depths at full width in 50 s. At twice the width, a depth takes 1 s.
        let expected = f64::from(DEPTHS[1]) * MEASURED_RANGE[1];
        assert!(
            (estimated.seconds[1] - expected).abs() < 1e-6,
            "{estimated:?}"
        );
        assert!(estimated.dollars.unwrap()[1] < 0.1);
    }
}
