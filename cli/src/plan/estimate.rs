//! What a run would take on the workers that are there: what the dashboard says before one is submitted.
//!
//! If their machines are in the table, by the model; otherwise by the speed of the runs that were searched
//! already; and if there were none, by the model with machines of which only the threads are known. How deep
//! a run gets is known only when it is over, so that a range is given rather than a number.

use super::machines::{Instance, Prices};
use super::model::{Beam, Inputs, Machine, depth};
use super::{machine_of, unnamed};
use hatebeam_coordinator::ObjectStorePrices;
use hatebeam_cost::one_per_machine;
use hatebeam_dashboard::{Estimate, EstimateRequest};
use hatebeam_proto::v1;
use hatebeam_runs::{Retention, RunSpec, likely_depths};

/// The machine that is reckoned with where there is no worker yet.
const USUAL: &str = "c5d.18xlarge";
/// How far the model was off where it was checked, and some more: machines are assumed, not measured.
const MODEL: [f64; 2] = [0.8, 1.5];
/// How far off the speed of another run may be: its width and its workers were others.
const MEASURED: [f64; 2] = [0.7, 1.6];
/// How far off it may be where nothing is known but the number of threads.
const GUESSED: [f64; 2] = [0.5, 2.5];
/// A run tells how fast it is once it has so many depths at full width: the first ones are narrow.
const TELLING_DEPTHS: u32 = 30;
/// Depths before a beam is as wide as it gets, roughly.
const NARROW_DEPTHS: u32 = 12;

/// A depth at full width, by whatever it is cut_verdict.
struct Speed {
    seconds: f64,
    /// By how much it may be off, less and more.
    range: [f64; 2],
    puts: f64,
    judged_by: String,
}

/// What a run would take, where the object store charges so much.
///
/// # Errors
/// What is wrong with its specification.
pub(crate) fn estimate(
    request: &EstimateRequest,
    rates: ObjectStorePrices,
) -> Result<Estimate, String> {
    let spec: RunSpec = serde_json::from_value(request.form.spec.clone())
        .map_err(|error| format!("the specification cannot be read: {error}"))?;
    spec.check().map_err(|error| error.to_string())?;
    let keep: Retention = match request.form.keep.as_str() {
        "" => Retention::All,
        keep => keep.parse().map_err(|error| format!("keep: {error}"))?,
    };
    let prices = Prices::load().map_err(|error| format!("{error:#}"))?;
    let inputs = Inputs {
        puts_per_second: prices.s3.puts_per_second,
        ..Inputs::measured(spec.evaluator.kind, spec.evaluator.quiescence)
    };
    let shards = (request.form.shards > 0).then_some(request.form.shards);
    let beam = Beam::new(spec.width, shards);
    let mut warnings = Vec::new();
    let machines = machines(&request.workers, &prices, &mut warnings)?;
    let speed = speed(&inputs, beam, &machines, &request.runs);
    if let Some(need) = too_small(&inputs, beam, &machines.list) {
        warnings.push(need);
    }
    let max_depth = (request.form.max_depth > 0).then_some(request.form.max_depth);
    let start = spec.start_depth();
    let depths = likely_depths(&spec, max_depth).map(|depth| depth.saturating_sub(start).max(1));
    let seconds = [0, 1].map(|at| speed.seconds * speed.range[at] * f64::from(depths[at]));
    let puts = speed.puts * rates.nanos_per_write as f64 / 1e9;
    let dollars = machines
        .dollars_per_hour
        .map(|rate| [0, 1].map(|at| rate / 3600.0 * seconds[at] + puts * f64::from(depths[at])));
    let stored_bytes =
        spec.width as f64 * inputs.bytes_per_well * f64::from(depths[1]) * keep.share(depths[1]);
    Ok(Estimate {
        depths,
        seconds,
        dollars,
        dollars_per_hour: machines.dollars_per_hour,
        stored_bytes,
        storage_dollars_per_month: rates.storage_per_month(stored_bytes as u64).dollars(),
        workers: u32::try_from(request.workers.len()).unwrap_or(u32::MAX),
        judged_by: speed.judged_by,
        warnings,
    })
}

