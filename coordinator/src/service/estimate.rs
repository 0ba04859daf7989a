//! Estimates of the time and cost of a run, for `hatebeam plan` and the dashboard.

use hatebeam_cost::{
    Beam, EarlierRun, Estimate, EstimateInputs, EstimateWorker, Machine, Micros, ModelInputs,
    ObjectStorePrices, PriceTable, ProgramConstants,
};
use hatebeam_dashboard::EstimateRequest;
use hatebeam_objects::Options;
use hatebeam_proto::batch::{BATCH_CHILDREN, FLOOR_INTERVAL, QUEUED_BATCHES};
use hatebeam_proto::v1;
use hatebeam_runs::{LoopRule, MEMORY_OF_LOOPS_PER_WELL, RunSpec, likely_depths};

/// Returns the program constants that the cost model depends on.
pub fn program_constants() -> ProgramConstants {
    let objects = Options::default();
    ProgramConstants {
        batch_children: BATCH_CHILDREN,
        queued_batches: QUEUED_BATCHES,
        floor_interval: FLOOR_INTERVAL,
        part_bytes: objects.part_bytes,
        parallel_parts: objects.parallel_parts,
    }
}

/// Estimates the time and cost of a run on the connected workers, at the given object store prices.
///
/// # Errors
/// Returns the reason why the requested run is invalid.
pub fn estimate(request: &EstimateRequest, prices: ObjectStorePrices) -> Result<Estimate, String> {
    let form = &request.form;
    let spec = &form.spec;
    spec.check().map_err(|error| error.to_string())?;
    let keep = spec.keep(&form.keep);
    let keep = keep.map_err(|error| format!("keep: {error}"))?;
    spec.check_keep(keep).map_err(|error| error.to_string())?;
    let evaluator = &spec.evaluator;
    let measured = ModelInputs::measured(evaluator.kind, evaluator.quiescence, program_constants());
    let measured = match spec.loops {
        LoopRule::Ignore => measured,
        LoopRule::Exact => measured.with_loop_rule(MEMORY_OF_LOOPS_PER_WELL),
    };
    let model = ModelInputs {
        puts_per_second: PriceTable::get().s3.puts_per_second,
        ..measured
    };
    let max_depth = (form.max_depth > 0).then_some(form.max_depth);
    let start = spec.start_depth();
    let depths = likely_depths(spec, max_depth).map(|depth| depth.saturating_sub(start).max(1));
    let workers = request.workers.iter();
    Ok(hatebeam_cost::estimate(&EstimateInputs {
        model,
        beam: Beam::new(spec.width, (form.shards > 0).then_some(form.shards)),
        depths,
        kept_share: keep.share(depths[1]),
        workers: workers.map(worker).collect(),
        runs: request
            .runs
            .iter()
            .filter_map(|run| earlier_run(run, spec))
            .collect(),
        prices,
    }))
}

fn worker(worker: &v1::WorkerStatus) -> EstimateWorker {
    let machine = worker.machine.clone().unwrap_or_default();
    EstimateWorker {
        machine: Machine {
            kind: machine.kind,
            id: machine.id,
            price_per_hour: machine.micros_per_hour.map(Micros),
            ..Machine::default()
        },
        threads: worker.threads,
        memory_bytes: worker.memory_bytes,
    }
}

