//! Tests of coordinators that stop, are killed, hang, or share an object store.

use crate::harness::{Cluster, Store};
use crate::servers::Server;
use crate::{SHORT, one_process};

#[test]
fn cancelled_run_resumes_when_submitted_to_next_coordinator() {
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::start(&["w0"]);
    let name = cluster.submit_name(&SHORT);
    cluster.wait_for_depth(5);
    assert!(cluster.client(&["cancel", &name]).status.success());
    let ended = cluster.client(&["wait", "--json"]);
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(cluster.status().unwrap()["state"], "cancelled");
    // SIGINT and SIGTERM stop the coordinator gracefully, and another coordinator can start after each.
    for signal in ["-INT", "-TERM"] {
        cluster.coordinator().signal(signal);
        assert_eq!(cluster.coordinator().wait(), Some(0));
        cluster.start_coordinator();
    }
    let again = cluster.submit(&SHORT);
    assert!(again["depth"].as_u64().unwrap() >= 5, "{again}");
    cluster.watch().assert_same(&expected);
    // The cancellation of a run that has ended changes nothing, and says so.
    let late = cluster.client(&["cancel", &name]);
    assert!(late.status.success(), "{late:?}");
    let text = String::from_utf8(late.stdout).unwrap();
    assert_eq!(text, format!("{name} has already ended (finished)\n"));
}

/// A coordinator holds a lease on its object store. Checks that a second coordinator exits if the first coordinator
/// renews the lease. If the first coordinator hangs, the second takes over the lease, and the first exits when it
/// resumes.
#[test]
fn second_coordinator_takes_over_only_if_first_hangs() {
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::start(&[]);
    cluster.submit(&SHORT);
    let (mut refused, _) = cluster.start_second_coordinator();
    assert_eq!(refused.wait(), Some(1));
    let log = refused.log();
    assert!(log.contains("holds the lease"), "{log}");
    cluster.start_worker("w0", &["--threads", "1"]);
    cluster.wait_for_depth(3);
    cluster.coordinator().signal("-STOP");
    let (second, port) = cluster.start_second_coordinator();
    second.wait_for_log("listening on");
    cluster.port = port;
    cluster.start_worker("w1", &["--threads", "1"]);
    cluster.wait_for_depth(6);
    let mut first = cluster.coordinator.replace(second).unwrap();
    first.signal("-CONT");
    assert_eq!(first.wait(), Some(1), "{}", first.log());
    assert!(first.log().contains("taken over"), "{}", first.log());
    cluster.watch().assert_same(&expected);
}

#[test]
fn worker_with_another_object_store_does_not_join() {
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::start(&["w0"]);
    let other = Store::folder(&cluster.dir.path().join("other"));
    let store = std::mem::replace(&mut cluster.store, other);
    cluster.start_worker("w1", &["--threads", "1"]);
    cluster.store = store;
    cluster.workers["w1"].wait_for_log(
        "the object store of worker w1 contains no lease: start the worker with the --store of its coordinator",
    );
    cluster.submit(&SHORT);
    cluster.watch().assert_same(&expected);
    let workers = cluster.worker_status();
    let names: Vec<_> = workers.iter().map(|worker| &worker["worker"]).collect();
    assert_eq!(names, ["w0"]);
}

#[test]
fn cancellation_persists_when_coordinator_is_killed() {
    let wide = ["--width", "100k"];
    let mut cluster = Cluster::start(&["w0"]);
    let run = cluster.submit_name(&wide);
    cluster.wait_for_depth(5);
    let cancelled = cluster.client(&["cancel", &run]);
    cluster.coordinator().kill();
    assert!(cancelled.status.success(), "{cancelled:?}");
    cluster.start_coordinator();
    let waited = cluster.client(&["wait", "--json"]);
    assert_eq!(waited.status.code(), Some(1));
    let status = cluster.status().unwrap();
    assert_eq!(status["state"], "cancelled", "{status}");
    let depth = status["depth"].as_u64().unwrap();
    assert!(depth < 20, "{status}");
    // Another submission resumes the run.
    cluster.submit(&wide);
    cluster.wait_for_depth(depth + 1);
}

/// Uses Garage, an S3 server that ignores the conditions of conditional writes.
#[test]
fn store_without_conditional_writes_requires_single_coordinator_flag() {
    let Some(garage) = Server::garage() else {
        return;
    };
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::new();
    cluster.store = Store::s3(&garage, &garage.options().endpoint.unwrap());
    let (mut refused, _) = cluster.start_second_coordinator();
    assert_eq!(refused.wait(), Some(1));
    let log = refused.log();
    assert!(log.contains("--single-coordinator"), "{log}");
    cluster.set_coordinator_flags(&["--single-coordinator"]);
    cluster.start_all(&["w0", "w1"]);
    cluster.submit(&SHORT);
    cluster.watch().assert_same(&expected);
}

#[test]
fn s3_server_as_object_store_gives_same_digests() {
    let Some(moto) = Server::moto() else {
        return;
    };
    let expected = one_process(&SHORT);
    let mut cluster = Cluster::new();
    cluster.store = Store::s3(&moto, &moto.options().endpoint.unwrap());
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "2"]);
    cluster.submit(&SHORT);
    cluster.wait_for_depth(5);
    cluster.kill_worker("w0");
    cluster.start_worker("w1", &["--threads", "2"]);
    cluster.watch().assert_same(&expected);
}
