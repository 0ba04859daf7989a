//! Tests of the watchdog script on the coordinator's machine, which sets the number of workers. It stops the workers
//! after `QUIET_MINUTES` without an open run, `LONELY_MINUTES` without a connected worker, or `STUCK_MINUTES` without a
//! new depth. After `BLIND_MINUTES` without an answer from the coordinator, it also powers the machine off. Stand-ins
//! replace the AWS CLI, the clock and the coordinator.

use super::machine::Machine;
use crate::support::{hatebeam, succeeds, tool};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// The coordinator's machine. Each execution of the watchdog advances its clock.
struct Watchdog {
    machine: Machine,
    now: u64,
    /// Time between two executions of the watchdog.
    seconds: u64,
    /// Depth that the coordinator reports for all runs.
    depth: u32,
}

/// Effects of one execution of the watchdog.
#[derive(Debug, Default, PartialEq)]
struct Effects {
    capacity: Option<String>,
    heartbeat: bool,
    power_off: bool,
    failed: bool,
    /// First word of the subject of the mail, without the prefix `hatebeam: `.
    mail: Option<String>,
}

impl Effects {
    fn success(capacity: Option<&str>) -> Effects {
        Effects {
            capacity: capacity.map(str::to_owned),
            heartbeat: true,
            ..Effects::default()
        }
    }

    /// Effects of an execution that fails without any other effect, because the coordinator's status is unknown.
    fn failure() -> Effects {
        Effects {
            failed: true,
            ..Effects::default()
        }
    }
}

impl Watchdog {
    /// Prepares the machine. Prints a message and returns `None` if `jq` is not installed.
    fn new() -> Option<Watchdog> {
        tool("HATEBEAM_JQ", "jq")?;
        let machine = Machine::new(
            "GROUP=group\nNAMESPACE=hatebeam/x\nMETRIC=Heartbeat\n\
             TOPIC=topic\nWORKERS=3\n\
             QUIET_MINUTES=5\nBLIND_MINUTES=30\nLONELY_MINUTES=20\nSTUCK_MINUTES=60\n",
        );
        machine.stand_in("date", "cat now");
        machine.stand_in("hatebeam", "cat status");
        machine.stand_in("aws", "");
        machine.stand_in("systemctl", "");
        Some(Watchdog {
            machine,
            now: 1_800_000_000,
            seconds: 60,
            depth: 0,
        })
    }

    /// Executes the watchdog with the given number of connected workers and one run in each of the given states. The
    /// runs are one depth further than at the previous execution.
    fn with(&mut self, workers: usize, runs: &[&str]) -> Effects {
        self.depth += 1;
        self.at_the_same_depth(workers, runs)
    }

    /// Executes the watchdog with runs at the same depth as at the previous execution.
    fn at_the_same_depth(&mut self, workers: usize, runs: &[&str]) -> Effects {
        let depth = self.depth;
        let run = |state| serde_json::json!({"run": "r", "state": state, "depth": depth});
        let runs: Vec<_> = runs.iter().map(run).collect();
        let workers: Vec<_> = (0..workers)
            .map(|at| serde_json::json!({"worker": format!("w{at}"), "machine": null}))
            .collect();
        let status = serde_json::json!({"runs": runs, "workers": workers});
        self.with_answer(&status.to_string())
    }

    /// Executes the watchdog with the given answer from the coordinator.
    fn with_answer(&mut self, status: &str) -> Effects {
        self.machine.write("status", status);
        self.run()
    }

    /// Executes the watchdog without an answer from the coordinator.
    fn without_answer(&mut self) -> Effects {
        let _ = std::fs::remove_file(self.machine.path("status"));
        self.run()
    }

    /// Changes a setting of the machine.
    fn set(&self, name: &str, value: &str) {
        let file = "etc/hatebeam/machine.env";
        let env = self.machine.read(file);
        self.machine.write(file, &format!("{env}{name}={value}\n"));
    }

