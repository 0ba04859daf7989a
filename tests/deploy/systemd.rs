//! Tests of the systemd units in deploy/systemd.

use crate::support::{Start, port_of, read, succeeds, tool};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "/usr/local/bin/hatebeam";
/// Maximum exposure level that `systemd-analyze security` may report, in tenths. The scale is from 0 (least exposed) to
/// 100.
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

    /// Returns the value of a key, which must occur exactly once.
    #[track_caller]
    fn value(&self, key: &str) -> &str {
        let lines = self.text.lines().filter_map(|line| line.split_once('='));
        let values: Vec<&str> = lines
            .filter(|(found, _)| *found == key)
            .map(|(_, value)| value)
            .collect();
        match values[..] {
            [value] => value,
            ref values => panic!("{}: {key}: {values:?}", self.name),
        }
    }

    /// Returns one command line with its environment for each OPTIONS line in the example environment file, including
    /// commented-out lines. Each environment contains all other variables in the file.
    fn starts(&self) -> Vec<Start> {
        let file = self.value("EnvironmentFile");
        assert_eq!(file, format!("/etc/hatebeam/{}.env", self.name));
        let text = read(&format!("deploy/systemd/{}.env", self.name));
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || b"_3".contains(&byte))
        };
        let lines: Vec<(String, String)> = text
            .lines()
            .filter_map(|line| line.trim_start_matches('#').split_once('='))
            .filter(|(name, _)| is_name(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
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

    /// Writes the unit, with the path of the tested program, and the drop-in poweroff.conf to a folder. Returns the
    /// path of the unit.
    fn install(&self, dir: &Path) -> std::path::PathBuf {
        let file = dir.join(format!("hatebeam-{}.service", self.name));
        let text = self
            .text
            .replace(PROGRAM, env!("CARGO_BIN_EXE_hatebeam-under-test"));
        std::fs::write(&file, text).unwrap();
        let drop_ins = dir.join(format!("hatebeam-{}.service.d", self.name));
        std::fs::create_dir(&drop_ins).unwrap();
        let poweroff = read("deploy/systemd/poweroff.conf");
        std::fs::write(drop_ins.join("poweroff.conf"), poweroff).unwrap();
        file
    }
}

fn systemd_analyze() -> Option<Command> {
    let mut command = tool("HATEBEAM_SYSTEMD_ANALYZE", "systemd-analyze")?;
    command.env("SYSTEMD_LOG_LEVEL", "warning");
    Some(command)
}

#[test]
fn program_accepts_options_and_variables_of_units() {
    let mut ports = Vec::new();
    for unit in Unit::all() {
        for start in unit.starts() {
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
fn units_match_exit_codes_and_folders_of_program() {
    let sysusers = read("deploy/systemd/hatebeam.sysusers");
    assert!(sysusers.lines().any(|line| line.starts_with("u hatebeam ")));
    for unit in Unit::all() {
        assert_eq!(unit.value("User"), "hatebeam");
        // SIGINT stops the program gracefully.
        assert_eq!(unit.value("KillSignal"), "SIGINT");
        // The program exits with code 2 if its command line is wrong, so a restart would not help.
        assert_eq!(unit.value("RestartPreventExitStatus"), "2");
        // All folders to which the program writes are below the unit's writable folder.
        let folder = format!("/var/lib/{}", unit.value("StateDirectory"));
        assert_eq!(unit.value("Environment"), format!("TMPDIR={folder}"));
        for start in unit.starts() {
            let dir = start.option("--dir").unwrap_or(&folder);
            assert!(dir.starts_with(&folder), "{dir}");
        }
    }
}

#[test]
fn units_pass_systemd_analyze_verify() {
    for unit in Unit::all() {
        let Some(mut verify) = systemd_analyze() else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let unit_file = unit.install(dir.path());
        let output = verify.arg("verify").arg(unit_file).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        // Ignores messages about other units on this machine.
        let is_clean = !messages.lines().any(|line| line.contains("hatebeam"));
        assert!(
            output.status.success() && is_clean,
            "{}: {messages}",
            unit.name
        );
    }
}

#[test]
fn units_pass_systemd_analyze_security() {
    for unit in Unit::all() {
        let Some(mut security) = systemd_analyze() else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        security.args(["security", "--offline=true", "--no-pager", "--threshold"]);
        succeeds(security.arg(EXPOSURE).arg(unit.install(dir.path())));
    }
}
