//! Tests of the costs and limits of runs: prices of machines, budgets, time limits, and idle timeouts.

use crate::harness::{Cluster, RunOutput};
use crate::metadata::MetadataService;
use crate::program::{hatebeam, wait_until};
use crate::{SHORT, WIDTH, one_process};
use serde_json::{Value, json};
use std::time::Instant;

/// Asserts that the two workers report the expected machines.
#[track_caller]
fn assert_machines(workers: &[Value]) {
    let machine = &workers[0]["machine"];
    assert_eq!(machine["kind"], "c5d.18xlarge", "{workers:?}");
    assert_eq!(machine["market"], "spot");
    assert_eq!(machine["region"], "us-east-1");
    assert_eq!(machine["dollars_per_hour"], 1.38);
    assert_eq!(workers[1]["machine"]["dollars_per_hour"], 7.2);
}

#[test]
fn worker_reads_machine_metadata_and_exits_before_interruption() {
    let expected = one_process(&WIDTH);
    let service = MetadataService::start();
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    cluster.env = vec![(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT".to_owned(),
        service.endpoint.clone(),
    )];
    cluster.start_worker("w0", &["--threads", "1"]);
    cluster.env.clear();
    cluster.start_worker("w1", &["--threads", "1", "--price-per-hour", "7.2"]);
    cluster.submit(&WIDTH);
    cluster.wait_for_depth(3);
    assert_machines(&cluster.worker_status());
    assert_eq!(service.refused(), 0);
    service.interrupt();
    let mut leaving = cluster.workers.remove("w0").unwrap();
    assert_eq!(leaving.wait(), Some(0), "{}", leaving.log());
    assert!(leaving.log().contains("reclaims"), "{}", leaving.log());
    let run = cluster.watch();
    run.assert_same(&expected);
    let cost = &run.end["cost"];
    let total = cost["dollars"].as_f64().unwrap();
    let depths = run.depths.values();
    let depth_dollars: f64 = depths.map(|depth| depth["dollars"].as_f64().unwrap()).sum();
    assert!(
        depth_dollars > 0.0 && depth_dollars <= total + 1e-9,
        "{cost}"
    );
    let machines = cost["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 2, "{cost}");
    // The cost of a machine is its price multiplied by the time that it spent on the run.
    for machine in machines {
        let per_hour = machine["machine"]["dollars_per_hour"].as_f64().unwrap();
        let expected = per_hour / 3600.0 * machine["seconds"].as_f64().unwrap();
        let dollars = machine["dollars"].as_f64().unwrap();
        assert!((dollars - expected).abs() < 2e-6, "{machine}");
        assert_eq!(machine["active"], false, "{machine}");
    }
    assert_eq!(cost["unpriced"], 0);
}

#[test]
fn budget_stops_run_and_submission_without_budget_resumes_it() {
    let expected = one_process(&WIDTH);
    let budget = [&WIDTH[..], &["--max-cost", "3"]].concat();
    let mut cluster = Cluster::new();
    // Together, the coordinator and the worker cost one dollar per second.
    cluster.set_coordinator_flags(&["--price-per-hour", "1800"]);
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "2", "--price-per-hour", "1800"]);
    cluster.submit(&budget);
    // While the run is open, a submission with other limits is refused. A submission without limits returns the status.
    let other = cluster.client(&[&["submit"], &WIDTH[..], &["--max-cost", "4"]].concat());
    assert_eq!(other.status.code(), Some(1));
    let error = String::from_utf8(other.stderr).unwrap();
    assert!(error.contains("hatebeam limit"), "{error}");
    assert_eq!(cluster.submit(&WIDTH)["max_dollars"], 3.0);

    let run = cluster.watch();
    assert_eq!(run.end["state"], "finished");
    assert_eq!(run.end["stopped_by"], "max-cost");
    assert_eq!(run.end["max_dollars"], 3.0);
    let last = run.depths.keys().last().unwrap();
    assert!(*last > 3 && run.depths.len() < expected.depths.len());
    for (depth, line) in run.depths.range(1..) {
        assert_eq!(line["digest"], expected.depths[depth]["digest"], "{depth}");
    }
    // The search stops shortly before the budget is spent. Finding the wells of the best game then adds a small cost.
    let dollars = run.end["cost"]["dollars"].as_f64().unwrap();
    assert!((2.0..4.5).contains(&dollars), "{}", run.end);
    let replay = run.end["replay"].as_str().unwrap();
    let score = run.end["best_lines"].to_string();
    let mut verify = hatebeam();
    verify.args(["replay", "verify", "--expect-score", &score, replay]);
    assert!(verify.output().unwrap().status.success(), "{replay}");
    let text = cluster.client(&["status"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("stopped by --max-cost"), "{text}");

    // A submission with the same budget changes nothing. A submission without a budget resumes the run, whose final
    // cost includes the earlier cost.
    assert_eq!(cluster.submit(&budget)["state"], "finished");
    assert_eq!(cluster.submit(&WIDTH)["state"], "queued");
    let run = cluster.watch();
    run.assert_same(&expected);
    assert_eq!(run.end["stopped_by"], "");
    assert!(run.end["cost"]["dollars"].as_f64().unwrap() > dollars);
}

