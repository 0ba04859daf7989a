//! Tests of the container image in deploy/docker.

use crate::support::{files_below, hatebeam, path, read, succeeds, tool};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a condition that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the arguments of all instructions of one kind in the Dockerfile, with continued lines joined.
fn instructions(kind: &str) -> Vec<String> {
    let text = read("deploy/docker/Dockerfile");
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let words = joined.lines().filter_map(|line| line.split_once(' '));
    words
        .filter(|(word, _)| *word == kind)
        .map(|(_, rest)| rest.trim().to_owned())
        .collect()
}

/// Returns the value of a line `key = "value"` in the workspace's Cargo.toml.
fn manifest_value(key: &str) -> String {
    let text = read("Cargo.toml");
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().unwrap()).collect()
}

#[test]
fn image_has_workspace_version_and_default_ports() {
    let args = instructions("ARG");
    let rust = args
        .iter()
        .find_map(|arg| arg.strip_prefix("RUST_VERSION="));
    let rust = version(rust.unwrap());
    assert_eq!(rust.len(), 3, "the Rust version is not pinned");
    assert!(
        rust >= version(&manifest_value("rust-version")),
        "{rust:?} is too old"
    );
    let label = instructions("LABEL").concat();
    let expected = format!("image.version=\"{}\"", manifest_value("version"));
    assert!(label.contains(&expected), "{label}");
    assert_eq!(instructions("EXPOSE"), ["7800 7801 7880 9100 9101"]);
    let health = instructions("HEALTHCHECK").concat();
    assert!(
        health.ends_with(r#"CMD ["healthcheck", "/healthz", "9100", "9101"]"#),
        "{health}"
    );
}

#[test]
fn dockerfiles_pass_hadolint() {
    let Some(mut hadolint) = tool("HATEBEAM_HADOLINT", "hadolint") else {
        return;
    };
    // DL3008 requires pinned Debian packages. They are not pinned, so that each build gets the latest security fixes.
    // DL3022 requires `COPY --from` to name a build stage, and hadolint does not recognize named build contexts.
    hadolint.args(["--ignore", "DL3008", "--ignore", "DL3022"]);
    for file in ["deploy/docker/Dockerfile", "deploy/compose/s3/Dockerfile"] {
        hadolint.arg(path(file));
    }
    succeeds(&mut hadolint);
}

/// Returns `true` if a .dockerignore pattern matches a file or one of its parent folders. Supports only the forms of
/// patterns that Dockerfile.dockerignore contains.
fn matches(pattern: &str, file: &str) -> bool {
    let below = |folder: &str| file == folder || file.starts_with(&format!("{folder}/"));
    if let Some(folder) = pattern.strip_prefix("**/") {
        let mut parts = file.split('/');
        parts.any(|part| part == folder)
    } else if let Some(ending) = pattern.strip_prefix('*') {
        !file.contains('/') && file.ends_with(ending)
    } else {
        below(pattern)
    }
}

/// Returns `true` if the patterns exclude a file from the build context. The last matching pattern determines the
/// result, and a pattern that begins with `!` includes files.
fn is_ignored(patterns: &[&str], file: &str) -> bool {
    patterns.iter().fold(false, |ignored, pattern| {
        let exception = pattern.strip_prefix('!');
        if matches(exception.unwrap_or(pattern), file) {
            exception.is_none()
        } else {
            ignored
        }
    })
}

/// Returns the argument of the macro call whose opening parenthesis is just before `text`.
fn argument(text: &str) -> &str {
    let mut open = 1;
    let closing = text.find(|c| {
        open += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open == 0
    });
    text[..closing.unwrap()].trim().trim_end_matches(',')
}

/// Returns `true` if the text is a string literal without escapes.
fn is_literal(text: &str) -> bool {
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains(['"', '\\']))
}

/// Returns whether a Rust expression is the literal path of a folder.
fn is_folder(text: &str) -> bool {
    is_literal(text) && text.ends_with("/\"")
}

