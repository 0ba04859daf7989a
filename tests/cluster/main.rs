//! Tests of clusters with real processes and sockets. Despite any faults, the result of a cluster must be equal, bit for
//! bit, to the result of a single process.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // the lint exempts test functions but not helper functions

mod browser;
mod chaos;
mod coordinators;
mod cost;
mod dashboard;
mod demo;
mod doctor;
mod faults;
mod harness;
mod hostile;
mod hosts;
mod learned;
mod metadata;
mod metrics;
mod network;
#[path = "../program.rs"]
mod program;
mod read_back;
mod results;
mod security;
mod services;
mod shards;
mod spans;
mod stored;
#[path = "../../objects/tests/support/mod.rs"]
mod support;
mod webhooks;

use harness::{Cluster, RunOutput};
use program::hatebeam;
use std::fs;
use support::{proxy, servers};

/// Options for a run that takes several seconds until its games are over.
const WIDTH: [&str; 2] = ["--width", "2000"];
/// Options for a run that ends after a quarter of these depths, for tests that do not need the others.
const SHORT: [&str; 4] = ["--width", "2000", "--max-depth", "40"];

fn one_process(args: &[&str]) -> RunOutput {
    let dir = tempfile::tempdir().unwrap();
    RunOutput::of_one_process(args, dir.path())
}

#[test]
fn digests_do_not_depend_on_numbers_of_workers_threads_and_shards() {
    struct Setup {
        workers: usize,
        threads: &'static str,
        shards: &'static str,
        args: Vec<&'static str>,
    }
    let setup = |workers, threads, shards, args: &[&[&'static str]]| Setup {
        workers,
        threads,
        shards,
        args: args.concat(),
    };
    let two_cuts = &["--quiescence", "first-of-best"][..];
    for setup in [
        setup(1, "2", "64", &[&WIDTH]),
        setup(2, "1", "7", &[&WIDTH, two_cuts]),
        setup(3, "2", "16", &[&SHORT]),
        setup(5, "1", "100", &[&SHORT, two_cuts]),
    ] {
        let expected = one_process(&setup.args);
        let mut cluster = Cluster::new();
        cluster.set_coordinator_flags(&["--min-workers", &setup.workers.to_string()]);
        cluster.start_coordinator();
        for worker in 0..setup.workers {
            let mut flags = vec!["--threads", setup.threads];
            flags.extend((worker == 0).then_some("--compress"));
            cluster.start_worker(&format!("w{worker}"), &flags);
        }
        cluster.submit(&[&setup.args[..], &["--shards", setup.shards]].concat());
        let run = cluster.watch();
        run.assert_same(&expected);
        assert_eq!(run.end["epoch"], 1, "a worker was lost");
        // A second submission of the finished run returns the result.
        let again = cluster.submit(&setup.args);
        assert_eq!(again["state"], "finished");
        assert_eq!(again["replay"], expected.end["replay"]);
    }
}

/// In four columns, games repeat wells after a few pieces.
#[test]
fn cluster_applies_the_loop_rule_with_changing_workers() {
    let args = ["--columns", "4", "--width", "300", "--loops", "exact"];
    let expected = one_process(&args);
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "2"]);
    cluster.start_worker("w1", &[]);
    cluster.submit(&[&args[..], &["--shards", "7", "--max-depth", "20"]].concat());
    cluster.watch();
    // A worker that knows no games joins, and one that knows them leaves.
    cluster.kill_worker("w1");
    cluster.start_worker("w2", &[]);
    let run = cluster.submit_name(&args);
    cluster.watch().assert_same(&expected);
    let lists = cluster.lists_of_tables(&run);
    let changed = lists.iter().filter_map(|list| list["changed"].as_array());
    assert!(changed.map(Vec::len).sum::<usize>() > 20);

    let refused = cluster.client(&[&["submit"], &args[..], &["--keep", "last"]].concat());
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("keep all"), "{error}");
}

#[test]
fn run_with_keep_3_stores_every_third_depth_and_gives_same_digests() {
    let args = [&WIDTH[..], &["--max-depth", "30"]].concat();
    let keep_third = [&args[..], &["--keep", "3"]].concat();
    let expected = one_process(&keep_third);
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "2"]);
    let run = cluster.submit_name(&keep_third);
    cluster.watch().assert_same(&expected);
    let mut kept: Vec<String> = fs::read_dir(cluster.run_folder(&run).join("frontier"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| fs::read_dir(entry.path()).unwrap().next().is_some())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    kept.sort();
    let expected: Vec<String> = (1..=10).map(|at| format!("{:05}", at * 3)).collect();
    assert_eq!(kept, expected);
}

/// Checks that the worker refuses to advertise 0.0.0.0, because other machines cannot connect to this address.
#[test]
fn worker_on_all_interfaces_requires_advertised_address() {
    let mut command = hatebeam();
    command.args(["worker", "--store", "/nowhere", "--insecure-bind"]);
    let output = command.args(["--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--advertise"), "{error}");
}

#[test]
fn worker_refuses_to_advertise_invalid_address() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    for (address, expected) in [
        ("worker-1:7801", "write http://HOST:PORT"),
        ("https://worker-1:7801", "write http://worker-1:7801"),
    ] {
        let mut command = hatebeam();
        command.args(["worker", "--store", "/nowhere", "--advertise", address]);
        let output = command.arg("--dir").arg(&scratch).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        for part in ["--advertise", address, expected] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!scratch.exists());
    }
}
