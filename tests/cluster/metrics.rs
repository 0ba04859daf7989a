//! Tests that real processes export exactly the documented metrics, in the correct format and with the correct values.

use crate::harness::{Cluster, Process, RunOutput};
use crate::program::{TIMEOUT, hatebeam, wait_until};
use hatebeam_search::Fingerprint;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// Returns the URL of a process's metrics from its log.
#[track_caller]
fn url_of(process: &Process) -> String {
    process.wait_for_log("metrics at http://");
    let log = process.log();
    let (_, url) = log.split_once("metrics at ").unwrap();
    // In a JSON log, a quotation mark follows the URL.
    let end = url.find(|end: char| end.is_whitespace() || end == '"');
    url[..end.unwrap_or(url.len())].to_owned()
}

/// The metrics of a process at one time.
#[derive(Default)]
struct Scrape {
    /// Kind of each metric family, by name.
    kinds: BTreeMap<String, String>,
    /// Value of each series, by name and labels.
    values: BTreeMap<String, f64>,
}

impl Scrape {
    #[track_caller]
    fn of(process: &Process) -> Scrape {
        Scrape::parse(&get(&url_of(process)))
    }

    /// Parses the OpenMetrics format. Asserts that no family and no series occurs twice, that each series follows the
    /// help and the type of its family, and that the text ends with `# EOF`.
    #[track_caller]
    fn parse(text: &str) -> Scrape {
        let mut scrape = Scrape::default();
        let text = text
            .strip_suffix("# EOF\n")
            .expect("the text ends with # EOF");
        let mut family = String::new();
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => {
                    assert!(help.len() > 1 && help.ends_with('.'), "{line}");
                    family = name.to_owned();
                }
                ["#", "TYPE", name, kind] => {
                    assert_eq!(name, family, "{line}");
                    let before = scrape.kinds.insert(family.clone(), kind.to_owned());
                    assert_eq!(before, None, "{family} occurs twice");
                }
                ["#", "UNIT", name, unit] => {
                    assert_eq!(name, family, "{line}");
                    assert!(name.ends_with(&format!("_{unit}")), "{line}");
                }
                _ => scrape.parse_sample(&family, line),
            }
        }
        scrape
    }

    /// Parses a line that contains a series of the given family and its value.
    #[track_caller]
    fn parse_sample(&mut self, family: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(labels.ends_with('}'), "{line}");
        let suffix = name.strip_prefix(family);
        let suffix = suffix.unwrap_or_else(|| panic!("{line} does not belong to {family}"));
        let expected: &[&str] = match self.kinds[family].as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            kind => panic!("{family} has the unknown kind {kind}"),
        };
        assert!(expected.contains(&suffix), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let before = self.values.insert(series.to_owned(), value);
        assert_eq!(before, None, "{line} occurs twice");
    }

    /// Returns the value of a series. `series` is its name without the prefix `hatebeam_`, with its labels.
    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        let value = self.values.get(&format!("hatebeam_{series}"));
        *value.unwrap_or_else(|| panic!("no {series} in {:?}", self.values))
    }

    #[track_caller]
    fn assert_values<const N: usize>(&self, expected: [(&str, f64); N]) {
        for (series, expected) in expected {
            assert_eq!(self.value(series), expected, "{series}");
        }
    }

    #[track_caller]
    fn assert_positive<const N: usize>(&self, series: [&str; N]) {
        for series in series {
            assert!(self.value(series) > 0.0, "{series}");
        }
    }

    /// Asserts that the metric families are exactly those under the given headings of docs/metrics.md, and that each
    /// family has a value.
    #[track_caller]
    fn assert_documented(&self, headings: &[&str]) {
        let page = include_str!("../../docs/metrics.md");
        let mut documented = BTreeSet::new();
        for section in page.split("\n## ").skip(1) {
            let (heading, rows) = section.split_once('\n').unwrap();
            if !headings.contains(&heading) {
                continue;
            }
            for row in rows.lines().filter(|row| row.starts_with("| `hatebeam_")) {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                documented.insert((cells[1].trim_matches('`').to_owned(), cells[2].to_owned()));
            }
        }
        let found: BTreeSet<(String, String)> = self
            .kinds
            .iter()
            .map(|(family, kind)| match kind.as_str() {
                "counter" => (format!("{family}_total"), kind.clone()),
                _ => (family.clone(), kind.clone()),
            })
            .collect();
        assert_eq!(found, documented);
        for family in self.kinds.keys() {
            let is_of_family = |series: &String| series.starts_with(family.as_str());
            assert!(
                self.values.keys().any(is_of_family),
                "{family} has no value"
            );
        }
    }
}

fn sum_of(run: &RunOutput, key: &str) -> f64 {
    let numbers = run
        .depths
        .values()
        .map(|depth| depth[key].as_u64().unwrap());
    numbers.sum::<u64>() as f64
}

fn last_depth(run: &RunOutput) -> f64 {
    *run.depths.last_key_value().unwrap().0 as f64
}

