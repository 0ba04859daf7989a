//! Tests of `hatebeam replay`.

use crate::support::{example, file, game, games, run, run_with_input};
use serde_json::{Value, json};
use std::fs::File;

/// Returns the keys of a complete game in which nine pieces only move down.
fn nine_drops() -> String {
    "D".repeat(90)
}

/// Returns the exit code and the report of `replay verify`.
#[track_caller]
fn verify_json(args: &[&str]) -> (i32, Value) {
    let run = run(&[&["replay", "verify", "--json"], args].concat());
    assert_eq!(run.out.lines().count(), 1, "{run:?}");
    (run.code, serde_json::from_str(&run.out).unwrap())
}

#[test]
fn public_games_are_valid() {
    for game in games() {
        for (encoding, replay) in &game.replays {
            let (code, report) = verify_json(&["--enemy", game.enemy(), replay]);
            let (keys, _) = hatebeam_game::decode(replay).unwrap();
            let expected = json!({
                "valid": true,
                "enemy": game.enemy(),
                "score": game.score,
                "pieces": game.pieces.len(),
                "keys": game.keys,
                "over": game.ends_in_game_over,
                "encoding": encoding.to_lowercase(),
                "keys_given": keys.len(),
            });
            assert_eq!((code, report), (0, expected), "{} {encoding}", game.name);
        }
    }
}

#[test]
fn example_games_are_valid_and_have_scores_in_their_names() {
    let mut verified = 0;
    for folder in ["games", "records"] {
        let folder = format!("{}/../examples/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let (_, score) = name.rsplit_once('-').unwrap();
            let (code, report) = verify_json(&["--file", path.to_str().unwrap()]);
            assert_eq!((code, &report["valid"]), (0, &json!(true)), "{name}");
            assert_eq!(report["score"].to_string(), score, "{name}");
            verified += 1;
        }
    }
    assert!(verified >= 10, "{verified}");
}

#[test]
fn verify_prints_summary() {
    let game = game("knewjade (4)");
    let results = run(&["replay", "verify", &game.replays["Base2048"]]).silent_results();
    assert_eq!(
        results,
        "valid\nencoding   base2048\nenemy      hatetris\nscore      66\npieces     192\n\
         keys       2523 of 2523\ngame over  yes\n"
    );
}

#[test]
fn replay_is_read_from_argument_file_or_standard_input() {
    let replay = format!("\n {} \r\n", nine_drops());
    let path = file("nine_drops.txt", replay.as_bytes());
    let expected = run(&["replay", "verify", &nine_drops()]).silent_results();
    for args in [&["--file", &path][..], &["-f", &path]] {
        assert_eq!(
            run(&[&["replay", "verify"], args].concat()).silent_results(),
            expected
        );
    }
    for args in [&["-"][..], &[], &["--file", "-"]] {
        let args = [&["replay", "verify"], args].concat();
        assert_eq!(
            run_with_input(&args, replay.as_bytes()).silent_results(),
            expected
        );
    }
}

#[test]
fn keys_after_end_of_game_cause_warning() {
    for (extra, counted) in [("L", "1 key"), ("LLLUU", "5 keys")] {
        let run = run(&["replay", "verify", &(nine_drops() + extra)]);
        assert_eq!(
            run.err,
            format!("warning: ignored {counted} after key 90, which ended the game with piece 9\n")
        );
        assert!(
            run.results()
                .contains(&format!("keys       90 of {}\n", 90 + extra.len()))
        );
    }
}

#[test]
fn unfinished_game_is_valid_if_it_ends_between_two_pieces() {
    let run = run(&["replay", "verify", &"D".repeat(18)]);
    assert_eq!(
        run.err,
        "note: the game is not over: the replay ends with piece 2 falling\n"
    );
    let results = run.results();
    assert!(
        results.contains("pieces     2 (the last one is falling)\n"),
        "{results}"
    );
    assert!(results.contains("game over  no\n"), "{results}");
}

#[test]
fn truncated_replay_is_invalid() {
    let expected = "the replay is truncated: it ends 12 keys into piece 2, and the game is not over (it \
                    was read as raw)";
    let replay = "D".repeat(30);
    assert_eq!(run(&["replay", "verify", &replay]).error(1), expected);
    let (code, report) = verify_json(&[&replay]);
    let expected = json!({
        "valid": false,
        "enemy": "hatetris",
        "score": 0,
        "pieces": 2,
        "keys": 30,
        "over": false,
        "encoding": "raw",
        "keys_given": 30,
        "error": expected,
    });
    assert_eq!((code, report), (1, expected));
}

