//! Tests of the commands `agents`, `nes`, `pc` and `page`. Most of them use files with test vectors.

use crate::support::{command, file, new_path, run, run_with_input};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command};

/// Reads a file of test vectors from a crate's folder.
fn vectors(place: &str, name: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = folder.join(place).join("tests/vectors").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// Sends requests to a command as JSON lines, and returns the answers.
fn answers(args: &[&str], requests: &[Value]) -> Vec<Value> {
    let lines: String = requests
        .iter()
        .map(|request| format!("{request}\n"))
        .collect();
    let results = run_with_input(args, lines.as_bytes()).silent_results();
    let parse = |line| serde_json::from_str(line).unwrap();
    let answers: Vec<Value> = results.lines().map(parse).collect();
    assert_eq!(answers.len(), requests.len());
    answers
}

/// Returns the items sorted by their JSON text.
fn sorted(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.sort_by_key(Value::to_string);
    items
}

#[test]
fn agents_placements_match_test_vectors() {
    let vectors = vectors("tetris", "drop_placements.json");
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for board in list(&vectors["boards"]) {
        for (key, actions) in board["pieces"].as_object().unwrap() {
            let (set, piece) = key.split_once(':').unwrap();
            requests.push(json!({"rows": board["rows"], "piece": piece, "set": set}));
            expected.push(list(&actions["distinct"]));
        }
    }
    let mut compared = 0;
    for (answer, expected) in answers(&["agents", "placements", "--json"], &requests)
        .iter()
        .zip(expected)
    {
        let actions = list(&answer["actions"]);
        assert_eq!(actions.len(), expected.len());
        for (action, expected) in actions.iter().zip(expected) {
            for index in 0..3 {
                assert_eq!(action[index], expected[index]);
            }
            // The vectors are rounded to nine decimal places.
            let difference = action[3].as_f64().unwrap() - expected[5].as_f64().unwrap();
            assert!(difference.abs() < 1e-8, "{action} {expected}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2540);
}

#[test]
fn nes_placements_match_test_vectors() {
    let vectors = vectors("tetris", "nes_placements.json");
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for board in list(&vectors["boards"]) {
        for (piece, by_rows) in board["pieces"].as_object().unwrap() {
            for (key, field) in [
                ("20", json!("20")),
                ("22", json!(22)),
                ("nes", json!("20+2")),
            ] {
                let same = by_rows[key] == "as 20";
                let placements = &by_rows[if same { "20" } else { key }];
                requests.push(json!({"rows": board["rows"], "piece": piece, "field": field}));
                let states = list(placements)
                    .iter()
                    .map(|state| json!([state[0], state[1], state[2]]));
                expected.push(states.collect::<Vec<Value>>());
            }
        }
    }
    let answers = answers(&["nes", "placements", "--json"], &requests);
    for ((request, answer), expected) in requests.iter().zip(&answers).zip(expected) {
        assert_eq!(
            sorted(list(&answer["placements"])),
            sorted(&expected),
            "{request}"
        );
    }
}

#[test]
fn nes_features_and_values_match_test_vectors() {
    let vectors = vectors("tetris", "nes_features.json");
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for board in list(&vectors["boards"]) {
        for entry in list(&board["moves"]) {
            requests
                .push(json!({"rows": board["rows"], "piece": entry["piece"], "features": true}));
            let state = &entry["state"];
            expected.push(json!([
                state[0],
                state[1],
                state[2],
                entry["features"],
                entry["value"]
            ]));
        }
    }
    let answers = answers(&["nes", "placements", "--json"], &requests);
    let (total, mut checked) = (expected.len(), 0);
    for (answer, expected) in answers.iter().zip(expected) {
        let placements = list(&answer["placements"]);
        // Some vectors describe a resting position that the piece cannot reach. Skips these vectors.
        let at = |placement: &&Value| (0..3).all(|index| placement[index] == expected[index]);
        if let Some(found) = placements.iter().find(at) {
            assert_eq!(*found, expected);
            checked += 1;
        }
    }
    assert!(checked > total / 2, "checked {checked} of {total}");
}

#[test]
fn nes_placements_and_games_with_gravity_have_fewer_possibilities() {
    // The free column is at the right edge: a vertical I reaches it in time at level 19, but not at level 29.
    let rows = ["XXXXXXXXX_"; 12];
    let requests = [
        json!({"piece": "I", "rows": rows}),
        json!({"piece": "I", "rows": rows, "gravity": 19}),
        json!({"piece": "I", "rows": rows, "gravity": 29}),
    ];
    let answers = answers(&["nes", "placements", "--json"], &requests);
    let counts = [0, 1, 2].map(|at| list(&answers[at]["placements"]).len());
    assert_eq!(counts, [17, 17, 14]);
    let mean = |options: &[&str]| {
        let play = ["nes", "play", "--games", "4", "--json"];
        let played: Value =
            serde_json::from_str(&run(&[&play, options].concat()).silent_results()).unwrap();
        played["players"][0]["mean"].as_f64().unwrap()
    };
    assert!(mean(&["--gravity"]) < mean(&[]));
}

#[test]
fn nes_pieces_match_test_vectors() {
    let vectors = vectors("tetris", "nes_generator.json");
    let article = run(&["nes", "pieces", "--generator", "article", "--games", "1"]);
    let first = article.silent_results();
    assert_eq!(first.trim_end().len(), 1825);
    assert!(first.starts_with(vectors["seed_205_game_0"].as_str().unwrap()));
    let both = run(&["nes", "pieces", "--games", "2", "--count", "150"]).silent_results();
    let expected = ["seed_205_game_0", "seed_205_game_1"];
    let expected = expected.map(|key| &vectors[key].as_str().unwrap()[..150]);
    assert_eq!(both.lines().collect::<Vec<_>>(), expected);
    let more = ["nes", "pieces", "--games", "1", "--count", "1826"];
    let error = run(&more).error(2);
    assert!(error.contains("--count is at most 1825"), "{error}");
    let more = run(&[&more[..], &["--generator", "cartridge"]].concat());
    assert_eq!(more.silent_results().trim_end().len(), 1826);
    let cartridge = |frames, count| {
        let args = [
            "nes",
            "pieces",
            "--games",
            "1",
            "--generator",
            "cartridge",
            "--seed",
            "35208",
            "--frames",
            frames,
            "--count",
            count,
        ];
        run(&args).silent_results().trim_end().to_owned()
    };
    assert_eq!(cartridge("37", "40"), vectors["every_37_frames"]);
    assert_eq!(cartridge("0", "60"), vectors["no_frames"]);
}

/// Returns the placements that the vectors list for a piece and a mode (the name of a kick table, or `hard`). Some
/// modes list only their differences from the mode `srs`.
fn cells_of(piece: &Value, mode: &str) -> Vec<Value> {
    if let Some(cells) = piece[mode].as_array() {
        return cells.clone();
    }
    let (more, fewer) = (list(&piece[mode]["more"]), list(&piece[mode]["fewer"]));
    let kept = list(&piece["srs"])
        .iter()
        .filter(|cells| !fewer.contains(cells));
    kept.chain(more).cloned().collect()
}

#[test]
fn pc_placements_match_test_vectors() {
    let vectors = vectors("tetris", "srs_placements.json");
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for board in list(&vectors["boards"]) {
        for (letter, piece) in board["pieces"].as_object().unwrap() {
            for mode in ["srs", "hard", "nokick", "srs+180j", "srs+180t", "srsplus"] {
                let cells = cells_of(piece, mode);
                let low = |cells: &&Value| list(cells).iter().all(|cell| cell.as_u64() < Some(40));
                let low: Vec<Value> = cells.iter().filter(low).cloned().collect();
                let request = json!({"rows": board["rows"], "piece": letter, "kicks": mode});
                let mut with_lines = request.clone();
                with_lines["lines"] = json!(4);
                requests.extend([request, with_lines]);
                expected.extend([cells, low]);
            }
        }
    }
    assert!(requests.len() > 500);
    let answers = answers(&["pc", "placements", "--json"], &requests);
    for ((request, answer), expected) in requests.iter().zip(&answers).zip(expected) {
        let found = sorted(list(&answer["placements"]));
        assert_eq!(found, sorted(&expected), "{request}");
    }
}

#[test]
fn pc_chances_match_test_vectors() {
    let vectors = vectors("agents", "pc_first_moves.json");
    let cases = list(&vectors["cases"]);
    for (answer, case) in answers(&["pc", "chance", "--json"], cases)
        .iter()
        .zip(cases)
    {
        assert_eq!(answer["best_adaptive"], case["best_adaptive"]);
        assert_eq!(answer["best_clairvoyant"], case["best_clairvoyant"]);
        assert_eq!(sorted(list(&answer["moves"])), sorted(list(&case["moves"])));
    }
}

#[test]
fn invalid_request_gives_error_object_and_other_requests_are_answered() {
    for (command, good, bad, expected) in [
        (
            "agents",
            r#"{"piece":"T"}"#,
            r#"{"piece":"K"}"#,
            "`K` is not a piece of the set: use one of O, J, L, I, S, Z, T",
        ),
        (
            "nes",
            r#"{"piece":"T"}"#,
            r#"{"piece":"T","field":"21"}"#,
            "`21` is not a rule set: use 20, 22 or 20+2",
        ),
        (
            "pc",
            r#"{"piece":"T"}"#,
            r#"{"piece":"T","rows":["XX"]}"#,
            "row 1 has 2 cells: 10 are needed",
        ),
        (
            "pc",
            r#"{"piece":"T"}"#,
            "T",
            "invalid request: expected value at line 1 column 1",
        ),
    ] {
        let args = [command, "placements", "--json"];
        let answer = run_with_input(&args, good.as_bytes()).silent_results();
        let input = format!("{good}\n{bad}\n{good}\n");
        let result = run_with_input(&args, input.as_bytes());
        assert_eq!((result.code, result.err.as_str()), (1, ""));
        let error = format!("{}\n", json!({"line": 2, "error": expected}));
        let error: Value = serde_json::from_str(&error).unwrap();
        let lines: Vec<&str> = result.out.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[2]),
            (3, answer.trim_end(), answer.trim_end())
        );
        assert_eq!(serde_json::from_str::<Value>(lines[1]).unwrap(), error);
    }
}

#[test]
fn agents_play_does_not_depend_on_thread_count_and_compare_writes_csv() {
    let args = [
        "agents",
        "play",
        "--games",
        "20",
        "--seed",
        "3",
        "--json",
        "--threads",
    ];
    let play = |threads: &str| {
        let mut result = run(&[&args[..], &[threads]].concat()).json();
        result["players"][0]["seconds"] = json!(0);
        result
    };
    let once = play("1");
    assert_eq!(once, play("3"));
    assert_eq!(once["players"][0]["games"], 20);
    let mean = once["players"][0]["mean"].as_f64().unwrap();
    assert!((30.0..200.0).contains(&mean), "{mean}");
    let csv = new_path("agents.csv");
    let csv = csv.to_str().unwrap();
    let compare = [
        "agents",
        "compare",
        "random",
        "heuristic",
        "--games",
        "20",
        "--seed",
        "3",
        "--csv",
        csv,
    ];
    let text = run(&compare).silent_results();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("heuristic - random: +"), "{text}");
    assert!(last.ends_with("better in 20 games, worse in 0"), "{text}");
    let csv = fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 41);
    assert_eq!(
        csv.lines().next(),
        Some("player,game,score,lines,pieces,complete")
    );
    let error = run(&["agents", "play", "--pieces", "missing"]).error(1);
    let expected = "cannot read the piece set missing: use standard, small or a file";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn nes_play_reproduces_published_games() {
    let csv = new_path("nes.csv");
    let csv = csv.to_str().unwrap();
    let result = run(&["nes", "play", "--games", "4", "--json", "--csv", csv]).json();
    let player = &result["players"][0];
    assert_eq!(
        (&player["games"], &player["name"]),
        (&json!(4), &json!("bfs"))
    );
    let vectors = vectors("agents", "nes_games.json");
    let rows = fs::read_to_string(csv).unwrap();
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    for game in list(&vectors["bfs_results"]).iter().take(2) {
        let number = game[0].as_u64().unwrap() as usize;
        let complete = game[3].as_u64().unwrap() >= 230;
        let expected = format!(
            "bfs,{number},{},{},{},{complete}",
            game[1], game[3], game[4]
        );
        assert_eq!(rows[number], expected);
    }
    let narrow = [
        "nes",
        "compare",
        "bfs",
        "branching",
        "--games",
        "1",
        "--stop-lines",
        "8",
    ];
    let text = run(&[&narrow[..], &["--widths", "2/2/0"]].concat()).silent_results();
    assert!(text.contains("branching - bfs: "), "{text}");
    run(&["nes", "play", "--widths", "0/2/0"]).error(2);
}

#[test]
fn pc_solve_prints_picture_keys_and_fumen() {
    let field = [
        "--lines",
        "3",
        "--field",
        "XXXX__XXXX/XXXX__XXXX/____XXXXXX",
    ];
    let solve = |args: &[&str]| run(&[&["pc", "solve"][..], args, &field].concat());
    let text = solve(&["IO"]).silent_results();
    let expected = "XXXXOOXXXX\nXXXXOOXXXX\nIIIIXXXXXX\n\n \
                    1  O  hold hard-drop  (2 rows cleared)\n \
                    2  I  hold leftx3 hard-drop  (1 row cleared)\n\nhttps://fumen.zui.jp/?v115@";
    assert!(text.starts_with(expected), "{text}");
    let json = solve(&["IO", "--json"]).json();
    assert_eq!(json["moves"][1]["cells"], json!([0, 1, 2, 3]));
    assert_eq!(
        solve(&["TT"]).error(1),
        "queue TT has no perfect clear of this field"
    );
    let short = solve(&["I"]).error(1);
    assert!(
        short.starts_with("the field needs 2 pieces, but the queue has 1"),
        "{short}"
    );
    let unknown = solve(&["IO", "--kicks", "mine"]).error(1);
    assert!(
        unknown.starts_with("`mine` is not a kick table"),
        "{unknown}"
    );
    let vectors = vectors("agents", "pc_queues.json");
    for entry in list(&vectors["queues"]).iter().take(3) {
        let queue = entry["queue"].as_str().unwrap();
        let json = run(&["pc", "solve", queue, "--json"]).json();
        let picture = list(&json["picture"]);
        assert!(
            picture
                .iter()
                .all(|row| !row.as_str().unwrap().contains('_'))
        );
        assert_eq!((picture.len(), list(&json["moves"]).len()), (4, 10));
    }
}

#[test]
fn pc_path_prints_different_solutions() {
    let field = "XXXX______/XXXX_____X/XXXX_____X/XXXXX____X";
    let path = |limit| {
        run(&[
            "pc", "path", "TJZSLI", "--field", field, "--json", "--limit", limit,
        ])
    };
    let all = path("100").silent_results();
    let pictures: Vec<Value> = all
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["picture"].clone())
        .collect();
    let distinct: std::collections::BTreeSet<String> =
        pictures.iter().map(Value::to_string).collect();
    assert!(
        distinct.len() == pictures.len() && pictures.len() > 1,
        "{all}"
    );
    assert_eq!(path("2").silent_results().lines().count(), 2);
    assert!(path("0").error(2).contains("--limit"));
}