#[test]
fn metrics_of_cluster_are_documented_and_match_run() {
    let mut cluster = Cluster::new();
    cluster.set_coordinator_flags(&[&["--min-workers", "2"][..], &METRICS].concat());
    cluster.start_coordinator();
    for worker in ["w0", "w1"] {
        cluster.start_worker(worker, &[&["--threads", "1"][..], &METRICS].concat());
    }
    // Before the first run, the depth is 0 and `run_info` has no value.
    let idle = Scrape::of(cluster.coordinator());
    assert_eq!(idle.value("run_depth"), 0.0);
    let is_info = |series: &String| series.starts_with("hatebeam_run_info");
    assert!(!idle.values.keys().any(is_info));
    cluster.submit(&["--width", "2000", "--shards", "16"]);
    let run = cluster.watch();
    let url = url_of(&cluster.workers["w0"]);
    assert_eq!(get(&url.replace("/metrics", "/healthz")), "ok\n");
    let coordinator = Scrape::of(cluster.coordinator());
    assert_run(&coordinator, &run);
    assert_coordinator(&coordinator, &run);
    // A depth is expanded again if the candidate tables (hash tables for children) were too small, or if the estimated
    // floor (the lowest rank that a table accepts) was too high. At this width, only the second can happen.
    assert_eq!(coordinator.value("coordinator_depth_repeats_total"), 0.0);
    let workers = ["w0", "w1"].map(|name| Scrape::of(&cluster.workers[name]));
    let repeats = coordinator.value("coordinator_high_floors_total");
    assert_workers(&workers, &run, repeats);
}

#[track_caller]
fn assert_run(coordinator: &Scrape, run: &RunOutput) {
    let name = run.end["run"].as_str().unwrap();
    coordinator.assert_documented(&[
        "Run",
        "Coordinator",
        "Object store",
        "Process",
        "Certificate",
    ]);
    let depths = last_depth(run);
    let version = env!("CARGO_PKG_VERSION");
    let search = Fingerprint::current();
    let build =
        format!("build_info{{version=\"{version}\",search=\"{search}\",process=\"coordinator\"}}");
    let info = format!("run_info{{run=\"{name}\",state=\"finished\"}}");
    let last = run.depths.values().last().unwrap();
    coordinator.assert_values([
        (&build, 1.0),
        (&info, 1.0),
        ("run_depth", depths),
        ("run_wells", last["wells"].as_f64().unwrap()),
        ("run_width_wells", 2000.0),
        ("run_best_lines", run.end["best_lines"].as_f64().unwrap()),
        ("run_children_total", sum_of(run, "children")),
        // Depth 0 contains only the starting well and is not searched.
        ("run_depths_total", depths),
        ("run_depth_seconds_count", depths),
    ]);
    coordinator.assert_positive(["run_stored_bytes", "run_searched_seconds"]);
}

#[track_caller]
fn assert_coordinator(coordinator: &Scrape, run: &RunOutput) {
    // The wells of the last depth are also expanded, but they have no children.
    let expanded = last_depth(run) + 1.0;
    let attempts = expanded + coordinator.value("coordinator_high_floors_total");
    coordinator.assert_values([
        ("coordinator_runs{state=\"finished\"}", 1.0),
        ("coordinator_runs{state=\"running\"}", 0.0),
        ("coordinator_workers_joined_total", 2.0),
        ("coordinator_workers_lost_total", 0.0),
        ("coordinator_epochs_total", 1.0),
        ("coordinator_depth_failures_total{cause=\"lost\"}", 0.0),
        ("coordinator_orders_total{order=\"prepare\"}", 2.0),
        ("coordinator_orders_total{order=\"expand\"}", 2.0 * attempts),
        ("objects_errors_total", 0.0),
        (
            "coordinator_phase_seconds_count{phase=\"expand\"}",
            attempts,
        ),
        ("coordinator_phase_seconds_count{phase=\"cut\"}", attempts),
        (
            "coordinator_phase_seconds_count{phase=\"select\"}",
            expanded,
        ),
        (
            "coordinator_phase_seconds_count{phase=\"commit\"}",
            last_depth(run),
        ),
    ]);
    let workers = ["idle", "working", "draining"]
        .map(|state| coordinator.value(&format!("coordinator_workers{{state=\"{state}\"}}")));
    assert_eq!(workers.iter().sum::<f64>(), 2.0);
    coordinator.assert_positive(["coordinator_manifest_writes_total", "process_open_fds"]);
}

