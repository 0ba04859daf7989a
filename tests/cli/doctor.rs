//! `doctor`.

use crate::support::{Run, command, run_command};
use serde_json::Value;

/// Looks at nothing but this machine and what the arguments name.
fn doctor(args: &[&str]) -> Run {
    let mut command = command(&[&["doctor"], args].concat());
    for name in ["HATEBEAM_STORE", "HATEBEAM_COORDINATOR", "HATEBEAM_TLS"] {
        command.env_remove(name);
    }
    run_command(command, b"")
}

/// The verdict and what was found, of a check.
fn find(report: &Value, name: &str) -> (String, String) {
    let mut checks = report["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no {name}: {report}"));
    let text = |key: &str| check[key].as_str().unwrap().to_owned();
    (text("verdict"), text("found"))
}

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
fn a_machine_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("worker").display().to_string();
    let report = report(&doctor(&["--json", "--dir", &path]));
    for name in ["processor", "memory", "disk space", "disk speed", "ports"] {
        find(&report, name);
    }
    let (_, disk) = find(&report, "disk space");
    assert!(disk.contains(&path), "{disk}");
    // Nothing is left behind.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let text = doctor(&["--dir", &path]);
    assert_eq!(
        text.out.lines().count(),
        report["checks"].as_array().unwrap().len()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_nothing_has_failed() {
    let run = doctor(&["--json", "--dir", "/proc/self/nothing"]);
    let report = report(&run);
    assert_eq!(report["ok"], false);
    doctor(&["--dir", ""]).error(2);
}
#[test]
fn a_store_certificates_and_a_coordinator_are_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (store, tls) = (at("store"), at("tls"));
    let made = command(&["certs", "--out", &tls, "--days", "20"]).output();
    assert!(made.unwrap().status.success());
    let args = ["--json", "--dir", &at(""), "--store", &store, "--tls", &tls];
    let found = report(&doctor(&args));
    assert_eq!(find(&found, "object store").0, "ok");
    assert_eq!(find(&found, "clock").0, "ok");
    let (verdict, text) = find(&found, "certificates");
    assert_eq!(verdict, "ok", "{text}");
    assert!(
        text.contains("good for 19 days") || text.contains("good for 20 days"),
        "{text}"
    );
    // Almost over.
    let made = command(&["certs", "--out", &tls, "--days", "2", "--renew"]).output();
    assert!(made.unwrap().status.success());
    let found = report(&doctor(&args));
    assert_eq!(find(&found, "certificates").0, "warning");
    // Nobody there; no certificates; no store.
    let nobody = [
        "--json",
        "--dir",
        &at(""),
        "--coordinator",
        "http://127.0.0.1:1",
    ];
    assert_eq!(find(&report(&doctor(&nobody)), "coordinator").0, "failed");
    let nothing = ["--json", "--dir", &at(""), "--tls", &store];
    assert_eq!(find(&report(&doctor(&nothing)), "certificates").0, "failed");
    let nowhere = ["--json", "--dir", &at(""), "--store", "gs://bucket"];
    assert_eq!(find(&report(&doctor(&nowhere)), "object store").0, "failed");
}