/// Returns the facts of an earlier run whose speed can be used for a run with the specification `wanted`. Returns `None` if
/// the earlier run scored wells in another way or had another loop rule, or if its specification is invalid.
fn earlier_run(run: &v1::RunStatus, wanted: &RunSpec) -> Option<EarlierRun> {
    let spec: RunSpec = serde_json::from_str(&run.spec).ok()?;
    let is_equal = spec.evaluator.kind == wanted.evaluator.kind
        && spec.evaluator.quiescence == wanted.evaluator.quiescence
        && spec.loops == wanted.loops;
    if !is_equal {
        return None;
    }
    Some(EarlierRun {
        name: run.name.clone(),
        width: run.width,
        depths: run.depth.saturating_sub(spec.start_depth()),
        seconds: run.seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::missing_memory;
    use crate::registry::Member;
    use hatebeam_runs::{Manifest, Retention};
    use hatebeam_search::{EvaluatorKind, MIN_SHARD_WELLS, Quiescence, ShardLayout};
    use serde_json::json;

    fn request(width: u64, keep: &str) -> EstimateRequest {
        let spec = json!({
            "width": width,
            "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
            "start": "empty",
            "evaluator": { "kind": "patterns", "quiescence": "off" },
        });
        EstimateRequest {
            form: serde_json::from_value(json!({ "spec": spec, "keep": keep })).unwrap(),
            workers: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn estimated(width: u64, keep: &str) -> Result<Estimate, String> {
        estimate(&request(width, keep), ObjectStorePrices::default())
    }

    #[test]
    fn estimated_storage_is_proportional_to_the_number_of_kept_depths() {
        let (all, fourth) = (estimated(10_000, ""), estimated(10_000, "4"));
        let stored = |estimate: Result<Estimate, String>| estimate.unwrap().stored_bytes;
        assert_eq!(stored(all), 4.0 * stored(fourth));
    }

    #[test]
    fn depths_before_the_start_of_an_earlier_run_do_not_count() {
        let run = |start, depth| {
            let mut spec = serde_json::to_value(request(10, "").form.spec).unwrap();
            spec["start"] = start;
            v1::RunStatus {
                spec: spec.to_string(),
                depth,
                ..v1::RunStatus::default()
            }
        };
        let wanted = request(20, "").form.spec;
        let depths = |run: &v1::RunStatus| earlier_run(run, &wanted).map(|earlier| earlier.depths);
        let replay = json!({ "replay": { "base2048": "", "piece": 101 } });
        assert_eq!(depths(&run(json!("empty"), 140)), Some(140));
        assert_eq!(depths(&run(replay.clone(), 140)), Some(40));
        // The run has not committed a depth yet.
        assert_eq!(depths(&run(replay, 0)), Some(0));
        assert_eq!(depths(&v1::RunStatus::default()), None);
    }

    #[test]
    fn speed_of_run_with_other_evaluator_or_loop_rule_is_not_used() {
        let earlier = v1::RunStatus {
            spec: serde_json::to_string(&request(10, "").form.spec).unwrap(),
            ..v1::RunStatus::default()
        };
        let is_used = |change: fn(&mut RunSpec)| {
            let mut wanted = request(20, "").form.spec;
            change(&mut wanted);
            earlier_run(&earlier, &wanted).is_some()
        };
        assert!(is_used(|_| {}));
        assert!(!is_used(|spec| spec.loops = LoopRule::Exact));
        assert!(!is_used(|spec| spec.evaluator.kind = EvaluatorKind::Plain));
        assert!(!is_used(
            |spec| spec.evaluator.quiescence = Quiescence::First
        ));
    }

    #[test]
    fn memory_warning_names_the_whole_memory_of_the_worker() {
        let mut request = request(1 << 30, "");
        request.form.spec.loops = LoopRule::Exact;
        request.workers = vec![v1::WorkerStatus {
            threads: 4,
            memory_bytes: 24_000_000_000,
            ..v1::WorkerStatus::default()
        }];
        let estimate = estimate(&request, ObjectStorePrices::default()).unwrap();
        let warning = estimate.warnings.iter().find(|one| one.contains("fit"));
        let warning = warning.unwrap();
        assert!(warning.contains("only 24.0 GB"), "{warning}");
    }

    #[test]
    fn beam_that_a_coordinator_refuses_may_not_fit() {
        let (memory_bytes, threads) = (8_000_000_000, 4);
        let member = Member {
            name: "w0".to_owned(),
            address: String::new(),
            threads,
            memory_bytes,
            session: 1,
        };
        let worker = v1::WorkerStatus {
            threads,
            memory_bytes,
            ..v1::WorkerStatus::default()
        };
        for (quiescence, loops, fits) in [
            (Quiescence::Off, LoopRule::Ignore, true),
            (Quiescence::FirstOfBest, LoopRule::Ignore, false),
            (Quiescence::Off, LoopRule::Exact, false),
        ] {
            let mut request = request(40_000_000, "");
            request.form.spec.evaluator.quiescence = quiescence;
            request.form.spec.loops = loops;
            request.workers = vec![worker.clone()];
            let spec = request.form.spec.clone();
            let shards = ShardLayout::default_shards(spec.width);
            let manifest = Manifest::new("r".to_owned(), spec, Retention::All, shards, 0);
            let members = std::slice::from_ref(&member);
            let missing = missing_memory(members, &manifest, MIN_SHARD_WELLS);
            assert_eq!(missing.is_none(), fits);
            let estimate = estimate(&request, ObjectStorePrices::default()).unwrap();
            let is_warned = |text| estimate.warnings.iter().any(|one| one.contains(text));
            assert_eq!(!is_warned("may not fit"), fits, "{estimate:?}");
            let is_rough = quiescence != Quiescence::Off || loops == LoopRule::Exact;
            assert_eq!(is_warned("rough guesses"), is_rough, "{estimate:?}");
        }
    }

    #[test]
    fn invalid_runs_are_refused() {
        let error = estimated(0, "").unwrap_err();
        assert!(error.contains("width"), "{error}");
        assert!(estimated(10, "some").is_err());
        let mut request = request(10, "4");
        request.form.spec.loops = LoopRule::Exact;
        let error = estimate(&request, ObjectStorePrices::default()).unwrap_err();
        assert!(error.contains("keep all"), "{error}");
    }
}
