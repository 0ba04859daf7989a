//! Searches over many processes and real sockets: the same, bit for bit, as one process by itself, whatever
//! happens on the way.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod browser;
mod chaos;
mod cost;
mod dashboard;
mod demo;
mod doctor;
mod faults;
mod hostile;
mod hosts;
mod metrics;
mod network;
#[allow(dead_code)] // what the object store's own tests need besides
#[path = "../../objects/tests/support/proxy.rs"]
mod proxy;
mod results;
mod rig;
#[allow(dead_code)] // what the object store's own tests need besides
#[path = "../../objects/tests/support/servers.rs"]
mod servers;
mod services;
mod spans;
mod stored;

use rig::{Place, Rig, Watched};
use servers::Server;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const WIDTH: [&str; 2] = ["--width", "2000"];

fn alone(args: &[&str]) -> Watched {
    let dir = tempfile::tempdir().unwrap();
    Watched::alone(args, dir.path())
}

#[test]
fn any_number_of_workers_gives_the_same() {
    let expected = alone(&WIDTH);
    for (workers, threads, shards) in [
        (1, "2", "64"),
        (2, "1", "7"),
        (3, "2", "16"),
        (5, "1", "100"),
    ] {
        let mut rig = Rig::new();
        rig.coordinator_flags = vec!["--min-workers".to_owned(), workers.to_string()];
        rig.start_coordinator();
        for worker in 0..workers {
            let mut flags = vec!["--threads", threads];
            flags.extend((worker == 0).then_some("--compress"));
            rig.start_worker(&format!("w{worker}"), &flags);
        }
        rig.submit(&[&WIDTH[..], &["--shards", shards]].concat());
        let watched = rig.watch();
        watched.assert_same(&expected);
        assert_eq!(watched.end["epoch"], 1, "nobody was lost");
        // Submitting it again tells the result.
        let again = rig.submit(&WIDTH);
        assert_eq!(again["state"], "finished");
        assert_eq!(again["replay"], expected.end["replay"]);
    }
}

#[test]
fn what_is_not_kept_goes_and_changes_nothing() {
    let args = [&WIDTH[..], &["--max-depth", "30"]].concat();
    let expected = alone(&[&args[..], &["--keep", "3"]].concat());
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2"]);
    rig.submit(&[&args[..], &["--keep", "3"]].concat());
    rig.watch().assert_same(&expected);
    let runs = rig.dir.path().join("store/runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap();
    let mut kept: Vec<String> = std::fs::read_dir(run.path().join("frontier"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| std::fs::read_dir(entry.path()).unwrap().next().is_some())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    kept.sort();
    let expected: Vec<String> = (1..=10).map(|at| format!("{:05}", at * 3)).collect();
    assert_eq!(kept, expected);
}

#[test]
fn a_run_is_cancelled_and_goes_on_under_another_coordinator() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    let name = rig.submit(&WIDTH)["run"].as_str().unwrap().to_owned();
    wait_for_depth(&rig, 5);
    assert!(rig.client(&["cancel", &name]).status.success());
    let ended = rig.client(&["wait", "--json"]);
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(rig.status().unwrap()["state"], "cancelled");
    // Both signals end a coordinator in order: the next one need not wait.
    for signal in ["-INT", "-TERM"] {
        rig.coordinator.as_ref().unwrap().signal(signal);
        assert_eq!(rig.coordinator.as_mut().unwrap().ends(), Some(0));
        rig.start_coordinator();
    }
    let again = rig.submit(&WIDTH);
    assert!(again["depth"].as_u64().unwrap() >= 5, "{again}");
    rig.watch().assert_same(&expected);
}

/// Of two coordinators with one store the second is refused while the first lives; if that one hangs, the
/// second takes over, and the first, when it wakes up, can commit nothing any more.
#[test]
fn of_two_coordinators_one_goes_on() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.submit(&WIDTH);
    wait_for_depth(&rig, 3);
    let (mut rival, _) = rig.start_rival();
    assert_eq!(rival.ends(), Some(1));
    assert!(
        rival.log().contains("works with this object store"),
        "{}",
        rival.log()
    );
    rig.coordinator.as_ref().unwrap().signal("-STOP");
    let (second, port) = rig.start_rival();
    second.says("listening on");
    rig.port = port;
    rig.start_worker("w1", &["--threads", "1"]);
    wait_for_depth(&rig, 6);
    let mut first = rig.coordinator.replace(second).unwrap();
    first.signal("-CONT");
    assert_eq!(first.ends(), Some(1), "{}", first.log());
    assert!(first.log().contains("taken over"), "{}", first.log());
    rig.watch().assert_same(&expected);
}

