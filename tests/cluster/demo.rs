//! Tests of `hatebeam demo`. They check the demo's result, and that no processes remain after the demo exits or is killed.

use crate::program::{hatebeam, signal, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Returns a command that runs a demo with its temporary files in `dir`.
fn demo(dir: &TempDir, args: &[&str]) -> Command {
    let mut command = hatebeam();
    command.arg("demo").args(args).env("TMPDIR", dir.path());
    command
}

/// Returns the number of processes whose command line contains the path `dir`, such as the servers of a demo whose
/// folder is in `dir`.
fn servers_in(dir: &Path) -> usize {
    let name = dir.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(name))
        .count()
}

/// Starts a demo that is too wide to finish during the test, and waits until its servers run.
fn start(dir: &TempDir) -> Child {
    let mut command = demo(dir, &["--no-play", "--width", "3M"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    wait_until(
        || servers_in(dir.path()) >= 3,
        || "fewer than three servers have started".to_owned(),
    );
    child
}

fn files_in(dir: &TempDir) -> usize {
    fs::read_dir(dir.path()).unwrap().count()
}

#[test]
fn demo_prints_valid_replay_and_leaves_no_processes_or_files() {
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
    assert_eq!(files_in(&dir), 0);
    assert_eq!(servers_in(dir.path()), 0);
}

#[test]
fn demo_keeps_folder_given_with_dir() {
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
fn terminated_demo_leaves_no_processes_or_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(&dir);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(servers_in(dir.path()), 0);
    assert_eq!(files_in(&dir), 0);
}

#[test]
fn servers_exit_when_demo_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(&dir);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(
        || servers_in(dir.path()) == 0,
        || "the servers have not exited".to_owned(),
    );
}
