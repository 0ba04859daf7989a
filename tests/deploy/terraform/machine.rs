//! Tests of the scripts that run on the AWS machines. Stand-ins replace AWS, the clock and the system's commands.

use crate::support::{files_below, hatebeam, read, succeeds, tool};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const FOLDER: &str = "terraform/cluster/machine";

#[test]
fn units_pass_systemd_analyze_verify() {
    let Some(mut verify) = tool("HATEBEAM_SYSTEMD_ANALYZE", "systemd-analyze") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for (folder, ending) in [
        (FOLDER, ".service"),
        (FOLDER, ".timer"),
        ("deploy/systemd", ".service"),
    ] {
        for name in files_below(folder, ending) {
            let (_, unit) = name.rsplit_once('/').unwrap();
            // Replaces programs that are not installed on this machine.
            let text = read(&name)
                .replace("/usr/local/bin/hatebeam", "/bin/true")
                .replace("/usr/local/lib/hatebeam/watchdog", "/bin/true")
                .replace("/usr/local/lib/hatebeam/power-off", "/bin/true");
            let file = dir.path().join(unit);
            std::fs::write(&file, text).unwrap();
            if folder != FOLDER {
                let drop_ins = dir.path().join(format!("{unit}.d"));
                std::fs::create_dir(&drop_ins).unwrap();
                let drop_in = read(&format!("{FOLDER}/secrets.conf"));
                std::fs::write(drop_ins.join("aws.conf"), drop_in).unwrap();
            }
            units.push(file);
        }
    }
    assert_eq!(units.len(), 6, "{units:?}");
    let output = verify
        .arg("verify")
        .args(units)
        .env("SYSTEMD_LOG_LEVEL", "warning")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    // Ignores messages about other units, and about the missing script in secrets.conf.
    let is_clean = messages
        .lines()
        .all(|line| !line.contains("hatebeam") || line.contains("fetch-secrets"));
    assert!(is_clean, "{messages}");
}

/// A folder that serves as the root of a script's file system, with stand-ins for the commands that the script calls.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new(env: &str) -> Machine {
        let machine = Machine {
            dir: tempfile::tempdir().unwrap(),
        };
        for folder in [
            "bin",
            "etc/hatebeam",
            "usr/local/bin",
            "usr/local/lib/hatebeam",
            "run",
        ] {
            std::fs::create_dir_all(machine.path(folder)).unwrap();
        }
        machine.write(
            "etc/hatebeam/machine.env",
            &format!("AWS_REGION=here\n{env}"),
        );
        machine.write("log", "");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a command that logs its arguments and then executes `script` in the machine's folder.
    fn command(&self, file: &str, script: &str) {
        let name = file.rsplit_once('/').map_or(file, |(_, name)| name);
        let dir = self.dir.path().display();
        self.write(
            file,
            &format!("#!/usr/bin/env bash\necho \"{name} $*\" >>{dir}/log\ncd {dir}\n{script}\n"),
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(file), mode).unwrap();
    }

    fn stand_in(&self, name: &str, script: &str) {
        self.command(&format!("bin/{name}"), script);
    }

    /// Runs a script after replacing its absolute paths with paths below the machine's folder.
    fn run(&self, script: &str) -> Output {
        let mut text = read(&format!("{FOLDER}/{script}"));
        for place in [
            "/etc/hatebeam",
            "/usr/local",
            "/run/hatebeam",
            "/var/lib/hatebeam",
        ] {
            text = text.replace(place, &format!("{}{place}", self.dir.path().display()));
        }
        self.write("script", &text);
        let system = std::env::var("PATH").unwrap();
        Command::new("bash")
            .arg(self.path("script"))
            .env("PATH", format!("{}:{system}", self.path("bin").display()))
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }

    /// Returns the logged calls and clears the log.
    fn calls(&self) -> Vec<String> {
        let calls = self.read("log").lines().map(str::to_owned).collect();
        self.write("log", "");
        calls
    }
}

/// A coordinator's machine with a clock that advances at each run of the watchdog.
struct Watchdog {
    machine: Machine,
    now: u64,
    /// Seconds between two runs of the watchdog.
    seconds: u64,
}

/// Effects of one run of the watchdog.
#[derive(Debug, Default, PartialEq)]
struct Effects {
    capacity: Option<String>,
    heartbeat: bool,
    power_off: bool,
    failed: bool,
}

impl Effects {
    fn success(capacity: Option<&str>) -> Effects {
        Effects {
            capacity: capacity.map(str::to_owned),
            heartbeat: true,
            ..Effects::default()
        }
    }

