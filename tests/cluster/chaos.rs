//! Tests that inject random faults into workers, coordinators, the network and the object store. The faults must not
//! change the digests of the run, which are hashes of the wells that the search keeps.

use crate::faults::{FAULTS, FaultyStore};
use crate::harness::Cluster;
use crate::hosts::{COORDINATOR, Hosts};
use crate::one_process;
use hatebeam_objects::Random;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
enum Environment {
    /// All processes are on the loopback interface, and the object store is a folder.
    Loopback,
    /// Each process is on a separate host, and the network can fail.
    Hosts,
    /// All processes are on the loopback interface, and the object store is an S3 server that can fail.
    S3,
}

/// Names of the workers. In `Environment::Hosts`, each worker has a host.
const NAMES: [&str; 6] = ["w0", "w1", "w2", "w3", "w4", "w5"];

/// A cluster into which random faults are injected.
struct Chaos {
    random: Random,
    cluster: Cluster,
    /// The object store, or `None` if it cannot fail.
    store: Option<FaultyStore>,
}

impl Chaos {
    /// Starts a cluster with three workers. Returns `None` if this machine does not support the environment.
    fn start(seed: u64, environment: Environment) -> Option<Chaos> {
        let mut cluster = Cluster::new();
        // This timeout is shorter than the longest suspensions, so that the coordinator reports suspended workers as
        // lost.
        cluster.lost_after = 1.5;
        let mut store = None;
        match environment {
            Environment::Loopback => {}
            Environment::Hosts => cluster.hosts = Some(Hosts::new(&NAMES)?),
            Environment::S3 => {
                let faulty = FaultyStore::start()?;
                cluster.store = faulty.store();
                store = Some(faulty);
            }
        }
        cluster.start_all(&NAMES[..3]);
        Some(Chaos {
            random: Random::seeded(seed),
            cluster,
            store,
        })
    }

    fn worker(&mut self) -> String {
        let names: Vec<&String> = self.cluster.workers.keys().collect();
        names[self.below(names.len() as u64) as usize].clone()
    }

    /// Returns a random number below the given limit.
    fn below(&self, limit: u64) -> u64 {
        self.random.number() % limit
    }

    /// Sleeps for a random time below the given limit.
    fn sleep(&mut self, limit_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.below(limit_ms)));
    }

    /// Injects a random fault and returns its description.
    fn inject_fault(&mut self) -> String {
        let name = self.worker();
        let kinds = if self.cluster.hosts.is_some() { 8 } else { 5 };
        let fault = match self.below(kinds) {
            0 => {
                self.cluster.kill_worker(&name);
                "killed"
            }
            1 => {
                self.cluster.workers[&name].signal("-STOP");
                self.sleep(3000);
                self.cluster.workers[&name].signal("-CONT");
                "suspended"
            }
            2 => {
                self.cluster.workers.remove(&name).unwrap().stop();
                "drained"
            }
            3 => {
                self.cluster.restart_coordinator();
                "without a coordinator"
            }
            5 => {
                self.unplug(&name);
                "unplugged"
            }
            6 => {
                self.unplug(COORDINATOR);
                "cut off from the coordinator, like all other workers"
            }
            7 => {
                let other = self.worker();
                if other == name {
                    "unchanged"
                } else {
                    self.hosts().cut_one_way(&name, &other);
                    self.sleep(8000);
                    self.hosts().restore(&name, &other);
                    "unable to send to another worker"
                }
            }
            _ => self.fail_store(),
        };
        format!("{name} {fault}")
    }

    fn hosts(&self) -> &Hosts {
        self.cluster.hosts.as_ref().unwrap()
    }

    fn unplug(&mut self, name: &str) {
        self.hosts().unplug(name);
        self.sleep(4000);
        self.hosts().plug_in(name);
    }

    /// Makes the object store fail for up to 3 s, unless it cannot fail. Returns a description of the effect.
    fn fail_store(&mut self) -> &'static str {
        let fault = FAULTS[self.below(FAULTS.len() as u64) as usize];
        let duration = Duration::from_millis(self.below(3000));
        let Some(store) = &self.store else {
            return "unchanged";
        };
        store.fail(fault);
        std::thread::sleep(duration);
        store.restore();
        "with a failing object store"
    }

    /// Starts workers until there are at least two, and then a random number of additional workers, up to five in total.
    fn start_missing_workers(&mut self) {
        loop {
            let workers = &self.cluster.workers;
            let free = NAMES.iter().find(|name| !workers.contains_key(**name));
            let count = workers.len();
            let is_wanted = count < 2 || self.below(3) == 0 && count < 5;
            match free {
                Some(name) if is_wanted => self.cluster.start_worker(name, &["--threads", "1"]),
                _ => return,
            }
        }
    }
}

/// A run during which random faults are injected.
struct Scenario<'a> {
    /// Seed of the random faults. With the seeds of the tests, each kind of fault occurs.
    seed: u64,
    environment: Environment,
    width: &'a str,
    /// Maximum number of faults.
    faults: u32,
    /// Upper limit of the random part of the delay before each fault. The fixed part is 50 ms.
    pause_ms: u64,
}

/// Runs a scenario and asserts that the result is equal to the result of one process. Does nothing if this machine does
/// not support the environment.
fn check(scenario: &Scenario) {
    println!("seed {}, {:?}", scenario.seed, scenario.environment);
    let Some(mut chaos) = Chaos::start(scenario.seed, scenario.environment) else {
        return;
    };
    let args = ["--width", scenario.width];
    let expected = one_process(&args);
    let run = chaos.cluster.submit_name(&args);
    let mut faults = Vec::new();
    for _ in 0..scenario.faults {
        std::thread::sleep(Duration::from_millis(50));
        chaos.sleep(scenario.pause_ms);
        let is_finished = |run: serde_json::Value| run["state"] == "finished";
        if chaos.cluster.status().is_some_and(is_finished) {
            break;
        }
        faults.push(chaos.inject_fault());
        chaos.start_missing_workers();
    }
    println!("{faults:?}");
    chaos.cluster.watch().assert_same(&expected);
    if chaos.store.is_none() {
        chaos.cluster.assert_no_unreferenced_tables(&run);
    }
}

#[test]
fn random_process_faults_give_same_digests() {
    check(&Scenario {
        seed: 723,
        environment: Environment::Loopback,
        width: "3000",
        faults: 6,
        pause_ms: 400,
    });
}

#[test]
fn random_network_faults_give_same_digests() {
    check(&Scenario {
        seed: 4363,
        environment: Environment::Hosts,
        width: "3000",
        faults: 8,
        pause_ms: 400,
    });
}

/// Runs scenarios with successive seeds. The environment variable HATEBEAM_CHAOS_SEED sets the first seed (default 1),
/// and HATEBEAM_CHAOS_SECONDS sets the duration in seconds (default 3600).
#[test]
#[ignore = "takes an hour by default"]
fn many_random_faults_give_same_digests() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let mut seed = number("HATEBEAM_CHAOS_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("HATEBEAM_CHAOS_SECONDS", 3600));
    while Instant::now() < end {
        for environment in [Environment::Loopback, Environment::Hosts, Environment::S3] {
            check(&Scenario {
                seed,
                environment,
                width: "5000",
                faults: 40,
                pause_ms: 1500,
            });
            seed += 1;
        }
    }
}