/// Runs `hatebeam limit`. Returns the new status, or the error message.
fn limit(cluster: &Cluster, args: &[&str]) -> Result<Value, String> {
    let output = cluster.client(&[&["limit", "--json"], args].concat());
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// Waits until a run has committed the given depth.
#[track_caller]
fn wait_for_depth_of(cluster: &Cluster, run: &str, depth: u64) {
    let is_there = || {
        let output = cluster.client(&["status", run, "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["runs"][0]["depth"].as_u64() >= Some(depth)
    };
    wait_until(is_there, || format!("no depth {depth}: {}", cluster.logs()));
}

/// Waits until a run has ended and returns its status.
fn wait_for_end_of(cluster: &Cluster, run: &str) -> Value {
    let output = cluster.client(&["wait", run, "--json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn limits_of_queued_and_running_runs_can_be_changed() {
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    let limits = ["--max-cost", "500", "--max-depth", "9"];
    let first = cluster.submit_name(&[&WIDTH[..], &limits].concat());
    // The runs remain queued, because there is no worker yet.
    let limited = limit(&cluster, &[&first, "--max-depth", "none"]).unwrap();
    assert_eq!(limited["max_depth"], Value::Null);
    assert_eq!(limited["max_dollars"], 500.0);
    let second = cluster.submit_name(&["--width", "90", "--max-hours", "1"]);
    let new = [&second, "--max-hours", "none", "--max-depth", "5"];
    let limited = limit(&cluster, &new).unwrap();
    assert_eq!(limited["max_depth"], 5);
    assert_eq!(limited["max_hours"], Value::Null);

    cluster.start_worker("w0", &["--threads", "2", "--price-per-hour", "3600"]);
    wait_for_depth_of(&cluster, &first, 1);
    let new = [&first, "--max-cost", "1000", "--max-depth", "40"];
    limit(&cluster, &new).unwrap();
    // The object store contains the accepted changes, so they persist when the coordinator is killed.
    cluster.restart_coordinator();
    let run = RunOutput::parse(&cluster.client(&["watch", &first, "--json", "--quiet"]));
    run.assert_same(&expected);
    assert_eq!(run.end["max_dollars"], 1000.0);
    let error = limit(&cluster, &[&first, "--max-cost", "1"]).unwrap_err();
    assert!(error.contains("has ended"), "{error}");
    let end = wait_for_end_of(&cluster, &second);
    assert_eq!(end["depth"], 5);
    assert_eq!(end["stopped_by"], "max-depth");

    for wrong in [
        &[first.as_str()][..],
        &[&first, "--max-cost", "much"],
        &[&first, "--max-depth", "0"],
    ] {
        let output = cluster.client(&[&["limit"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn restarted_coordinator_keeps_earlier_cost_and_max_hours_stops_run() {
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "1", "--price-per-hour", "3600"]);
    let begin = Instant::now();
    // 0.00222 hours are 8 seconds.
    cluster.submit(&["--width", "20000", "--max-hours", "0.00222"]);
    cluster.wait_for_depth(3);
    cluster.restart_coordinator();
    let run = cluster.watch();
    let elapsed = begin.elapsed().as_secs_f64();
    assert_eq!(run.end["stopped_by"], "max-hours", "{}", run.end);
    // The worker costs one dollar per second, even while no coordinator runs. Only the time between the last update of
    // the cost and the kill is not charged.
    let cost = &run.end["cost"];
    let dollars = cost["dollars"].as_f64().unwrap();
    assert!(
        (5.0..elapsed).contains(&dollars),
        "{dollars} in {elapsed} s"
    );
    let machines = cost["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 1, "{machines:?}");
}

#[test]
fn idle_coordinator_exits_after_idle_timeout() {
    let mut cluster = Cluster::start(&[]);
    let run = cluster.submit_name(&["--width", "500", "--max-depth", "20"]);
    cluster.coordinator().signal("-TERM");
    assert_eq!(cluster.coordinator().wait(), Some(0));
    // The run is open when this coordinator starts, so a slow machine cannot exceed the timeout of 1.2 seconds before.
    cluster.set_coordinator_flags(&["--idle-stop", "0.02"]);
    cluster.start_all(&["w0"]);
    assert_eq!(cluster.coordinator().wait(), Some(0), "{}", cluster.logs());
    let manifest = cluster.manifest(&run);
    assert_eq!(manifest["state"], json!("finished"));
    assert_eq!(manifest["end"], json!("max-depth"));
}
