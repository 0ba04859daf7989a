//! Tests of `hatebeam perft`.

use crate::support::{run, vector};
use serde_json::{Value, json};

/// Returns the number of wells at each depth (number of placed pieces).
#[track_caller]
fn counts(args: &[&str]) -> Value {
    run(&[&["perft", "--json"], args].concat()).json()["counts"].clone()
}

#[test]
fn perft_counts_equal_published_counts() {
    let expected: Value = serde_json::from_str(&vector("perft.json")).unwrap();
    let results = run(&["perft", "--depth", "6", "--json"]).silent_results();
    let counts = &expected["counts"];
    assert_eq!(
        results,
        format!("{{\"width\":10,\"height\":16,\"depth\":6,\"counts\":{counts}}}\n")
    );
}

#[test]
fn perft_of_small_wells_gives_published_game_length_and_widest_depth() {
    let expected: Value = serde_json::from_str(&vector("small_wells.json")).unwrap();
    for (rules, option) in [
        ("real_rules", None),
        ("lines_clear_above_bar", Some("--clear-above-bar")),
    ] {
        for (size, facts) in expected[rules].as_object().unwrap() {
            let (width, height) = size.split_once('x').unwrap();
            let mut args = vec!["--depth", "20", "--width", width, "--height", height];
            args.extend(option);
            let counts: Vec<u64> = serde_json::from_value(counts(&args)).unwrap();
            let longest = counts.iter().rposition(|&count| count > 0).unwrap();
            assert_eq!(counts.len(), 21);
            assert_eq!(longest as u64, facts[1].as_u64().unwrap(), "{rules} {size}");
            assert_eq!(
                counts.iter().max().copied(),
                facts[2].as_u64(),
                "{rules} {size}"
            );
        }
    }
}

#[test]
fn memory_limit_does_not_change_counts() {
    // Only a quarter of the children at the last depth fit in 1 MiB.
    assert_eq!(
        counts(&["--depth", "4", "--memory", "1"]),
        counts(&["--depth", "4", "--memory", "100"])
    );
}

#[test]
fn text_output_ends_at_first_depth_without_wells() {
    let results = run(&["perft", "--depth", "100", "--height", "2"]).silent_results();
    let lines: Vec<&str> = results.lines().map(str::trim_start).collect();
    assert_eq!(
        lines,
        [
            "pieces  wells",
            "0  1",
            "1  8",
            "2  21",
            "3  20",
            "4  2",
            "5  0"
        ]
    );
}

#[test]
fn error_for_insufficient_memory_names_remedies() {
    let (out, error) = run(&["perft", "--depth", "6", "--memory", "2"]).late_error();
    assert!(out.ends_with("\n     3  2339\n     4  25195\n"), "{out}");
    assert_eq!(
        error,
        "level 5 does not fit in 2 MiB: raise --memory, or use --depth 5, which only counts it"
    );
    // The object contains the counts of the levels that fit.
    let found = run(&["perft", "--depth", "6", "--memory", "2", "--json"]);
    assert_eq!((found.code, found.err.as_str()), (1, ""));
    let object: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(object["error"], error);
    let counts = object["counts"].as_array().unwrap();
    assert_eq!((counts.len(), &counts[4]), (5, &json!(25_195)));
}
