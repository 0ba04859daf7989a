//! Tests of the results, files, events and options of `hatebeam run`.

use crate::state::{Search, State};
use crate::support::{command, example, file, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn keys(object: &Value) -> Vec<&String> {
    object.as_object().unwrap().keys().collect()
}

#[test]
fn finished_run_has_valid_replay_and_repeated_command_prints_result() {
    let state = State::new("whole");
    let search = state.search(&["--width", "500"]);
    let summary = &search.summary;
    assert_eq!(summary["end"], "over");
    assert_eq!(search.depths.len() as u64, summary["depth"]);
    for (line, depth) in search.depths.iter().zip(1..) {
        assert_eq!(line["depth"], depth);
        assert!(line["wells"].as_u64().unwrap() <= 500);
        assert!(line["worst_eval"].as_i64() <= line["median_eval"].as_i64());
        assert!(line["median_eval"].as_i64() <= line["best_eval"].as_i64());
        assert!(line["children"].as_u64() >= line["wells"].as_u64());
    }
    let last = search.depths.last().unwrap();
    assert_eq!(last["digest"], summary["digest"]);
    // `runs show` prints the same objects. The first one is the depth from which the search started.
    let shown = state.run(&["runs", "show", search.name(), "--json"]);
    let shown = shown.json();
    let shown = &shown["depths"].as_array().unwrap()[1..];
    assert_eq!(shown.len(), search.depths.len());
    for (line, shown) in search.depths.iter().zip(shown) {
        assert_eq!(keys(line), keys(shown));
        for key in ["depth", "wells", "count", "digest", "children"] {
            assert_eq!(line[key], shown[key], "{key}");
        }
        assert_eq!(line["wells"], line["count"]);
    }
    for number in ["children", "peak_rss_bytes", "stored_bytes"] {
        assert!(summary[number].as_u64().unwrap() > 0, "{number}");
    }
    let (replay, score) = (search.replay(), search.score());
    run(&["replay", "verify", replay, "--expect-score", &score]).silent_results();
    let kept = summary["replay_file"].as_str().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap().trim(), replay);

    // A repeated command prints the result without another search.
    let again = state.run(&["run", "--width", "500"]);
    assert!(again.out.contains(replay) && !again.err.contains("depth"));
    let again = state.search(&["--width", "500"]);
    assert_eq!(again.depths.len(), 0);
    assert_eq!(again.summary, *summary);
    let resumed = Search::parse(state.run(&["resume", "network-500-", "--json"]));
    assert_eq!(resumed.summary, *summary);
}

/// A network that has learned from games with the loop rule repeats wells for ever without it.
#[test]
fn default_loop_rule_depends_on_the_network() {
    let state = State::new("loops");
    let name = |args: &[&str]| {
        let search = state.search(&[&["--width", "20"], args].concat());
        assert_eq!(search.summary["end"], "over");
        search.name().to_owned()
    };
    let learned = name(&["--evaluator", "selftaught"]);
    assert_eq!(
        learned,
        name(&["--evaluator", "selftaught", "--loops", "exact"])
    );
    let other = name(&[]);
    assert_eq!(other, name(&["--loops", "ignore"]));
    assert_ne!(other, name(&["--loops", "exact"]));
}

/// In four columns, games repeat wells after a few pieces.
#[test]
fn warning_about_repeated_wells_names_the_loop_rule() {
    let state = State::new("repeats");
    let search = |rule| {
        let size = ["--columns", "4", "--width", "20", "--max-depth", "60"];
        state.run(&[&["run"], &size[..], &["--loops", rule]].concat())
    };
    let warning = "HATETRIS would replace its piece";
    let ignored = search("ignore").err;
    assert!(
        ignored.contains(warning) && ignored.contains("--loops exact"),
        "{ignored}"
    );
    let exact = search("exact");
    assert_eq!(exact.code, 0);
    assert!(!exact.err.contains(warning), "{}", exact.err);
}

