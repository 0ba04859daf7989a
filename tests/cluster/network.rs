//! Several hosts, and what becomes of the network between them.

use crate::hosts::{COORDINATOR, Hosts};
use crate::rig::{PATIENCE, Rig};
use crate::{WIDTH, alone, wait_for_depth};
use std::time::{Duration, Instant};

const WORKERS: [&str; 3] = ["w0", "w1", "w2"];

/// A coordinator and three workers on hosts of their own, with a run; none where that cannot be.
fn spread_out(args: &[&str]) -> Option<Rig> {
    let mut rig = Rig::new();
    rig.hosts = Some(Hosts::new(&WORKERS)?);
    rig.lost_after = 1.5;
    rig.coordinator_flags = vec!["--min-workers".to_owned(), "2".to_owned()];
    rig.start_coordinator();
    for name in WORKERS {
        rig.start_worker(name, &["--threads", "1"]);
    }
    rig.submit(args);
    Some(rig)
}

fn hosts(rig: &Rig) -> &Hosts {
    rig.hosts.as_ref().unwrap()
}

/// The coordinator hears all of them, but one of them does not hear another: one of the two is left out.
#[test]
fn a_one_way_cut_between_two_workers_is_got_round() {
    let args = [&WIDTH[..], &["--max-depth", "60"]].concat();
    let Some(rig) = spread_out(&args) else {
        return;
    };
    wait_for_depth(&rig, 3);
    hosts(&rig).cut_one_way("w0", "w1");
    let coordinator = rig.coordinator.as_ref().unwrap();
    coordinator.says("the worker is left out");
    let status = rig.client(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let workers = status["workers"].as_array().unwrap();
    let out: Vec<_> = workers
        .iter()
        .filter(|w| w["state"] == "quarantined")
        .collect();
    assert_eq!(out.len(), 1, "{status}");
    assert!(["w0", "w1"].contains(&out[0]["worker"].as_str().unwrap()));
    assert!(
        out[0]["note"]
            .as_str()
            .unwrap()
            .contains("cannot reach each other")
    );
    rig.watch().assert_same(&alone(&args));
}

/// One that was cut off is lost; when it is there again, it takes part again.
#[test]
fn a_worker_that_was_cut_off_comes_back() {
    let Some(rig) = spread_out(&WIDTH) else {
        return;
    };
    wait_for_depth(&rig, 3);
    hosts(&rig).plug("w1", false);
    wait_for_workers(&rig, &["w0", "w2"]);
    let depth = rig.status().unwrap()["depth"].as_u64().unwrap();
    wait_for_depth(&rig, depth + 3);
    hosts(&rig).plug("w1", true);
    rig.watch().assert_same(&alone(&WIDTH));
    wait_for_workers(&rig, &WORKERS);
}

#[track_caller]
fn wait_for_workers(rig: &Rig, names: &[&str]) {
    let begun = Instant::now();
    while names_of_workers(rig) != names {
        assert!(begun.elapsed() < PATIENCE, "{:?}", names_of_workers(rig));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn names_of_workers(rig: &Rig) -> Vec<String> {
    let status = rig.client(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let workers = status["workers"].as_array().unwrap();
    let name = |worker: &serde_json::Value| worker["worker"].as_str().unwrap().to_owned();
    workers.iter().map(name).collect()
}

/// All lose the coordinator, and it loses all: nothing goes on until they have each other again.
#[test]
fn a_coordinator_that_was_cut_off_goes_on() {
    let Some(rig) = spread_out(&WIDTH) else {
        return;
    };
    wait_for_depth(&rig, 3);
    hosts(&rig).plug(COORDINATOR, false);
    for name in WORKERS {
        rig.workers[name].says("reconnecting to the coordinator");
    }
    hosts(&rig).plug(COORDINATOR, true);
    rig.watch().assert_same(&alone(&WIDTH));
}

#[test]
fn a_slow_and_lossy_network_changes_nothing() {
    let args = [&WIDTH[..], &["--max-depth", "40"]].concat();
    let Some(rig) = spread_out(&args) else {
        return;
    };
    let slow = hosts(&rig).slow("w0", "8mbit", "100ms");
    let lossy = hosts(&rig).lose("w1", 30);
    if slow || lossy {
        rig.watch().assert_same(&alone(&args));
    }
}
