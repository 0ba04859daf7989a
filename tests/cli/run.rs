//! `run`, `resume`, `keyframes` and `runs`, as a user runs them: killed, stopped, on a full disk.

use crate::support::{Run, command, example, file, run};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// An empty folder for a test's state.
fn state(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{name}"));
    let _ = fs::remove_dir_all(&path);
    path.to_str().unwrap().to_owned()
}

fn with_state(args: &[&str], state: &str) -> Run {
    run(&[args, &["--state", state]].concat())
}

/// The lines of JSON that a run prints: those of the depths, and its own.
#[track_caller]
fn json(run: Run) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = run
        .silent_results()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.pop().unwrap();
    (lines, last)
}

fn search(state: &str, width: &str) -> (Vec<Value>, Value) {
    json(with_state(
        &["run", "--width", width, "--json", "-q"],
        state,
    ))
}

/// The digests that `runs show` tells.
fn digests(state: &str, name: &str) -> Vec<String> {
    let shown = with_state(&["runs", "show", name, "--verify", "--json"], state).silent_results();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["damaged"], serde_json::json!([]));
    let depths = shown["depths"].as_array().unwrap();
    depths
        .iter()
        .map(|record| record["digest"].as_str().unwrap().to_owned())
        .collect()
}

fn name_of(summary: &Value) -> String {
    summary["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_ends_with_a_replay_that_verifies() {
    let state = state("whole");
    let (depths, summary) = search(&state, "500");
    assert_eq!(summary["end"], "over");
    assert_eq!(depths.len() as u64, summary["depth"].as_u64().unwrap());
    for (line, depth) in depths.iter().zip(1..) {
        assert_eq!(line["depth"], depth);
        assert!(line["wells"].as_u64().unwrap() <= 500);
        assert!(line["worst_eval"].as_i64() <= line["median_eval"].as_i64());
        assert!(line["median_eval"].as_i64() <= line["best_eval"].as_i64());
        assert!(line["children"].as_u64() >= line["wells"].as_u64());
    }
    assert_eq!(depths.last().unwrap()["digest"], summary["digest"]);
    for number in ["children", "peak_rss_bytes", "stored_bytes"] {
        assert!(summary[number].as_u64().unwrap() > 0, "{number}");
    }
    let score = summary["best_lines"].to_string();
    let replay = summary["replay"].as_str().unwrap();
    run(&["replay", "verify", replay, "--expect-score", &score]).silent_results();
    let kept = summary["replay_file"].as_str().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap().trim(), replay);

    // The same command tells the result again and searches nothing.
    let again = with_state(&["run", "--width", "500"], &state);
    assert!(again.out.contains(replay) && !again.err.contains("depth"));
    let (depths, told) = search(&state, "500");
    assert_eq!((depths.len(), &told), (0, &summary));
    let (_, resumed) = json(with_state(&["resume", "patterns-500-", "--json"], &state));
    assert_eq!(resumed, summary);
}

#[test]
fn a_person_is_told_what_happens() {
    let state = state("person");
    let told = with_state(&["run", "--width", "300"], &state);
    assert_eq!(told.code, 0);
    for word in ["memory", "free", "lines", "median", "elapsed"] {
        assert!(told.err.contains(word), "{word}: {}", told.err);
    }
    for word in [
        "score", "digest", "children", "folder", "replay", "..", "##",
    ] {
        assert!(told.out.contains(word), "{word}: {}", told.out);
    }
    let quiet = with_state(&["run", "--width", "301", "--quiet"], &state);
    assert_eq!(quiet.err, "");

    let logged = with_state(&["run", "--width", "302", "--log-format", "json"], &state);
    let mut committed = 0;
    for line in logged.err.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "INFO");
        committed += u32::from(line["message"] == "committed depth");
    }
    assert!(committed > 20, "{committed}");
    let logged = with_state(&["run", "--width", "303", "--log-format", "text"], &state);
    assert!(
        logged.err.contains("committed depth depth=1 wells=17"),
        "{}",
        logged.err
    );
}