#[test]
fn run_prints_progress_result_and_log_lines() {
    let state = State::new("text");
    let text = state.run(&["run", "--width", "300"]);
    assert_eq!(text.code, 0);
    for word in ["memory", "free", "lines", "median", "elapsed"] {
        assert!(text.err.contains(word), "{word}: {}", text.err);
    }
    for word in [
        "score", "digest", "children", "folder", "replay", "..", "##",
    ] {
        assert!(text.out.contains(word), "{word}: {}", text.out);
    }
    let quiet = state.run(&["run", "--width", "301", "--quiet"]);
    assert_eq!(quiet.err, "");

    let logged = state.run(&["run", "--width", "302", "--log-format", "json"]);
    let mut committed = 0;
    for line in logged.err.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "INFO");
        committed += u32::from(line["message"] == "committed depth");
    }
    assert!(committed > 20, "{committed}");
    let logged = state.run(&["run", "--width", "303", "--log-format", "text"]);
    let expected = "committed depth depth=1 wells=17";
    assert!(logged.err.contains(expected), "{}", logged.err);
}

#[test]
fn run_beyond_its_depth_limit_says_so() {
    let state = State::new("beyond");
    let to = |depth| state.run(&["run", "--width", "50", "--max-depth", depth]);
    assert_eq!(to("9").code, 0);
    for (depth, expected) in [
        ("4", "the run is already at depth 9"),
        ("9", "the run is already at depth 9"),
        ("11", "resuming run network-50-"),
    ] {
        let run = to(depth);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.err.contains(expected), "{depth}: {}", run.err);
    }
}

#[test]
fn run_writes_files_of_each_game_once_in_all_formats() {
    let state = State::new("files");
    let early = state.search(&["--width", "200", "--max-depth", "9"]);
    let search = state.search(&["--width", "200"]);
    let again = state.search(&["--width", "200"]);
    assert_eq!(again.files(), search.files());
    let files = search.files();
    assert_eq!(
        Some(search.summary["replay_file"].as_str().unwrap()),
        files[0].to_str()
    );
    let runs = state.path().join("runs");
    let folder = runs.join(search.name()).join("replays");
    let start = format!(
        "{:05}-lines-{:04}-pieces-200-wide-20",
        search.summary["best_lines"].as_u64().unwrap(),
        search.summary["pieces"].as_u64().unwrap()
    );
    let extensions = ["txt", "raw.txt", "json", "svg", "html"];
    assert_eq!(files.len(), extensions.len());
    for (file, expected) in files.iter().zip(extensions) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let (stem, extension) = name.split_once('.').unwrap();
        assert!(stem.starts_with(&start), "{name}");
        assert_eq!(extension, expected);
        assert_eq!(file.parent(), Some(folder.as_path()));
    }
    let (raw, score) = (files[1].to_str().unwrap(), search.score());
    run(&["replay", "verify", "--file", raw, "--expect-score", &score]).results();
    let film: Value = serde_json::from_slice(&fs::read(&files[2]).unwrap()).unwrap();
    assert_eq!(film["base2048"], search.summary["replay"]);
    let text = |file: &Path| fs::read_to_string(file).unwrap();
    assert!(text(&files[3]).contains(&format!(">{score} lines<")));
    assert!(text(&files[4]).contains("Distribution of scores"));
    // The folder contains five files for each of the two games.
    assert!(early.files()[0].is_file());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 10);
}

#[cfg(unix)]
#[test]
fn hook_receives_events_of_run_and_invalid_webhook_is_refused() {
    let state = State::new("events");
    let log = state.path().join("log");
    fs::create_dir_all(state.path()).unwrap();
    let command = format!("cat >> '{0}'; echo >> '{0}'", log.display());
    let hook = ["--event-every", "10", "--on-event", &command];
    let search = state.search(&[&["--width", "200"], &hook[..]].concat());
    let text = fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(count("depth"), search.depths.len() / 10);
    assert!(count("best-score") > 0);
    let end = events.last().unwrap();
    assert_eq!(end["event"], "finished");
    assert_eq!(end["end"], "over");
    for (field, summary_field) in [
        ("score", "best_lines"),
        ("pieces", "pieces"),
        ("replay", "replay"),
        ("files", "files"),
    ] {
        assert_eq!(end[field], search.summary[summary_field], "{field}");
    }
    let refused = state.run(&["run", "--width", "201", "--webhook", "ftp://x/y"]);
    let error = refused.error(1);
    assert!(
        error.contains("must begin with http:// or https://"),
        "{error}"
    );
}

