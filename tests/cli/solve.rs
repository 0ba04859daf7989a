//! `solve`.

use crate::support::{run, script};
use serde_json::Value;

#[test]
fn a_small_well_is_solved() {
    let solved = run(&["solve", "--width", "8", "--height", "5", "--json"]).silent_results();
    let solved: Value = serde_json::from_str(&solved).unwrap();
    assert_eq!(solved["best_lines"], 3);
    assert_eq!(solved["longest"], 13);
    assert_eq!(solved["widest"], 12380);
    assert_eq!(solved["levels"].as_array().unwrap().len(), 14);
    assert_eq!(solved["scratch_bytes"], 0);
    for (replay, score) in [("best_replay", Some("3")), ("longest_replay", None)] {
        let replay = solved[replay].as_str().unwrap();
        let mut args = vec!["replay", "verify", replay, "--width", "8", "--height", "5"];
        args.extend(
            score
                .into_iter()
                .flat_map(|score| ["--expect-score", score]),
        );
        run(&args).results();
    }
    let told = run(&["solve", "--width", "6", "--height", "5"]).silent_results();
    assert!(
        told.contains("best score  2") && told.contains("longest     8 pieces"),
        "{told}"
    );
}

#[test]
fn a_best_game_without_lines_has_a_replay_too() {
    let solved = run(&["solve", "--width", "4", "--height", "3", "--json"]).silent_results();
    let solved: Value = serde_json::from_str(&solved).unwrap();
    assert_eq!(solved["best_lines"], 0);
    let replay = solved["best_replay"].as_str().unwrap();
    run(&["replay", "verify", replay, "--width", "4", "--height", "3"]).results();
}

#[test]
fn on_a_terminal_progress_leaves_no_trace() {
    let Some(terminal) = script(&["solve", "--width", "10", "--height", "4"]) else {
        eprintln!("skipped: there is no script(1)");
        return;
    };
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("best score  1"), "{text}");
}

#[test]
fn what_cannot_be_solved_is_refused() {
    for (args, code, expected) in [
        (&["--width", "10", "--height", "14"][..], 1, "at most 128"),
        (&["--width", "3"], 2, "width"),
        (
            &["--enemy", "brzustowski", "--height", "4"],
            1,
            "remembers wells",
        ),
        (&["--memory", "1"], 2, "64"),
        (&["--threads", "0"], 2, "--threads"),
        (
            &["--scratch", "/nowhere", "--height", "4"],
            1,
            "the scratch folder /nowhere",
        ),
        (
            &["--scratch", "/dev/null", "--height", "4"],
            1,
            "the scratch folder /dev/null",
        ),
        (
            &["--enemy", "lovetris", "--width", "5", "--height", "4"],
            1,
            "need not end",
        ),
    ] {
        let ran = run(&[&["solve", "--json"], args].concat());
        assert_eq!(ran.code, code, "{args:?} {ran:?}");
        assert!(ran.err.contains(expected), "{args:?} {}", ran.err);
    }
}
