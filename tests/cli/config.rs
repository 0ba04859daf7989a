//! Tests of the configuration file and `hatebeam config`.

use crate::support::{Run, command, file, new_path, run_command};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Runs the program with a configuration file and environment variables. If `config` is `none`, the program reads no
/// configuration file.
fn run_with(config: &str, variables: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("HATEBEAM_CONFIG", config);
    command.envs(variables.iter().copied());
    run_command(command, b"")
}

fn folder(name: &str) -> PathBuf {
    let path = new_path(&format!("config-{name}"));
    fs::create_dir_all(&path).unwrap();
    path
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn flags_override_environment_and_environment_overrides_file() {
    let dir = folder("precedence");
    let at = |name: &str| dir.join(name).display().to_string();
    let (shared, own) = (at("shared"), at("own"));
    let (variable, typed) = (at("variable"), at("typed"));
    let run = "[run]\nwidth = 20\nmax-depth = 2\nquiet = true\njson = true\n";
    let section = format!("[shared]\nstate = {shared:?}\n");
    let in_shared = file("config-shared.toml", format!("{run}{section}").as_bytes());
    let in_both = format!("{run}state = {own:?}\n{section}");
    let in_both = file("config-own.toml", in_both.as_bytes());
    let set: &[(&str, &str)] = &[("HATEBEAM_STATE", &variable)];
    for (config, variables, args, expected) in [
        (&in_shared, &[][..], &["run"][..], &shared),
        (&in_both, &[], &["run"], &own),
        (&in_both, set, &["run"], &variable),
        (&in_both, set, &["run", "--state", &typed], &typed),
        (&in_both, &[], &["run", "--state", &typed], &typed),
    ] {
        let out = run_with(config, variables, args).silent_results();
        let lines: Vec<Value> = out.lines().map(json).collect();
        assert_eq!(lines.len(), 3, "{out}");
        let end = &lines[2];
        assert!(end["run"].as_str().unwrap().starts_with("network-20"));
        let found = end["folder"].as_str().unwrap();
        assert!(found.starts_with(&format!("{expected}/")), "{found}");
        fs::remove_dir_all(expected).unwrap();
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn config_file_can_supply_required_option() {
    let config = file("config-required.toml", b"[perft]\ndepth = 2\n");
    let typed = run_with("none", &[], &["perft", "--depth", "2"]).silent_results();
    assert_eq!(run_with(&config, &[], &["perft"]).silent_results(), typed);
    run_with("none", &[], &["perft"]).error(2);
    let more = run_with(&config, &[], &["perft", "--depth", "3"]).silent_results();
    assert!(more.lines().count() > typed.lines().count());
    let named = run_with("none", &[], &["perft", "--config", &config]);
    assert_eq!(named.silent_results(), typed);
}

#[test]
fn default_config_file_is_read_if_it_exists() {
    let home = folder("home");
    fs::create_dir_all(home.join(".config/hatebeam")).unwrap();
    let path = home.join(".config/hatebeam/config.toml");
    let run = |xdg: &str, args: &[&str]| {
        let mut command = command(args);
        command
            .env_remove("HATEBEAM_CONFIG")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", xdg);
        run_command(command, b"")
    };
    run("", &["perft"]).error(2);
    fs::write(&path, "[perft]\ndepth = 1\n").unwrap();
    run("", &["perft"]).silent_results();
    let text = run("", &["config", "path"]).silent_results();
    assert_eq!(text.trim_end(), path.display().to_string());
    let elsewhere = home.join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    run(elsewhere, &["perft"]).error(2);
    let missing = run(elsewhere, &["config", "path"]);
    assert!(missing.err.contains("does not exist"), "{missing:?}");
    assert_eq!(
        missing.results().trim_end(),
        format!("{elsewhere}/hatebeam/config.toml")
    );
}

#[test]
fn invalid_config_file_is_error_for_commands_that_use_it() {
    let config = file(
        "config-wrong.toml",
        b"[perft]\ndepth = 2\ndeep = 3\njason = 1\n",
    );
    let error = run_with(&config, &[], &["perft"]).error(1);
    let expected = format!(
        "{config}:3: unknown key `deep` in [perft]; did you mean `depth`? (and 1 more: hatebeam \
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
fn usage_error_lists_options_from_config_file() {
    let config = file("config-half.toml", b"[run]\nstart-replay = 'game.txt'\n");
    let error = run_with(&config, &[], &["run"]).error(2);
    assert!(error.contains("--from-piece"), "{error}");
    let note = format!("note: {config} added --start-replay=game.txt to the command line");
    assert!(error.ends_with(&note), "{error}");
}

#[test]
fn config_check_lists_settings_and_their_sources() {
    let config = file(
        "config-check.toml",
        b"[shared]\nstate = '/here'\n[run]\nthreads = 3\n[runs.list]\njson = true\n",
    );
    let variable = [("HATEBEAM_STATE", "/there")];
    let text = run_with("none", &variable, &["config", "check", &config]).silent_results();
    for line in [
        "is valid",
        "[shared]\nstate",
        "/there  HATEBEAM_STATE, which takes precedence over line 2",
        "[run]\nthreads",
        "line 4",
        "[runs.list]\njson",
        "line 6",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let report = run_with(&config, &[], &["config", "check", "--json"]).json();
    assert_eq!(report["ok"], true);
    assert_eq!(report["file"], config.as_str());
    let settings = report["settings"].as_array().unwrap();
    let threads = settings.iter().find(|row| row["key"] == "threads").unwrap();
    assert_eq!(threads["section"], "run");
    assert_eq!(threads["value"], "3");
    assert_eq!(threads["from"], "file");
    assert_eq!(threads["line"], 4);
}

#[test]
fn config_check_reports_each_problem_with_its_line() {
    let config = file(
        "config-bad.toml",
        b"[run]\nthreads = 0\n\ntokens = 'x'\n[x]\n",
    );
    let check = run_with(&config, &[], &["config", "check"]);
    assert_eq!((check.code, check.err.as_str()), (1, ""));
    let lines: Vec<&str> = check.out.lines().collect();
    assert_eq!(lines.len(), 3, "{check:?}");
    for (line, number) in lines.iter().zip([2, 4, 5]) {
        assert!(line.starts_with(&format!("{config}:{number}: ")), "{line}");
    }
    let check = run_with("none", &[], &["config", "check", "--json", &config]);
    assert_eq!((check.code, check.err.as_str()), (1, ""));
    let report = json(&check.out);
    assert_eq!(report["ok"], false);
    assert_eq!(report["problems"][1]["line"], 4);
}

#[test]
fn config_show_lists_settings_and_their_sources() {
    let config = file("config-show.toml", b"[shared]\nstate = '/here'\n");
    let rows = run_with(&config, &[], &["config", "show", "runs", "show", "--json"]).json();
    let row = |key: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["key"] == key).unwrap().clone()
    };
    assert_eq!(row("state")["from"], "file");
    assert_eq!(row("state")["line"], 2);
    assert_eq!(row("json")["from"], "default");
    assert_eq!(row("json")["value"], "false");
    let text = run_with(&config, &[], &["config", "show", "perft"]).silent_results();
    assert!(
        text.starts_with("[perft]\n") && text.contains("2048"),
        "{text}"
    );
    let all = run_with(&config, &[], &["config", "show"]).silent_results();
    assert!(all.contains("[resume]") && !all.contains("2048"), "{all}");
    run_with(&config, &[], &["config", "show", "dance"]).error(2);
}

#[test]
fn config_init_writes_example_and_refuses_to_overwrite_it() {
    let dir = folder("init");
    let path = dir.join("new/config.toml");
    let path = path.to_str().unwrap();
    let text = run_with(path, &[], &["config", "init"]).silent_results();
    assert_eq!(text.trim_end(), path);
    let text = fs::read_to_string(path).unwrap();
    for part in ["[shared]", "[run]", "\n#width = \"10k\"\n", "[runs.show]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let printed = run_with(path, &[], &["config", "init", "--stdout"]).silent_results();
    assert_eq!(printed, text);
    let error = run_with(path, &[], &["config", "init"]).error(1);
    assert!(error.contains("already exists"), "{error}");
    let text = run_with(path, &[], &["config", "check"]).silent_results();
    assert!(text.contains("is valid"), "{text}");
    run_with(path, &[], &["perft", "--depth", "1"]).silent_results();
}
