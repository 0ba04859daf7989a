//! Every shell script of the repository.

use crate::support::{files_below, path, succeeds, tool};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

/// Those that are run, and those that are sourced by them.
fn shell_scripts() -> BTreeSet<String> {
    let mut found = BTreeSet::from(["run", "test", ".ci/run"].map(str::to_owned));
    for folder in ["scripts", "deploy", "terraform/cluster/machine"] {
        for name in files_below(folder, "") {
            let bytes = std::fs::read(path(&name)).unwrap();
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap();
            let is_shell = first.starts_with(b"#!") && first.ends_with(b"sh");
            if is_shell || name.ends_with(".sh") {
                found.insert(name);
            }
        }
    }
    found
}

#[test]
fn shell_scripts_pass_shellcheck() {
    let Some(mut shellcheck) = tool("HATEBEAM_SHELLCHECK", "shellcheck") else {
        return;
    };
    let scripts = shell_scripts();
    assert!(scripts.len() >= 10, "{scripts:?}");
    // What is sourced has no first line that says which shell it is for.
    shellcheck.args(["--shell", "bash"]).args(&scripts);
    succeeds(shellcheck.current_dir(path(".")));
}

#[test]
fn scripts_that_say_so_can_be_run() {
    for name in shell_scripts() {
        let text = std::fs::read_to_string(path(&name)).unwrap();
        let mode = path(&name).metadata().unwrap().permissions().mode();
        let is_run = mode & 0o111 != 0;
        assert_eq!(is_run, text.starts_with("#!"), "{name}: mode {mode:o}");
        let strict = text.lines().any(|line| line == "set -euo pipefail");
        assert_eq!(is_run, strict, "{name}: set -euo pipefail");
    }
}
