//! Metrics of real processes: what is documented is there, nothing else is, and the numbers are right.

use crate::rig::{PATIENCE, Process, Rig, Watched, hatebeam};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

/// What a process shows: kinds by family, values by series.
struct Scrape {
    kinds: BTreeMap<String, String>,
    values: BTreeMap<String, f64>,
}

fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// Where a process says that its metrics are.
#[track_caller]
fn url_of(process: &Process) -> String {
    process.says("metrics at http://");
    let log = process.log();
    let (_, url) = log.split_once("metrics at ").unwrap();
    url.split_whitespace().next().unwrap().to_owned()
}

impl Scrape {
    #[track_caller]
    fn of(process: &Process) -> Scrape {
        Scrape::at(&url_of(process))
    }

    /// Reads the format as strictly as it is defined: each family once, with its help, its kind and its
    /// unit before its series, no series twice, and an end.
    #[track_caller]
    fn at(url: &str) -> Scrape {
        let text = get(url);
        let mut scrape = Scrape {
            kinds: BTreeMap::new(),
            values: BTreeMap::new(),
        };
        let (text, end) = text.split_at(text.len() - "# EOF\n".len());
        assert_eq!(end, "# EOF\n");
        let (mut family, mut kind) = (String::new(), "");
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => {
                    assert!(help.len() > 1 && help.ends_with('.'), "{line}");
                    family = name.to_owned();
                }
                ["#", "TYPE", name, is] => {
                    assert_eq!(name, family, "{line}");
                    kind = is;
                    let before = scrape.kinds.insert(family.clone(), is.to_owned());
                    assert_eq!(before, None, "{family} comes twice");
                }
                ["#", "UNIT", name, unit] => {
                    assert!(
                        name == family && name.ends_with(&format!("_{unit}")),
                        "{line}"
                    );
                }
                _ => {
                    let (series, value) = line.rsplit_once(' ').unwrap();
                    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                    assert!(labels.ends_with('}'), "{line}");
                    let suffix = name
                        .strip_prefix(&family)
                        .unwrap_or_else(|| panic!("{line}"));
                    let fine: &[&str] = match kind {
                        "counter" => &["_total"],
                        "gauge" => &[""],
                        "histogram" => &["_bucket", "_sum", "_count"],
                        _ => panic!("{line}"),
                    };
                    assert!(fine.contains(&suffix), "{line}");
                    let value: f64 = value.parse().unwrap();
                    assert!(value.is_finite() && value >= 0.0, "{line}");
                    let before = scrape.values.insert(series.to_owned(), value);
                    assert_eq!(before, None, "{line} comes twice");
                }
            }
        }
        scrape
    }

    /// The value of a series, without the prefix that all have.
    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        let value = self.values.get(&format!("hatebeam_{series}"));
        *value.unwrap_or_else(|| panic!("no {series} in {:?}", self.values))
    }

    /// That it shows what is documented under these heads, and nothing else.
    #[track_caller]
    fn assert_documented(&self, heads: &[&str]) {
        let text = include_str!("../../docs/metrics.md");
        let mut documented = BTreeSet::new();
        for section in text.split("\n## ").skip(1) {
            let (head, rows) = section.split_once('\n').unwrap();
            if !heads.contains(&head) {
                continue;
            }
            for row in rows.lines().filter(|row| row.starts_with("| `hatebeam_")) {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                documented.insert((cells[1].trim_matches('`').to_owned(), cells[2].to_owned()));
            }
        }
        let shown: BTreeSet<(String, String)> = self
            .kinds
            .iter()
            .map(|(family, kind)| match kind.as_str() {
                "counter" => (format!("{family}_total"), kind.clone()),
                _ => (family.clone(), kind.clone()),
            })
            .collect();
        assert_eq!(shown, documented);
        // And everything that is documented has a value.
        for family in self.kinds.keys() {
            let has = |series: &String| series.starts_with(family.as_str());
            assert!(self.values.keys().any(has), "{family} has no value");
        }
    }
}

fn sum_of(depths: &BTreeMap<u64, Value>, key: &str) -> f64 {
    let numbers = depths.values().map(|depth| depth[key].as_u64().unwrap());
    numbers.sum::<u64>() as f64
}