#[test]
fn games_can_be_read_back() {
    let state = state("keyframes");
    let (_, summary) = search(&state, "400");
    let name = name_of(&summary);
    let read = with_state(&["keyframes", &name, "--json"], &state).silent_results();
    let read: Value = serde_json::from_str(&read).unwrap();
    let wells = read["wells"].as_array().unwrap();
    assert_eq!(wells.len() as u64, read["depth"].as_u64().unwrap() + 1);
    assert!(read["lookups"].as_u64().unwrap() < 2 * wells.len() as u64);
    // A well from the middle of the way leads to the same beginning.
    let middle = wells[20].as_str().unwrap();
    let part = [
        "keyframes",
        &name,
        "--depth",
        "20",
        "--well",
        middle,
        "--json",
    ];
    let part: Value = serde_json::from_str(&with_state(&part, &state).silent_results()).unwrap();
    assert_eq!(part["wells"].as_array().unwrap()[20], middle);

    let replay = with_state(&["keyframes", &name, "--depth", "20", "--replay"], &state);
    run(&["replay", "verify", replay.silent_results().trim()]).results();
    let drawn = with_state(
        &["keyframes", &name, "--depth", "20", "--every", "10"],
        &state,
    );
    assert_eq!(drawn.out.matches("after piece").count(), 3);

    for (args, expected) in [
        (&["--depth", "900"][..], "the run has depths 0 to"),
        (
            &["--depth", "20", "--well", "zz"],
            "the well to go back from",
        ),
        (
            &["--depth", "20", "--well", wells[5].as_str().unwrap()],
            "depth 20 does not hold the well",
        ),
    ] {
        let error = with_state(&[&["keyframes", &name], args].concat(), &state).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn runs_are_listed_shown_and_removed() {
    let state = state("runs");
    let none = with_state(&["runs"], &state);
    assert!(none.err.contains("there are no runs"), "{none:?}");
    let (_, summary) = search(&state, "100");
    search(&state, "101");
    with_state(
        &[
            "run",
            "--width",
            "102",
            "--name",
            "mine",
            "--max-depth",
            "4",
            "-q",
        ],
        &state,
    )
    .results();
    let list = with_state(&["runs"], &state).silent_results();
    assert_eq!(list.lines().count(), 4, "{list}");
    assert!(list.contains("mine") && list.contains("max-depth") && list.contains("over"));
    let lines = with_state(&["runs", "list", "--json"], &state).silent_results();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["stored_bytes"].as_u64().unwrap() > 0);
    }
    let name = name_of(&summary);
    let shown = with_state(&["runs", "show", &name, "--verify"], &state).silent_results();
    assert!(shown.contains("all that is stored is whole"), "{shown}");
    let error = with_state(&["runs", "show", "patterns"], &state).error(1);
    assert!(error.contains("give more of the name"), "{error}");
    let error = with_state(&["runs", "show", "other"], &state).error(1);
    assert!(error.contains("there is no run \"other\""), "{error}");
    with_state(&["runs", "rm", &name], &state).error(2);
    with_state(&["runs", "rm", &name, "--yes"], &state).results();
    let list = with_state(&["runs"], &state).silent_results();
    assert!(!list.contains(&name));
    // The replay is the result: it stays, and all that was made of it.
    for file in summary["files"].as_array().unwrap() {
        let file = Path::new(file.as_str().unwrap());
        assert!(!file.exists());
        let saved = Path::new(&state).join("replays").join(&name);
        assert!(saved.join(file.file_name().unwrap()).is_file());
    }
}

