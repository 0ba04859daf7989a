//! Tests of `hatebeam plan`.

use crate::support::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Returns the output of `plan --json`. The warnings in the output are also on standard error.
#[track_caller]
fn json(args: &[&str]) -> Value {
    let found = run(&[&["plan", "--json"], args].concat());
    let plan: Value = serde_json::from_str(&found.out).unwrap();
    let warnings = ["price_warning", "time_warning"].map(|name| match &plan[name] {
        Value::Null => String::new(),
        warning => format!("warning: {}\n", warning.as_str().unwrap()),
    });
    assert_eq!((found.code, found.err), (0, warnings.concat()));
    plan
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error < 1e-9, "{found} instead of {expected}");
}

#[test]
fn table_has_row_for_each_machine_count_and_names_bottleneck() {
    let table = run(&["plan", "--width", "25M", "--count", "1..64"]).results();
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("25000000 wells wide, 250 depths, 128 to 512 shards"),
        "{table}"
    );
    assert!(
        lines[1].contains("c5d.18xlarge: 72 vCPUs, 36 cores, 144 GiB, 25 Gbit/s"),
        "{table}"
    );
    assert!(
        lines[1].contains("$3.456 an hour on-demand (us-east-1, "),
        "{table}"
    );
    let counts: Vec<&str> = lines[4..11]
        .iter()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(counts, ["1", "2", "4", "8", "16", "32", "64"]);
    assert!(lines[4].contains("cores"), "{table}");
    assert!(table.ends_with(" a month\n"), "{table}");
}

#[test]
fn cost_is_price_times_hours_times_count() {
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
        assert_close(number("machine_dollars"), expected);
        let depth_seconds = plan["depth"]["seconds"].as_f64().unwrap();
        assert_close(number("seconds"), 200.0 * depth_seconds);
        let total = number("machine_dollars") + number("request_dollars");
        assert_close(number("dollars"), total);
    }
    let spot = json(&["--width", "25M", "--market", "spot"]);
    assert!(spot["dollars_per_hour"].as_f64().unwrap() < 3.456);
    let given = json(&["--width", "25M", "--price-per-hour", "1.5"]);
    assert_eq!(given["dollars_per_hour"], 1.5);
    let fields = given.as_object().unwrap();
    assert_eq!(fields.get("price_warning"), Some(&Value::Null));
    assert_eq!(
        given["prices_as_of"].as_str().unwrap().len(),
        "2025-01-01".len()
    );
}

#[test]
fn storage_cost_is_proportional_to_kept_depths() {
    let all = json(&["--width", "25M"]);
    let fourth = json(&["--width", "25M", "--keep", "4"]);
    let dollars = |plan: &Value| plan["storage_dollars_per_month"].as_f64().unwrap();
    assert_close(dollars(&all), 4.0 * dollars(&fourth));
}

#[test]
fn machine_and_search_options_change_plan() {
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
    // The default is 197 ns per child in the benchmark with `patterns`.
    let slow = json(&[&described[..], &["--ns-per-child", "394"]].concat());
    let cores = |plan: &Value| plan["plans"][0]["depth"]["cores_seconds"].as_f64().unwrap();
    assert_close(cores(&slow), 2.0 * cores(&plan));
    let knewjade = json(&[&described[..], &["--evaluator", "knewjade"]].concat());
    assert!(cores(&knewjade) < cores(&plan));
    assert_eq!(plan["evaluator"], "network");
    let patterns = json(&[&described[..], &["--evaluator", "patterns"]].concat());
    assert!(cores(&patterns) < cores(&plan));
    assert_eq!(patterns["evaluator"], "patterns");
    let forced = json(&[&described[..], &["--quiescence", "forced"]].concat());
    assert!(cores(&forced) > cores(&plan));
    let with = |mode| json(&[&described[..], &["--quiescence", mode]].concat());
    let (best, first) = (with("first-of-best"), with("first"));
    assert!(cores(&plan) < cores(&best) && cores(&best) < cores(&first));
    assert!(best["time_warning"].as_str().unwrap().contains("guess"));
    let exact = json(&[&described[..], &["--evaluator", "selftaught"]].concat());
    assert_eq!(exact["evaluator"], "selftaught");
    assert_eq!(
        (&exact["depths"], &plan["depths"]),
        (&2000.into(), &250.into())
    );
    let memory = |plan: &Value| plan["plans"][0]["depth"]["memory_bytes"].as_f64().unwrap();
    assert_close(memory(&exact) - memory(&plan), 5e6 * 700.0);
    let error = run(&["plan", "--width", "1M", "--loops", "exact", "--keep", "4"]).error(1);
    assert!(error.contains("keep all"), "{error}");
    let local = json(&["--width", "10k", "--instance", "local"]);
    assert_eq!(local["instance"]["name"], "local");
}

#[test]
fn plan_reports_machine_counts_that_are_too_low_for_width() {
    let small = ["--cores", "4", "--memory-gib", "8", "--network-gbit", "10"];
    let args = [&["plan", "--width", "1G", "--count", "1,2"], &small[..]].concat();
    let error = run(&args).error(1);
    assert!(error.contains("does not fit in 2"), "{error}");
    assert!(error.contains("use at least"), "{error}");
    // The beam fits in 32 machines but not in one, so the table marks only the row for one machine.
    let args = [&["plan", "--width", "1G", "--count", "1,32"], &small[..]].concat();
    let table = run(&args).silent_results();
    assert_eq!(table.matches("does not fit").count(), 1, "{table}");
    let least = ["--cores", "1", "--memory-gib", "0.1", "--network-gbit", "1"];
    let args = [&["plan", "--width", "1G"], &least[..]].concat();
    let error = run(&args).error(1);
    assert!(error.contains("are too few"), "{error}");
}

#[test]
fn invalid_options_are_refused() {
    let error = run(&["plan", "--width", "1M", "--instance", "c5d.99xlarge"]).error(1);
    // The reason precedes the remedy.
    let start = "invalid --instance: unknown machine type \"c5d.99xlarge\": known types are ";
    assert!(error.starts_with(start), "{error}");
    assert!(error.contains("c5d.18xlarge"), "{error}");
    assert!(error.ends_with("--price-per-hour"), "{error}");
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

#[test]
fn docs_contain_current_output_of_plan() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cluster-model.md");
    let document = fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = document.split("```text\n$ hatebeam ").skip(1).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        let (line, shown) = block.split_once('\n').unwrap();
        let args: Vec<&str> = line.split_whitespace().collect();
        // This call permits output on standard error, because outdated prices cause a warning.
        let printed = run(&args).results();
        assert_eq!(
            printed, shown,
            "docs/cluster-model.md shows a different table for: hatebeam {line}"
        );
    }
}
