//! The scripts that machines of AWS run, with AWS, the clock and the system stood in for.

use crate::support::{files_below, hatebeam, read, succeeds, tool};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const FOLDER: &str = "terraform/cluster/machine";

#[test]
fn systemd_finds_nothing_wrong() {
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
            // The programs are not on this machine.
            let text = read(&name)
                .replace("/usr/local/bin/hatebeam", "/bin/true")
                .replace("/usr/local/lib/hatebeam/watchdog", "/bin/true")
                .replace("/usr/local/lib/hatebeam/power-off", "/bin/true");
            let file = dir.path().join(unit);
            std::fs::write(&file, text).unwrap();
            if folder != FOLDER {
                let beside = dir.path().join(format!("{unit}.d"));
                std::fs::create_dir(&beside).unwrap();
                std::fs::write(
                    beside.join("aws.conf"),
                    read(&format!("{FOLDER}/secrets.conf")),
                )
                .unwrap();
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
    let said = String::from_utf8_lossy(&output.stderr);
    // Other units of the machine may have their faults; the script that fetches secrets is not here.
    let about: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("hatebeam") && !line.contains("fetch-secrets"))
        .collect();
    assert!(about.is_empty(), "{said}");
}

/// A machine on which scripts find their files below a folder, and stand-ins for the commands that they call.
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

    /// A command that notes how it was called, and then does this in the machine's folder.
    fn command(&self, file: &str, does: &str) {
        let name = file.rsplit_once('/').map_or(file, |(_, name)| name);
        let dir = self.dir.path().display();
        self.write(
            file,
            &format!("#!/usr/bin/env bash\necho \"{name} $*\" >>{dir}/log\ncd {dir}\n{does}\n"),
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(file), mode).unwrap();
    }

    fn stand_in(&self, name: &str, does: &str) {
        self.command(&format!("bin/{name}"), does);
    }

    /// Runs a script whose files are moved below the machine's folder.
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

    /// How commands were called since this was asked last.
    fn calls(&self) -> Vec<String> {
        let calls = self.read("log").lines().map(str::to_owned).collect();
        self.write("log", "");
        calls
    }
}

/// The coordinator's machine, minute by minute.
struct Watchdog {
    machine: Machine,
    now: u64,
    /// Between two looks.
    seconds: u64,
}

/// What the watchdog did, besides looking.
#[derive(Debug, Default, PartialEq)]
struct Did {
    capacity: Option<String>,
    said_that_all_is_well: bool,
    switched_off: bool,
    failed: bool,
}

impl Did {
    fn well(capacity: Option<&str>) -> Did {
        Did {
            capacity: capacity.map(str::to_owned),
            said_that_all_is_well: true,
            ..Did::default()
        }
    }

    /// Nothing, as nothing could be known.
    fn blind() -> Did {
        Did {
            failed: true,
            ..Did::default()
        }
    }
}