    /// Returns the effects of a run that fails without doing anything, because a value is unknown.
    fn failure() -> Effects {
        Effects {
            failed: true,
            ..Effects::default()
        }
    }
}

impl Watchdog {
    /// Creates the machine. If `jq` is not installed, prints a message and returns `None`.
    fn new() -> Option<Watchdog> {
        tool("HATEBEAM_JQ", "jq")?;
        let machine = Machine::new(
            "GROUP=group\nNAMESPACE=hatebeam/x\nMETRIC=Heartbeat\n\
             QUIET_MINUTES=5\nBLIND_MINUTES=30\nLONELY_MINUTES=20\n",
        );
        machine.stand_in("date", "cat now");
        machine.stand_in("hatebeam", "cat status");
        machine.stand_in("aws", "");
        machine.stand_in("systemctl", "");
        machine.stand_in(
            "curl",
            "case $* in *-X\\ PUT*/api/token) echo secret ;; *:\\ secret*/tags/instance/hatebeam-workers) cat tag ;; \
             *) exit 22 ;; esac",
        );
        machine.write("tag", "3");
        Some(Watchdog {
            machine,
            now: 1_800_000_000,
            seconds: 60,
        })
    }

    /// Runs the watchdog with the given number of connected workers, and with one run in each of the given states.
    fn with(&mut self, workers: usize, runs: &[&str]) -> Effects {
        let run = |state| serde_json::json!({"run": "r", "state": state});
        let runs: Vec<_> = runs.iter().map(run).collect();
        let workers = vec![serde_json::json!({"worker": "w"}); workers];
        let status = serde_json::json!({"runs": runs, "workers": workers});
        self.with_answer(&status.to_string())
    }

    /// Runs the watchdog while the coordinator answers `status`.
    fn with_answer(&mut self, status: &str) -> Effects {
        self.machine.write("status", status);
        self.run()
    }

