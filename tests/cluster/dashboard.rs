//! Tests of the dashboard's API with a real coordinator and worker. The tests in the crate `dashboard` cover its pages
//! and access rights.

use crate::harness::Cluster;
use crate::program::{TIMEOUT, hatebeam, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A client of the dashboard's API.
struct Api {
    address: String,
}

impl Api {
    /// Starts a coordinator with a dashboard.
    fn start(cluster: &mut Cluster) -> Api {
        cluster.set_coordinator_flags(&["--dashboard", "127.0.0.1:0"]);
        cluster.start_coordinator();
        let coordinator = cluster.coordinator();
        coordinator.wait_for_log("dashboard at http://");
        let log = coordinator.log();
        let (_, url) = log.split_once("dashboard at http://").unwrap();
        let (address, _) = url.split_once('/').unwrap();
        Api {
            address: address.to_owned(),
        }
    }

    /// Sends a request and returns the status and the body of the response.
    fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        write!(stream, "{head}{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        self.json("GET", path, "")
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.json("POST", path, &body.to_string())
    }

    #[track_caller]
    fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, answer) = self.request(method, path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }
}

fn submission() -> Value {
    json!({
        "spec": {
            "width": 300,
            "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
            "start": "empty",
            "evaluator": { "kind": "patterns", "quiescence": "off" },
        },
        "max_depth": 40,
    })
}

#[test]
fn run_submitted_through_api_finishes_and_has_a_game() {
    let mut cluster = Cluster::new();
    let api = Api::start(&mut cluster);
    assert_eq!(api.get("/api/v1/runs"), json!({ "runs": [] }));
    let estimate = api.post("/api/v1/estimate", &submission());
    assert_eq!(estimate["depths"], json!([40, 40]));
    assert_eq!(estimate["workers"], 0);
    let warning = estimate["warnings"][0].as_str().unwrap();
    assert!(warning.contains("No worker"), "{warning}");
    let run = api.post("/api/v1/runs", &submission());
    assert_eq!(run["state"], "queued");
    assert_eq!(run["max_depth"], 40);
    let name = run["run"].as_str().unwrap().to_owned();
    cluster.start_worker("w1", &["--threads", "2"]);

    // The event stream ends when the run ends.
    let (status, events) = api.request("GET", &format!("/api/v1/runs/{name}/events"), "");
    assert_eq!(status, 200);
    assert!(events.contains("event: end"), "{events}");
    for state in ["running", "finished"] {
        let expected = format!("\"state\":\"{state}\"");
        assert!(events.contains(&expected), "{state}");
    }
    let run = api.get(&format!("/api/v1/runs/{name}"));
    assert_eq!(run["state"], "finished");
    assert_eq!(run["depth"], 40);
    let depths = api.get(&format!("/api/v1/runs/{name}/depths"));
    let depths = depths["depths"].as_array().unwrap();
    // Depth 0 is the well from which the search starts.
    assert_eq!(depths.len(), 41);
    assert_eq!(depths[0]["depth"], 0);
    let status = cluster.status().unwrap();
    for field in [
        "run",
        "state",
        "depth",
        "best_lines",
        "shards",
        "stored_bytes",
    ] {
        assert_eq!(run[field], status[field], "{field}");
    }
    let film = api.get(&format!("/api/v1/runs/{name}/game"));
    assert_eq!(film["score"], run["best_lines"]);
    assert_eq!(film["over"], true);
    assert_eq!(film["base2048"], run["replay"]);
}

#[test]
fn drained_worker_stays_connected_and_is_idle_after_drain_is_undone() {
    let mut cluster = Cluster::new();
    let api = Api::start(&mut cluster);
    cluster.start_worker("w1", &["--threads", "1"]);
    let workers = || api.get("/api/v1/workers")["workers"].clone();
    wait_until(
        || workers()[0]["worker"] == "w1",
        || format!("the worker has not joined: {}", cluster.logs()),
    );
    for (undo, state) in [(false, "drained"), (true, "idle")] {
        api.post("/api/v1/workers/w1/drain", &json!({ "undo": undo }));
        wait_until(
            || workers()[0]["state"] == state,
            || format!("the worker is not {state}: {}", cluster.logs()),
        );
    }
}

#[test]
fn api_refuses_specification_that_coordinator_refuses() {
    let mut cluster = Cluster::new();
    let api = Api::start(&mut cluster);
    let mut submission = submission();
    submission["spec"]["width"] = 0.into();
    let (status, answer) = api.request("POST", "/api/v1/runs", &submission.to_string());
    assert_eq!(status, 400);
    assert!(answer.contains("width 0 is out of range"), "{answer}");
}

#[test]
fn coordinator_refuses_unusable_dashboard_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (address, expected) in [
        (taken.as_str(), "the dashboard cannot listen on 127.0.0.1"),
        ("0.0.0.0:0", "--insecure-bind"),
        ("somewhere", "127.0.0.1:7880, or none"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = hatebeam();
        command.arg("coordinator").arg("--store").arg(dir.path());
        command.args(["--listen", "127.0.0.1:0", "--dashboard", address]);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn coordinator_runs_without_dashboard_if_default_address_is_taken() {
    // If `bind` fails, another process already listens at the address, which is sufficient.
    let _taken = TcpListener::bind("127.0.0.1:7880");
    let mut cluster = Cluster::new();
    cluster.default_dashboard = true;
    cluster.start_coordinator();
    cluster.coordinator().wait_for_log("disabled the dashboard");
    let log = cluster.coordinator().log();
    assert!(
        log.contains("choose another address with --dashboard"),
        "{log}"
    );
    assert_eq!(cluster.status(), None);
}