    fn run(&mut self) -> Effects {
        self.now += self.seconds;
        self.machine.write("now", &self.now.to_string());
        let output = self.machine.run("watchdog");
        let mut effects = Effects {
            failed: !output.status.success(),
            ..Effects::default()
        };
        for call in self.machine.calls() {
            let set = "aws autoscaling set-desired-capacity --auto-scaling-group-name group --desired-capacity ";
            let beat = "aws cloudwatch put-metric-data --namespace hatebeam/x --metric-name Heartbeat --value 1";
            if let Some(rest) = call.strip_prefix(set) {
                assert_eq!(effects.capacity, None);
                let count = rest.strip_suffix(" --no-honor-cooldown").unwrap();
                effects.capacity = Some(count.to_owned());
            } else if call == beat {
                effects.heartbeat = true;
            } else if let Some(rest) =
                call.strip_prefix("aws sns publish --topic-arn topic --subject hatebeam: ")
            {
                assert_eq!(effects.mail, None);
                effects.mail = rest.split(' ').next().map(str::to_owned);
            } else if call == "systemctl poweroff" {
                effects.power_off = true;
            } else {
                let queries = ["date", "hatebeam status --open --json"];
                assert!(
                    queries.iter().any(|query| call.starts_with(query)),
                    "{call}"
                );
            }
        }
        effects
    }
}

#[test]
fn watchdog_starts_workers_for_open_run_and_stops_them_later() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    // The watchdog starts no workers in the first four minutes, because the CloudWatch alarm may still stop them.
    for _ in 0..4 {
        let effects = watchdog.with(0, &["queued", "finished"]);
        assert_eq!(effects, Effects::success(None));
    }
    for workers in [0, 0, 2, 3, 3] {
        let effects = watchdog.with(workers, &["queued", "running"]);
        assert_eq!(effects, Effects::success(Some("3")));
    }
    watchdog.set("WORKERS", "8");
    let effects = watchdog.with(3, &["running"]);
    assert_eq!(effects, Effects::success(Some("8")));
    for _ in 0..4 {
        let effects = watchdog.with(8, &["finished"]);
        assert_eq!(effects, Effects::success(None));
    }
    // A new run within QUIET_MINUTES keeps the workers.
    let effects = watchdog.with(8, &["queued", "finished"]);
    assert_eq!(effects, Effects::success(Some("8")));
    for _ in 0..4 {
        let effects = watchdog.with(8, &["failed", "cancelled"]);
        assert_eq!(effects, Effects::success(None));
    }
    for workers in [8, 0, 0] {
        let effects = watchdog.with(workers, &["finished"]);
        assert_eq!(effects, Effects::success(Some("0")));
    }
    assert_eq!(watchdog.with(0, &[]), Effects::success(Some("0")));
}

#[test]
fn workers_on_same_machine_count_once() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    let worker = |name: &str, id: &str| serde_json::json!({"worker": name, "machine": {"id": id}});
    for round in 0..8 {
        watchdog.depth += 1;
        let run = serde_json::json!({"run": "r", "state": "running", "depth": round});
        let workers = [worker("a", "i-1"), worker("b", "i-1"), worker("c", "i-2")];
        let status = serde_json::json!({"runs": [run], "workers": workers});
        let effects = watchdog.with_answer(&status.to_string());
        // WORKERS is 3, so one machine is missing. The mail follows after LONELY_MINUTES.
        let mail = (round == 4).then_some("missing");
        assert_eq!(effects.mail.as_deref(), mail, "{round}");
    }
}

/// Returns a watchdog that is executed every five minutes, so that a test needs fewer executions.
fn slow_watchdog() -> Option<Watchdog> {
    let mut watchdog = Watchdog::new()?;
    watchdog.seconds = 300;
    Some(watchdog)
}

