//! Tests of `hatebeam tune`, `hatebeam agents train` and `hatebeam nes train`.

use crate::support::{command, run};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// Options for a small number of evaluations.
const SMALL: [&str; 4] = ["--evaluations", "40", "--population", "8"];

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn tune_args<'a>(folder: &'a str, threads: &'a str) -> Vec<&'a str> {
    let args = ["tune", folder, "--widths", "40,60", "--threads", threads];
    [&args[..], &SMALL].concat()
}

#[test]
fn killed_tuning_resumes_and_run_uses_tuned_weights() {
    let temp = tempfile::tempdir().unwrap();
    let whole = text(&temp.path().join("whole"));
    let output = run(&tune_args(&whole, "1")).silent_results();
    assert!(
        output.contains(" pieces  ") && output.contains("holes="),
        "{output}"
    );

    let killed = text(&temp.path().join("killed"));
    let args = tune_args(&killed, "2");
    for milliseconds in [100, 300] {
        let mut tuning = command(&args).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(milliseconds));
        tuning.kill().unwrap();
        tuning.wait().unwrap();
    }
    run(&args).silent_results();
    let weights = |folder: &str| fs::read_to_string(format!("{folder}/weights.toml")).unwrap();
    assert_eq!(weights(&whole), weights(&killed));

    let state = text(&temp.path().join("state"));
    let file = format!("{whole}/weights.toml");
    let output = run(&[
        "run",
        "--state",
        &state,
        "--width",
        "40",
        "--weights",
        &file,
        "--json",
    ])
    .results();
    let result: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    let best: f64 = weights(&whole)
        .split_once(": ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .map(|(pieces, _)| pieces.parse().unwrap())
        .unwrap();
    assert!(best > 10.0 && result.is_object(), "{best} {result}");
}