#[test]
fn truncated_replay_is_not_mistaken_for_replay_against_another_enemy() {
    let game = game("chromeyhex");
    for length in (1..game.replays["hex"].len()).step_by(37) {
        let run = run(&["replay", "verify", &game.replays["hex"][..length]]);
        let truncated = run.code == 1 && run.err.contains("the replay is truncated");
        let unfinished = run.code == 0 && run.err.contains("the game is not over");
        assert!(truncated || unfinished, "{length}: {run:?}");
    }
}

#[test]
fn error_for_replay_against_another_enemy_describes_difference() {
    let whole = game("knewjade loop");
    let basis = game("knewjade loop basis");
    let cut = &whole.replay()[..6000];
    for (enemy, replay, expected) in [
        (
            "hatetris",
            whole.replay(),
            "the replay does not fit hatetris: the game is over after 4510 of 6489 keys, with a \
             score of 107; it seems to be a game against mild, with a score of 165 (the games \
             differ from piece 282)",
        ),
        (
            "hatetris",
            cut,
            "the replay does not fit hatetris: the game is over after 4510 of 6000 keys, with a \
             score of 107; it seems to be a game against mild, with a score of 152 (the games \
             differ from piece 282)",
        ),
        (
            "mild",
            basis.replay(),
            "the replay does not fit mild: the game is not over after all 4461 keys, with a score \
             of 106; it seems to be a game against hatetris, with a score of 107 (the games differ \
             from piece 282)",
        ),
    ] {
        assert_eq!(
            run(&["replay", "verify", "--enemy", enemy, replay]).error(1),
            expected
        );
        let (code, report) = verify_json(&["--enemy", enemy, replay]);
        assert_eq!((code, &report["valid"]), (1, &json!(false)));
        assert_eq!(report["error"], expected);
    }
}

#[test]
fn error_for_replay_against_another_enemy_names_right_enemy() {
    // Skips the game with score 0. It is too short to identify the enemy, because Burgiel gives the same nine pieces.
    for game in games().iter().filter(|game| game.score > 0) {
        for enemy in ["lovetris", "burgiel", "brzustowski"] {
            let error = run(&["replay", "verify", "--enemy", enemy, game.replay()]).error(1);
            let expected = format!("it seems to be a game against {}", game.enemy());
            assert!(error.contains(&expected), "{}: {error}", game.name);
        }
    }
}

#[test]
fn verify_fails_if_score_differs_from_expected_score() {
    run(&["replay", "verify", "--expect-score", "0", &nine_drops()]).silent_results();
    let error = run(&["replay", "verify", "--expect-score", "7", &nine_drops()]).error(1);
    assert_eq!(error, "the score is 0, not the expected 7");
}

#[test]
fn error_for_invalid_file_names_path_and_reason() {
    let path = file("bad_text.txt", b"DDRR\nDDLLx\n");
    let empty = file("empty.txt", b"");
    let binary = file("binary.txt", b"DD\xc3(");
    for (path, expected) in [
        (&path, "character 5, '\\n', is not valid in a replay"),
        (&empty, "the replay is empty: it contains no keys"),
        (&binary, "byte 3 (0xc3) is not valid UTF-8"),
    ] {
        let expected = format!("{path}: {expected}");
        for command in ["verify", "show"] {
            let error = run(&["replay", command, "--file", path]).error(1);
            assert!(error.starts_with(&expected), "{error}");
        }
        let error = run(&["replay", "convert", "--to", "hex", "--file", path]).error(1);
        assert!(error.starts_with(&expected), "{error}");
        let (code, report) = verify_json(&["--file", path]);
        assert_eq!(
            (code, &report["valid"], &report["keys"]),
            (1, &json!(false), &json!(0))
        );
        assert_eq!(
            (&report["encoding"], &report["keys_given"]),
            (&Value::Null, &json!(0))
        );
        assert!(
            report["error"].as_str().unwrap().starts_with(&expected),
            "{report}"
        );
    }
}

#[test]
fn directory_missing_file_and_large_input_are_refused() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let error = run(&["replay", "verify", "--file", folder]).error(1);
    assert_eq!(
        error,
        format!("{folder} is a directory: name a file with one replay")
    );

    let several = file("several.txt", b"# Two games.\nDDD\nRDDD\n");
    let error = run(&["replay", "verify", "--from", "hex", "--file", &several]).error(1);
    assert!(
        error.contains("contains 2 replays, one per line"),
        "{error}"
    );

    let error = run(&["replay", "verify", "--file", "no/such/file"]).error(1);
    assert!(error.starts_with("cannot open no/such/file: "), "{error}");

    let path = file("huge.txt", b"");
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let error = run(&["replay", "verify", "--file", &path]).error(1);
    let expected = "is 1024 MiB: a replay can have at most 4 MiB";
    assert_eq!(error, format!("{path} {expected}"));

    let error = run_with_input(&["replay", "verify"], &vec![b'D'; 5 << 20]).error(1);
    assert!(
        error.starts_with("standard input is larger than 4 MiB"),
        "{error}"
    );
}

