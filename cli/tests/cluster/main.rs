//! Searches over many processes and real sockets: the same, bit for bit, as one process by itself, whatever
//! happens on the way.

#![cfg(all(unix, feature = "cluster"))]
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod hostile;
mod metrics;
mod rig;
#[allow(dead_code)] // what the object store's own tests need besides
#[path = "../../../objects/tests/support/servers.rs"]
mod servers;
mod spans;

use rig::{Place, Rig, Watched};
use servers::Server;
use std::time::{Duration, Instant};

const WIDTH: [&str; 2] = ["--width", "2000"];

fn alone(args: &[&str]) -> Watched {
    let dir = tempfile::tempdir().unwrap();
    Watched::alone(args, dir.path())
}

#[test]
fn any_number_of_workers_gives_the_same() {
    let expected = alone(&WIDTH);
    for (workers, threads, shards) in [(1, "2", "64"), (2, "1", "7"), (3, "2", "16")] {
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
    // SIGINT ends a coordinator in order: the next one need not wait.
    rig.coordinator.as_ref().unwrap().signal("-INT");
    assert_eq!(rig.coordinator.as_mut().unwrap().ends(), Some(0));
    rig.start_coordinator();
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
fn without_conditional_writes_a_coordinator_must_be_told_that_it_is_alone() {
    let Some(garage) = Server::garage() else {
        return;
    };
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.place = place_of(&garage);
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

#[test]
fn an_s3_server_will_do() {
    let Some(moto) = Server::moto() else {
        return;
    };
    let args = [&WIDTH[..], &["--max-depth", "40"]].concat();
    let expected = alone(&args);
    let mut rig = Rig::new();
    rig.place = place_of(&moto);
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2"]);
    rig.submit(&args);
    wait_for_depth(&rig, 5);
    rig.workers.get_mut("w0").unwrap().kill();
    rig.start_worker("w1", &["--threads", "2"]);
    rig.watch().assert_same(&expected);
}

fn place_of(server: &Server) -> Place {
    let options = server.options();
    let mut flags = vec!["--s3-path-style".to_owned()];
    flags.extend(["--s3-endpoint".to_owned(), options.endpoint.unwrap()]);
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
        assert!(begun.elapsed() < rig::PATIENCE, "no depth {depth}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }
}

/// Workers that come, go, are killed and hang, and coordinators that are killed, at random.
fn chaos(seed: u64, args: &[&str], events: u32, pause_ms: u64) {
    println!("seed {seed}");
    let expected = alone(args);
    let mut dice = Dice(seed);
    let mut rig = Rig::new();
    // Those that hang are to be found out while they do.
    rig.lost_after = 1.5;
    rig.start_coordinator();
    for at in 0..3 {
        rig.start_worker(&format!("w{at}"), &["--threads", "1"]);
    }
    rig.submit(args);
    let mut next = 3;
    let mut happened = Vec::new();
    for _ in 0..events {
        std::thread::sleep(Duration::from_millis(50 + dice.roll(pause_ms)));
        let over = rig.status().is_some_and(|run| run["state"] == "finished");
        if over {
            break;
        }
        let names: Vec<String> = rig.workers.keys().cloned().collect();
        let name = names[dice.roll(names.len() as u64) as usize].clone();
        let event = match dice.roll(5) {
            0 => {
                rig.workers.remove(&name).unwrap().kill();
                "killed"
            }
            1 => {
                let worker = &rig.workers[&name];
                worker.signal("-STOP");
                std::thread::sleep(Duration::from_millis(dice.roll(3000)));
                worker.signal("-CONT");
                "stopped for a while"
            }
            2 => {
                let mut worker = rig.workers.remove(&name).unwrap();
                worker.signal("-INT");
                assert_eq!(worker.ends(), Some(0), "{}", worker.log());
                "drained"
            }
            3 => {
                rig.coordinator.as_mut().unwrap().kill();
                rig.start_coordinator();
                "without a coordinator for a while"
            }
            _ => "left alone",
        };
        happened.push(format!("{name} {event}"));
        while rig.workers.len() < 2 || dice.roll(3) == 0 && rig.workers.len() < 5 {
            rig.start_worker(&format!("w{next}"), &["--threads", "1"]);
            next += 1;
        }
    }
    println!("{happened:?}");
    rig.watch().assert_same(&expected);
}

#[test]
fn whatever_happens_it_is_the_same() {
    chaos(20, &["--width", "3000"], 12, 400);
}

/// HATEBEAM_CHAOS_SEED and HATEBEAM_CHAOS_SECONDS say what and how long.
#[test]
#[ignore = "takes as long as it is told to"]
fn whatever_happens_for_long_it_is_the_same() {
    let number = |name: &str, other: u64| {
        let value = std::env::var(name).ok();
        value.map_or(other, |value| value.parse().unwrap())
    };
    let mut seed = number("HATEBEAM_CHAOS_SEED", 1);
    let until = Instant::now() + Duration::from_secs(number("HATEBEAM_CHAOS_SECONDS", 3600));
    while Instant::now() < until {
        chaos(seed, &["--width", "5000"], 60, 1500);
        seed += 1;
    }
}
