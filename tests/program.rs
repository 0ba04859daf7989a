//! Helpers that run the program as a process.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a single step of a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns a command that runs the program with empty standard input, no configuration file and none of the program's
/// environment variables.
pub(crate) fn hatebeam() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatebeam-under-test"));
    isolate(&mut command);
    command
}

/// Gives a command empty standard input, disables the configuration file, and removes the program's environment
/// variables.
pub(crate) fn isolate(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_setting = |name: &str| name.starts_with("HATEBEAM_") || name.starts_with("OTEL_");
        if name.to_str().is_some_and(is_setting) {
            command.env_remove(name);
        }
    }
    command.env("HATEBEAM_CONFIG", "none").stdin(Stdio::null());
}

/// Sends a signal to a process. `signal` is an option of `kill`, such as `-STOP`.
#[track_caller]
pub(crate) fn signal(process: &Child, signal: &str) {
    let pid = process.id().to_string();
    let status = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(status.success(), "kill {signal} {pid}");
}

/// Waits until `condition` returns `true`. Panics with the message if this takes longer than [`TIMEOUT`].
#[track_caller]
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool, message: impl FnOnce() -> String) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < TIMEOUT, "timed out: {}", message());
        std::thread::sleep(Duration::from_millis(20));
    }
}