/// The machines that would search.
struct Machines {
    list: Vec<Machine>,
    /// All of them are in the table.
    are_known: bool,
    /// Of all of them; `None` if one's price is not known.
    dollars_per_hour: Option<f64>,
}

fn machines(
    workers: &[v1::WorkerStatus],
    prices: &Prices,
    warnings: &mut Vec<String>,
) -> Result<Machines, String> {
    if workers.is_empty() {
        let usual = prices.find(USUAL).map_err(|error| error.to_string())?;
        warnings.push(format!(
            "No worker attends. This is reckoned with one {USUAL} at ${} an hour.",
            usual.on_demand
        ));
        return Ok(Machines {
            list: vec![machine_of(&usual)],
            are_known: true,
            dollars_per_hour: Some(usual.on_demand),
        });
    }
    let workers = one_per_machine(workers, |worker| {
        worker.machine.as_ref().map_or("", |machine| &machine.id)
    });
    let known = |worker: &v1::WorkerStatus| -> Option<Instance> {
        let kind = &worker.machine.as_ref()?.kind;
        prices.find(kind).ok()
    };
    let list = workers.iter().map(|worker| {
        machine_of(&known(worker).unwrap_or_else(|| Instance {
            memory_gib: worker.memory_bytes as f64 / f64::from(1 << 30),
            ..unnamed("worker", worker.threads.max(1))
        }))
    });
    let micros = |worker: &v1::WorkerStatus| worker.machine.as_ref()?.micros_per_hour;
    let all: Option<u64> = workers.iter().map(|worker| micros(worker)).sum();
    if all.is_none() {
        let without = workers.iter().filter(|worker| micros(worker).is_none());
        warnings.push(format!(
            "The price of {} of {} machines is not known (start workers with --price-per-hour), and so neither is the cost.",
            without.count(),
            workers.len()
        ));
    }
    Ok(Machines {
        list: list.collect(),
        are_known: workers.iter().all(|worker| known(worker).is_some()),
        dollars_per_hour: all.map(|micros| micros as f64 / 1e6),
    })
}

fn speed(inputs: &Inputs, beam: Beam, machines: &Machines, runs: &[v1::RunStatus]) -> Speed {
    let count = u32::try_from(machines.list.len()).unwrap_or(u32::MAX);
    // As if all were of the slowest kind: who is done first waits for the others.
    let modelled = machines
        .list
        .iter()
        .map(|machine| depth(inputs, machine, beam, count))
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let (seconds, puts) = modelled.map_or((0.0, 0.0), |depth| (depth.seconds, depth.puts));
    let by_model = |range, what: &str| Speed {
        seconds,
        range,
        puts,
        judged_by: format!("`hatebeam plan`'s model of a cluster, {what}"),
    };
    if machines.are_known {
        return by_model(MODEL, "whose machines are in its table");
    }
    let telling = runs
        .iter()
        .find(|run| run.depth >= TELLING_DEPTHS && run.seconds > 0.0 && run.width > 0);
    let Some(run) = telling else {
        return by_model(GUESSED, "of which only the threads are known");
    };
    let of_run = run.seconds / f64::from(run.depth - NARROW_DEPTHS);
    Speed {
        seconds: of_run * beam.width as f64 / run.width as f64,
        range: MEASURED,
        puts,
        judged_by: format!(
            "the speed of {}, as if its workers had been those that attend now",
            run.name
        ),
    }
}

