//! `plan`.

use crate::support::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(args: &[&str]) -> Value {
    let planned = run(&[&["plan", "--json"], args].concat()).silent_results();
    serde_json::from_str(&planned).unwrap()
}

#[test]
fn a_table_tells_what_limits() {
    let planned = run(&["plan", "--width", "25M", "--count", "1..64"]).silent_results();
    let lines: Vec<&str> = planned.lines().collect();
    assert!(
        lines[0].starts_with("25000000 wells wide, 250 depths, 64 shards"),
        "{planned}"
    );
    assert!(
        lines[1].contains("c5d.18xlarge: 72 vCPUs, 36 cores, 144 GiB, 25 Gbit/s"),
        "{planned}"
    );
    assert!(
        lines[1].contains("$3.456 an hour on-demand (us-east-1, "),
        "{planned}"
    );
    let counts: Vec<&str> = lines[4..11]
        .iter()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(counts, ["1", "2", "4", "8", "16", "32", "64"]);
    assert!(lines[4].contains("cores"), "{planned}");
    assert!(planned.ends_with(" a month\n"), "{planned}");
}

#[test]
fn dollars_are_price_and_time_and_count() {
    let plan = json(&[
        "--width",
        "25M",
        "--instance",
        "c6id.32xlarge",
        "--count",
        "1,4",
        "--depths",
        "200",
    ]);
    let price = plan["dollars_per_hour"].as_f64().unwrap();
    assert_eq!(price, 6.4512);
    let plans = plan["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 2);
    for plan in plans {
        let number = |name: &str| plan[name].as_f64().unwrap();
        let hours = number("seconds") / 3600.0;
        let expected = price * hours * number("count");
        assert!(
            (number("machine_dollars") / expected - 1.0).abs() < 1e-9,
            "{plan}"
        );
        assert!(
            (number("seconds") / plan["depth"]["seconds"].as_f64().unwrap() - 200.0).abs() < 1e-6
        );
        let all = number("machine_dollars") + number("request_dollars");
        assert!((number("dollars") / all - 1.0).abs() < 1e-9, "{plan}");
    }
    let spot = json(&["--width", "25M", "--market", "spot"]);
    assert!(spot["dollars_per_hour"].as_f64().unwrap() < 3.456);
    let given = json(&["--width", "25M", "--price-per-hour", "1.5"]);
    assert_eq!(given["dollars_per_hour"], 1.5);
    assert_eq!(
        given["prices_as_of"].as_str().unwrap().len(),
        "2025-01-01".len()
    );
}

#[test]
fn fewer_depths_that_are_kept_cost_less_a_month() {
    let all = json(&["--width", "25M"]);
    let fourth = json(&["--width", "25M", "--keep", "4"]);
    let ratio = all["storage_dollars_per_month"].as_f64().unwrap()
        / fourth["storage_dollars_per_month"].as_f64().unwrap();
    assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn other_machines_can_be_described() {
    let described = [
        "--width",
        "5M",
        "--cores",
        "16",
        "--memory-gib",
        "64",
        "--network-gbit",
        "10",
    ];
    let plan = json(&described);
    assert_eq!(plan["instance"]["cores"], 16);
    assert_eq!(plan["dollars_per_hour"], 0.0);
    // A machine on which a child takes twice as long takes about twice as long.
    let slow = json(&[&described[..], &["--ns-per-child", "394"]].concat());
    let cores = |plan: &Value| plan["plans"][0]["depth"]["cores_seconds"].as_f64().unwrap();
    assert!((cores(&slow) / cores(&plan) - 2.0).abs() < 1e-9);
    let knewjade = json(&[&described[..], &["--evaluator", "knewjade"]].concat());
    assert!(cores(&knewjade) < cores(&plan));
    let forced = json(&[&described[..], &["--quiescence", "forced"]].concat());
    assert!(cores(&forced) > cores(&plan));
    let local = json(&["--width", "10k", "--instance", "local"]);
    assert_eq!(local["instance"]["name"], "local");
}

#[test]
fn a_width_that_does_not_fit_is_told_with_what_would() {
    let small = ["--cores", "4", "--memory-gib", "8", "--network-gbit", "10"];
    let args = [&["plan", "--width", "1G", "--count", "1,2"], &small[..]].concat();
    let error = run(&args).error(1);
    assert!(error.contains("does not fit into 2"), "{error}");
    assert!(error.contains("machines are needed"), "{error}");
    // One that fits shows the others for what they are.
    let args = [&["plan", "--width", "1G", "--count", "1,32"], &small[..]].concat();
    let table = run(&args).silent_results();
    assert_eq!(table.matches("does not fit").count(), 1, "{table}");
    let least = ["--cores", "1", "--memory-gib", "0.1", "--network-gbit", "1"];
    let args = [&["plan", "--width", "1G"], &least[..]].concat();
    let error = run(&args).error(1);
    assert!(error.contains("no number of them"), "{error}");
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let error = run(&["plan", "--width", "1M", "--instance", "c5d.99xlarge"]).error(1);
    assert!(
        error.contains("c5d.99xlarge") && error.contains("c5d.18xlarge"),
        "{error}"
    );
    for (args, expected) in [
        (&[][..], "--width"),
        (&["--width", "0"], "a width is"),
        (&["--width", "2G"], "a width is"),
        (&["--width", "1M", "--count", "0"], "1 to 4096"),
        (&["--width", "1M", "--count", "4..2"], "1 to 4096"),
        (&["--width", "1M", "--depths", "0"], "--depths"),
        (&["--width", "1M", "--keep", "9"], "--keep"),
        (&["--width", "1M", "--market", "black"], "--market"),
        (&["--width", "1M", "--price-per-hour", "nan"], "dollars"),
        (&["--width", "1M", "--ns-per-child", "0"], "0.001"),
        (&["--width", "1M", "--cores", "4"], "--memory-gib"),
        (
            &[
                "--width",
                "1M",
                "--cores",
                "4",
                "--instance",
                "local",
                "--memory-gib",
                "1",
                "--network-gbit",
                "1",
            ],
            "--instance",
        ),
    ] {
        let error = run(&[&["plan"], args].concat()).error(2);
        assert!(error.contains(expected), "{args:?} {error}");
    }
}

/// The tables of the document are what the command prints.
#[test]
fn the_document_tells_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cluster-model.md");
    let document = fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = document.split("```text\n$ hatebeam ").skip(1).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        let (line, shown) = block.split_once('\n').unwrap();
        let args: Vec<&str> = line.split_whitespace().collect();
        let printed = run(&args).silent_results();
        assert_eq!(
            printed, shown,
            "the document has another table for: hatebeam {line}"
        );
    }
}
