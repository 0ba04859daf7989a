//! Tests of commands that read runs from the object store without a coordinator.

use crate::SHORT;
use crate::harness::{Cluster, RunOutput};
use crate::program::hatebeam;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn run(args: &[&str]) -> Output {
    hatebeam().args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn run_in_store_gives_same_game_as_local_run_and_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().display().to_string();
    let local = RunOutput::of_one_process(&SHORT, dir.path());
    let mut cluster = Cluster::new();
    cluster.start_coordinator();
    cluster.start_worker("w0", &["--threads", "2"]);
    let name = cluster.submit_name(&SHORT);
    cluster.watch().assert_same(&local);
    cluster.workers.clear();
    cluster.coordinator = None;
    let store = cluster.store.location.clone();
    let listed = json(&["runs", "--store", &store]);
    assert_eq!(listed["run"], name.as_str());
    assert_eq!(listed["state"], "finished");
    assert_eq!(listed["best_lines"], local.end["best_lines"]);
    // A prefix of the run's name is sufficient.
    let shown = json(&["runs", "show", &name[..12], "--store", &store]);
    let frontiers = shown["depths"].as_array().unwrap();
    for frontier in &frontiers[1..] {
        let record = &frontier["record"];
        let expected = &local.depths[&record["depth"].as_u64().unwrap()];
        assert_eq!(record["digest"], expected["digest"]);
        assert_eq!(record["count"], expected["wells"]);
    }
    let text = run(&["runs", "show", &name, "--store", &store]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("state     finished"), "{text}");
    // The stored run and the local run give the same game, both from the last depth and from depth 25.
    for depth in [&[][..], &["--depth", "25"]] {
        let stored = json(&[&["keyframes", &name, "--store", &store][..], depth].concat());
        let expected = json(&[&["keyframes", &name, "--state", &state][..], depth].concat());
        for key in ["depth", "score", "wells", "keys"] {
            assert_eq!(stored[key], expected[key], "{key}");
        }
    }
    // Without --yes, the command asks for confirmation, which requires a terminal.
    let rm = ["runs", "rm", &name, "--store", &store];
    assert_eq!(run(&rm).status.code(), Some(2));
    let removed = run(&[&rm[..], &["--yes"]].concat());
    assert!(removed.status.success(), "{removed:?}");
    let left = run(&["runs", "--store", &store]);
    assert!(left.stdout.is_empty(), "{left:?}");
    assert!(!run(&[&rm[..], &["--yes"]].concat()).status.success());
    // The files of the best game remain.
    let folder = Path::new(&store).join("runs").join(&name);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_dir(folder.join("replays")).unwrap().count(), 5);
}

#[test]
fn unknown_runs_conflicting_options_and_empty_store_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().display().to_string();
    let unknown = "there is no run \"no-such\"";
    let conflict = "cannot be used with";
    for (args, code, expected) in [
        (&["keyframes", "no-such", "--store", &store][..], 1, unknown),
        (&["runs", "show", "no-such", "--store", &store], 1, unknown),
        (
            &["runs", "--store", &store],
            0,
            "no runs in the object store",
        ),
        (&["runs", "--store", &store, "--state", &store], 2, conflict),
        (
            &["runs", "show", "x", "--store", &store, "--verify"],
            2,
            conflict,
        ),
    ] {
        let output = run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
