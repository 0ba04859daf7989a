//! Tests of `hatebeam splice`.

use crate::support::{example, file, run};
use serde_json::Value;
use std::fs::File;

/// Returns the path of the project's example of games to splice.
fn own_games() -> String {
    format!("{}/../examples/own-games.txt", env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    run(&[&["splice", "--json"], args].concat()).json()
}

#[test]
fn games_are_spliced_to_a_longer_valid_game_which_a_later_search_continues() {
    let (games, out) = (own_games(), file("spliced.txt", b""));
    let found = json(&[&games, "--steps", "2", "--threads", "3", "--out", &out]);
    let (score, pieces) = (
        found["score"].as_u64().unwrap(),
        found["pieces"].as_u64().unwrap(),
    );
    assert!(pieces > found["was_pieces"].as_u64().unwrap(), "{found}");
    assert_eq!(found["tried"], 16_000_000);
    let most = found["most_pieces"].as_u64().unwrap();
    assert!(
        most >= pieces && most < found["wells"].as_u64().unwrap(),
        "{found}"
    );
    let replay = found["replay"].as_str().unwrap();
    let expected = score.to_string();
    run(&["replay", "verify", replay, "--expect-score", &expected]).results();
    let text = run(&["splice", &out, "--steps", "1"]).silent_results();
    let was = format!("(was {score})\n");
    for part in [&was, ", at most ", "8,000,000 parts"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn single_game_gets_detours_with_which_a_later_search_begins() {
    let (game, graph) = (example(), file("splice-graph.txt", b""));
    let args = [&game, "--graph", &graph, "--rounds", "1"].map(|arg| arg as &str);
    let first = json(&[&args[..], &["--steps", "5"]].concat());
    assert_eq!(first["was_score"], 148);
    assert!(first["pieces"].as_u64() >= first["was_pieces"].as_u64());
    let lines = || std::fs::read_to_string(&graph).unwrap().lines().count() as u64;
    assert_eq!(first["wells"], lines());
    assert!(lines() > first["pieces"].as_u64().unwrap());
    let second = json(&[&args[..], &["--steps", "1"]].concat());
    assert_eq!(second["wells"], first["wells"]);
    assert_eq!(second["wells"], lines());
}

#[test]
fn longer_game_in_output_file_is_kept() {
    let longer = std::fs::read(example()).unwrap();
    let out = file("splice-kept.txt", &longer);
    let short = file("splice-start.txt", "D".repeat(18).as_bytes());
    let found = json(&[&short, "--out", &out, "--steps", "1"]);
    assert_eq!(found["was_score"], 148);
    assert!(found["pieces"].as_u64() >= found["was_pieces"].as_u64());
    let written = std::fs::read_to_string(&out).unwrap();
    assert_eq!(written.trim(), found["replay"]);

    let two = [&longer[..], b"\n", &longer].concat();
    let several = file("splice-several.txt", &two);
    for start in [&short, &several] {
        let error = run(&["splice", start, "--out", &several, "--steps", "1"]).error(1);
        assert!(error.contains("would replace the 2 replays"), "{error}");
        assert_eq!(std::fs::read(&several).unwrap(), two);
    }

    let notes = file("splice-notes.txt", b"notes on games\n");
    let error = run(&["splice", &short, "--out", &notes, "--steps", "1"]).error(1);
    assert!(error.contains("is not a file of replays"), "{error}");
    assert_eq!(std::fs::read(&notes).unwrap(), b"notes on games\n");
}

/// Like a disk that becomes full, a link to a missing folder is not found before the search.
#[cfg(unix)]
#[test]
fn game_is_printed_although_a_file_cannot_be_written() {
    let temp = tempfile::tempdir().unwrap();
    let link = temp.path().join("link");
    std::os::unix::fs::symlink("/nonexistent/file.txt", &link).unwrap();
    let link = link.to_str().unwrap();
    let game = example();
    for option in ["--out", "--graph"] {
        let args = ["splice", "--json", &game, "--steps", "1", option, link];
        let (out, error) = run(&args).late_error();
        let found: Value = serde_json::from_str(&out).unwrap();
        let replay = found["replay"].as_str().unwrap();
        let score = found["score"].to_string();
        run(&["replay", "verify", replay, "--expect-score", &score]).results();
        assert!(error.starts_with("cannot write "), "{error}");
    }
}

#[test]
fn keys_after_the_end_of_a_game_cause_a_warning() {
    let long = file("splice-long.txt", ("D".repeat(90) + "LLLUU").as_bytes());
    let spliced = run(&["splice", &long, "--steps", "1"]);
    let expected = "line 1: ignored 5 keys after key 90, which ended the game with piece 9";
    assert!(spliced.err.contains(expected), "{}", spliced.err);
}

#[test]
fn unusable_files_are_refused() {
    let empty = file("splice-empty.txt", b"# no game\n\n");
    let broken = file("splice-broken.txt", b"# one game\nnot a replay!\n");
    let short = file("splice-short.txt", "D".repeat(18).as_bytes());
    for (args, code, expected) in [
        (&["/nonexistent/games.txt"][..], 1, "/nonexistent/games.txt"),
        (&[&empty], 1, "no replays"),
        (&[&broken], 1, "line 2"),
        (&[], 2, "<FILE>"),
        (&[&empty, "--rounds", "101"], 2, "--rounds"),
        (&[&empty, "--steps", "0"], 2, "--steps"),
        (&[&empty, "--seconds", "0"], 2, "--seconds"),
        (&[&short, "--graph", &broken], 1, "line 1"),
        (
            &[&short, "--out", "one.txt", "--graph", "./one.txt"],
            2,
            "same file",
        ),
        (
            &[&short, "--graph", "/nonexistent/graph.txt"],
            1,
            "/nonexistent/graph.txt",
        ),
        (
            &[&short, "--out", "/nonexistent/out.txt"],
            1,
            "/nonexistent/out.txt",
        ),
    ] {
        let error = run(&[&["splice"], args].concat()).error(code);
        assert!(error.contains(expected), "{error}");
        assert!(error.matches("os error").count() <= 1, "{error}");
    }
    let large = file("splice-large.txt", b"");
    let opened = File::options().write(true).open(&large).unwrap();
    opened.set_len(65 << 20).unwrap();
    let error = run(&["splice", &large]).error(1);
    let expected = "is 65 MiB: a file of replays can have at most 64 MiB";
    assert_eq!(error, format!("{large} {expected}"));
    let long = file("splice-long.txt", &vec![b'D'; (4 << 20) + 1]);
    let error = run(&["splice", &long]).error(1);
    let expected = ", line 1 is too long: a replay can have at most 4 MiB";
    assert_eq!(error, format!("{long}{expected}"));
    // Only a single replay has at most 4 MiB: this file has 5 MiB of comments and one replay.
    let lines = "# no game\n".repeat(1 << 19) + &"D".repeat(18);
    let many = file("splice-many.txt", lines.as_bytes());
    assert_eq!(json(&[&many, "--steps", "1"])["score"], 0);
    // An unfinished game is spliced, too, and stays unfinished.
    assert_eq!(json(&[&short, "--steps", "1"])["score"], 0);
}
