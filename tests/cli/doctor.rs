//! Tests of `hatebeam doctor` that do not need a cluster.

use crate::support::{Run, command, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A path that is not a folder, so that the command does not measure the speed of a disk.
const NO_DIR: &str = "/dev/null";

fn doctor(args: &[&str]) -> Run {
    run(&[&["doctor"], args].concat())
}

/// Returns the verdict and the finding of the check with the given name.
#[track_caller]
fn find(report: &Value, name: &str) -> (String, String) {
    let mut checks = report["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name}: {report}"));
    let text = |key: &str| check[key].as_str().unwrap().to_owned();
    (text("verdict"), text("found"))
}

/// Parses the report of `hatebeam doctor --json`. Asserts that the report agrees with the exit code, and that a check
/// has advice if and only if its verdict is not `ok`.
#[track_caller]
fn report(run: &Run) -> Value {
    assert_eq!(run.err, "");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let failed = checks.iter().any(|check| check["verdict"] == "failed");
    assert_eq!(report["ok"], !failed, "{report}");
    assert_eq!(run.code, i32::from(failed), "{report}");
    for check in checks {
        assert_eq!(
            check["verdict"] == "ok",
            check["advice"].is_null(),
            "{check}"
        );
    }
    report
}

#[test]
fn doctor_checks_machine_and_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("worker").display().to_string();
    let report = report(&doctor(&["--json", "--dir", &path]));
    for name in ["processor", "memory", "disk space", "disk speed", "ports"] {
        find(&report, name);
    }
    let (_, disk) = find(&report, "disk space");
    assert!(disk.contains(&path), "{disk}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let text = doctor(&["--dir", &path]);
    assert_eq!(
        text.out.lines().count(),
        report["checks"].as_array().unwrap().len()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_fails_if_folder_cannot_be_created() {
    let run = doctor(&["--json", "--dir", "/proc/self/nothing"]);
    let report = report(&run);
    assert_eq!(report["ok"], false);
    doctor(&["--dir", ""]).error(2);
}

#[test]
fn doctor_fails_if_folder_is_a_file() {
    let file = report(&doctor(&["--json", "--dir", "/etc/passwd"]));
    let (verdict, text) = find(&file, "disk space");
    assert_eq!(verdict, "failed");
    assert!(text.contains("is not a folder"), "{text}");
}

#[test]
fn doctor_checks_store_certificates_and_coordinator() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (store, tls) = (at("store"), at("tls"));
    let made = command(&["certs", "--out", &tls, "--days", "20"]).output();
    assert!(made.unwrap().status.success());
    let args = ["--json", "--dir", NO_DIR, "--store", &store, "--tls", &tls];
    // A folder that does not exist is not created.
    let found = report(&doctor(&args));
    let (verdict, text) = find(&found, "object store");
    assert_eq!(verdict, "failed");
    assert!(text.contains("there is no such folder"), "{text}");
    assert!(!Path::new(&store).exists());
    fs::create_dir(&store).unwrap();
    let found = report(&doctor(&args));
    assert_eq!(find(&found, "object store").0, "ok");
    assert_eq!(find(&found, "clock").0, "ok");
    let (verdict, text) = find(&found, "certificates");
    assert_eq!(verdict, "ok", "{text}");
    assert!(
        text.contains("valid for 19 days") || text.contains("valid for 20 days"),
        "{text}"
    );
    // Certificates that expire in two days cause a warning.
    let made = command(&["certs", "--out", &tls, "--days", "2", "--renew"]).output();
    assert!(made.unwrap().status.success());
    let found = report(&doctor(&args));
    assert_eq!(find(&found, "certificates").0, "warning");
    // A coordinator that cannot be reached, and a folder without certificates.
    for (check, args) in [
        ("coordinator", ["--coordinator", "http://127.0.0.1:1"]),
        ("certificates", ["--tls", &store]),
    ] {
        let args = [&["--json", "--dir", NO_DIR], &args[..]].concat();
        let found = report(&doctor(&args));
        assert_eq!(find(&found, check).0, "failed", "{found}");
    }
}