#[test]
fn error_for_file_name_as_replay_suggests_file_option() {
    let path = file("hint.txt", b"DD");
    let error = run(&["replay", "verify", &path]).error(1);
    assert!(error.starts_with("REPLAY (it is the name of a file: pass it with --file): "));
    let error = run(&["replay", "verify", "no-such-game.txt"]).error(1);
    assert_eq!(
        error,
        "REPLAY: character 3, '-', is not valid in a replay: to read a file, pass --file"
    );
}

#[test]
fn conversions_equal_published_replays() {
    for game in games() {
        for replay in game.replays.values() {
            for (encoding, expected) in &game.replays {
                let encoding = encoding.to_lowercase();
                let text = run(&["replay", "convert", "--to", &encoding, replay]).silent_results();
                let keys =
                    |text: &str| run(&["replay", "convert", "--to", "raw", text]).silent_results();
                // Conversions may append keys after the end of the game, so only the keys of the game are compared.
                let (found, expected) = (keys(text.trim_end()), keys(expected));
                assert_eq!(
                    found[..game.keys],
                    expected[..game.keys],
                    "{} {encoding}",
                    game.name
                );
            }
        }
    }
}

#[test]
fn convert_writes_json_and_svg() {
    let example = example();
    let form = ["replay", "convert", "--to", "json", "--file", &example];
    let film = run(&form).json();
    assert_eq!(film["score"], 148);
    assert_eq!(film["over"], true);
    assert_eq!(
        film["turns"].as_array().unwrap().len() as u64,
        film["pieces"]
    );
    let svg = ["replay", "convert", "--to", "SVG", "--file", &example];
    let drawn = run(&svg).silent_results();
    assert!(drawn.starts_with("<svg ") && drawn.contains(">148 lines<"));
    // Against another enemy, the same keys give a different game.
    let other = run(&[&svg[..], &["--enemy", "lovetris"]].concat());
    assert!(
        other.err.contains("it seems to be a game against hatetris"),
        "{other:?}"
    );
}

#[test]
fn ambiguous_encoding_causes_warning() {
    let converted = run(&["replay", "convert", "--to", "hex", "URUR"]);
    assert!(
        converted.err.contains("pass --from hex when reading it"),
        "{converted:?}"
    );
    assert_eq!(converted.results(), "DD\n");
    let back = run(&["replay", "convert", "--from", "hex", "--to", "raw", "DD"]);
    assert_eq!(back.silent_results(), "URUR\n");
}

#[test]
fn show_prints_text_if_output_is_not_a_terminal() {
    let text = run(&["replay", "show", &nine_drops()]).silent_results();
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("well"))
        .collect();
    assert_eq!(headings.len(), 10);
    assert_eq!(headings[0], "well 1 of 10: piece S, score 0, 0 keys");
    assert_eq!(headings[9], "well 10 of 10: game over, score 0, 90 keys");

    let every_fourth = run(&["replay", "show", "--every", "4", &nine_drops()]).silent_results();
    let headings: Vec<&str> = every_fourth
        .lines()
        .filter(|line| line.starts_with("well"))
        .collect();
    assert_eq!(headings.len(), 4);
    assert!(headings[1].starts_with("well 5 ") && headings[3].starts_with("well 10 "));
}

#[test]
fn show_prints_well_with_given_number() {
    let text = run(&["replay", "show", "--well", "2", &nine_drops()]).silent_results();
    let empty = "..........\n".repeat(14);
    let expected =
        format!("well 2 of 10: piece S, score 0, 18 keys\n{empty}.....##...\n....##....\n");
    assert_eq!(text, expected);
    // The last well is printed with the rows above the bar, because they contain the last piece.
    let text = run(&["replay", "show", "--well", "10", &nine_drops()]).silent_results();
    assert_eq!(text.lines().count(), 21);

    let error = run(&["replay", "show", "--well", "11", &nine_drops()]).error(1);
    assert_eq!(
        error,
        "there is no well 11: the replay has 10 wells, numbered from 1"
    );
}

#[test]
fn show_refuses_numbers_below_one() {
    for option in ["--well", "--every"] {
        for number in ["0", "-1"] {
            let error = run(&["replay", "show", option, number, &nine_drops()]).error(2);
            let expected = format!("invalid value '{number}' for '{option} <N>': ");
            assert!(error.starts_with(&expected), "{error}");
            assert!(!error.contains("non-zero"), "{error}");
        }
    }
}

#[test]
fn invalid_replay_is_shown_with_warning() {
    let run = run(&["replay", "show", &"D".repeat(30)]);
    assert!(
        run.err.starts_with("warning: the replay is truncated"),
        "{run:?}"
    );
    assert!(run.results().starts_with("well 1 of 2: piece S"));
}