/// A command line that `run` refuses: its arguments, the exit code, and a part of the error message.
type Refused<'a> = (&'a [&'a str], i32, &'a str);

/// Asserts that `run` refuses the command lines and does not create a run.
#[track_caller]
fn assert_refused(name: &str, cases: &[Refused]) {
    let state = State::new(name);
    for (args, code, expected) in cases {
        let all = [&["run", "-q"], *args].concat();
        let result = if args.contains(&"--state") {
            run(&all)
        } else {
            state.run(&all)
        };
        assert_eq!(result.code, *code, "{args:?}: {result:?}");
        assert!(result.err.contains(expected), "{args:?}: {}", result.err);
    }
    assert!(!state.path().join("runs").exists(), "a run was created");
}

#[test]
fn invalid_options_are_refused() {
    let example = example();
    let replay = ["--start-replay", &example];
    let piece_0 = [&replay[..], &["--from-piece", "0"]].concat();
    let piece_9999 = [&replay[..], &["--from-piece", "9999"]].concat();
    // A filled row above an empty one.
    let with_gap = format!("{}0ff0000ff", "000".repeat(13));
    assert_refused(
        "refused-options",
        &[
            (&["--width", "0"], 2, "a width is a whole number"),
            (&["--width", "2G"], 2, "a width is a whole number"),
            (&["--width", "1G"], 1, "of memory"),
            (&["--threads", "0"], 2, "--threads"),
            (&["--evaluator", "best"], 2, "knewjade"),
            (&["--quiescence", "loud"], 2, "off"),
            (&["--keep", "7"], 2, "2 to 6"),
            (&["--keep", "1"], 2, "2 to 6"),
            (&["--keep", "4", "--loops", "exact"], 1, "pass --keep all"),
            (&["--name", "../x"], 2, "a name has"),
            (
                &["--columns", "3"],
                2,
                "'--columns <N>': give a number of columns from 4 to 16",
            ),
            (&["--rows", "17"], 2, "give a number of rows from 1 to 16"),
            (&["--max-depth", "0"], 2, "give a depth from 1 to"),
            (&["--max-hours", "-1"], 2, "give a number of hours"),
            (&["--columns", "16"], 1, "160 cells"),
            (&["--start-well", "zz"], 1, "the well to start from"),
            (&["--start-well", &with_gap], 1, "an empty row below"),
            (&replay, 2, "--from-piece"),
            (&piece_0, 1, "no piece 0"),
            (&piece_9999, 1, "no piece 9999"),
            (
                &["--start-replay", "nowhere", "--from-piece", "9"],
                1,
                "nowhere",
            ),
            (&["--state", ""], 2, "--state"),
            (&["--state", "/dev/null/x"], 1, "/dev/null"),
        ],
    );
    State::new("refused-resume")
        .run(&["resume", "nothing"])
        .error(1);
}

