//! Services: deploy/systemd.

use crate::support::{Start, port_of, read, succeeds, tool};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "/usr/local/bin/hatebeam";
/// The most of systemd's measure of what a service could do to the machine: 0 is nothing, 10 is anything.
const EXPOSURE: &str = "15";

struct Unit {
    name: &'static str,
    text: String,
}

impl Unit {
    fn all() -> [Unit; 2] {
        ["coordinator", "worker"].map(|name| Unit {
            name,
            text: read(&format!("deploy/systemd/hatebeam-{name}.service")),
        })
    }

    fn values(&self, key: &str) -> Vec<&str> {
        let lines = self.text.lines().filter_map(|line| line.split_once('='));
        lines
            .filter(|(found, _)| *found == key)
            .map(|(_, value)| value)
            .collect()
    }

    #[track_caller]
    fn value(&self, key: &str) -> &str {
        match self.values(key)[..] {
            [value] => value,
            ref values => panic!("{}: {key}: {values:?}", self.name),
        }
    }

    /// How it is started with the example of its variables, each line that is commented out in or not.
    fn starts(&self) -> Vec<Start> {
        let file = self.value("EnvironmentFile");
        assert_eq!(file, format!("/etc/hatebeam/{}.env", self.name));
        let text = read(&format!("deploy/systemd/{}.env", self.name));
        let assigns = |line: &str| {
            line.split_once('=')
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || b"_3".contains(&byte))
        };
        let lines: Vec<(String, String)> = text
            .lines()
            .filter_map(|line| assigns(line.trim_start_matches('#')))
            .filter(|(name, _)| is_name(name))
            .collect();
        let (options, variables): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(name, _)| name == "OPTIONS");
        let command = self.value("ExecStart").strip_prefix(PROGRAM).unwrap();
        assert!(command.ends_with(" $OPTIONS"), "{command}");
        let start = |(_, options): &(String, String)| Start {
            place: format!("hatebeam-{}.service", self.name),
            args: command
                .replace("$OPTIONS", options)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            variables: variables.clone(),
        };
        options.iter().map(start).collect()
    }

    /// The unit as a file of its own name, with the program that there is and the drop-in.
    fn installed(&self, dir: &Path) -> std::path::PathBuf {
        let file = dir.join(format!("hatebeam-{}.service", self.name));
        let text = self
            .text
            .replace(PROGRAM, env!("CARGO_BIN_EXE_hatebeam-under-test"));
        std::fs::write(&file, text).unwrap();
        let more = dir.join(format!("hatebeam-{}.service.d", self.name));
        std::fs::create_dir(&more).unwrap();
        let poweroff = read("deploy/systemd/poweroff.conf");
        std::fs::write(more.join("poweroff.conf"), poweroff).unwrap();
        file
    }
}

fn systemd_analyze() -> Option<Command> {
    let mut command = tool("HATEBEAM_SYSTEMD_ANALYZE", "systemd-analyze")?;
    command.env("SYSTEMD_LOG_LEVEL", "warning");
    Some(command)
}

#[test]
fn units_start_what_the_program_knows() {
    let mut ports = Vec::new();
    for unit in Unit::all() {
        let starts = unit.starts();
        assert!(!starts.is_empty());
        for start in &starts {
            start.check();
            ports.push((start.port("--listen"), start.port("--metrics")));
            assert_eq!(start.variable("HATEBEAM_TLS"), Some("/etc/hatebeam/tls"));
            if let Some(coordinator) = start.variable("HATEBEAM_COORDINATOR") {
                assert_eq!(port_of(coordinator), 7800);
            }
        }
    }
    assert_eq!(ports, [(7800, 9100), (7800, 9100), (7801, 9101)]);
}

#[test]
fn units_stop_in_order_and_come_back_after_a_failure() {
    let [coordinator, worker] = Unit::all();
    for unit in [&coordinator, &worker] {
        assert_eq!(unit.value("KillSignal"), "SIGINT");
        assert_eq!(unit.value("Restart"), "on-failure");
        // What the program says of a command line that is wrong.
        assert_eq!(unit.value("RestartPreventExitStatus"), "2");
        assert_eq!(unit.value("User"), "hatebeam");
        let folder = format!("/var/lib/{}", unit.value("StateDirectory"));
        for (key, ends) in [("WorkingDirectory", ""), ("Environment", "TMPDIR=")] {
            let value = unit.value(key).strip_prefix(ends).unwrap();
            assert_eq!(value, folder, "{}: {key}", unit.name);
        }
    }
    // What a worker holds goes to where the unit lets it write.
    let dir = worker.starts()[0].option("--dir").unwrap().to_owned();
    let folder = format!("/var/lib/{}/", worker.value("StateDirectory"));
    assert!(dir.starts_with(&folder), "{dir}");
    assert_eq!(worker.value("TimeoutStopSec"), "15min");
    let user = read("deploy/systemd/hatebeam.sysusers");
    assert!(user.lines().any(|line| line.starts_with("u hatebeam ")));
}

#[test]
fn systemd_finds_nothing_wrong() {
    for unit in Unit::all() {
        let Some(mut verify) = systemd_analyze() else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let output = verify
            .arg("verify")
            .arg(unit.installed(dir.path()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // Other units of the machine may have their faults.
        let about = said.lines().filter(|line| line.contains("hatebeam"));
        let about: Vec<&str> = about.collect();
        assert!(
            output.status.success() && about.is_empty(),
            "{}: {said}",
            unit.name
        );
    }
}

#[test]
fn units_can_do_little_harm() {
    for unit in Unit::all() {
        let Some(mut security) = systemd_analyze() else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        security.args(["security", "--offline=true", "--no-pager", "--threshold"]);
        // It fails where the exposure is more, in tenths.
        succeeds(security.arg(EXPOSURE).arg(unit.installed(dir.path())));
    }
}
