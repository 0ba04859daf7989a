//! `demo`: that it shows what it should, and that nothing of it is left, whatever its end is.

use crate::rig::{PATIENCE, hatebeam};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A demo whose temporary folder is in `dir`.
fn demo(dir: &TempDir, args: &[&str]) -> Command {
    let mut command = hatebeam();
    command.arg("demo").args(args).env("TMPDIR", dir.path());
    command
}

/// The processes that were told of a folder, but for the demo itself.
fn servers_in(dir: &Path) -> usize {
    let named = dir.to_str().unwrap().to_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let told = lines.filter(|line| String::from_utf8_lossy(line).contains(&named));
    told.count()
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn begin(dir: &TempDir) -> Child {
    // So wide that it lasts until it is stopped.
    let mut command = demo(dir, &["--no-play", "--width", "3M"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    until("three servers", || servers_in(dir.path()) >= 3);
    child
}

fn signal(child: &Child, signal: &str) {
    let done = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(done.unwrap().success());
}

#[test]
fn a_demo_ends_with_a_game_that_holds() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(&dir, &["--width", "100", "--exit", "--no-play"]).output();
    let output = output.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.starts_with("valid\n"), "{out}");
    let replay = out.lines().next_back().unwrap();
    let mut verify = hatebeam();
    verify.args(["replay", "verify", "--from", "base2048", replay]);
    assert!(verify.output().unwrap().status.success(), "{replay}");
    assert!(err.contains("a coordinator at http://127.0.0.1:"), "{err}");
    assert!(err.contains(" depth "), "{err}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(servers_in(dir.path()), 0);
}

#[test]
fn a_folder_that_was_named_stays() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let args = ["--width", "50", "--exit", "--dir", kept.to_str().unwrap()];
    for _ in 0..2 {
        let output = demo(&dir, &args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        for name in ["replay.txt", "coordinator.log", "store"] {
            assert!(kept.join(name).exists(), "{name}");
        }
    }
    assert_eq!(servers_in(dir.path()), 0);
}

#[test]
fn told_to_stop_it_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = begin(&dir);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(servers_in(dir.path()), 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn killed_its_servers_follow() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = begin(&dir);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the servers live on", || servers_in(dir.path()) == 0);
}