#[test]
fn pc_chance_text_begins_with_best_move() {
    let field = "XXXXX____X/XXXXXX___X/XXXXXXX__X/XXXXXX___X";
    let text = run(&[
        "pc", "chance", "--seen", "TI", "--left", "JLOSZ", "--field", field,
    ]);
    let text = text.silent_results();
    assert!(text.starts_with("XXXXXIIIIX\n"), "{text}");
    assert!(
        text.contains("70.000 %  7/10        90.000 %  9/10"),
        "{text}"
    );
    let error = run(&["pc", "chance", "--seen", "TT", "--field", field]).error(1);
    assert!(error.starts_with("impossible pieces"), "{error}");
    let settings = [
        &["--field", field][..],
        &["--lines", "2"],
        &["--kicks", "srsplus"],
        &["--hard-drop"],
    ];
    for setting in settings {
        let error = run(&[&["pc", "chance"], setting].concat()).error(2);
        assert!(error.contains("--seen"), "{error}");
    }
}

#[test]
fn page_writes_files_or_reports_unwritable_folder() {
    let folder = new_path("page");
    let folder = folder.to_str().unwrap();
    for _ in 0..2 {
        let wrote = run(&["page", "--out", folder]).silent_results();
        assert_eq!(wrote, format!("{folder}/index.html\n"));
    }
    let module = fs::read(format!("{folder}/page.wasm")).unwrap();
    assert!(module.starts_with(b"\0asm"));
    assert!(fs::metadata(format!("{folder}/network.bin")).unwrap().len() > 1_000_000);
    let file = format!("{folder}/index.html");
    let error = run(&["page", "--out", &file]).error(2);
    assert!(error.contains("is a file: name a folder"), "{error}");
    let below = format!("{file}/pages");
    let error = run(&["page", "--out", &below]).error(1);
    assert!(error.contains("cannot write the pages to"), "{error}");
}