#[track_caller]
fn assert_workers(workers: &[Scrape], run: &RunOutput, repeats: f64) {
    let expanded = last_depth(run) + 1.0;
    for worker in workers {
        worker.assert_documented(&["Worker", "Object store", "Process", "Certificate"]);
        worker.assert_values([
            ("worker_connected", 1.0),
            // The coordinator released the workers at the end of the search.
            ("worker_epoch", 0.0),
            ("worker_depth", expanded),
            ("worker_shards", 0.0),
            ("worker_exchange_batches_waiting", 0.0),
            (
                "worker_phase_seconds_count{phase=\"expand\"}",
                expanded + repeats,
            ),
        ]);
        worker.assert_positive([
            "worker_children_sent_total",
            "worker_exchange_sent_bytes_total",
            "worker_tables_written_bytes_total",
            "worker_phase_seconds_sum{phase=\"write\"}",
            "worker_phase_seconds_sum{phase=\"upload\"}",
            "worker_disk_free_bytes",
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
        ]);
    }
    let sum = |series: &str| -> f64 { workers.iter().map(|worker| worker.value(series)).sum() };
    // The workers also count the wells of repeated depths: at most 2000 for each repetition.
    let (children, wells) = (
        sum("worker_children_total"),
        sum("worker_wells_expanded_total"),
    );
    let more_wells = wells - sum_of(run, "wells");
    assert!((0.0..=2000.0 * repeats).contains(&more_wells), "{wells}");
    assert_eq!(children > sum_of(run, "children"), repeats > 0.0);
    for (sent, received) in [
        (
            "worker_children_sent_total",
            "worker_children_received_total",
        ),
        (
            "worker_exchange_batches_sent_total",
            "worker_exchange_batches_received_total",
        ),
        (
            "worker_exchange_sent_bytes_total",
            "worker_exchange_received_bytes_total",
        ),
    ] {
        assert_eq!(sum(sent), sum(received), "{sent}");
    }
    // Workers send only tables of wells to the object store. The coordinator writes the manifests.
    let written = sum("worker_tables_written_bytes_total");
    assert_eq!(written, sum("objects_sent_bytes_total"));
    assert_eq!(written, sum_of(run, "bytes"));
}

#[test]
fn lost_worker_is_counted() {
    let mut cluster = Cluster::new();
    cluster.set_coordinator_flags(&METRICS);
    cluster.start_all(&["w0", "w1"]);
    cluster.submit(&["--width", "20k", "--max-depth", "20"]);
    cluster.wait_for_depth(5);
    cluster.kill_worker("w0");
    cluster.watch();
    let scrape = Scrape::of(cluster.coordinator());
    assert_eq!(scrape.value("coordinator_workers_lost_total"), 1.0);
    assert!(scrape.value("coordinator_epochs_total") >= 2.0);
}

#[test]
fn metrics_of_local_run_are_documented_and_consistent() {
    let mut cluster = Cluster::new();
    let state = cluster.dir.path().join("state");
    let mut command = hatebeam();
    // The run is wide, so that it is still in progress when the test reads the metrics.
    command.args(["run", "--width", "100k", "--log-format", "json", "--state"]);
    command.arg(&state).args(METRICS);
    let process = cluster.spawn(command);
    let url = url_of(&process);
    let mut scrape = Scrape::default();
    wait_until(
        || {
            scrape = Scrape::parse(&get(&url));
            scrape.value("run_depth") >= 10.0
        },
        || process.log(),
    );
    let log = process.log();
    let line = log.lines().find(|line| line.contains(&url)).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["message"], format!("metrics at {url}"));
    scrape.assert_documented(&["Run", "Process"]);
    let info = |series: &&String| series.starts_with("hatebeam_run_info{");
    let info = scrape.values.keys().find(info).unwrap();
    assert!(info.ends_with(",state=\"running\"}"), "{info}");
    let depth = scrape.value("run_depth");
    scrape.assert_values([
        ("run_width_wells", 100_000.0),
        ("run_depths_total", depth),
        ("run_depth_seconds_count", depth),
    ]);
    assert!(scrape.value("run_children_total") >= scrape.value("run_wells"));
    assert!(scrape.value("run_depth_wells_expanded") <= scrape.value("run_depth_wells"));
    scrape.assert_positive([
        "run_wells",
        "run_stored_bytes",
        "run_searched_seconds",
        "process_resident_memory_bytes",
    ]);
    assert_eq!(get(&url.replace("/metrics", "/healthz")), "ok\n");
}

#[test]
fn metrics_on_non_loopback_address_require_insecure_bind() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").display().to_string();
    let state = dir.path().join("state").display().to_string();
    for args in [
        ["coordinator", "--store", &store, "--metrics", "0.0.0.0:0"],
        ["worker", "--store", &store, "--metrics", "0.0.0.0:0"],
        ["run", "--state", &state, "--metrics", "[::]:0"],
    ] {
        let output = hatebeam().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("pass --insecure-bind"), "{error}");
        assert!(!error.contains("certificates"), "{error}");
        // The command fails before it creates any files.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    let mut run = hatebeam();
    run.args(["run", "--width", "1000", "--max-depth", "3", "--quiet"]);
    run.args(["--state", &state, "--metrics", "0.0.0.0:0"]);
    let output = run.arg("--insecure-bind").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn metrics_address_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let mut run = hatebeam();
    run.args(["run", "--width", "1000", "--max-depth", "3", "--quiet"]);
    run.args(["--metrics", &taken, "--state"]).arg(dir.path());
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("cannot serve metrics at"), "{error}");
}
