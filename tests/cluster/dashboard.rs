//! The dashboard in front of a real coordinator and worker. What it serves to whom, and how it looks, is tested where
//! it is made.

use crate::rig::{PATIENCE, Rig};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// Starts a coordinator with a dashboard, and says where that is.
fn start(rig: &mut Rig) -> String {
    rig.coordinator_flags = vec!["--dashboard".to_owned(), "127.0.0.1:0".to_owned()];
    rig.start_coordinator();
    let coordinator = rig.coordinator.as_ref().unwrap();
    coordinator.says("dashboard at http://");
    let log = coordinator.log();
    let url = log.split("dashboard at http://").nth(1).unwrap();
    url.split('/').next().unwrap().to_owned()
}

/// Asks, and gives the status and the body.
fn ask(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), body.to_owned())
}

#[track_caller]
fn told(address: &str, method: &str, path: &str, body: &Value) -> Value {
    let body = if method == "GET" {
        String::new()
    } else {
        body.to_string()
    };
    let (status, answer) = ask(address, method, path, &body);
    assert_eq!(status, 200, "{path}: {answer}");
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn a_run_is_submitted_followed_and_played_in_the_dashboard() {
    let mut rig = Rig::new();
    let address = start(&mut rig);
    let get = |path: &str| told(&address, "GET", path, &Value::Null);
    assert_eq!(get("/api/v1/runs"), json!({ "runs": [] }));
    let form = json!({
        "spec": {
            "width": 300,
            "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
            "start": "empty",
            "evaluator": { "kind": "patterns", "quiescence": "off" },
        },
        "max_depth": 40,
    });
    let estimate = told(&address, "POST", "/api/v1/estimate", &form);
    assert_eq!(
        (&estimate["depths"], &estimate["workers"]),
        (&json!([40, 40]), &json!(0))
    );
    assert!(
        estimate["warnings"][0]
            .as_str()
            .unwrap()
            .contains("No worker")
    );
    let run = told(&address, "POST", "/api/v1/runs", &form);
    assert_eq!(
        (&run["state"], &run["max_depth"]),
        (&json!("queued"), &json!(40))
    );
    let name = run["run"].as_str().unwrap().to_owned();
    rig.start_worker("w1", &["--threads", "2"]);

    // To the end of the events: the run's.
    let (status, events) = ask(&address, "GET", &format!("/api/v1/runs/{name}/events"), "");
    assert_eq!(status, 200);
    assert!(events.contains("event: end"), "{events}");
    for state in ["running", "finished"] {
        assert!(
            events.contains(&format!("\"state\":\"{state}\"")),
            "{state}"
        );
    }
    let run = get(&format!("/api/v1/runs/{name}"));
    assert_eq!(
        (&run["state"], &run["depth"]),
        (&json!("finished"), &json!(40))
    );
    let depths = get(&format!("/api/v1/runs/{name}/depths"));
    let depths = depths["depths"].as_array().unwrap();
    // The first one is the well that the search begins with.
    assert_eq!((depths.len(), &depths[0]["depth"]), (41, &json!(0)));
    let status = rig.status().unwrap();
    for field in [
        "run",
        "state",
        "depth",
        "best_lines",
        "shards",
        "stored_bytes",
        "replay",
    ] {
        assert_eq!(run[field], status[field], "{field}");
    }
    let film = get(&format!("/api/v1/runs/{name}/game"));
    assert_eq!(
        (&film["score"], &film["over"]),
        (&run["best_lines"], &json!(true))
    );
    assert_eq!(film["base2048"], run["replay"]);
    assert_eq!(get("/api/v1/workers")["workers"][0]["worker"], "w1");

    told(&address, "POST", "/api/v1/workers/w1/drain", &json!({}));
    assert_eq!(rig.workers.get_mut("w1").unwrap().ends(), Some(0));
    let begun = Instant::now();
    while get("/api/v1/workers") != json!({ "workers": [] }) {
        assert!(begun.elapsed() < PATIENCE, "it never goes");
    }
    // What cannot be submitted is refused in the coordinator's words.
    let bad = form.to_string().replace("300", "0");
    let (status, answer) = ask(&address, "POST", "/api/v1/runs", &bad);
    assert_eq!(status, 400);
    assert!(answer.contains("the width is 0"), "{answer}");
}

#[test]
fn a_dashboard_that_cannot_be_had_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |flags: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = crate::rig::hatebeam();
        command.arg("coordinator").arg("--store").arg(dir.path());
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let error = run(&["--dashboard", &address]);
    assert!(
        error.contains("the dashboard cannot listen on 127.0.0.1"),
        "{error}"
    );
    let error = run(&["--dashboard", "0.0.0.0:0"]);
    assert!(error.contains("--insecure-bind"), "{error}");
    let error = run(&["--dashboard", "somewhere"]);
    assert!(error.contains("127.0.0.1:7880, or none"), "{error}");
}

#[test]
fn a_coordinator_goes_on_without_if_the_usual_address_is_taken() {
    // Either it is taken from now on, or somebody else has it.
    let _taken = TcpListener::bind("127.0.0.1:7880");
    let mut rig = Rig::new();
    rig.wants_no_dashboard = false;
    rig.start_coordinator();
    let coordinator = rig.coordinator.as_ref().unwrap();
    coordinator.says("no dashboard");
    assert!(
        coordinator
            .log()
            .contains("--dashboard gives it another address")
    );
    assert_eq!(rig.status(), None);
}