#[test]
fn a_cluster_shows_what_it_does() {
    let mut rig = Rig::new();
    rig.coordinator_flags = ["--min-workers", "2"].map(str::to_owned).to_vec();
    rig.coordinator_flags.extend(METRICS.map(str::to_owned));
    rig.start_coordinator();
    for worker in ["w0", "w1"] {
        rig.start_worker(worker, &[&["--threads", "1"][..], &METRICS].concat());
    }
    // Before there is any run, everything is there but the run.
    let idle = Scrape::of(rig.coordinator.as_ref().unwrap());
    assert_eq!(idle.value("run_depth"), 0.0);
    assert!(
        !idle
            .values
            .keys()
            .any(|series| series.starts_with("hatebeam_run_info"))
    );
    rig.submit(&["--width", "2000", "--shards", "16"]);
    let watched = rig.watch();
    let url = url_of(&rig.workers["w0"]);
    assert_eq!(get(&url.replace("/metrics", "/healthz")), "ok\n");
    let coordinator = Scrape::of(rig.coordinator.as_ref().unwrap());
    assert_run(&coordinator, &watched);
    assert_coordinator(&coordinator, &watched);
    // With tables of this size no depth has to be done again, so that all numbers are exact.
    assert_eq!(coordinator.value("coordinator_depth_repeats_total"), 0.0);
    let workers = ["w0", "w1"].map(|name| Scrape::of(&rig.workers[name]));
    assert_workers(&workers, &watched);
}

fn last_depth(watched: &Watched) -> f64 {
    let last = watched.depths.last_key_value();
    *last.unwrap().0 as f64
}

/// What a coordinator shows of the run that it has searched.
fn assert_run(coordinator: &Scrape, watched: &Watched) {
    let name = watched.end["run"].as_str().unwrap();
    coordinator.assert_documented(&["Run", "Coordinator", "Object store", "Process"]);
    let depths = last_depth(watched);
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("build_info{{version=\"{version}\",process=\"coordinator\"}}");
    assert_eq!(coordinator.value(&build), 1.0);
    let info = format!("run_info{{run=\"{name}\",state=\"finished\"}}");
    assert_eq!(coordinator.value(&info), 1.0);
    let last = watched.depths.values().last().unwrap();
    for (series, expected) in [
        ("run_depth", depths),
        ("run_wells", last["wells"].as_f64().unwrap()),
        ("run_width_wells", 2000.0),
        (
            "run_best_lines",
            watched.end["best_lines"].as_f64().unwrap(),
        ),
        ("run_children_total", sum_of(&watched.depths, "children")),
        // The first record is the start, which nobody searched.
        ("run_depths_total", depths),
        ("run_depth_seconds_count", depths),
    ] {
        assert_eq!(coordinator.value(series), expected, "{series}");
    }
    for series in ["run_stored_bytes", "run_searched_seconds"] {
        assert!(coordinator.value(series) > 0.0, "{series}");
    }
}

fn assert_coordinator(coordinator: &Scrape, watched: &Watched) {
    let depths = last_depth(watched);
    for (series, expected) in [
        ("coordinator_runs{state=\"finished\"}", 1.0),
        ("coordinator_runs{state=\"running\"}", 0.0),
        ("coordinator_workers_joined_total", 2.0),
        ("coordinator_workers_lost_total", 0.0),
        ("coordinator_epochs_total", 1.0),
        ("coordinator_depth_failures_total{cause=\"lost\"}", 0.0),
        ("coordinator_orders_total{order=\"prepare\"}", 2.0),
        // The last depth is expanded, and has no well that is alive.
        (
            "coordinator_orders_total{order=\"expand\"}",
            2.0 * (depths + 1.0),
        ),
        ("objects_errors_total", 0.0),
    ] {
        assert_eq!(coordinator.value(series), expected, "{series}");
    }
    for (phase, times) in [
        ("expand", 1.0),
        ("cut", 1.0),
        ("select", 1.0),
        ("commit", 0.0),
    ] {
        let count = format!("coordinator_phase_seconds_count{{phase=\"{phase}\"}}");
        assert_eq!(coordinator.value(&count), depths + times, "{phase}");
    }
    let workers = ["idle", "working", "draining"]
        .map(|state| coordinator.value(&format!("coordinator_workers{{state=\"{state}\"}}")));
    assert_eq!(workers.iter().sum::<f64>(), 2.0);
    for series in ["coordinator_manifest_writes_total", "process_open_fds"] {
        assert!(coordinator.value(series) > 0.0, "{series}");
    }
}