    /// Runs the watchdog while the coordinator does not answer.
    fn without_answer(&mut self) -> Effects {
        let _ = std::fs::remove_file(self.machine.path("status"));
        self.run()
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
            } else if call == "systemctl poweroff" {
                effects.power_off = true;
            } else {
                let queries = ["date", "hatebeam status --open --json", "curl"];
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
fn workers_start_with_a_run_and_stop_after_it() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    // No workers start at first, because the alarm needs some time to receive the first heartbeats.
    for _ in 0..4 {
        let effects = watchdog.with(0, &["queued", "finished"]);
        assert_eq!(effects, Effects::success(None));
    }
    for workers in [0, 0, 2, 3, 3] {
        let effects = watchdog.with(workers, &["queued", "running"]);
        assert_eq!(effects, Effects::success(Some("3")));
    }
    watchdog.machine.write("tag", "8");
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

/// Returns a watchdog that runs every five minutes instead of every minute, so that tests need fewer of its slow runs.
fn slow_watchdog() -> Option<Watchdog> {
    let mut watchdog = Watchdog::new()?;
    watchdog.seconds = 300;
    Some(watchdog)
}

#[test]
fn workers_and_machine_stop_if_coordinator_does_not_answer() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    for _ in 0..2 {
        watchdog.with(3, &["running"]);
    }
    for _ in 0..5 {
        assert_eq!(watchdog.without_answer(), Effects::failure());
    }
    // An invalid answer counts as no answer.
    for status in ["", "no", "[]", "{\"runs\":[]}", "{\"workers\":[]}"] {
        let effects = watchdog.with_answer(status);
        assert!(
            effects.power_off && !effects.heartbeat,
            "{status}: {effects:?}"
        );
        assert_eq!(effects.capacity.as_deref(), Some("0"), "{status}");
    }
    // The machine is powered off even if AWS refuses the call.
    watchdog.machine.stand_in("aws", "exit 1");
    assert!(watchdog.without_answer().power_off);
}

#[test]
fn answer_restarts_time_limit_for_missing_answers() {
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

#[test]
fn workers_stop_for_an_hour_if_none_connects() {
    let Some(mut watchdog) = slow_watchdog() else {
        return;
    };
    // Returns the capacities that consecutive runs of the watchdog set, without consecutive duplicates.
    let mut capacities = |runs: usize, workers| -> Vec<String> {
        let capacity = |_| {
            let effects = watchdog.with(workers, &["running"]);
            assert!(effects.heartbeat);
            effects.capacity.unwrap_or_else(|| "-".to_owned())
        };
        let mut all: Vec<String> = (0..runs).map(capacity).collect();
        all.dedup();
        all
    };
    assert_eq!(capacities(4, 0), ["-", "3"]);
    assert_eq!(capacities(12, 0), ["0"]);
    assert_eq!(capacities(4, 0), ["3"]);
    assert_eq!(capacities(2, 0), ["0"]);
    // The capacity stays once a late worker has connected.
    assert_eq!(capacities(6, 1), ["3"]);
}

#[test]
fn failed_watchdog_run_sends_no_heartbeat() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    for _ in 0..6 {
        watchdog.with(3, &["running"]);
    }
    // If the tag is missing, the required number of workers is unknown.
    std::fs::remove_file(watchdog.machine.path("tag")).unwrap();
    assert_eq!(watchdog.with(3, &["running"]), Effects::failure());
    watchdog.machine.write("tag", "3");
    watchdog
        .machine
        .stand_in("aws", "[ \"$1\" != autoscaling ]");
    let effects = watchdog.with(3, &["running"]);
    assert!(effects.failed && !effects.heartbeat, "{effects:?}");
    watchdog.machine.stand_in("aws", "");
    let effects = watchdog.with(3, &["running"]);
    assert_eq!(effects, Effects::success(Some("3")));
}

#[test]
fn unreadable_timestamps_are_replaced() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    watchdog.with(3, &["running"]);
    for mark in ["answered", "busy", "joined", "answering"] {
        let file = format!("run/hatebeam-watchdog/{mark}");
        assert!(watchdog.machine.path(&file).exists(), "{file}");
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

#[test]
fn fetched_secrets_are_private_and_never_partially_replaced() {
    let files = ["ca.pem", "worker.pem", "worker-key.pem", "token"];
    let machine = Machine::new(&format!(
        "SECRET=x/worker\nSECRET_FILES=\"{}\"\n",
        files.join(" ")
    ));
    machine.stand_in("chown", "");
    let offer = |names: &[&str], salt: &str| {
        let tls = machine.path("tls");
        let _ = std::fs::remove_dir_all(&tls);
        std::fs::create_dir(&tls).unwrap();
        for name in names {
            std::fs::write(tls.join(name), format!("{name} {salt}")).unwrap();
        }
        // This is the same command as in the module's output `next`.
        let mut tar = Command::new("tar");
        tar.arg("-C")
            .arg(tls)
            .arg("-czf")
            .arg(machine.path("secret"));
        succeeds(tar.args(names));
        let get = "secretsmanager get-secret-value --secret-id x/worker --query SecretBinary --output text";
        machine.stand_in("aws", &format!("[ \"$*\" = '{get}' ] && base64 secret"));
    };
    let place = |name: &str| machine.path("run/hatebeam/tls").join(name);

    machine.stand_in("aws", "echo ResourceNotFoundException >&2; exit 254");
    let output = machine.run("fetch-secrets");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("terraform output -raw next"),
        "{message}"
    );
    assert!(!place("token").exists());

    // Files that this role does not need are not extracted.
    offer(
        &[
            "ca.pem",
            "worker.pem",
            "worker-key.pem",
            "token",
            "ca-key.pem",
        ],
        "1",
    );
    assert!(machine.run("fetch-secrets").status.success());
    for name in files {
        assert_eq!(
            std::fs::read_to_string(place(name)).unwrap(),
            format!("{name} 1")
        );
        let mode = place(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    assert!(!place("ca-key.pem").exists());

    // A renewed secret replaces the old files. An incomplete secret changes nothing.
    offer(&files, "2");
    assert!(machine.run("fetch-secrets").status.success());
    offer(&files[..3], "3");
    assert!(!machine.run("fetch-secrets").status.success());
    for name in files {
        assert_eq!(
            std::fs::read_to_string(place(name)).unwrap(),
            format!("{name} 2")
        );
    }
    let left = std::fs::read_dir(machine.path("run/hatebeam"))
        .unwrap()
        .count();
    assert_eq!(left, 1, "incomplete files were not removed");
}

#[test]
fn machine_powers_off_after_worker_stops() {
    let machine = Machine::new("");
    for (state, powers_off) in [
        ("active", false),
        ("activating", false),
        ("deactivating", false),
        ("inactive", true),
        ("failed", true),
    ] {
        machine.stand_in("systemctl", &format!("[ \"$1\" != show ] || echo {state}"));
        assert!(machine.run("power-off").status.success(), "{state}");
        let off = machine.calls().contains(&"systemctl poweroff".to_owned());
        assert_eq!(off, powers_off, "{state}");
    }
}

#[test]
fn all_instance_store_disks_are_used() {
    let line = |name: &str| format!("{name} Amazon EC2 NVMe Instance Storage\n");
    let system = "/dev/nvme0n1 Amazon Elastic Block Store\n";
    for (disks, device) in [
        (vec![], None),
        (vec!["/dev/nvme1n1"], Some("/dev/nvme1n1")),
        (vec!["/dev/nvme1n1", "/dev/nvme2n1"], Some("/dev/md0")),
    ] {
        let machine = Machine::new("");
        let listed: String = disks.iter().map(|disk| line(disk)).collect();
        machine.write("disks", &format!("{system}{listed}"));
        machine.stand_in("lsblk", "cat disks");
        for command in ["mdadm", "mkfs.xfs", "mount", "chown"] {
            machine.stand_in(command, "");
        }
        assert!(machine.run("disks").status.success());
        let folder = machine.path("var/lib/hatebeam");
        let mut expected = Vec::new();
        if disks.len() > 1 {
            let (count, disks) = (disks.len(), disks.join(" "));
            expected.push(format!(
                "mdadm --create /dev/md0 --run --force --level=0 --raid-devices={count} {disks}"
            ));
        }
        if let Some(device) = device {
            expected.push(format!("mkfs.xfs -q -f {device}"));
            expected.push(format!("mount -o noatime {device} {}", folder.display()));
            expected.push(format!("chown hatebeam:hatebeam {}", folder.display()));
        }
        let mut calls = machine.calls();
        calls.retain(|call| !call.starts_with("lsblk"));
        assert_eq!(calls, expected);
    }
}

/// Returns a new machine for a role. The name of its program in the bucket is the checksum `sum`.
fn new_machine(role: &str, sum: &str) -> Machine {
    let machine = Machine::new(&format!("ROLE={role}\nPROGRAM=s3://bucket/bin/{sum}\n"));
    machine.write("program", "#!/bin/sh\necho hatebeam 1\n");
    machine.stand_in("aws", "[ \"$1 $2\" = 's3 cp' ] && cp program \"${@: -1}\"");
    machine.stand_in(
        "curl",
        "case $* in *token) echo t ;; *local-ipv4) echo 10.77.1.2 ;; esac",
    );
    for command in ["dnf", "systemctl", "systemd-sysusers", "sleep"] {
        machine.stand_in(command, "");
    }
    machine.command("usr/local/lib/hatebeam/disks", "");
    machine.write(
        "etc/hatebeam/worker.env",
        "OPTIONS=--listen @ADDRESS@:7801\n",
    );
    machine
}

fn sum_of(machine: &Machine) -> String {
    let output = succeeds(Command::new("sha256sum").arg(machine.path("program")));
    output.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn boot_starts_guard_first_and_service_last() {
    let sum = sum_of(&new_machine("worker", "0"));
    for (role, guard) in [("worker", "power-off"), ("coordinator", "watchdog")] {
        let machine = new_machine(role, &sum);
        let output = machine.run("boot");
        assert!(output.status.success(), "{output:?}");
        assert!(machine.path("usr/local/bin/hatebeam").exists());
        let calls = machine.calls();
        let at = |call: &str| calls.iter().position(|made| made == call);
        // The guard starts before any step that can fail.
        assert_eq!(
            at(&format!("systemctl enable --now hatebeam-{guard}.timer")),
            Some(1)
        );
        let start = format!("systemctl enable --now --no-block hatebeam-{role}.service");
        assert_eq!(at(&start), Some(calls.len() - 1));
        assert_eq!(at("disks ").is_some(), role == "worker");
        if role == "worker" {
            let env = machine.read("etc/hatebeam/worker.env");
            assert_eq!(env, "OPTIONS=--listen 10.77.1.2:7801\n");
        }
    }
}

#[test]
fn boot_rejects_program_with_wrong_checksum() {
    let machine = new_machine("worker", &"0".repeat(64));
    assert!(!machine.run("boot").status.success());
    assert!(!machine.path("usr/local/bin/hatebeam").exists());
    let calls = machine.calls();
    assert!(
        calls
            .iter()
            .all(|call| !call.contains("hatebeam-worker.service")),
        "{calls:?}"
    );
    // The timer that powers off the machine is active.
    assert!(calls.contains(&"systemctl enable --now hatebeam-power-off.timer".to_owned()));
}