/// What to say if some worker has not the memory for its share.
fn too_small(inputs: &Inputs, beam: Beam, machines: &[Machine]) -> Option<String> {
    let count = u32::try_from(machines.len()).unwrap_or(u32::MAX);
    let short = machines.iter().find_map(|machine| {
        let depth = depth(inputs, machine, beam, count);
        // A worker that does not say what it has is believed.
        (machine.memory_bytes > 0.0 && !depth.fits).then_some((depth.memory_bytes, machine))
    });
    short.map(|(need, machine)| {
        format!(
            "It may not fit: a worker would need {:.1} GB of memory, and one has {:.1} GB.",
            need / 1e9,
            machine.memory_bytes / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_dashboard::RunForm;
    use serde_json::json;

    fn request(width: u64, workers: Vec<v1::WorkerStatus>) -> EstimateRequest {
        let spec = json!({
            "width": width,
            "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
            "start": "empty",
            "evaluator": { "kind": "patterns", "quiescence": "off" },
        });
        EstimateRequest {
            form: serde_json::from_value::<RunForm>(json!({ "spec": spec })).unwrap(),
            workers,
            runs: Vec::new(),
        }
    }

    fn told(request: &EstimateRequest) -> Result<Estimate, String> {
        estimate(request, crate::rent::rates(true).unwrap())
    }

    fn worker(kind: &str, micros_per_hour: Option<u64>) -> v1::WorkerStatus {
        v1::WorkerStatus {
            threads: 4,
            memory_bytes: 16 << 30,
            machine: Some(v1::Machine {
                kind: kind.to_owned(),
                micros_per_hour,
                ..v1::Machine::default()
            }),
            ..v1::WorkerStatus::default()
        }
    }

    #[test]
    fn known_machines_are_reckoned_by_the_model_and_more_of_them_are_faster() {
        let of = |count| {
            let workers = vec![worker(USUAL, Some(3_456_000)); count];
            told(&request(25_000_000, workers)).unwrap()
        };
        let (one, four) = (of(1), of(4));
        assert!(one.seconds[0] > 0.0 && one.seconds[0] < one.seconds[1]);
        assert!(four.seconds[1] < one.seconds[1] / 2.0, "{one:?} {four:?}");
        assert_eq!(four.dollars_per_hour, Some(4.0 * 3.456));
        let mut halves = request(
            25_000_000,
            vec![
                worker(USUAL, Some(3_456_000)),
                worker(USUAL, Some(3_456_000)),
            ],
        );
        for half in &mut halves.workers {
            half.machine.as_mut().unwrap().id = "i-0123456789".to_owned();
        }
        let halves = told(&halves).unwrap();
        assert_eq!(
            (halves.seconds, halves.dollars),
            (one.seconds, one.dollars),
            "two workers on one machine"
        );
        // What `hatebeam plan` says of 250 depths is within what is said here: 21:52, $1.28.
        assert!(
            (one.seconds[0]..one.seconds[1]).contains(&(1312.0)),
            "{one:?}"
        );
        let dollars = one.dollars.unwrap();
        assert!((dollars[0]..dollars[1]).contains(&1.28), "{one:?}");
        assert!(one.judged_by.contains("in its table") && one.warnings.is_empty());
    }

    #[test]
    fn where_nothing_is_known_that_is_said() {
        let none = told(&request(10_000, Vec::new())).unwrap();
        assert!(none.warnings[0].contains("No worker attends"), "{none:?}");
        assert_eq!(none.workers, 0);
        let odd = told(&request(10_000, vec![worker("under-the-desk", None)])).unwrap();
        assert_eq!((odd.dollars, odd.dollars_per_hour), (None, None));
        assert!(odd.warnings[0].contains("--price-per-hour"), "{odd:?}");
        assert!(odd.judged_by.contains("only the threads"), "{odd:?}");
    }

    #[test]
    fn the_speed_of_another_run_counts_more_than_a_guess() {
        let mut request = request(200_000, vec![worker("", Some(0))]);
        request.runs = vec![v1::RunStatus {
            name: "other".to_owned(),
            width: 100_000,
            depth: 112,
            seconds: 50.0,
            ..v1::RunStatus::default()
        }];
        let told = told(&request).unwrap();
        assert!(told.judged_by.contains("other"), "{told:?}");
        // A second a depth.
        let depths = f64::from(told.depths[1]);
        assert!(
            (told.seconds[1] - depths * MEASURED[1]).abs() < 1e-6,
            "{told:?}"
        );
        assert!(told.dollars.unwrap()[1] < 0.1);
    }

    #[test]
    fn what_cannot_be_searched_or_does_not_fit_is_said() {
        let error = told(&request(0, Vec::new())).unwrap_err();
        assert!(error.contains("width"), "{error}");
        let mut bad = request(10, Vec::new());
        bad.form.keep = "some".to_owned();
        assert!(told(&bad).is_err());
        let tight = told(&request(1 << 30, vec![worker("", Some(0))])).unwrap();
        assert!(tight.warnings[0].contains("may not fit"), "{tight:?}");
    }
}
