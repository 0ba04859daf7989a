//! `endgame`.

use crate::support::{example, file, run};
use serde_json::Value;

#[track_caller]
fn json(args: &[&str]) -> Value {
    let results = run(&[&["endgame", "--json"], args].concat()).silent_results();
    serde_json::from_str(&results).unwrap()
}

#[test]
fn the_end_of_a_good_game_is_proven() {
    let found = json(&["--file", &example(), "--nodes", "200000"]);
    assert_eq!((&found["score"], &found["was"]), (&148.into(), &148.into()));
    let from = found["proven_from"].as_u64().unwrap();
    assert!((300..395).contains(&from), "{from}");
    let again = json(&["--file", &example(), "--nodes", "200000"]);
    assert_eq!(
        (&again["proven_from"], &again["nodes"]),
        (&found["proven_from"], &found["nodes"])
    );
    let told = run(&["endgame", "--file", &example(), "--from-piece", "395"]).silent_results();
    assert!(
        told.contains("148 (as before)") && told.contains("proven"),
        "{told}"
    );
}

#[test]
fn a_game_that_was_given_up_is_played_on() {
    // The good game's first half, and then nothing but drops.
    let keys = run(&["replay", "convert", "--to", "raw", "--file", &example()]).silent_results();
    let cut = keys.trim().len() * 9 / 10;
    let spoiled = format!("{}{}", &keys[..cut], "D".repeat(400));
    let spoiled = file("spoiled.txt", spoiled.as_bytes());
    let found = json(&["--file", &spoiled, "--nodes", "300000"]);
    let (score, was) = (
        found["score"].as_u64().unwrap(),
        found["was"].as_u64().unwrap(),
    );
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
fn a_small_well_is_searched_to_the_end() {
    let found = json(&[
        "--well",
        "000000000000",
        "--height",
        "4",
        "--nodes",
        "1000000",
    ]);
    assert_eq!(
        (&found["score"], &found["proven"]),
        (&1.into(), &true.into())
    );
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
fn what_cannot_be_searched_is_refused() {
    for (args, code, expected) in [
        (&["DD", "--well", "00"][..], 2, "cannot be used with"),
        (&["--well", "zz"], 1, "--well"),
        (&["DDDD"], 1, "no finished game"),
        (&["--file", "nowhere"], 1, "nowhere"),
        (&["--nodes", "0", "DD"], 2, "--nodes"),
        (&["--seconds", "0", "DD"], 2, "seconds"),
        (&["--seconds", "nan", "DD"], 2, "seconds"),
        (&["--memory", "0", "DD"], 2, "--memory"),
    ] {
        let ran = run(&[&["endgame"], args].concat());
        assert_eq!(ran.code, code, "{args:?} {ran:?}");
        assert!(ran.err.contains(expected), "{args:?} {}", ran.err);
    }
    let out_of_range = ["endgame", "--file", &example(), "--from-piece", "9999"];
    let error = run(&out_of_range).error(1);
    assert!(error.contains("no piece 9999"), "{error}");
}
