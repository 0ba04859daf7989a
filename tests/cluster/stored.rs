//! Runs read from the object store alone, when the cluster is gone.

use crate::WIDTH;
use crate::rig::{Rig, Watched, hatebeam};
use serde_json::Value;
use std::process::Output;

fn tell(args: &[&str]) -> Output {
    hatebeam().args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = tell(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_is_read_back_from_the_store_alone() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().display().to_string();
    let alone = Watched::alone(&WIDTH, dir.path());
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2"]);
    let run = rig.submit(&WIDTH)["run"].as_str().unwrap().to_owned();
    rig.watch().assert_same(&alone);
    rig.workers.clear();
    rig.coordinator = None;
    let store = rig.place.store.clone();
    let listed = json(&["runs", "--store", &store]);
    assert_eq!(listed["run"], run.as_str());
    assert_eq!(listed["state"], "finished");
    assert_eq!(listed["best_lines"], alone.end["best_lines"]);
    // Its frontiers, one by one, by the beginning of its name.
    let shown = json(&["runs", "show", &run[..12], "--store", &store]);
    let frontiers = shown["depths"].as_array().unwrap();
    for frontier in &frontiers[1..] {
        let record = &frontier["record"];
        let expected = &alone.depths[&record["depth"].as_u64().unwrap()];
        assert_eq!(record["digest"], expected["digest"]);
        assert_eq!(record["count"], expected["wells"]);
    }
    let text = tell(&["runs", "show", &run, "--store", &store]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("state     finished"), "{text}");
    // The same game as from the run on one machine, from the end and from the middle.
    for depth in [&[][..], &["--depth", "25"]] {
        let read = [&["keyframes", &run, "--store", &store][..], depth].concat();
        let read = json(&read);
        let expected = json(&[&["keyframes", &run, "--state", &state][..], depth].concat());
        for key in ["depth", "score", "wells", "keys"] {
            assert_eq!(read[key], expected[key], "{key}");
        }
    }
}

#[test]
fn what_is_not_in_the_store_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().display().to_string();
    for (args, code, words) in [
        (
            &["keyframes", "no-such", "--store", &store][..],
            1,
            "there is no run \"no-such\"",
        ),
        (
            &["runs", "show", "no-such", "--store", &store],
            1,
            "there is no run \"no-such\"",
        ),
        (
            &["runs", "--store", &store],
            0,
            "there are no runs in the object store",
        ),
        (
            &["runs", "--store", &store, "--state", &store],
            2,
            "cannot be used with",
        ),
        (
            &["runs", "show", "x", "--store", &store, "--verify"],
            2,
            "cannot be used with",
        ),
    ] {
        let output = tell(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}
