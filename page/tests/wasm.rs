//! Tests of the committed files: the WebAssembly matches its sources and answers like the native code.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_page::{FILES, File, Session};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum total size of the page's files in bytes.
const MOST_BYTES: usize = 3_100_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn find_file(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

#[test]
fn committed_wasm_matches_its_sources() {
    let script = folder().join("../scripts/build-page");
    let output = Command::new(script).arg("--digest").output().unwrap();
    assert!(output.status.success());
    let committed = std::fs::read_to_string(folder().join("assets/page.wasm.sha256")).unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        committed,
        "page/assets/page.wasm is older than its sources: run scripts/build-page and commit both files"
    );
}

#[test]
fn files_are_complete_and_small_and_load_nothing_from_other_hosts() {
    let total: usize = FILES.iter().map(|file| file.bytes.len()).sum();
    assert!(total < MOST_BYTES, "{total} bytes");
    let assets = std::fs::read_dir(folder().join("assets")).unwrap();
    for entry in assets {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name == "page.wasm.sha256" || find_file(&name).is_some(),
            "{name} is missing in FILES"
        );
    }
    for file in FILES.iter() {
        if file.name.ends_with(".wasm") || file.name.ends_with(".bin") {
            let text = String::from_utf8_lossy(file.bytes);
            for path in ["/root/", "/home/", "/tmp/", "/usr/lib"] {
                assert!(!text.contains(path), "{} contains {path}", file.name);
            }
            continue;
        }
        let text = str::from_utf8(file.bytes).unwrap();
        for word in [
            "src=\"http",
            "from \"http",
            "@import",
            "style=\"",
            "onclick=\"",
            "eval(",
        ] {
            assert!(!text.contains(word), "{}: {word}", file.name);
        }
        for imported in text.split("from \"./").skip(1) {
            let name = imported.split('"').next().unwrap();
            assert!(find_file(name).is_some(), "{} imports {name}", file.name);
        }
    }
}

/// Returns requests of every kind. Requests with `"fails": true` must fail.
fn requests() -> Vec<String> {
    let mut requests: Vec<String> = include_str!("requests.jsonl")
        .lines()
        .map(str::to_owned)
        .collect();
    let replay = include_str!("../../examples/records/network-78.txt").trim();
    requests.push(format!(
        r#"{{"call":"load","text":"{replay}","enemy":null}}"#
    ));
    for request in [
        r#"{"call":"save"}"#,
        r#"{"call":"seek","to":3000}"#,
        r#"{"call":"seek","to":100000}"#,
    ] {
        requests.push(request.to_owned());
    }
    requests
}

#[test]
fn wasm_answers_like_native_code() {
    let node = ["node", "nodejs"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let Some(node) = node else {
        eprintln!("skipped: node is not installed (apt-get install nodejs)");
        return;
    };
    let network = find_file("network.bin").unwrap();
    let temp = tempfile::tempdir().unwrap();
    for file in FILES.iter() {
        std::fs::write(temp.path().join(file.name), file.bytes).unwrap();
    }
    let mut child = Command::new(node)
        .arg(folder().join("tests/answers.mjs"))
        .arg(temp.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let requests = requests();
    let mut input = child.stdin.take().unwrap();
    let text = requests.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let mut session = Session::default();
    assert_eq!(session.add_network(network.bytes), r#"{"value":true}"#);
    let mut answers = answers.lines();
    let mut preliminary = 0;
    for request in &requests {
        let mut next = || answers.next().unwrap_or_default();
        let expected = session.answer(request, &mut |text| {
            preliminary += 1;
            assert_eq!(format!("preliminary {text}"), next(), "{request}");
        });
        let answer = next();
        assert_eq!(expected, answer, "{request}");
        let should_fail = request.contains("\"fails\": true");
        assert_eq!(
            answer.starts_with("{\"error\""),
            should_fail,
            "{request}: {answer:.200}"
        );
    }
    assert_eq!(answers.next(), None);
    assert!(preliminary > 0);
}