#[test]
fn watchdog_stops_workers_and_machine_if_coordinator_does_not_answer() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    for _ in 0..2 {
        watchdog.with(3, &["running"]);
    }
    for _ in 0..5 {
        assert_eq!(watchdog.without_answer(), Effects::failure());
    }
    // An invalid answer is equivalent to no answer.
    for status in ["", "no", "[]", "{\"runs\":[]}", "{\"workers\":[]}"] {
        let effects = watchdog.with_answer(status);
        assert!(
            effects.power_off && !effects.heartbeat,
            "{status}: {effects:?}"
        );
        assert_eq!(effects.capacity.as_deref(), Some("0"), "{status}");
    }
    // The watchdog powers the machine off even if AWS refuses the call.
    watchdog.machine.stand_in("aws", "exit 1");
    assert!(watchdog.without_answer().power_off);
}

#[test]
fn one_answer_restarts_waiting_time() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    for _ in 0..2 {
        for _ in 0..5 {
            assert_eq!(watchdog.without_answer(), Effects::failure());
        }
        assert!(watchdog.with(0, &[]).heartbeat);
    }
    for _ in 0..5 {
        assert_eq!(watchdog.without_answer(), Effects::failure());
    }
    assert!(watchdog.without_answer().power_off);
}

/// Returns the capacities that consecutive executions set, without consecutive duplicates. `-` means that an execution
/// set none.
fn capacities(watchdog: &mut Watchdog, runs: usize, workers: usize) -> Vec<String> {
    let capacity = |_| {
        let effects = watchdog.with(workers, &["running"]);
        assert!(effects.heartbeat);
        effects.capacity.unwrap_or_else(|| "-".to_owned())
    };
    let mut all: Vec<String> = (0..runs).map(capacity).collect();
    all.dedup();
    all
}

#[test]
fn pauses_without_connected_worker_become_longer() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    assert_eq!(capacities(&mut watchdog, 4, 0), ["-", "3"]);
    let effects = watchdog.with(0, &["running"]);
    assert_eq!(effects.capacity.as_deref(), Some("0"));
    assert_eq!(effects.mail.as_deref(), Some("lonely"));
    // The mail is sent only once.
    assert_eq!(watchdog.with(0, &["running"]).mail, None);
    assert_eq!(capacities(&mut watchdog, 10, 0), ["0"]);
    assert_eq!(capacities(&mut watchdog, 4, 0), ["3"]);
    // The second pause takes two hours.
    assert_eq!(capacities(&mut watchdog, 1, 0), ["0"]);
    watchdog.seconds = 1150;
    assert_eq!(capacities(&mut watchdog, 6, 0), ["0"]);
    watchdog.seconds = 300;
    assert_eq!(capacities(&mut watchdog, 4, 0), ["3"]);
    assert_eq!(capacities(&mut watchdog, 2, 0), ["0"]);
    // Workers are connected.
    assert_eq!(capacities(&mut watchdog, 3, 3), ["3"]);
    // The next pause takes one hour again.
    assert_eq!(capacities(&mut watchdog, 3, 0), ["3"]);
    assert_eq!(capacities(&mut watchdog, 12, 0), ["0"]);
    assert_eq!(capacities(&mut watchdog, 1, 0), ["3"]);
}

#[test]
fn workers_of_run_without_progress_stop_until_list_of_runs_changes() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    watchdog.with(3, &["running"]);
    for _ in 0..11 {
        let effects = watchdog.at_the_same_depth(3, &["running"]);
        assert_eq!(effects.capacity.as_deref(), Some("3"));
        assert_eq!(effects.mail, None);
    }
    let effects = watchdog.at_the_same_depth(3, &["running"]);
    assert_eq!(effects.capacity.as_deref(), Some("0"));
    assert_eq!(effects.mail.as_deref(), Some("stuck"));
    // The workers remain stopped.
    watchdog.seconds = 3000;
    for _ in 0..2 {
        let effects = watchdog.at_the_same_depth(0, &["running"]);
        assert_eq!(effects, Effects::success(Some("0")));
    }
    watchdog.seconds = 300;
    let effects = watchdog
        .with_answer(r#"{"runs":[{"run":"other","state":"queued","depth":0}],"workers":[]}"#);
    assert_eq!(effects.capacity.as_deref(), Some("3"), "{effects:?}");
}

