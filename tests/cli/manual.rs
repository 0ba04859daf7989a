//! Tests of `hatebeam completions` and `hatebeam man`.

use crate::support::{new_path, run};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn completions_exist_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).silent_results();
        for word in ["keyframes", "max-depth", "quiescence"] {
            assert!(
                script.contains(word),
                "the completions for {shell} lack {word}"
            );
        }
    }
    let error = run(&["completions", "bish"]).error(2);
    assert!(error.contains("bash"), "{error}");
}

/// Checks the syntax of the completions. Skips shells that are not installed.
#[test]
fn shells_accept_completions() {
    for (shell, args) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["-n"])] {
        let script = run(&["completions", shell]).silent_results();
        let spawned = Command::new(shell).args(args).stdin(Stdio::piped()).spawn();
        let Ok(mut child) = spawned else {
            continue;
        };
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(script.as_bytes()).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success(), "{shell}");
    }
}

#[test]
fn man_prints_or_writes_manual_pages() {
    let first = run(&["man"]).silent_results();
    assert!(first.contains(".TH hatebeam 1"), "{first}");
    let dir = new_path("man");
    let text = run(&["man", "--out", dir.to_str().unwrap()]).silent_results();
    let pages: Vec<_> = fs::read_dir(&dir).unwrap().map(Result::unwrap).collect();
    let start = format!("{} pages", pages.len());
    assert!(text.starts_with(&start), "{text}");
    for name in [
        "hatebeam",
        "hatebeam-run",
        "hatebeam-runs-show",
        "hatebeam-config-init",
    ] {
        assert!(dir.join(format!("{name}.1")).exists(), "{name}");
    }
    for page in pages {
        let text = fs::read_to_string(page.path()).unwrap();
        for part in [".TH hatebeam", ".SH NAME", ".SH EXAMPLES", ".SH OPTIONS"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Examples:"), "{text}");
    }
}