impl Watchdog {
    /// None, and a word about it, where this machine lacks what the script calls.
    fn new() -> Option<Watchdog> {
        tool("HATEBEAM_JQ", "jq")?;
        let machine = Machine::new(
            "GROUP=group\nNAMESPACE=hatebeam/x\nMETRIC=Answered\n\
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

    /// A while later, with so many workers and runs in these states.
    fn with(&mut self, workers: usize, runs: &[&str]) -> Did {
        let run = |state| serde_json::json!({"run": "r", "state": state});
        let runs: Vec<_> = runs.iter().map(run).collect();
        let workers = vec![serde_json::json!({"worker": "w"}); workers];
        let status = serde_json::json!({"runs": runs, "workers": workers});
        self.answered(&status.to_string())
    }

    /// A while later, with this answer of the coordinator.
    fn answered(&mut self, status: &str) -> Did {
        self.machine.write("status", status);
        self.look()
    }

    /// A while later, without an answer.
    fn silent(&mut self) -> Did {
        let _ = std::fs::remove_file(self.machine.path("status"));
        self.look()
    }

    fn look(&mut self) -> Did {
        self.now += self.seconds;
        self.machine.write("now", &self.now.to_string());
        let output = self.machine.run("watchdog");
        let mut did = Did {
            failed: !output.status.success(),
            ..Did::default()
        };
        for call in self.machine.calls() {
            let set = "aws autoscaling set-desired-capacity --auto-scaling-group-name group --desired-capacity ";
            let told = "aws cloudwatch put-metric-data --namespace hatebeam/x --metric-name Answered --value 1";
            if let Some(rest) = call.strip_prefix(set) {
                assert_eq!(did.capacity, None);
                let count = rest.strip_suffix(" --no-honor-cooldown").unwrap();
                did.capacity = Some(count.to_owned());
            } else if call == told {
                did.said_that_all_is_well = true;
            } else if call == "systemctl poweroff" {
                did.switched_off = true;
            } else {
                let looks = ["date", "hatebeam status --json", "curl"];
                assert!(looks.iter().any(|look| call.starts_with(look)), "{call}");
            }
        }
        did
    }
}

#[test]
fn workers_come_with_a_run_and_go_after_it() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    // The alarm outside is given time to hear that somebody is there again.
    for _ in 0..4 {
        assert_eq!(watchdog.with(0, &["queued", "finished"]), Did::well(None));
    }
    for workers in [0, 0, 2, 3, 3] {
        let did = watchdog.with(workers, &["queued", "running"]);
        assert_eq!(did, Did::well(Some("3")));
    }
    watchdog.machine.write("tag", "8");
    assert_eq!(watchdog.with(3, &["running"]), Did::well(Some("8")));
    for _ in 0..4 {
        assert_eq!(watchdog.with(8, &["finished"]), Did::well(None));
    }
    // Another run in time: they stay.
    assert_eq!(
        watchdog.with(8, &["queued", "finished"]),
        Did::well(Some("8"))
    );
    for _ in 0..4 {
        assert_eq!(watchdog.with(8, &["failed", "cancelled"]), Did::well(None));
    }
    for workers in [8, 0, 0] {
        assert_eq!(watchdog.with(workers, &["finished"]), Did::well(Some("0")));
    }
    assert_eq!(watchdog.with(0, &[]), Did::well(Some("0")));
}

/// With looks that are five minutes apart, as each takes a while here.
fn patient_watchdog() -> Option<Watchdog> {
    let mut watchdog = Watchdog::new()?;
    watchdog.seconds = 300;
    Some(watchdog)
}

#[test]
fn without_an_answer_all_is_switched_off() {
    let Some(mut watchdog) = patient_watchdog() else {
        return;
    };
    for _ in 0..2 {
        watchdog.with(3, &["running"]);
    }
    for _ in 0..5 {
        assert_eq!(watchdog.silent(), Did::blind());
    }
    // An answer that is none is like no answer.
    for status in ["", "no", "[]", "{\"runs\":[]}", "{\"workers\":[]}"] {
        let did = watchdog.answered(status);
        assert!(
            did.switched_off && !did.said_that_all_is_well,
            "{status}: {did:?}"
        );
        assert_eq!(did.capacity.as_deref(), Some("0"), "{status}");
    }
    // It is switched off also where AWS does not listen.
    watchdog.machine.stand_in("aws", "exit 1");
    assert!(watchdog.silent().switched_off);
}

#[test]
fn an_answer_in_time_is_enough() {
    let Some(mut watchdog) = patient_watchdog() else {
        return;
    };
    for _ in 0..2 {
        // From the first look on, or from the last answer.
        for _ in 0..5 {
            assert_eq!(watchdog.silent(), Did::blind());
        }
        assert!(watchdog.with(0, &[]).said_that_all_is_well);
    }
    for _ in 0..5 {
        assert_eq!(watchdog.silent(), Did::blind());
    }
    assert!(watchdog.silent().switched_off);
}

#[test]
fn machines_that_do_not_become_workers_go() {
    let Some(mut watchdog) = patient_watchdog() else {
        return;
    };
    let mut capacities = |looks: usize, workers| -> Vec<String> {
        let of = |_| {
            let did = watchdog.with(workers, &["running"]);
            assert!(did.said_that_all_is_well);
            did.capacity.unwrap_or_else(|| "-".to_owned())
        };
        let mut all: Vec<String> = (0..looks).map(of).collect();
        all.dedup();
        all
    };
    assert_eq!(capacities(4, 0), ["-", "3"]);
    // They are away for an hour, and then it is tried again.
    assert_eq!(capacities(12, 0), ["0"]);
    assert_eq!(capacities(4, 0), ["3"]);
    assert_eq!(capacities(2, 0), ["0"]);
    // Somebody came after all.
    assert_eq!(capacities(6, 1), ["3"]);
}

#[test]
fn what_fails_is_not_said_to_be_well() {
    let Some(mut watchdog) = Watchdog::new() else {
        return;
    };
    for _ in 0..6 {
        watchdog.with(3, &["running"]);
    }
    // No tag: no number is made up.
    std::fs::remove_file(watchdog.machine.path("tag")).unwrap();
    assert_eq!(watchdog.with(3, &["running"]), Did::blind());
    watchdog.machine.write("tag", "3");
    watchdog
        .machine
        .stand_in("aws", "[ \"$1\" != autoscaling ]");
    let did = watchdog.with(3, &["running"]);
    assert!(did.failed && !did.said_that_all_is_well, "{did:?}");
    watchdog.machine.stand_in("aws", "");
    assert_eq!(watchdog.with(3, &["running"]), Did::well(Some("3")));
    // Marks that are damaged are made anew.
    for mark in ["answered", "busy", "joined", "answering"] {
        watchdog
            .machine
            .write(&format!("run/hatebeam-watchdog/{mark}"), "x[$(touch bad)]");
    }
    assert_eq!(watchdog.with(3, &["finished"]), Did::well(None));
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
fn the_watchdog_understands_a_real_coordinator() {
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
            "exec '{}' status --json --coordinator {uri}",
            env!("CARGO_BIN_EXE_hatebeam-under-test")
        ),
    );
    for _ in 0..5 {
        assert!(watchdog.look().said_that_all_is_well);
    }
    assert_eq!(watchdog.look(), Did::well(Some("0")));
    succeeds(hatebeam().args(["submit", "--width", "10", "--coordinator", &uri]));
    assert_eq!(watchdog.look(), Did::well(Some("3")));
    drop(coordinator);
    assert_eq!(watchdog.look(), Did::blind());
}

