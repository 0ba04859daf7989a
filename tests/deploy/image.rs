//! The image: deploy/docker.

use crate::support::{hatebeam, path, read, succeeds, tool};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The instructions of a Dockerfile, lines that go on joined and comments left out.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let words = joined.lines().filter_map(|line| line.split_once(' '));
    words
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

/// What `key = "value"` says in a manifest of Cargo's.
fn cargo_says(key: &str) -> String {
    let text = read("Cargo.toml");
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

fn release(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect()
}

#[test]
fn the_image_is_made_of_this_version_and_runs_as_nobody() {
    let instructions = instructions(&read("deploy/docker/Dockerfile"));
    let all = |word: &str| -> Vec<String> {
        let these = instructions.iter().filter(|(found, _)| found == word);
        these.map(|(_, rest)| rest.clone()).collect()
    };
    let args = all("ARG");
    let rust = args
        .iter()
        .find_map(|arg| arg.strip_prefix("RUST_VERSION="));
    let rust = release(rust.unwrap());
    assert_eq!(rust.len(), 3, "pinned to the last digit");
    assert!(rust >= release(&cargo_says("rust-version")), "{rust:?}");
    let label = all("LABEL").concat();
    let version = format!("image.version=\"{}\"", cargo_says("version"));
    assert!(label.contains(&version), "{label}");
    assert_eq!(all("USER"), ["10001:10001"]);
    assert_eq!(all("EXPOSE"), ["7800 7801 7880 9100 9101"]);
    let health = all("HEALTHCHECK").concat();
    assert!(
        health.ends_with(r#"CMD ["healthcheck", "/healthz", "9100", "9101"]"#),
        "{health}"
    );
    // What is compiled is what the lock file says.
    let builds = all("RUN")
        .into_iter()
        .filter(|run| run.contains("cargo build"));
    assert!(builds.clone().count() == 2 && builds.into_iter().all(|run| run.contains("--locked")));
    let last_stage = instructions
        .iter()
        .rposition(|(word, _)| word == "FROM")
        .unwrap();
    for (word, rest) in &instructions[last_stage..] {
        let from_here = word == "COPY" && !rest.contains("--from=");
        let named = rest.split(' ').filter(|part| !part.starts_with("--"));
        let named: Vec<&str> = named.collect();
        for file in &named[..named.len() - 1] {
            assert!(!from_here || path(file).exists(), "COPY {rest}");
        }
    }
}

#[test]
fn hadolint_finds_nothing_wrong() {
    let Some(mut hadolint) = tool("HATEBEAM_HADOLINT", "hadolint") else {
        return;
    };
    // Debian's packages are those of the release, with its mends; and it does not know contexts that have names.
    hadolint.args(["--ignore", "DL3008", "--ignore", "DL3022"]);
    for file in ["deploy/docker/Dockerfile", "deploy/compose/s3/Dockerfile"] {
        hadolint.arg(path(file));
    }
    succeeds(&mut hadolint);
}

/// Whether a pattern of a .dockerignore names this file or a folder above it. Of patterns those that are used.
fn matches(pattern: &str, file: &str) -> bool {
    let below = |folder: &str| file == folder || file.starts_with(&format!("{folder}/"));
    if let Some(folder) = pattern.strip_prefix("**/") {
        let mut parts = file.split('/');
        parts.any(|part| part == folder)
    } else if let Some(ends) = pattern.strip_prefix('*') {
        !file.contains('/') && file.ends_with(ends)
    } else {
        below(pattern)
    }
}

/// The files that a source file takes in when it is compiled, as paths from the root.
fn included(file: &str, text: &str) -> BTreeSet<String> {
    let folder = Path::new(file).parent().unwrap();
    let calls = text.split("include_").skip(1).filter_map(|rest| {
        let arguments = rest
            .strip_prefix("str!(")
            .or_else(|| rest.strip_prefix("bytes!("))?;
        arguments.trim_start().strip_prefix('"')?.split('"').next()
    });
    let mut found = BTreeSet::new();
    for name in calls {
        let whole = path(folder.join(name).to_str().unwrap())
            .canonicalize()
            .unwrap();
        let root = path(".").canonicalize().unwrap();
        let from_root = whole.strip_prefix(root).unwrap();
        found.insert(from_root.to_str().unwrap().to_owned());
    }
    found
}

#[test]
fn nothing_that_the_program_is_made_of_is_left_out() {
    let ignored = read("deploy/docker/Dockerfile.dockerignore");
    let patterns = ignored.lines().filter(|line| !line.starts_with(['#', '!']));
    let patterns: Vec<&str> = patterns.collect();
    let is_ignored = |file: &str| patterns.iter().any(|pattern| matches(pattern, file));
    let manifest = read("Cargo.toml");
    let members = manifest
        .lines()
        .find(|line| line.starts_with("members"))
        .unwrap();
    let crates: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(crates.len() >= 9, "{crates:?}");
    let mut needed: BTreeSet<String> = ["Cargo.toml", "Cargo.lock", "LICENSE-MIT"]
        .map(str::to_owned)
        .into();
    for member in crates {
        needed.insert(format!("{member}/Cargo.toml"));
        for file in crate::support::files_below(&format!("{member}/src"), "") {
            if file.ends_with(".rs") {
                // What tests include is not part of the program; they come last in a file.
                let text = read(&file);
                let (program, _) = text.split_once("#[cfg(test)]\nmod ").unwrap_or((&text, ""));
                needed.extend(included(&file, program));
            }
            needed.insert(file);
        }
    }
    assert!(needed.contains("game/README.md"), "what is included counts");
    let lost: Vec<&String> = needed.iter().filter(|file| is_ignored(file)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    for file in [
        "deploy/README.md",
        "target/release/hatebeam",
        "fuzz/Cargo.toml",
    ] {
        assert!(is_ignored(file), "{file}");
    }
}

/// A worker with nobody to work for, as it is in a container whose coordinator is not there yet.
struct Worker {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Worker {
    fn start() -> Worker {
        let dir = tempfile::tempdir().unwrap();
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = hatebeam();
        command.args(["worker", "--coordinator", "http://127.0.0.1:1", "--store"]);
        command.arg(dir.path().join("store"));
        command.arg("--dir").arg(dir.path().join("wells"));
        command.args(["--metrics", &format!("127.0.0.1:{port}")]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        Worker {
            child,
            port,
            _dir: dir,
        }
    }

    fn healthcheck(&self, path: &str) -> bool {
        healthcheck(&[path, "1", &self.port.to_string()]).success()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn healthcheck(args: &[&str]) -> std::process::ExitStatus {
    let mut command = Command::new(path("deploy/docker/healthcheck"));
    command.args(args).stderr(Stdio::null());
    command.status().unwrap()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Containers are stopped with either signal, systemd's services with the first.
#[test]
fn a_worker_is_healthy_until_a_signal_stops_it_in_order() {
    for signal in ["-INT", "-TERM"] {
        let mut worker = Worker::start();
        wait_until("it never answers", || worker.healthcheck("/healthz"));
        assert!(!worker.healthcheck("/nothing"));
        // Metrics are there before it listens to signals.
        std::thread::sleep(Duration::from_millis(500));
        let pid = worker.child.id().to_string();
        let told = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(told.success());
        wait_until("it does not end", || {
            worker.child.try_wait().unwrap().is_some()
        });
        let status = worker.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(!worker.healthcheck("/healthz"), "nobody is there any more");
    }
}

#[test]
fn a_server_that_fails_or_says_nothing_of_use_is_not_healthy() {
    assert_eq!(
        healthcheck(&["/healthz"]).code(),
        Some(2),
        "no port is named"
    );
    for answer in [
        "HTTP/1.1 500 Internal Server Error\r\n\r\n",
        "",
        "hello\r\n",
    ] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer.as_bytes());
        });
        assert!(!healthcheck(&["/healthz", &port]).success(), "{answer:?}");
        served.join().unwrap();
    }
}