/// Returns a path relative to a source file's folder as a path relative to the repository.
fn from_root(folder: &Path, name: &str) -> String {
    let whole = path(folder.join(name).to_str().unwrap());
    let whole = whole
        .canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", whole.display()));
    let root = path(".").canonicalize().unwrap();
    whole
        .strip_prefix(root)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// Returns the files that a source file embeds with `include_str!` or `include_bytes!`, as paths relative to the
/// repository. Panics if it does not understand the argument of such a call.
///
/// An argument can be a literal, or a `concat!` that begins with the literal path of a folder. The second form embeds
/// the files below this folder whose names occur as literals in the source file, with or without their extensions. A
/// `concat!` that begins with `env!("OUT_DIR")` embeds a file that the build creates, and one that begins with
/// `env!("CARGO_MANIFEST_DIR")` and the path of a folder can embed all files below this folder of the crate.
fn included(file: &str, text: &str) -> BTreeSet<String> {
    let folder = Path::new(file).parent().unwrap();
    let mut found = BTreeSet::new();
    let calls = text.split("include_").skip(1).filter_map(|rest| {
        rest.strip_prefix("str!(")
            .or_else(|| rest.strip_prefix("bytes!("))
    });
    for argument in calls.map(argument) {
        let parts = argument.strip_prefix("concat!(").unwrap_or_default();
        let parts: Vec<&str> = parts.split(',').map(str::trim).collect();
        match parts[..] {
            _ if is_literal(argument) => {
                found.insert(from_root(folder, argument.trim_matches('"')));
            }
            ["env!(\"OUT_DIR\")", ..] => {}
            ["env!(\"CARGO_MANIFEST_DIR\")", below, ..] if is_folder(below) => {
                let (crate_folder, _) = file.split_once("/src/").unwrap();
                let below = format!("{crate_folder}{}", below.trim_matches('"'));
                found.extend(files_below(&from_root(Path::new(""), &below), ""));
            }
            [prefix, ..] if is_folder(prefix) => {
                let prefix = from_root(folder, prefix.trim_matches('"'));
                let mut files = files_below(&prefix, "");
                files.retain(|file| {
                    let (name, stem) = (Path::new(file).file_name(), Path::new(file).file_stem());
                    [name, stem]
                        .iter()
                        .flatten()
                        .any(|name| text.contains(&format!("\"{}\"", name.to_str().unwrap())))
                });
                assert!(!files.is_empty(), "{file}: no file matches {argument}");
                found.extend(files);
            }
            _ => panic!("{file}: unknown form of argument: {argument}"),
        }
    }
    found
}

/// Returns a source file without the unit tests at its end, because the program does not contain their embedded files.
fn without_tests(text: &str) -> &str {
    let modules = text.match_indices("#[cfg(test)]\nmod ");
    let mut bodies = modules.filter(|(at, _)| {
        let declaration = text[*at..].lines().nth(1).unwrap();
        declaration.ends_with('{')
    });
    bodies.next().map_or(text, |(at, _)| &text[..at])
}

#[test]
fn embedded_files_are_found_in_all_forms_of_calls() {
    let games =
        r#"include_str!(concat!("../../examples/", $folder, "/", $name, ".txt")), "tim-157""#;
    let expected = ["examples/games/tim-157.txt".to_owned()].into();
    assert_eq!(included("train/src/games.rs", games), expected);
    let readme = "include_bytes!(\n    \"../README.md\",\n)";
    let expected = ["game/README.md".to_owned()].into();
    assert_eq!(included("game/src/lib.rs", readme), expected);
    let help = r#"include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/help/", $name))"#;
    let found = included("cli/src/lib.rs", help);
    assert!(found.contains("cli/help/run.txt"), "{found:?}");
    let built = r#"include_bytes!(concat!(env!("OUT_DIR"), "/a.bin"))"#;
    assert_eq!(included("game/src/lib.rs", built), BTreeSet::new());
    for unknown in [
        "$name",
        "concat!($folder, \"a.txt\")",
        "concat!(\"a\", $name)",
        "concat!(env!(\"CARGO_MANIFEST_DIR\"), $name)",
    ] {
        let call = format!("include_str!({unknown})");
        let result = std::panic::catch_unwind(|| included("game/src/lib.rs", &call));
        assert!(result.is_err(), "{unknown}");
    }
}

/// Returns the folders of the workspace's crates.
fn members() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let members = manifest
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'));
    let (members, _) = members.unwrap();
    let names = members.split('"').skip(1).step_by(2).map(str::to_owned);
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 9, "{names:?}");
    names
}

/// Checks that each declared test has an explicit path, because the build context contains no tests. Without a path,
/// Cargo refuses the manifest if the file at the default path does not exist.
#[test]
fn declared_tests_have_explicit_paths() {
    for member in members() {
        let manifest = read(&format!("{member}/Cargo.toml"));
        for target in manifest.split("\n[[test]]\n").skip(1) {
            let (target, _) = target.split_once("\n[").unwrap_or((target, ""));
            let has_path = target.lines().any(|line| line.starts_with("path = "));
            assert!(has_path, "{member}/Cargo.toml: [[test]] {target}");
        }
    }
}

#[test]
fn build_context_contains_all_sources() {
    let ignored = read("deploy/docker/Dockerfile.dockerignore");
    let patterns: Vec<&str> = ignored
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let mut needed: BTreeSet<String> = ["Cargo.toml", "Cargo.lock", "LICENSE-MIT"]
        .map(str::to_owned)
        .into();
    for member in members() {
        needed.insert(format!("{member}/Cargo.toml"));
        for file in files_below(&format!("{member}/src"), "") {
            if file.ends_with(".rs") {
                needed.extend(included(&file, without_tests(&read(&file))));
            }
            needed.insert(file);
        }
    }
    for file in ["game/README.md", "examples/records/network-91.txt"] {
        assert!(needed.contains(file), "{file}: not found as embedded");
    }
    let lost: Vec<&String> = needed
        .iter()
        .filter(|file| is_ignored(&patterns, file))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    for file in [
        "deploy/README.md",
        "target/release/hatebeam",
        "tls/ca-key.pem",
        "fuzz/Cargo.toml",
    ] {
        assert!(is_ignored(&patterns, file), "{file}");
    }
}

/// A worker process whose coordinator is unreachable.
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

    fn is_healthy(&self, path: &str) -> bool {
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
        assert!(begun.elapsed() < PATIENCE, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Checks both signals: `docker stop` sends SIGTERM, and Ctrl-C and the systemd units (`KillSignal=SIGINT`) send SIGINT.
#[test]
fn worker_is_healthy_until_signal_stops_it() {
    for signal in ["-INT", "-TERM"] {
        let mut worker = Worker::start();
        wait_until("first answer", || worker.is_healthy("/healthz"));
        assert!(!worker.is_healthy("/nothing"));
        // The worker serves metrics before it installs its signal handler, so this waits for the handler.
        std::thread::sleep(Duration::from_millis(500));
        let pid = worker.child.id().to_string();
        let kill = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(kill.success());
        wait_until("exit", || worker.child.try_wait().unwrap().is_some());
        let status = worker.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(!worker.is_healthy("/healthz"));
    }
}

#[test]
fn healthcheck_fails_without_port_or_valid_answer() {
    let without_port = healthcheck(&["/healthz"]);
    assert_eq!(without_port.code(), Some(2));
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