#[test]
fn secrets_are_put_where_the_program_looks() {
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
        // As the output `next` has it.
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
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("terraform output -raw next"),
        "{said}"
    );
    assert!(!place("token").exists());

    // More than is asked for stays in the parcel.
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

    // Renewed ones take the place of the old; a parcel that lacks one changes nothing.
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
    assert_eq!(left, 1, "what was unpacked in vain is still there");
}

#[test]
fn a_machine_goes_when_its_worker_is_gone() {
    let machine = Machine::new("");
    for (state, goes) in [
        ("active", false),
        ("activating", false),
        ("deactivating", false),
        ("inactive", true),
        ("failed", true),
    ] {
        machine.stand_in("systemctl", &format!("[ \"$1\" != show ] || echo {state}"));
        assert!(machine.run("leave").status.success(), "{state}");
        let off = machine.calls().contains(&"systemctl poweroff".to_owned());
        assert_eq!(off, goes, "{state}");
    }
}

#[test]
fn all_disks_of_the_instance_store_are_used() {
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

/// A machine that is about to become one of this role, by a program with this checksum in its name.
fn newborn(role: &str, sum: &str) -> Machine {
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
    let said = succeeds(Command::new("sha256sum").arg(machine.path("program")));
    said.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_machine_becomes_what_it_is_told() {
    let sum = sum_of(&newborn("worker", "0"));
    for (role, watcher) in [("worker", "leave"), ("coordinator", "watchdog")] {
        let machine = newborn(role, &sum);
        let output = machine.run("boot");
        assert!(output.status.success(), "{output:?}");
        assert!(machine.path("usr/local/bin/hatebeam").exists());
        let calls = machine.calls();
        let at = |call: &str| calls.iter().position(|made| made == call);
        // Whoever watches is there before anything can go wrong.
        assert_eq!(
            at(&format!("systemctl enable --now hatebeam-{watcher}.timer")),
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
fn another_program_than_was_meant_is_not_started() {
    let machine = newborn("worker", &"0".repeat(64));
    assert!(!machine.run("boot").status.success());
    assert!(!machine.path("usr/local/bin/hatebeam").exists());
    let calls = machine.calls();
    assert!(
        calls
            .iter()
            .all(|call| !call.contains("hatebeam-worker.service")),
        "{calls:?}"
    );
    // And who switches the machine off is there.
    assert!(calls.contains(&"systemctl enable --now hatebeam-power-off.timer".to_owned()));
}
