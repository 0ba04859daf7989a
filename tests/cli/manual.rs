//! `completions` and `man`.

use crate::support::run;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).silent_results();
        for word in ["keyframes", "max-depth", "knewjade"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let error = run(&["completions", "bish"]).error(2);
    assert!(error.contains("bash"), "{error}");
}

/// Whether a shell takes its script, where the shell is there.
#[test]
fn shells_take_their_scripts() {
    for (shell, args) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["-n"])] {
        let script = run(&["completions", shell]).silent_results();
        let spawned = Command::new(shell).args(args).stdin(Stdio::piped()).spawn();
        let Ok(mut child) = spawned else {
            continue;
        };
        child
            .stdin
            .take()
            .unwrap()
            .write_all(script.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success(), "{shell}");
    }
}

#[test]
fn every_command_has_a_page() {
    let first = run(&["man"]).silent_results();
    assert!(first.contains(".TH hatebeam 1"), "{first}");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = fs::remove_dir_all(&dir);
    let told = run(&["man", "--out", dir.to_str().unwrap()]).silent_results();
    let pages: Vec<_> = fs::read_dir(&dir).unwrap().map(Result::unwrap).collect();
    assert!(
        told.starts_with(&format!("{} pages", pages.len())),
        "{told}"
    );
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