#[test]
fn a_run_leaves_its_game_in_every_form_and_once() {
    let state = state("left");
    let left = || {
        let (_, summary) = search(&state, "200");
        let files = summary["files"].as_array().unwrap().clone();
        assert_eq!(files[0], summary["replay_file"]);
        files
            .into_iter()
            .map(|file| file.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let args = ["run", "--width", "200", "--max-depth", "9", "--json", "-q"];
    let (_, early) = json(with_state(&args, &state));
    let files = left();
    let folder = Path::new(&state)
        .join("runs")
        .join(name_of(&early))
        .join("replays");
    let (_, summary) = search(&state, "200");
    let says = format!(
        "{:05}-lines-{:04}-pieces-200-wide-20",
        summary["best_lines"].as_u64().unwrap(),
        summary["pieces"].as_u64().unwrap()
    );
    let endings = ["txt", "raw.txt", "json", "svg", "html"];
    for (file, ending) in files.iter().zip(endings) {
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(&says) && name.split_once('.').unwrap().1 == ending,
            "{name}"
        );
        assert_eq!(Path::new(file).parent(), Some(folder.as_path()));
    }
    let score = summary["best_lines"].to_string();
    run(&[
        "replay",
        "verify",
        "--file",
        &files[1],
        "--expect-score",
        &score,
    ])
    .results();
    let film: Value = serde_json::from_slice(&fs::read(&files[2]).unwrap()).unwrap();
    assert_eq!(film["base2048"], summary["replay"]);
    assert!(
        fs::read_to_string(&files[3])
            .unwrap()
            .contains(&format!(">{score} lines<"))
    );
    assert!(
        fs::read_to_string(&files[4])
            .unwrap()
            .contains("Distribution of scores")
    );
    // What was found on the way is still there, and nothing twice.
    assert!(Path::new(early["replay_file"].as_str().unwrap()).is_file());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 10);
}

