//! Tests of the shell scripts in the repository, and of the checksums of vendored files.

use crate::support::{files_below, path, read, succeeds, tool};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Returns the names of the shell scripts, including those that other scripts source.
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
    // The option names the shell, because sourced scripts have no shebang line.
    shellcheck.args(["--shell", "bash"]).args(&scripts);
    succeeds(shellcheck.current_dir(path(".")));
}

#[test]
fn scripts_with_shebang_are_executable_and_strict() {
    for name in shell_scripts() {
        let text = read(&name);
        let mode = path(&name).metadata().unwrap().permissions().mode();
        let is_executable = mode & 0o111 != 0;
        assert_eq!(is_executable, text.starts_with("#!"), "{name}: {mode:o}");
        let is_strict = text.lines().any(|line| line == "set -euo pipefail");
        assert_eq!(is_executable, is_strict, "{name}: set -euo pipefail");
    }
}

#[test]
fn vendored_files_match_checksums() {
    let folder = "dashboard/assets/vendor";
    let sums = read(&format!("{folder}/SHA256SUMS"));
    for name in files_below(folder, "") {
        let (_, name) = name.rsplit_once('/').unwrap();
        let is_listed = sums
            .lines()
            .any(|line| line.ends_with(&format!("  {name}")));
        assert_eq!(is_listed, name.starts_with("uPlot"), "{name}");
    }
    let mut check = Command::new("sha256sum");
    succeeds(
        check
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(path(folder)),
    );
}