#[test]
fn workers_stop_while_game_is_read_back() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    watchdog.with(3, &["running"]);
    let mut capacities = Vec::new();
    for _ in 0..8 {
        let effects = watchdog.with_answer(
            r#"{"runs":[{"run":"r","state":"running","reading_back":true,"depth":9}],"workers":[]}"#,
        );
        assert!(!effects.power_off && effects.mail.is_none(), "{effects:?}");
        capacities.push(effects.capacity);
    }
    assert_eq!(
        capacities.last().unwrap().as_deref(),
        Some("0"),
        "{capacities:?}"
    );
}

#[test]
fn missing_workers_cause_one_mail() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    for _ in 0..4 {
        assert_eq!(watchdog.with(2, &["running"]).mail, None);
    }
    let effects = watchdog.with(2, &["running"]);
    assert_eq!(effects.mail.as_deref(), Some("missing"));
    assert_eq!(effects.capacity.as_deref(), Some("3"));
    assert_eq!(watchdog.with(2, &["running"]).mail, None);
    assert_eq!(watchdog.with(3, &["running"]).mail, None);
    // After all workers have been connected, missing workers are a new problem.
    let mails: Vec<_> = (0..5)
        .filter_map(|_| watchdog.with(1, &["running"]).mail)
        .collect();
    assert_eq!(mails, ["missing"]);
}

#[test]
fn failed_execution_sends_no_heartbeat() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    for _ in 0..6 {
        watchdog.with(3, &["running"]);
    }
    watchdog
        .machine
        .stand_in("aws", "[ \"$1\" != autoscaling ]");
    let effects = watchdog.with(3, &["running"]);
    assert!(effects.failed && !effects.heartbeat, "{effects:?}");
    assert_eq!(effects.mail.as_deref(), Some("refused"));
    watchdog.machine.stand_in("aws", "");
    let effects = watchdog.with(3, &["running"]);
    assert_eq!(effects, Effects::success(Some("3")));
}

#[test]
fn watchdog_replaces_damaged_timestamps() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    watchdog.with(3, &["running"]);
    for mark in [
        "answered",
        "busy",
        "joined",
        "answering",
        "progress",
        "attempts",
    ] {
        let file = format!("run/hatebeam-watchdog/{mark}");
        watchdog.machine.write(&file, "x[$(touch bad)]");
    }
    let effects = watchdog.with(3, &["finished"]);
    assert_eq!(effects, Effects::success(None));
    assert!(!watchdog.machine.path("bad").exists());
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watchdog_reads_status_of_real_coordinator() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    let store = tempfile::tempdir().unwrap();
    let mut coordinator = Killed(
        hatebeam()
            .args(["coordinator", "--listen", "127.0.0.1:0", "--store"])
            .arg(store.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    let stdout = coordinator.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let uri = format!(
        "http://{}",
        line.trim().strip_prefix("listening on ").unwrap()
    );
    watchdog.machine.stand_in(
        "hatebeam",
        &format!(
            "exec '{}' status --open --json --coordinator {uri}",
            env!("CARGO_BIN_EXE_hatebeam-under-test")
        ),
    );
    for _ in 0..5 {
        assert!(watchdog.run().heartbeat);
    }
    assert_eq!(watchdog.run(), Effects::success(Some("0")));
    succeeds(hatebeam().args(["submit", "--width", "10", "--coordinator", &uri]));
    assert_eq!(watchdog.run(), Effects::success(Some("3")));
    drop(coordinator);
    assert_eq!(watchdog.run(), Effects::failure());
}