#[test]
fn quiescence_and_evaluator_of_start_file_are_used() {
    let temp = tempfile::tempdir().unwrap();
    let start = text(&temp.path().join("start.toml"));
    let content = "quiescence = \"single\"\n[weights]\nholes = 30\n";
    fs::write(&start, format!("evaluator = \"knewjade\"\n{content}")).unwrap();
    let tune = |name: &str, more: &[&str]| {
        let folder = text(&temp.path().join(name));
        let options = ["--weight", "score", "--widths", "20", "--start", &start];
        let args = [&["tune", &folder], &options[..], &SMALL, more].concat();
        run(&args).silent_results();
        fs::read_to_string(format!("{folder}/weights.toml")).unwrap()
    };
    let weights = tune("file", &[]);
    assert!(weights.contains("quiescence = \"single\"\n"), "{weights}");
    assert!(weights.contains("holes = 30.0\n"), "{weights}");
    let weights = tune("option", &["--quiescence", "OFF"]);
    assert!(weights.contains("quiescence = \"off\"\n"), "{weights}");
    fs::write(&start, format!("evaluator = \"patterns\"\n{content}")).unwrap();
    let folder = text(&temp.path().join("patterns"));
    let error = run(&["tune", &folder, "--start", &start]).error(1);
    let expected = format!("{start}: cannot tune the evaluator patterns: ");
    assert!(error.starts_with(&expected), "{error}");
    fs::write(&start, "[weights]\nholes = 1e9\n").unwrap();
    let error = run(&["tune", &folder, "--start", &start]).error(1);
    let expected = format!("{start}: the weight of holes");
    assert!(error.starts_with(&expected), "{error}");
    fs::remove_file(&start).unwrap();
    let error = run(&["tune", &folder, "--start", &start]).error(1);
    let expected = format!("cannot read the weights file {start} (--start): ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn invalid_options_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = text(temp.path());
    for (args, code, reason) in [
        (&["--weight", "hole"][..], 1, "unknown weight \"hole\""),
        (
            &["--weight", "holes", "--weight", "holes=1..5"],
            1,
            "\"holes\" is named twice",
        ),
        (&["--weight", "holes=5..1"], 2, "is not a range"),
        (
            &["--weight", "holes=0..1e9"],
            1,
            "must be a number from -4096 to 4096",
        ),
        (&["--method", "luck"], 2, "simplers"),
        (&["--widths", "100,abc"], 2, "give widths from 1 to 1000000"),
        (&["--evaluations", "1000001"], 2, "1000001"),
    ] {
        let args = [&["tune", &folder], args].concat();
        let error = run(&args).error(code);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn play_with_trained_weights_gives_best_value_of_training() {
    let temp = tempfile::tempdir().unwrap();
    for (group, rules) in [
        (
            "agents",
            &[
                "--games",
                "3",
                "--width",
                "6",
                "--height",
                "8",
                "--max-pieces",
                "60",
            ][..],
        ),
        ("nes", &["--games", "2", "--stop-lines", "6"]),
    ] {
        let folder = temp.path().join(group);
        let path = text(&folder);
        let train = [&[group, "train", &path, "--json"], &SMALL[..], rules].concat();
        let lines = run(&train).silent_results();
        let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        let best = last["best"]["value"].as_f64().unwrap();
        let file = text(&folder.join("weights.toml"));
        let play = [&[group, "play", "--weights", &file, "--json"], rules].concat();
        let played: Value = serde_json::from_str(&run(&play).silent_results()).unwrap();
        let players = played["players"].as_array().unwrap();
        assert_eq!(players.len(), 1);
        assert!(
            (players[0]["mean"].as_f64().unwrap() - best).abs() < 1e-9,
            "{group}: {played} {last}"
        );
        let other = [&[group, "train", &path, "--games", "1"], &SMALL[..]].concat();
        let error = run(&other).error(1);
        assert!(
            error.contains("belongs to a search with other settings"),
            "{error}"
        );
    }
}

/// Rules of short games.
const RULES: [&str; 8] = [
    "--games",
    "20",
    "--width",
    "6",
    "--height",
    "8",
    "--max-pieces",
    "80",
];

#[test]
fn training_changes_only_the_given_weights() {
    let temp = tempfile::tempdir().unwrap();
    let folder = text(&temp.path().join("weights"));
    let train = ["agents", "train", &folder, "--json", "--method", "brenman"];
    let given = ["--weight", "holes=-10..0", "--weight", "landing_height"];
    let output = run(&[&train[..], &given, &SMALL, &RULES].concat()).silent_results();
    let rounds = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["rounds"].as_u64()
    };
    assert!(output.lines().filter_map(rounds).any(|rounds| rounds > 2));
    let file = fs::read_to_string(format!("{folder}/weights.toml")).unwrap();
    assert!(file.contains("row_transitions = -9.22\n"), "{file}");
    assert!(!file.contains("landing_height = -12.63\n"), "{file}");
    let unknown = [&train[..], &["--weight", "hole"]].concat();
    assert!(run(&unknown).error(1).contains("unknown weight \"hole\""));
}

#[test]
fn selection_keeps_the_weights_that_matter() {
    let temp = tempfile::tempdir().unwrap();
    let file = text(&temp.path().join("fewer.toml"));
    let select = [&["agents", "select", &file, "--json"], &RULES[..]].concat();
    let output = run(&select).silent_results();
    let mut rounds: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = rounds.pop().unwrap();
    assert_eq!(end["file"], file);
    let removed = rounds.iter().map(|round| &round["removed"]);
    let removed: Vec<&Value> = removed.filter(|name| !name.is_null()).collect();
    assert_eq!(json!(removed), end["removed"]);
    // The last round removes no weight.
    assert_eq!(removed.len(), rounds.len() - 1);
    let weights = fs::read_to_string(&file).unwrap();
    let (_, weights) = weights.split_once("[weights]\n").unwrap();
    let kept = weights.lines().filter(|line| !line.ends_with("= 0.0"));
    // The last round, which removes nothing, also plays with all remaining weights.
    let last = rounds.last().unwrap()["players"].as_array().unwrap().len() - 1;
    assert_eq!(kept.count(), last);
    let [first, after] = [&rounds[0], rounds.last().unwrap()]
        .map(|round| round["players"][0]["mean"].as_f64().unwrap());
    assert!(after > 0.8 * first, "{after} instead of {first}");
    let play = [
        &["agents", "play", "--weights", &file, "--json"],
        &RULES[..],
    ]
    .concat();
    let played: Value = serde_json::from_str(&run(&play).silent_results()).unwrap();
    assert_eq!(played["players"][0]["mean"].as_f64(), Some(after));
    let two = [
        "agents",
        "select",
        &file,
        "--weights",
        &file,
        "--weights",
        &file,
    ];
    assert!(run(&two).error(2).contains("only one --weights"));
}