#[test]
fn invalid_weights_are_refused() {
    let weights = |name: &str, text: &str| file(name, text.as_bytes());
    let unknown = weights("unknown.toml", "[weights]\nhole = 1");
    let text = weights("text.toml", "[weights]\nholes = \"many\"");
    let broken = weights("broken.toml", "[weights");
    let extra = weights("extra.toml", "colour = 1");
    assert_refused(
        "refused-weights",
        &[
            (&["--weight", "holes"], 2, "NAME=VALUE"),
            (
                &["--weight", "holes=1", "--evaluator", "patterns"],
                2,
                "patterns has no weights",
            ),
            (
                &["--weight", "hole=1"],
                1,
                "unknown weight \"hole\": choose one of",
            ),
            (&["--weight", "holes=nan"], 1, "give a finite number"),
            (&["--weight", "holes=-inf"], 1, "give a finite number"),
            (&["--weight", "holes=1e9"], 1, "from -4096 to 4096"),
            (&["--weights", &unknown], 1, "unknown weight \"hole\""),
            (
                &["--weights", &text],
                1,
                "the weight of holes is not a number",
            ),
            (&["--weights", &broken], 1, "broken.toml"),
            (&["--weights", &extra], 1, "extra.toml"),
            (
                &["--weights", "nowhere.toml"],
                1,
                "cannot read the weights file nowhere.toml (--weights): No such file",
            ),
            (&["--weights", "/dev/zero"], 1, "/dev/zero"),
        ],
    );
}

#[test]
fn weights_from_file_equal_weights_from_options() {
    let state = State::new("weights");
    let toml = "evaluator = \"knewjade\"\nquiescence = \"forced\"\n[weights]\nholes = 20\nscore = -400.5\n";
    let weights = file("good.toml", toml.as_bytes());
    let from_file = state.search(&["--width", "50", "--weights", &weights]);
    let from_options = state.search(&[
        "--width",
        "50",
        "--weight",
        "holes=20",
        "--weight",
        "score=-400.5",
        "--quiescence",
        "forced",
    ]);
    assert_eq!(from_file.summary, from_options.summary);
    let default = state.search(&["--width", "50"]);
    assert_ne!(default.name(), from_file.name());
    assert!(
        default.name().starts_with("network-50-"),
        "{}",
        default.name()
    );
    let plain = state.search(&["--width", "50", "--evaluator", "plain"]);
    assert!(plain.name().starts_with("plain-50-"), "{}", plain.name());
}

#[test]
fn run_can_start_from_replay_position_or_use_other_well_size() {
    let state = State::new("start");
    let example = example();
    let start = ["--start-replay", &example, "--from-piece", "380"];
    let search = state.search(&[&["--width", "200"], &start[..]].concat());
    assert!(search.summary["best_lines"].as_u64().unwrap() > 100);
    run(&["replay", "verify", search.replay()]).silent_results();
    let search = state.search(&["--width", "200", "--columns", "6", "--rows", "5"]);
    let name = search.name();
    assert!(name.starts_with("patterns-200-"), "{name}");
    let size = ["--width", "6", "--height", "5"];
    let score = search.score();
    let verify = [
        "replay",
        "verify",
        search.replay(),
        "--expect-score",
        &score,
    ];
    run(&[&verify[..], &size].concat()).silent_results();
}

/// Starts a command with a closed standard output, and returns its exit code and standard error.
fn run_with_closed_output(state: &State, args: &[&str]) -> (Option<i32>, String) {
    let state = ["--state", state.path().to_str().unwrap()];
    let mut command = command(&[args, &state].concat());
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), err)
}

#[test]
fn closed_output_prevents_neither_the_result_nor_an_error() {
    let state = State::new("closed-output");
    let args = ["run", "--json", "-q", "--width", "50", "--name", "closed"];
    assert_eq!(
        run_with_closed_output(&state, &args),
        (Some(0), String::new())
    );
    let shown = state.run(&["runs", "show", "closed", "--json"]).json();
    assert_eq!(shown["result"]["end"], "over");
    assert!(shown["result"]["replay"].is_string(), "{shown}");

    // The best game cannot be saved, because its folder is a file.
    let search = [&args[..6], &["stopped", "--max-depth", "5"]].concat();
    state.run(&search).silent_results();
    let replays = state.path().join("runs/stopped/replays");
    fs::remove_dir_all(&replays).unwrap();
    fs::write(&replays, "").unwrap();
    let resume = ["resume", "stopped", "--json", "-q", "--max-depth", "8"];
    let (code, err) = run_with_closed_output(&state, &resume);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.starts_with("error: "), "{err}");
}