#[test]
fn unwritable_file_is_refused_before_the_work() {
    let dir = new_path("unwritable");
    fs::create_dir(&dir).unwrap();
    let folder = dir.to_str().unwrap();
    let missing = dir.join("missing/file").display().to_string();
    let file = &dir.join("weights.toml").display().to_string();
    for path in [folder, &missing] {
        for args in [
            &["agents", "select", path, "--games", "2"][..],
            &["agents", "select", file, "--games", "2", "--csv", path],
            &["agents", "play", "--games", "1", "--csv", path],
            &["agents", "compare", "random", "--games", "1", "--svg", path],
            &["nes", "play", "--games", "1", "--csv", path],
            &["pc", "play", "--games", "1", "--svg", path],
            &["pc", "table", path, "--lines", "2"],
        ] {
            // Standard output is empty: no game has been played.
            let error = run(args).error(1);
            let expected = format!("cannot write {path}: ");
            assert!(error.starts_with(&expected), "{args:?} {error}");
        }
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn results_are_printed_although_their_file_cannot_be_written() {
    let play = ["agents", "play", "--games", "2", "--csv"];
    let (out, error) = run(&[&play[..], &["/dev/full"]].concat()).late_error();
    assert!(
        out.lines().count() == 2 && out.contains("heuristic"),
        "{out}"
    );
    assert!(
        error.contains("no space is left on the disk for /dev/full"),
        "{error}"
    );
    // The games follow the summary. Standard output is a pipe, which is not replaced by a file.
    let out = run(&[&play[..], &["/dev/stdout"]].concat()).silent_results();
    assert!(
        out.lines().count() == 5 && out.contains("heuristic,1,"),
        "{out}"
    );
}

#[test]
fn file_of_two_outputs_is_refused() {
    let dir = new_path("two-outputs");
    fs::create_dir(&dir).unwrap();
    let file = &dir.join("file").display().to_string();
    let same = &dir.join("./file").display().to_string();
    for args in [
        &["agents", "play", "--csv", file, "--svg", same][..],
        &["nes", "play", "--csv", file, "--svg", same],
        &["pc", "play", "--csv", file, "--svg", same],
        &["agents", "select", file, "--csv", same],
        &["agents", "select", file, "--svg", same],
    ] {
        let error = run(args).error(2);
        assert!(error.contains("name the same file"), "{error}");
    }
}

#[test]
fn weights_files_are_read_before_the_first_game() {
    // The games of the first player would take hours.
    for args in [
        ["agents", "compare", "heuristic", "--games", "10000000"],
        ["nes", "compare", "branching", "--games", "10000"],
    ] {
        let error = run(&[&args[..], &["--weights", "missing"]].concat()).error(1);
        assert!(error.starts_with("missing: "), "{error}");
    }
}

/// Starts a selection that removes at least one weight: a reward for holes. Returns it after its first round, with the
/// rest of its output and the path of its file.
fn select(name: &str, games: &str) -> (Child, BufReader<ChildStdout>, PathBuf) {
    let weights = "player = \"bcts\"\n[weights]\nlanding_height = -1\neroded_piece_cells = 1\n\
                   row_transitions = -1\ncolumn_transitions = -1\nholes = 20\ncumulative_wells = -1\n\
                   hole_depth = 0\nrows_with_holes = 0\ndiversity = 0\n";
    let weights = file(&format!("{name}-start.toml"), weights.as_bytes());
    let out = new_path(&format!("{name}.toml"));
    let mut child = command(&["agents", "select", out.to_str().unwrap(), "--json"])
        .args(["--weights", &weights, "--height", "8", "--games", games])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("\"removed\":\"holes\""), "{line}");
    (child, stdout, out)
}

#[test]
fn selection_writes_its_weights_although_its_reader_is_closed() {
    let (mut child, stdout, out) = select("selection-closed", "10");
    drop(stdout);
    assert!(child.wait().unwrap().success());
    let weights = fs::read_to_string(out).unwrap();
    assert!(weights.contains("\nholes = 0.0\n"), "{weights}");
}

#[test]
fn interrupted_selection_writes_its_weights() {
    // The second round takes much longer than the delivery of a signal.
    let (mut child, mut stdout, out) = select("selection-interrupted", "1000");
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(rest.lines().count(), 1, "{rest}");
    let weights = fs::read_to_string(out).unwrap();
    assert!(weights.contains("\nholes = 0.0\n"), "{weights}");
    assert!(weights.contains("\nlanding_height = -1.0\n"), "{weights}");
}