fn assert_workers(workers: &[Scrape], watched: &Watched) {
    let depths = last_depth(watched);
    let sum = |series: &str| {
        workers
            .iter()
            .map(|worker| worker.value(series))
            .sum::<f64>()
    };
    for worker in workers {
        worker.assert_documented(&["Worker", "Object store", "Process"]);
        assert_eq!(worker.value("worker_connected"), 1.0);
        assert_eq!(worker.value("worker_epoch"), 1.0);
        assert_eq!(worker.value("worker_depth"), depths + 1.0);
        assert_eq!(worker.value("worker_shards"), 8.0);
        assert_eq!(worker.value("worker_exchange_batches_waiting"), 0.0);
        assert_eq!(
            worker.value("worker_phase_seconds_count{phase=\"expand\"}"),
            depths + 1.0
        );
        for series in [
            "worker_children_sent_total",
            "worker_exchange_sent_bytes_total",
            "worker_tables_written_bytes_total",
            "worker_phase_seconds_sum{phase=\"write\"}",
            "worker_phase_seconds_sum{phase=\"upload\"}",
            "worker_disk_free_bytes",
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
        ] {
            assert!(worker.value(series) > 0.0, "{series}");
        }
    }
    // The wells of the last depth were expanded as well, and their children counted; none was alive.
    let children = sum_of(&watched.depths, "children");
    let expanded = sum_of(&watched.depths, "wells");
    assert_eq!(sum("worker_children_total"), children);
    assert_eq!(sum("worker_wells_expanded_total"), expanded);
    for what in ["worker_children", "worker_exchange_batches"] {
        let sent = sum(&format!("{what}_sent_total"));
        assert_eq!(sent, sum(&format!("{what}_received_total")), "{what}");
    }
    assert_eq!(
        sum("worker_exchange_sent_bytes_total"),
        sum("worker_exchange_received_bytes_total")
    );
    // What the tables take and the object store was given; the manifests are the coordinator's.
    assert_eq!(
        sum("worker_tables_written_bytes_total"),
        sum("objects_sent_bytes_total")
    );
    assert_eq!(
        sum("worker_tables_written_bytes_total"),
        sum_of(&watched.depths, "bytes")
    );
}

#[test]
fn what_is_lost_is_counted() {
    let mut rig = Rig::new();
    rig.coordinator_flags = METRICS.map(str::to_owned).to_vec();
    rig.start_coordinator();
    for worker in ["w0", "w1"] {
        rig.start_worker(worker, &["--threads", "1"]);
    }
    rig.submit(&["--width", "20k", "--max-depth", "60"]);
    crate::wait_for_depth(&rig, 5);
    rig.workers.remove("w0").unwrap().kill();
    rig.watch();
    let scrape = Scrape::of(rig.coordinator.as_ref().unwrap());
    assert_eq!(scrape.value("coordinator_workers_lost_total"), 1.0);
    assert!(scrape.value("coordinator_epochs_total") >= 2.0);
}

#[test]
fn a_run_on_one_machine_shows_what_it_does() {
    let mut rig = Rig::new();
    let mut command = hatebeam();
    let state = rig.dir.path().join("state");
    // Wide enough that there is time to look.
    command.args(["run", "--width", "100k", "--log-format", "json", "--state"]);
    let process = rig.start({
        command.arg(&state).args(METRICS);
        command
    });
    process.says("metrics at http://");
    let log = process.log();
    let line = log
        .lines()
        .find(|line| line.contains("metrics at "))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let url = line["message"].as_str().unwrap();
    let url = url.strip_prefix("metrics at ").unwrap();
    let begun = Instant::now();
    let scrape = loop {
        let scrape = Scrape::at(url);
        if scrape.value("run_depth") >= 10.0 {
            break scrape;
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    };
    scrape.assert_documented(&["Run", "Process"]);
    let info = scrape
        .values
        .keys()
        .find(|series| series.starts_with("hatebeam_run_info{"));
    assert!(info.unwrap().ends_with(",state=\"running\"}"));
    assert_eq!(scrape.value("run_width_wells"), 100_000.0);
    assert_eq!(scrape.value("run_depths_total"), scrape.value("run_depth"));
    assert_eq!(
        scrape.value("run_depth_seconds_count"),
        scrape.value("run_depth")
    );
    assert!(scrape.value("run_children_total") >= scrape.value("run_wells"));
    assert!(scrape.value("run_depth_wells_expanded") <= scrape.value("run_depth_wells"));
    for series in [
        "run_wells",
        "run_stored_bytes",
        "run_searched_seconds",
        "process_resident_memory_bytes",
    ] {
        assert!(scrape.value(series) > 0.0, "{series}");
    }
    assert_eq!(get(&url.replace("/metrics", "/healthz")), "ok\n");
}

#[test]
fn metrics_stay_on_the_loopback_unless_that_is_not_meant() {
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("--insecure-bind"), "{said}");
        // Nothing was begun.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = [
        "run",
        "--width",
        "1000",
        "--max-depth",
        "3",
        "--state",
        &state,
        "--quiet",
    ];
    let output = hatebeam()
        .args(run)
        .args(["--metrics", &address])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("metrics cannot be shown at"), "{said}");
    let output = hatebeam()
        .args(run)
        .args(["--metrics", "0.0.0.0:0", "--insecure-bind"])
        .output();
    assert!(output.unwrap().status.success());
}
