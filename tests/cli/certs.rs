//! Tests of `hatebeam certs`.

use crate::support::{Run, new_path, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn certs(dir: &Path, args: &[&str]) -> Run {
    run(&[&["certs", "--out", dir.to_str().unwrap()], args].concat())
}

/// Returns the contents of the files in a folder, by name.
fn contents(dir: &Path) -> BTreeMap<String, String> {
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(file).collect()
}

const FILES: [&str; 11] = [
    ".gitignore",
    "ca-key.pem",
    "ca.pem",
    "client-key.pem",
    "client.pem",
    "coordinator-key.pem",
    "coordinator.pem",
    "token",
    "view-token",
    "worker-key.pem",
    "worker.pem",
];

#[test]
fn certs_writes_files_and_refuses_to_overwrite_them() {
    let dir = new_path("certs-once");
    let text = certs(&dir, &[]).silent_results();
    let made = contents(&dir);
    assert_eq!(made.keys().collect::<Vec<_>>(), FILES);
    for name in FILES {
        let path = dir.join(name);
        assert!(text.contains(path.to_str().unwrap()), "{text}");
    }
    for part in [
        "365 days",
        "each worker  ca.pem worker.pem worker-key.pem\n",
        "coordinator  ca.pem coordinator.pem coordinator-key.pem token view-token\n",
        "Keep ca-key.pem",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // The output does not contain the secret tokens.
    for token in ["token", "view-token"] {
        assert!(!text.contains(made[token].trim()), "{text}");
    }
    assert_ne!(made["token"], made["view-token"]);
    assert_eq!(made[".gitignore"], "*\n");

    let error = certs(&dir, &[]).error(1);
    assert!(error.contains("ca-key.pem already exists"), "{error}");
    assert!(error.contains("--renew"), "{error}");
    assert_eq!(contents(&dir), made);
}

#[cfg(unix)]
#[test]
fn secret_files_are_readable_by_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = new_path("certs-modes");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for args in [&[][..], &["--renew"]] {
        certs(&dir, args).silent_results();
        for name in FILES {
            let mode = mode(&dir.join(name));
            let private = name.ends_with("token") || name.ends_with("-key.pem");
            assert_eq!(mode == 0o600, private, "{name} {mode:o}");
        }
    }
    assert_eq!(mode(&dir), 0o700);
}

#[test]
fn renew_replaces_certificates_but_keeps_ca_and_tokens() {
    let dir = new_path("certs-renew");
    let error = certs(&dir, &["--renew"]).error(1);
    assert!(error.contains("be renewed with the CA"), "{error}");
    certs(&dir, &["--days", "1"]).silent_results();
    let before = contents(&dir);
    let args = ["--renew", "--name", "gpu", "--json"];
    let report = certs(&dir, &args).json();
    let after = contents(&dir);
    assert_eq!(after.len(), FILES.len() + 2);
    for (name, text) in before {
        let kept = name.starts_with("ca") || name.ends_with("token") || name == ".gitignore";
        assert_eq!(after[&name] == text, kept, "{name}");
    }
    assert_eq!(report["renewed"], true);
    assert_eq!(report["dir"], dir.to_str().unwrap());
    assert_eq!(
        report["members"],
        serde_json::json!(["coordinator", "worker", "client", "gpu"])
    );
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 8);
    for file in files {
        let path = file["path"].as_str().unwrap();
        assert!(Path::new(path).exists());
        assert_eq!(file["private"], path.ends_with("-key.pem"));
    }
    assert!(report["expires_ms"].as_u64().unwrap() > 1_700_000_000_000);
}

#[test]
fn renew_includes_names_of_earlier_calls_but_no_foreign_files() {
    let dir = new_path("certs-renew-names");
    certs(&dir, &["--name", "gpu"]).silent_results();
    for file in ["bench.pem", "bench-key.pem", "alone.pem"] {
        fs::write(dir.join(file), "mine").unwrap();
    }
    let before = contents(&dir);
    let renewed = certs(&dir, &["--renew"]);
    assert_eq!(
        renewed.err,
        "warning: not renewed: bench (pass --name bench)\n"
    );
    let text = renewed.results();
    assert!(text.contains("gpu.pem gpu-key.pem"), "{text}");
    let after = contents(&dir);
    for (name, text) in before {
        let is_renewed = name.starts_with("gpu");
        let is_foreign = name.starts_with("bench") || name.starts_with("alone");
        if is_renewed || is_foreign {
            assert_eq!(after[&name] != text, is_renewed, "{name}");
        }
    }
}

#[test]
fn invalid_options_are_refused() {
    let dir = new_path("certs-refused");
    for (args, code, expected) in [
        (&["--name", "../up"][..], 1, "certificate name '../up'"),
        (&["--name", "ca"], 1, "certificate name 'ca'"),
        (&["--name", "worker"], 1, "is for the role worker"),
        (
            &["--name", "gpu", "--name", "coordinator"],
            1,
            "certificate name 'coordinator'",
        ),
        (&["--days", "0"], 2, "--days"),
        (&["--days", "36501"], 2, "--days"),
        (&["more"], 2, "more"),
    ] {
        let error = certs(&dir, args).error(code);
        assert!(error.contains(expected), "{args:?} {error}");
    }
    assert!(run(&["certs"]).error(2).contains("--out"));
    assert!(run(&["certs", "--out", ""]).error(2).contains("--out"));
    assert!(!dir.exists());
}
