//! Tests of `hatebeam endgame`.

use crate::support::{example, file, run};
use serde_json::Value;

#[track_caller]
fn json(args: &[&str]) -> Value {
    run(&[&["endgame", "--json"], args].concat()).json()
}

#[test]
fn end_of_public_game_is_proven_optimal() {
    let found = json(&["--file", &example(), "--nodes", "200000"]);
    assert_eq!(found["score"], 148);
    assert_eq!(found["was"], 148);
    let from = found["proven_from"].as_u64().unwrap();
    assert!((300..395).contains(&from), "{from}");
    let again = json(&["--file", &example(), "--nodes", "200000"]);
    assert_eq!(again["proven_from"], found["proven_from"]);
    assert_eq!(again["nodes"], found["nodes"]);
    let text = run(&["endgame", "--file", &example(), "--from-piece", "395"]).silent_results();
    assert!(
        text.contains("148 (unchanged)") && text.contains("proven"),
        "{text}"
    );
}

#[test]
fn endgame_improves_game_with_bad_end() {
    // Keeps the first 90 % of the keys and appends downward moves.
    let keys = run(&["replay", "convert", "--to", "raw", "--file", &example()]).silent_results();
    let cut = keys.trim().len() * 9 / 10;
    let spoiled = format!("{}{}", &keys[..cut], "D".repeat(400));
    let spoiled = file("spoiled.txt", spoiled.as_bytes());
    let run_of = |args: &[&str]| run(&[&["endgame", "--json"], args].concat());
    let searched = run_of(&["--file", &spoiled, "--nodes", "300000"]);
    let damaged = "the replay may be damaged";
    assert!(searched.err.contains(damaged), "{}", searched.err);
    let found: Value = serde_json::from_str(&searched.out).unwrap();
    let score = found["score"].as_u64().unwrap();
    let was = found["was"].as_u64().unwrap();
    assert!(score > was, "{score} {was}");
    let replay = found["replay"].as_str().unwrap();
    run(&[
        "replay",
        "verify",
        replay,
        "--expect-score",
        &score.to_string(),
    ])
    .results();
}

#[test]
fn small_well_is_solved() {
    let found = json(&[
        "--well",
        "000000000000",
        "--height",
        "4",
        "--nodes",
        "1000000",
    ]);
    assert_eq!(found["score"], 1);
    assert_eq!(found["proven"], true);
    let replay = found["replay"].as_str().unwrap();
    run(&[
        "replay",
        "verify",
        replay,
        "--height",
        "4",
        "--expect-score",
        "1",
    ])
    .results();
}

#[test]
fn invalid_options_are_refused() {
    for (args, code, expected) in [
        (&["DD", "--well", "00"][..], 2, "cannot be used with"),
        (&["--well", "zz"], 1, "--well"),
        (&["DDDD"], 1, "not a finished game"),
        (&["--file", "nowhere"], 1, "nowhere"),
        (&["--nodes", "0", "DD"], 2, "--nodes"),
        (&["--seconds", "0", "DD"], 2, "seconds"),
        (&["--seconds", "nan", "DD"], 2, "seconds"),
        (&["--seconds", "-1", "DD"], 2, "give a number of seconds"),
        (&["--memory", "0", "DD"], 2, "--memory"),
        (&["--memory", "1048576", "DD"], 1, "pass --memory"),
        (&["--memory", "1048576", "--file", "none"], 1, "none"),
    ] {
        let result = run(&[&["endgame"], args].concat());
        assert_eq!(result.code, code, "{args:?} {result:?}");
        assert!(result.err.contains(expected), "{args:?} {}", result.err);
    }
    let out_of_range = ["endgame", "--file", &example(), "--from-piece", "9999"];
    let error = run(&out_of_range).error(1);
    assert!(error.contains("no piece 9999"), "{error}");
}
