//! Tests of `hatebeam solve`.

use crate::support::{run, terminal};

#[test]
fn solve_finds_best_and_longest_game_of_small_well() {
    let solved = run(&["solve", "--width", "8", "--height", "5", "--json"]).json();
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
    let text = run(&["solve", "--width", "6", "--height", "5"]).silent_results();
    assert!(
        text.contains("best score  2") && text.contains("longest     8 pieces"),
        "{text}"
    );
}

#[test]
fn best_game_without_cleared_rows_has_replay() {
    let solved = run(&["solve", "--width", "4", "--height", "3", "--json"]).json();
    assert_eq!(solved["best_lines"], 0);
    let replay = solved["best_replay"].as_str().unwrap();
    run(&["replay", "verify", replay, "--width", "4", "--height", "3"]).results();
}

#[test]
fn terminal_shows_result_despite_progress_output() {
    let Some(terminal) = terminal(&["solve", "--width", "10", "--height", "4"]) else {
        return;
    };
    let (code, text) = terminal.wait();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("best score  1"), "{text}");
}

#[test]
fn invalid_options_are_refused() {
    for (args, code, expected) in [
        (
            &["--width", "10", "--height", "14"][..],
            1,
            "limit is 128 cells",
        ),
        (&["--width", "3"], 2, "--columns"),
        (
            &["--enemy", "brzustowski", "--height", "4"],
            2,
            "[possible values: hatetris, mild, lovetris, burgiel]",
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
            "can continue forever",
        ),
    ] {
        let result = run(&[&["solve", "--json"], args].concat());
        assert_eq!(result.code, code, "{args:?} {result:?}");
        assert!(result.err.contains(expected), "{args:?} {}", result.err);
    }
}

#[test]
fn default_height_can_be_solved_and_no_header_precedes_an_error() {
    let solved = run(&["solve", "--width", "5", "--json"]).json();
    assert_eq!(solved["height"], 6);
    let refused = run(&["solve", "--height", "14"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
}
