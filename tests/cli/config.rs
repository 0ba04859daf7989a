//! The configuration file.

use crate::support::{Run, command, file, run_command};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs the binary with this file and these variables.
fn run_with(config: &str, variables: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = command(args);
    command
        .env_remove("HATEBEAM_STATE")
        .env_remove("HATEBEAM_STORE")
        .env("HATEBEAM_CONFIG", config)
        .envs(variables.iter().copied());
    run_command(command, b"")
}

/// A folder for tests, with nothing in it.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("config-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let dir = folder("precedence");
    let at = |name: &str| dir.join(name).display().to_string();
    let (shared, own, outside, typed) = (at("shared"), at("own"), at("outside"), at("typed"));
    let size = "[run]\nwidth = 20\nmax-depth = 2\nquiet = true\njson = true\n";
    let for_all = format!("[shared]\nstate = {shared:?}\n");
    let of_shared = file("config-shared.toml", format!("{size}{for_all}").as_bytes());
    let of_run = format!("{size}state = {own:?}\n{for_all}");
    let of_run = file("config-own.toml", of_run.as_bytes());
    let variable: &[(&str, &str)] = &[("HATEBEAM_STATE", &outside)];
    for (config, variables, args, expected) in [
        (&of_shared, &[][..], &["run"][..], &shared),
        (&of_run, &[], &["run"], &own),
        (&of_run, variable, &["run"], &outside),
        (&of_run, variable, &["run", "--state", &typed], &typed),
        (&of_run, &[], &["run", "--state", &typed], &typed),
    ] {
        let out = run_with(config, variables, args).silent_results();
        let lines: Vec<Value> = out.lines().map(json).collect();
        assert_eq!(lines.len(), 3, "{out}");
        let end = &lines[2];
        assert!(end["run"].as_str().unwrap().starts_with("patterns-20"));
        let found = end["folder"].as_str().unwrap();
        assert!(found.starts_with(&format!("{expected}/")), "{found}");
        fs::remove_dir_all(expected).unwrap();
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn what_is_required_may_be_in_the_file() {
    let config = file("config-required.toml", b"[perft]\ndepth = 2\n");
    let typed = run_with("none", &[], &["perft", "--depth", "2"]).silent_results();
    assert_eq!(run_with(&config, &[], &["perft"]).silent_results(), typed);
    run_with("none", &[], &["perft"]).error(2);
    // Where a flag is said twice, on the command line, it is the command line's that counts.
    let more = run_with(&config, &[], &["perft", "--depth", "3"]).silent_results();
    assert!(more.lines().count() > typed.lines().count());
    let named = run_with("none", &[], &["perft", "--config", &config]);
    assert_eq!(named.silent_results(), typed);
}

#[test]
fn the_usual_place_is_read_if_there_is_a_file() {
    let home = folder("home");
    fs::create_dir_all(home.join(".config/hatebeam")).unwrap();
    let path = home.join(".config/hatebeam/config.toml");
    let ask = |xdg: &str, args: &[&str]| {
        let mut command = command(args);
        command
            .env_remove("HATEBEAM_CONFIG")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", xdg);
        run_command(command, b"")
    };
    ask("", &["perft"]).error(2);
    fs::write(&path, "[perft]\ndepth = 1\n").unwrap();
    ask("", &["perft"]).silent_results();
    let told = ask("", &["config", "path"]).silent_results();
    assert_eq!(told.trim_end(), path.display().to_string());
    let elsewhere = home.join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    ask(elsewhere, &["perft"]).error(2);
    let told = ask(elsewhere, &["config", "path"]);
    assert!(told.err.contains("it is not there"), "{told:?}");
    assert_eq!(
        told.results().trim_end(),
        format!("{elsewhere}/hatebeam/config.toml")
    );
}

#[test]
fn a_file_that_is_wrong_is_told_and_helps_are_given_all_the_same() {
    let config = file(
        "config-wrong.toml",
        b"[perft]\ndepth = 2\ndeep = 3\njason = 1\n",
    );
    let error = run_with(&config, &[], &["perft"]).error(1);
    let expected = format!(
        "{config}:3: there is no key `deep` in [perft]; `depth` is meant, perhaps (and 1 more: hatebeam \
         config check {config})"
    );
    assert_eq!(error, expected);
    for args in [
        &["--help"][..],
        &["perft", "--help"],
        &["--version"],
        &["config", "path"],
        &["completions", "bash"],
    ] {
        run_with(&config, &[], args).silent_results();
    }
    let missing = run_with("/nowhere/config.toml", &[], &["perft", "--depth", "1"]).error(1);
    assert!(missing.contains("/nowhere/config.toml"), "{missing}");
    let long = vec![b'#'; (1 << 20) + 1];
    let long = file("config-long.toml", &long);
    let error = run_with(&long, &[], &["perft", "--depth", "1"]).error(1);
    assert!(error.contains("bytes"), "{error}");
    let odd = file("config-odd.toml", b"\xff\xfe");
    let error = run_with(&odd, &[], &["perft", "--depth", "1"]).error(1);
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn where_clap_stumbles_over_the_file_it_is_said() {
    let config = file("config-half.toml", b"[run]\nstart-replay = 'game.txt'\n");
    let error = run_with(&config, &[], &["run"]).error(2);
    assert!(error.contains("--from-piece"), "{error}");
    let note = format!("note: {config} has added --start-replay=game.txt");
    assert!(error.ends_with(&note), "{error}");
}

#[test]
fn a_file_is_checked() {
    let config = file(
        "config-check.toml",
        b"[shared]\nstate = '/here'\n[run]\nthreads = 3\n[runs.list]\njson = true\n",
    );
    let outside = [("HATEBEAM_STATE", "/there")];
    let told = run_with("none", &outside, &["config", "check", &config]).silent_results();
    for line in [
        "is fine",
        "[shared]\nstate",
        "/there  HATEBEAM_STATE, which wins over line 2",
        "[run]\nthreads",
        "line 4",
        "[runs.list]\njson",
        "line 6",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = run_with(&config, &[], &["config", "check", "--json"]).silent_results();
    let told = json(&told);
    assert_eq!((&told["ok"], &told["file"]), (&true.into(), &config.into()));
    let settings = told["settings"].as_array().unwrap();
    let threads = settings.iter().find(|row| row["key"] == "threads").unwrap();
    assert_eq!(threads["section"], "run");
    assert_eq!(threads["value"], "3");
    assert_eq!(threads["from"], "file");
    assert_eq!(threads["line"], 4);
}

#[test]
fn a_file_that_is_wrong_fails_its_check() {
    let config = file(
        "config-bad.toml",
        b"[run]\nthreads = 0\n\ntokens = 'x'\n[x]\n",
    );
    let (told, code) = {
        let run = run_with(&config, &[], &["config", "check"]);
        assert_eq!(run.err, "");
        (run.out, run.code)
    };
    assert_eq!(code, 1);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    for (line, number) in lines.iter().zip([2, 4, 5]) {
        assert!(line.starts_with(&format!("{config}:{number}: ")), "{line}");
    }
    let run = run_with("none", &[], &["config", "check", "--json", &config]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let verdict = json(&run.out);
    assert_eq!(verdict["ok"], false);
    assert_eq!(verdict["problems"][1]["line"], 4);
}

#[test]
fn settings_are_shown_with_where_they_come_from() {
    let config = file("config-show.toml", b"[shared]\nstate = '/here'\n");
    let told = run_with(&config, &[], &["config", "show", "runs", "show", "--json"]);
    let rows = json(&told.silent_results());
    let row = |key: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["key"] == key).unwrap().clone()
    };
    assert_eq!(row("state")["from"], "file");
    assert_eq!(row("state")["line"], 2);
    assert_eq!(row("json")["from"], "default");
    assert_eq!(row("json")["value"], "false");
    let told = run_with(&config, &[], &["config", "show", "perft"]).silent_results();
    assert!(
        told.starts_with("[perft]\n") && told.contains("2048"),
        "{told}"
    );
    let all = run_with(&config, &[], &["config", "show"]).silent_results();
    assert!(all.contains("[resume]") && !all.contains("2048"), "{all}");
    run_with(&config, &[], &["config", "show", "dance"]).error(2);
}

#[test]
fn an_example_is_written_once() {
    let dir = folder("init");
    let path = dir.join("new/config.toml");
    let path = path.to_str().unwrap();
    let told = run_with(path, &[], &["config", "init"]).silent_results();
    assert_eq!(told.trim_end(), path);
    let text = fs::read_to_string(path).unwrap();
    for part in ["[shared]", "[run]", "\n#width = \"10k\"\n", "[runs.show]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let printed = run_with(path, &[], &["config", "init", "--stdout"]).silent_results();
    assert_eq!(printed, text);
    let error = run_with(path, &[], &["config", "init"]).error(1);
    assert!(error.contains("is there already"), "{error}");
    let told = run_with(path, &[], &["config", "check"]).silent_results();
    assert!(told.contains("is fine"), "{told}");
    run_with(path, &[], &["perft", "--depth", "1"]).silent_results();
}