#[test]
fn a_run_that_is_to_stop_stops_under_the_next_coordinator() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    let run = rig.submit(&["--width", "300k"])["run"].clone();
    wait_for_depth(&rig, 5);
    let cancelled = rig.client(&["cancel", run.as_str().unwrap()]);
    // In the middle of a depth.
    rig.coordinator.as_mut().unwrap().kill();
    assert!(cancelled.status.success(), "{cancelled:?}");
    rig.start_coordinator();
    let waited = rig.client(&["wait", "--json"]);
    assert_eq!(waited.status.code(), Some(1));
    let status = rig.status().unwrap();
    assert_eq!(status["state"], "cancelled", "{status}");
    assert!(status["depth"].as_u64().unwrap() < 20, "{status}");
    // And whoever submits it again means it.
    rig.submit(&["--width", "300k"]);
    let depth = status["depth"].as_u64().unwrap();
    wait_for_depth(&rig, depth + 1);
}

/// One that has lost its place, and has not noticed yet, may write a manifest once more.
#[test]
fn who_has_the_place_goes_on_from_what_another_wrote() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    let run = rig.submit(&WIDTH)["run"].as_str().unwrap().to_owned();
    wait_for_depth(&rig, 3);
    let folder = Path::new(&rig.place.store).join("runs").join(run);
    let (manifest, other) = (folder.join("manifest.json"), rig.dir.path().join("other"));
    let begun = Instant::now();
    while !rig
        .coordinator
        .as_ref()
        .unwrap()
        .log()
        .contains("it is read anew")
    {
        assert!(begun.elapsed() < rig::PATIENCE, "{}", rig.logs());
        // The same, in other bytes; perhaps of a depth before that which is being committed.
        let mut text = fs::read(&manifest).unwrap();
        text.push(b' ');
        fs::write(&other, text).unwrap();
        fs::rename(&other, &manifest).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    rig.watch().assert_same(&expected);
}

#[test]
fn without_conditional_writes_a_coordinator_must_be_told_that_it_is_alone() {
    let Some(garage) = Server::garage() else {
        return;
    };
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.place = place_of(&garage, &garage.options().endpoint.unwrap());
    let (mut refused, _) = rig.start_rival();
    assert_eq!(refused.ends(), Some(1));
    assert!(
        refused.log().contains("--single-coordinator"),
        "{}",
        refused.log()
    );
    rig.coordinator_flags = vec!["--single-coordinator".to_owned()];
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.start_worker("w1", &["--threads", "1"]);
    rig.submit(&WIDTH);
    rig.watch().assert_same(&expected);
}

/// 0.0.0.0 is nowhere, for whoever is to call it.
#[test]
fn a_worker_that_listens_everywhere_says_where_it_is() {
    let mut command = rig::hatebeam();
    command.args(["worker", "--store", "/nowhere", "--insecure-bind"]);
    let output = command.args(["--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--advertise"), "{error}");
}

#[test]
fn an_s3_server_will_do() {
    let Some(moto) = Server::moto() else {
        return;
    };
    let args = [&WIDTH[..], &["--max-depth", "40"]].concat();
    let expected = alone(&args);
    let mut rig = Rig::new();
    rig.place = place_of(&moto, &moto.options().endpoint.unwrap());
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2"]);
    rig.submit(&args);
    wait_for_depth(&rig, 5);
    rig.workers.get_mut("w0").unwrap().kill();
    rig.start_worker("w1", &["--threads", "2"]);
    rig.watch().assert_same(&expected);
}

/// An object store on a server, reached at an endpoint that may be on the way to it.
fn place_of(server: &Server, endpoint: &str) -> Place {
    let options = server.options();
    let mut flags = vec!["--s3-path-style".to_owned()];
    flags.extend(["--s3-endpoint".to_owned(), endpoint.to_owned()]);
    flags.extend(["--s3-region".to_owned(), options.region.unwrap()]);
    let credentials = server.credentials_file().display().to_string();
    Place {
        store: server.location("cluster"),
        flags,
        env: vec![("AWS_SHARED_CREDENTIALS_FILE".to_owned(), credentials)],
    }
}

fn wait_for_depth(rig: &Rig, depth: u64) {
    let begun = Instant::now();
    loop {
        let status = rig.status();
        if status.is_some_and(|run| run["depth"].as_u64() >= Some(depth)) {
            return;
        }
        assert!(
            begun.elapsed() < rig::PATIENCE,
            "no depth {depth}: {}",
            rig.logs()
        );
        std::thread::sleep(Duration::from_millis(30));
    }
}