#[cfg(unix)]
#[test]
fn a_run_tells_what_happens_to_it() {
    let state = state("told");
    let log = Path::new(&state).join("told");
    fs::create_dir_all(&state).unwrap();
    let command = format!("cat >> '{0}'; echo >> '{0}'", log.display());
    let hooks = ["--event-every", "10", "--on-event", &command];
    let args = [&["run", "--width", "200", "--json", "-q"][..], &hooks].concat();
    let (depths, summary) = json(with_state(&args, &state));
    let text = fs::read_to_string(&log).unwrap();
    let told: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| told.iter().filter(|event| event["event"] == name).count();
    assert_eq!(told[0]["event"], "started");
    assert_eq!(count("depth"), depths.len() / 10);
    assert!(count("best-score") > 0);
    let end = told.last().unwrap();
    assert_eq!(
        (&end["event"], &end["end"]),
        (&"finished".into(), &"over".into())
    );
    for (told, known) in [
        ("score", "best_lines"),
        ("pieces", "pieces"),
        ("replay", "replay"),
    ] {
        assert_eq!(end[told], summary[known], "{told}");
    }
    assert_eq!(end["files"], summary["files"]);
    let error = with_state(&["run", "--width", "201", "--webhook", "ftp://x/y"], &state).error(1);
    assert!(error.contains("neither http:// nor https://"), "{error}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let state = state("refused");
    let weights = |name: &str, text: &str| file(name, text.as_bytes());
    let unknown = weights("unknown.toml", "[weights]\nhole = 1");
    let text = weights("text.toml", "[weights]\nholes = \"many\"");
    let broken = weights("broken.toml", "[weights");
    let extra = weights("extra.toml", "colour = 1");
    let example = example();
    for (args, code, expected) in [
        (&["--width", "0"][..], 2, "a width is a whole number"),
        (&["--width", "2G"], 2, "a width is a whole number"),
        (&["--width", "1G"], 1, "of memory"),
        (&["--threads", "0"], 2, "--threads"),
        (&["--evaluator", "best"], 2, "knewjade"),
        (&["--quiescence", "loud"], 2, "off"),
        (&["--keep", "7"], 2, "2 to 6"),
        (&["--name", "../x"], 2, "a name is"),
        (&["--weight", "holes"], 2, "NAME=VALUE"),
        (
            &["--weight", "holes=1", "--evaluator", "patterns"],
            2,
            "patterns has none to set",
        ),
        (
            &["--weight", "hole=1"],
            1,
            "there is no weight \"hole\": there are",
        ),
        (&["--weight", "holes=nan"], 1, "it must be a number"),
        (&["--weight", "holes=-inf"], 1, "it must be a number"),
        (&["--weight", "holes=1e9"], 1, "from -4096 to 4096"),
        (&["--weights", &unknown], 1, "there is no weight \"hole\""),
        (&["--weights", &text], 1, "the weight of holes is no number"),
        (&["--weights", &broken], 1, "broken.toml"),
        (&["--weights", &extra], 1, "extra.toml"),
        (&["--weights", "nowhere.toml"], 1, "nowhere.toml"),
        (&["--weights", "/dev/zero"], 1, "/dev/zero"),
        (&["--columns", "3"], 2, "width"),
        (&["--columns", "16"], 1, "160 cells"),
        (&["--start-well", "zz"], 1, "the well to start from"),
        (&["--start-replay", &example], 2, "--from-piece"),
        (
            &["--start-replay", &example, "--from-piece", "0"],
            1,
            "no piece 0",
        ),
        (
            &["--start-replay", &example, "--from-piece", "9999"],
            1,
            "no piece 9999",
        ),
        (
            &["--start-replay", "nowhere", "--from-piece", "9"],
            1,
            "nowhere",
        ),
        (&["--state", ""], 2, "--state"),
        (&["--state", "/dev/null/x"], 1, "/dev/null"),
    ] {
        let ran = if args.contains(&"--state") {
            run(&[&["run", "-q"], args].concat())
        } else {
            with_state(&[&["run", "-q"], args].concat(), &state)
        };
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    assert!(
        !Path::new(&state).join("runs").exists(),
        "something was made"
    );
    with_state(&["resume", "nothing"], &state).error(1);
}

#[test]
fn weights_change_the_run_and_its_name() {
    let state = state("weights");
    let toml = "evaluator = \"knewjade\"\nquiescence = \"forced\"\n[weights]\nholes = 20\nscore = -400.5\n";
    let weights = file("good.toml", toml.as_bytes());
    let by_file = [
        "run",
        "--width",
        "50",
        "--weights",
        &weights,
        "--json",
        "-q",
    ];
    let (_, by_file) = json(with_state(&by_file, &state));
    let by_flags = [
        "run",
        "--width",
        "50",
        "--weight",
        "holes=20",
        "--weight",
        "score=-400.5",
        "--quiescence",
        "forced",
        "--json",
        "-q",
    ];
    let (_, by_flags) = json(with_state(&by_flags, &state));
    assert_eq!(by_file, by_flags);
    let (_, default) = search(&state, "50");
    assert_ne!(default["run"], by_file["run"]);
    let (_, plain) = json(with_state(
        &[
            "run",
            "--width",
            "50",
            "--evaluator",
            "plain",
            "--json",
            "-q",
        ],
        &state,
    ));
    assert!(name_of(&plain).starts_with("plain-50-"));
}

#[test]
fn a_run_may_start_in_a_game_and_have_another_size() {
    let state = state("start");
    let example = example();
    let from = [
        "run",
        "--width",
        "200",
        "--start-replay",
        &example,
        "--from-piece",
        "380",
        "--json",
        "-q",
    ];
    let (_, summary) = json(with_state(&from, &state));
    assert!(summary["best_lines"].as_u64().unwrap() > 100);
    let replay = summary["replay"].as_str().unwrap();
    run(&["replay", "verify", replay]).silent_results();
    let small = [
        "run",
        "--width",
        "200",
        "--columns",
        "6",
        "--rows",
        "5",
        "--json",
        "-q",
    ];
    let (_, summary) = json(with_state(&small, &state));
    let replay = summary["replay"].as_str().unwrap();
    let score = summary["best_lines"].to_string();
    run(&[
        "replay",
        "verify",
        replay,
        "--width",
        "6",
        "--height",
        "5",
        "--expect-score",
        &score,
    ])
    .silent_results();
}

/// A search that goes on in the background.
struct Search(Child);

impl Search {
    fn start(state: &str, args: &[&str]) -> Search {
        let all = [&["run", "--quiet", "--state", state], args].concat();
        let child = command(&all).stdin(Stdio::null()).spawn().unwrap();
        Search(child)
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    fn end(mut self) -> (Option<i32>, String) {
        let status = self.0.wait().unwrap();
        let mut err = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (status.code(), err)
    }
}

/// The depths that are committed.
fn depths_of(state: &str, name: &str) -> usize {
    let path = Path::new(state)
        .join("runs")
        .join(name)
        .join("depths.jsonl");
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn wait_for_depths(state: &str, name: &str, depths: usize) {
    let begun = Instant::now();
    while depths_of(state, name) < depths {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no depth is committed"
        );
        sleep(Duration::from_millis(2));
    }
}

/// Kills a search at random moments until it has been killed `kills` times, and lets it end then.
fn kill_again_and_again(state: &str, width: &str, kills: u32, seed: u64) {
    eprintln!("seed {seed}");
    let (_, reference) = search(&format!("{state}-whole"), width);
    let name = name_of(&reference);
    let whole = reference["seconds"].as_f64().unwrap();
    let mut random = seed;
    let mut killed = 0;
    for round in 0.. {
        assert!(round < 20 * kills, "it ends too soon");
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let part = (random >> 40) as f64 / (1u64 << 24) as f64;
        let search = Search::start(state, &["--width", width]);
        sleep(Duration::from_secs_f64(whole * part * 0.7));
        search.signal("-KILL");
        let (code, _) = search.end();
        if code.is_none() {
            killed += 1;
        } else {
            // It had ended: from the beginning again.
            assert_eq!(
                digests(state, &name),
                digests(&format!("{state}-whole"), &name)
            );
            fs::remove_dir_all(state).unwrap();
        }
        if killed == kills {
            break;
        }
    }
    let (_, summary) = search(state, width);
    assert_eq!(
        digests(state, &name),
        digests(&format!("{state}-whole"), &name)
    );
    assert_eq!(summary["replay"], reference["replay"]);
    assert_eq!(summary["children"], reference["children"]);
    fs::remove_dir_all(state).unwrap();
    fs::remove_dir_all(format!("{state}-whole")).unwrap();
}

fn any_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_nanos() as u64
}

#[test]
fn a_killed_run_goes_on_as_if_nothing_had_been() {
    kill_again_and_again(&state("killed"), "2000", 4, any_seed());
}

#[test]
#[ignore = "takes minutes"]
fn a_run_killed_sixty_times_goes_on_as_if_nothing_had_been() {
    for (round, width) in ["700", "3000", "8000", "20k"].iter().enumerate() {
        kill_again_and_again(&state(&format!("killed-{round}")), width, 15, any_seed());
    }
}

#[test]
fn ctrl_c_stops_soon_and_says_how_to_go_on() {
    let state = state("ctrl-c");
    for signal in ["-INT", "-TERM"] {
        let before = depths_of(&state, "long");
        let search = Search::start(&state, &["--width", "100k", "--name", "long"]);
        wait_for_depths(&state, "long", before + 5);
        let asked = Instant::now();
        search.signal(signal);
        let (code, err) = search.end();
        assert!(asked.elapsed() < Duration::from_secs(10));
        assert_eq!(code, Some(130));
        assert!(err.contains("hatebeam resume long"), "{err}");
    }
    digests(&state, "long");
    let error = with_state(&["run", "--width", "99", "--name", "long"], &state).error(1);
    assert!(error.contains("another specification"), "{error}");
    let at = (depths_of(&state, "long") + 1).to_string();
    let (depths, summary) = json(with_state(
        &["resume", "long", "--max-depth", &at, "--json", "-q"],
        &state,
    ));
    assert_eq!(
        (depths.len(), summary["end"].as_str()),
        (2, Some("max-depth"))
    );
}

#[test]
fn a_run_is_searched_by_one_process_and_seen_by_many() {
    let state = state("in-use");
    let search = Search::start(&state, &["--width", "100k", "--name", "long"]);
    wait_for_depths(&state, "long", 12);
    let error = with_state(&["resume", "long"], &state).error(1);
    assert!(error.contains("in use by another process"), "{error}");
    let error = with_state(&["runs", "rm", "long", "--yes"], &state).error(1);
    assert!(error.contains("in use by another process"), "{error}");
    let read = with_state(&["keyframes", "long", "--depth", "10", "--json"], &state);
    let read: Value = serde_json::from_str(&read.silent_results()).unwrap();
    assert_eq!(read["wells"].as_array().unwrap().len(), 11);
    with_state(&["runs"], &state).silent_results();
    search.signal("-KILL");
    search.end();
}

#[test]
fn what_lies_in_the_folder_is_checked() {
    let state = state("foreign");
    let (_, summary) = search(&state, "60");
    let dir = PathBuf::from(summary["folder"].as_str().unwrap());
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let newer = manifest.replace("\"format\": 1", "\"format\": 99");
    assert_ne!(newer, manifest);
    fs::write(dir.join("manifest.json"), newer).unwrap();
    let error = with_state(&["run", "--width", "60"], &state).error(1);
    assert!(error.contains("format 99"), "{error}");
    fs::write(dir.join("manifest.json"), &manifest[..manifest.len() / 2]).unwrap();
    let error = with_state(&["run", "--width", "60"], &state).error(1);
    assert!(error.contains("damaged"), "{error}");
    fs::write(dir.join("manifest.json"), &manifest).unwrap();

    let table = fs::read_dir(dir.join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .max()
        .unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[20] ^= 1;
    fs::write(&table, bytes).unwrap();
    let damaged = with_state(&["runs", "show", &name_of(&summary), "--verify"], &state);
    let (_, error) = damaged.late_error();
    assert!(
        error.contains("depth") && error.contains("damaged"),
        "{error}"
    );
    assert!(error.contains("hatebeam runs repair"), "{error}");

    let name = name_of(&summary);
    let (_, repaired) = json(with_state(&["runs", "repair", &name, "--json"], &state));
    assert_eq!(repaired["repaired"].as_array().unwrap().len(), 1);
    with_state(&["runs", "show", &name, "--verify"], &state);
    let again = with_state(&["runs", "repair", &name], &state);
    assert!(
        again.out.contains("all that is stored is whole"),
        "{}",
        again.out
    );
}

/// A small disk of its own; `None` where nobody may make one.
struct SmallDisk(String);

impl SmallDisk {
    fn new(path: &str, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(path).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs", path])
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| SmallDisk(path.to_owned()))
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        let grown = Command::new("mount")
            .args(["-o", &options, &self.0])
            .status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", &self.0]).status();
    }
}

#[test]
fn a_full_disk_stops_a_run_and_loses_nothing() {
    let path = state("full-disk");
    let Some(disk) = SmallDisk::new(&path, "6m") else {
        eprintln!("skipped: nobody may mount a small disk here");
        return;
    };
    let error = with_state(&["run", "--width", "5000", "-q"], &path).error(1);
    assert!(
        error.contains("free") && error.contains("--keep"),
        "{error}"
    );
    let wide = [
        "run",
        "--width",
        "5000",
        "-q",
        "--ignore-limits",
        "--name",
        "wide",
    ];
    for _ in 0..2 {
        let error = with_state(&wide, &path).error(1);
        assert!(error.contains("no space is left"), "{error}");
        assert!(error.contains("hatebeam resume wide"), "{error}");
        assert!(digests(&path, "wide").len() > 10);
    }
    disk.grow("100m");
    let whole = state("full-disk-whole");
    let (_, reference) = search(&whole, "5000");
    let (_, summary) = json(with_state(&["resume", "wide", "--json", "-q"], &path));
    assert_eq!(summary["replay"], reference["replay"]);
    assert_eq!(
        digests(&path, "wide"),
        digests(&whole, &name_of(&reference))
    );
}
