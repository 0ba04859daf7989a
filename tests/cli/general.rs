//! Tests of behaviour that is common to all commands.

use crate::support::{command, new_path, run};
use std::io::Read;
use std::process::Stdio;

#[test]
fn program_without_arguments_prints_help() {
    let help = run(&[]).silent_results();
    assert_eq!(help, run(&["--help"]).silent_results());
    assert!(
        help.contains("Examples:") && !help.contains('\x1b'),
        "{help}"
    );
}

#[test]
fn version_flag_prints_package_version() {
    let version = run(&["--version"]).silent_results();
    assert_eq!(version, format!("hatebeam {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_error_has_exit_code_2() {
    for args in [
        &["dance"][..],
        &["replay", "verify", "--enemy", "tetris", "DD"],
        &["replay", "verify", "DD", "--file", "x"],
        &["replay", "convert", "DD"],
        &["replay", "convert", "--to", "base64", "DD"],
        &["replay", "show", "--well", "0", "DD"],
        &["perft"],
        &["perft", "--depth", "1001"],
        &["perft", "--depth", "-1"],
        &["perft", "--depth", "1", "--memory", "0"],
    ] {
        run(args).error(2);
    }
}

#[test]
fn error_for_invalid_well_size_names_limits() {
    let (columns, rows) = (
        "'--columns <N>': give a number of columns from 4 to 16",
        "'--rows <N>': give a number of rows from 1 to 16",
    );
    for (option, size, expected) in [
        ("--columns", "3", columns),
        ("--columns", "x", columns),
        ("--width", "17", columns),
        ("--rows", "0", rows),
        ("--height", "17", rows),
    ] {
        for command in [
            &["well"][..],
            &["perft", "--depth", "1"],
            &["replay", "verify"],
        ] {
            let error = run(&[command, &[option, size]].concat()).error(2);
            assert!(error.contains(expected), "{error}");
        }
    }
}

/// The commands without a beam also accept the names that these options had in earlier versions.
#[test]
fn well_size_has_the_same_options_in_all_commands() {
    let (size, old) = (
        ["--columns", "4", "--rows", "3"],
        ["--width", "4", "--height", "3"],
    );
    for command in [
        &["well", "007"][..],
        &["perft", "--depth", "2"],
        &["replay", "show", "D"],
    ] {
        let found = run(&[command, &size].concat()).results();
        assert_eq!(run(&[command, &old].concat()).results(), found);
    }
    for size in [size, old] {
        let solved = run(&[&["solve", "--json"], &size[..]].concat()).json();
        assert_eq!(
            (&solved["width"], &solved["height"]),
            (&4.into(), &3.into())
        );
        run(&[
            &["endgame", "--well", "007", "--nodes", "1000000"],
            &size[..],
        ]
        .concat())
        .results();
    }
}

#[test]
fn help_of_worker_names_its_own_module_and_folder() {
    let help = run(&["worker", "--help"]).silent_results();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("hatebeam_worker=debug") && !help.contains("hatebeam_coordinator"));
    assert!(help.contains("deletes its folder `tables` when it joins a search"));
    let help = run(&["coordinator", "--help"]).silent_results();
    assert!(help.contains("hatebeam_coordinator=debug"), "{help}");
}

#[test]
fn closed_pipe_is_not_an_error() {
    let long_replay = "LLLDDDDDDDDDDDDDDDDDDRRRDDDDDDDDDDDDDDDDDD".repeat(2000);
    for args in [
        &["perft", "--depth", "3"][..],
        &["replay", "show", "--enemy", "lovetris", &long_replay],
        &["replay", "convert", "--to", "raw", &long_replay],
        &["--help"],
    ] {
        let mut child = command(args).stdin(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        assert!(
            !err.contains("error") && !err.contains("panicked"),
            "{args:?}: {err}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    }
}

#[test]
fn commands_that_only_read_do_not_create_a_store() {
    let store = new_path("no-store");
    let path = store.to_str().unwrap();
    for args in [
        &["replays", "list"][..],
        &["replays", "pull", "--best"],
        &["runs"],
        &["runs", "show", "a"],
        &["runs", "rm", "a", "--yes"],
        &["keyframes", "a"],
    ] {
        let error = run(&[args, &["--store", path]].concat()).error(1);
        assert!(error.contains("there is no such folder"), "{error}");
        assert!(!store.exists(), "{args:?}");
    }
    // The folder of the runs is a file, so it cannot be read.
    let state = new_path("no-state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("runs"), "").unwrap();
    for args in [&["runs"][..], &["runs", "show", "a"]] {
        let error = run(&[args, &["--state", state.to_str().unwrap()]].concat()).error(1);
        assert!(error.contains("no-state/runs"), "{error}");
    }
}

#[test]
fn errors_of_cluster_commands_say_what_to_do() {
    let path = new_path("no-cluster");
    let store = path.to_str().unwrap();
    for args in [
        &["coordinator", "--store", store][..],
        &["worker", "--store", store],
    ] {
        let error = run(&[args, &["--advertise", "foo"]].concat()).error(1);
        assert!(error.contains("invalid --advertise"), "{error}");
    }
    assert!(!path.exists());
    let error = run(&["status", "--coordinator", "http://127.0.0.1:1"]).error(1);
    assert_eq!(error.matches("127.0.0.1:1").count(), 1, "{error}");
    assert!(
        error.contains("start one with `hatebeam coordinator`"),
        "{error}"
    );
    run(&["submit", "--shards", "0"]).error(2);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    for args in [&["perft", "--depth", "1"][..], &["replay", "verify", "DD"]] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = command(args)
            .stdin(Stdio::null())
            .stdout(full)
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            err.contains("error: cannot write to standard output: No space left"),
            "{err}"
        );
    }
}
