//! Tests of faults in the network between simulated hosts.

use crate::harness::Cluster;
use crate::hosts::{COORDINATOR, Hosts};
use crate::program::wait_until;
use crate::{SHORT, WIDTH, one_process};
use serde_json::Value;

const WORKERS: [&str; 3] = ["w0", "w1", "w2"];

/// Starts a coordinator and three workers, each on a separate host, and submits a run. Returns `None` if this machine
/// cannot create the hosts.
fn start(args: &[&str]) -> Option<Cluster> {
    let mut cluster = Cluster::new();
    cluster.hosts = Some(Hosts::new(&WORKERS)?);
    cluster.lost_after = 1.5;
    cluster.set_coordinator_flags(&["--min-workers", "2"]);
    cluster.start_all(&WORKERS);
    cluster.submit(args);
    Some(cluster)
}

fn hosts(cluster: &Cluster) -> &Hosts {
    cluster.hosts.as_ref().unwrap()
}

fn name(worker: &Value) -> &str {
    worker["worker"].as_str().unwrap()
}

#[track_caller]
fn wait_for_workers(cluster: &Cluster, expected: &[&str]) {
    let are_there = || {
        let workers = cluster.worker_status();
        workers.iter().map(name).eq(expected.iter().copied())
    };
    wait_until(are_there, || format!("{:?}", cluster.worker_status()));
}

/// Cuts the connection from one worker to another, while both workers can still reach the coordinator.
#[test]
fn one_way_cut_between_workers_quarantines_one_of_them() {
    let args = [&WIDTH[..], &["--max-depth", "60"]].concat();
    let Some(mut cluster) = start(&args) else {
        return;
    };
    cluster.wait_for_depth(3);
    hosts(&cluster).cut_one_way("w0", "w1");
    cluster.coordinator().wait_for_log("quarantined worker");
    let workers = cluster.worker_status();
    let quarantined: Vec<&Value> = workers
        .iter()
        .filter(|worker| worker["state"] == "quarantined")
        .collect();
    assert_eq!(quarantined.len(), 1, "{workers:?}");
    assert!(["w0", "w1"].contains(&name(quarantined[0])));
    let note = quarantined[0]["note"].as_str().unwrap();
    assert!(note.contains("no connection to w"), "{note}");
    cluster.watch().assert_same(&one_process(&args));
}

#[test]
fn unplugged_worker_is_lost_and_rejoins() {
    let Some(cluster) = start(&SHORT) else {
        return;
    };
    cluster.wait_for_depth(3);
    hosts(&cluster).unplug("w1");
    wait_for_workers(&cluster, &["w0", "w2"]);
    let depth = cluster.status().unwrap()["depth"].as_u64().unwrap();
    cluster.wait_for_depth(depth + 3);
    hosts(&cluster).plug_in("w1");
    cluster.watch().assert_same(&one_process(&SHORT));
    wait_for_workers(&cluster, &WORKERS);
}

/// Disconnects the coordinator from all workers.
#[test]
fn run_resumes_when_unplugged_coordinator_is_plugged_in() {
    let Some(cluster) = start(&SHORT) else {
        return;
    };
    cluster.wait_for_depth(3);
    hosts(&cluster).unplug(COORDINATOR);
    for name in WORKERS {
        cluster.workers[name].wait_for_log("reconnecting to the coordinator");
    }
    hosts(&cluster).plug_in(COORDINATOR);
    cluster.watch().assert_same(&one_process(&SHORT));
}

#[test]
fn slow_and_lossy_network_gives_same_digests() {
    let Some(cluster) = start(&SHORT) else {
        return;
    };
    let is_slow = hosts(&cluster).slow("w0", "8mbit", "100ms");
    let is_lossy = hosts(&cluster).lose("w1", 30);
    if is_slow || is_lossy {
        cluster.watch().assert_same(&one_process(&SHORT));
    }
}
