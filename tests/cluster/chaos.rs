//! Whatever happens, at random, the frontiers are the same.

use crate::alone;
use crate::faults::{FAULTS, Way};
use crate::hosts::{COORDINATOR, Hosts};
use crate::rig::Rig;
use std::time::{Duration, Instant};

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

/// Where it happens.
#[derive(Clone, Copy, Debug)]
enum Where {
    /// On the loopback.
    Here,
    /// On hosts with cables that can be pulled.
    Hosts,
    /// With an object store that fails.
    S3,
}

/// The names that workers may have: each has a host, where there are hosts.
const NAMES: [&str; 6] = ["w0", "w1", "w2", "w3", "w4", "w5"];

/// Makes things happen at random.
struct Chaos {
    dice: Dice,
    rig: Rig,
    /// The way to the object store.
    way: Option<Way>,
}

impl Chaos {
    /// A cluster of three workers; none where this machine does not allow such.
    fn start(seed: u64, place: Where) -> Option<Chaos> {
        let mut rig = Rig::new();
        // Those that hang are to be found out while they do.
        rig.lost_after = 1.5;
        let mut way = None;
        match place {
            Where::Here => {}
            Where::Hosts => rig.hosts = Some(Hosts::new(&NAMES)?),
            Where::S3 => {
                let new = Way::to_moto()?;
                rig.place = new.place();
                way = Some(new);
            }
        }
        rig.start_coordinator();
        for name in &NAMES[..3] {
            rig.start_worker(name, &["--threads", "1"]);
        }
        let dice = Dice(seed);
        Some(Chaos { dice, rig, way })
    }

    /// One of the workers.
    fn worker(&mut self) -> String {
        let names: Vec<&String> = self.rig.workers.keys().collect();
        names[self.dice.roll(names.len() as u64) as usize].clone()
    }

    /// Waits for up to so long.
    fn pause(&mut self, millis: u64) {
        std::thread::sleep(Duration::from_millis(self.dice.roll(millis)));
    }

    fn happen(&mut self) -> String {
        let name = self.worker();
        let kinds = if self.rig.hosts.is_some() { 8 } else { 5 };
        let event = match self.dice.roll(kinds) {
            0 => {
                self.rig.workers.remove(&name).unwrap().kill();
                "killed"
            }
            1 => {
                self.rig.workers[&name].signal("-STOP");
                self.pause(3000);
                self.rig.workers[&name].signal("-CONT");
                "stopped for a while"
            }
            2 => {
                let mut worker = self.rig.workers.remove(&name).unwrap();
                worker.signal("-INT");
                assert_eq!(worker.ends(), Some(0), "{}", worker.log());
                "drained"
            }
            3 => {
                self.rig.coordinator.as_mut().unwrap().kill();
                self.rig.start_coordinator();
                "without a coordinator for a while"
            }
            5 => {
                self.unplug(&name);
                "cut off for a while"
            }
            6 => {
                self.unplug(COORDINATOR);
                "without a way to the coordinator for a while"
            }
            7 => {
                let other = self.worker();
                if other != name {
                    self.hosts().cut_one_way(&name, &other);
                    self.pause(8000);
                    self.hosts().mend(&name, &other);
                }
                "cannot reach another for a while"
            }
            _ => self.fail_store(),
        };
        format!("{name} {event}")
    }

    fn hosts(&self) -> &Hosts {
        self.rig.hosts.as_ref().unwrap()
    }

    fn unplug(&mut self, name: &str) {
        self.hosts().plug(name, false);
        self.pause(4000);
        self.hosts().plug(name, true);
    }

    /// Has the object store fail, if it is one that can.
    fn fail_store(&mut self) -> &'static str {
        let at = self.dice.roll(FAULTS.len() as u64) as usize;
        let Some(way) = &self.way else {
            return "left alone";
        };
        way.fail(FAULTS[at]);
        std::thread::sleep(Duration::from_millis(self.dice.roll(3000)));
        way.mend();
        "with a bad way to the object store for a while"
    }

    /// Starts workers until there are enough, and now and then one more.
    fn refill(&mut self) {
        loop {
            let workers = self.rig.workers.len();
            let free = NAMES
                .iter()
                .find(|name| !self.rig.workers.contains_key(**name));
            let wanted = workers < 2 || self.dice.roll(3) == 0 && workers < 5;
            match free {
                Some(name) if wanted => self.rig.start_worker(name, &["--threads", "1"]),
                _ => return,
            }
        }
    }
}

/// Workers that come, go, are killed, hang and are cut off, coordinators that are killed, and object stores
/// that fail, at random.
fn chaos(seed: u64, place: Where, args: &[&str], events: u32, pause_ms: u64) {
    println!("seed {seed}, {place:?}");
    let Some(mut chaos) = Chaos::start(seed, place) else {
        return;
    };
    let expected = alone(args);
    chaos.rig.submit(args);
    let mut happened = Vec::new();
    for _ in 0..events {
        std::thread::sleep(Duration::from_millis(50));
        chaos.pause(pause_ms);
        let over = chaos
            .rig
            .status()
            .is_some_and(|run| run["state"] == "finished");
        if over {
            break;
        }
        happened.push(chaos.happen());
        chaos.refill();
    }
    println!("{happened:?}");
    chaos.rig.watch().assert_same(&expected);
    if chaos.way.is_none() {
        chaos.rig.assert_swept();
    }
}

#[test]
fn whatever_happens_it_is_the_same() {
    chaos(20, Where::Here, &["--width", "3000"], 12, 400);
}

#[test]
fn whatever_is_cut_it_is_the_same() {
    chaos(21, Where::Hosts, &["--width", "3000"], 10, 400);
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
        for place in [Where::Here, Where::Hosts, Where::S3] {
            chaos(seed, place, &["--width", "5000"], 40, 1500);
            seed += 1;
        }
    }
}
