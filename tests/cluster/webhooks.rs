//! Tests of the delivery of a run's events to a webhook and to a command.

use crate::harness::{Cluster, RunOutput};
use crate::program::{TIMEOUT, wait_until};
use crate::servers::free_port;
use crate::{SHORT, WIDTH};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// A webhook server that refuses the first request and accepts all others.
struct Server {
    url: String,
    accepted: Receiver<Value>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, accepted) = channel();
        std::thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let event = read_body(&stream);
                let status = if count == 0 {
                    "503 Service Unavailable"
                } else {
                    "200 OK"
                };
                write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
                if count > 0 && sender.send(event).is_err() {
                    return;
                }
            }
        });
        Server { url, accepted }
    }

    fn receive(&self) -> Value {
        self.accepted.recv_timeout(TIMEOUT).unwrap()
    }
}

/// Reads a request and returns its JSON body.
fn read_body(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    let head = head.to_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let (length, _) = length.split_once('\r').unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let events = events.iter();
    events.filter(|event| event["event"] == kind).collect()
}

/// Returns the depth and the score of each expected `best-score` event. There is one for each depth whose best game has
/// more lines than the best games at all earlier depths.
fn best_scores(run: &RunOutput) -> Vec<[Value; 2]> {
    let mut best = 0;
    let mut expected = Vec::new();
    for record in run.depths.values() {
        let lines = record["best_lines"].as_u64().unwrap();
        if lines > best {
            best = lines;
            expected.push([record["depth"].clone(), json!(lines)]);
        }
    }
    expected
}

/// Asserts that the events describe a run that has lost its worker w1.
#[track_caller]
fn assert_events(events: &[Value], run: &RunOutput) {
    for event in events {
        assert_eq!(event["version"], 1, "{event}");
        assert_eq!(event["run"], run.end["run"], "{event}");
    }
    assert_eq!(events[0]["event"], "started");
    assert_eq!(events[0]["width"], 2000);
    let depths: Vec<u64> = of_kind(events, "depth")
        .iter()
        .map(|event| event["depth"].as_u64().unwrap())
        .collect();
    let last = run.depths.keys().max().unwrap();
    let expected: Vec<u64> = (1..=last / 10).map(|at| at * 10).collect();
    assert_eq!(depths, expected);
    let scores: Vec<[Value; 2]> = of_kind(events, "best-score")
        .iter()
        .map(|event| [event["depth"].clone(), event["score"].clone()])
        .collect();
    assert_eq!(scores, best_scores(run));
    assert_eq!(of_kind(events, "worker-lost")[0]["worker"], "w1");
    let end = of_kind(events, "finished")[0];
    assert_eq!(end["score"], run.end["best_lines"]);
    assert_eq!(end["end"], "max-depth");
    assert_eq!(end["replay"], run.end["replay"]);
}

#[test]
fn webhook_and_command_receive_all_events_of_run() {
    let mut cluster = Cluster::new();
    let server = Server::start();
    let log = cluster.dir.path().join("events");
    let command = format!("cat >> {0}; echo >> {0}", log.display());
    cluster.set_coordinator_flags(&[
        "--webhook",
        &server.url,
        "--on-event",
        &command,
        "--event-every",
        "10",
        "--min-workers",
        "1",
    ]);
    cluster.start_all(&["w0", "w1"]);
    cluster.submit(&SHORT);
    cluster.wait_for_depth(4);
    cluster.kill_worker("w1");
    let run = cluster.watch();
    let mut events: Vec<Value> = Vec::new();
    while of_kind(&events, "finished").is_empty() {
        events.push(server.receive());
    }
    assert_events(&events, &run);
    let folder = cluster.run_folder(run.end["run"].as_str().unwrap());
    for file in events.last().unwrap()["files"].as_array().unwrap() {
        assert!(folder.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let outbox = Path::new(&cluster.store.location).join("events");
    wait_until(
        || fs::read_dir(&outbox).map_or(0, Iterator::count) == 0,
        || format!("the outbox is not empty: {}", cluster.logs()),
    );
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, events);
}

/// Ends a run while the webhook is unreachable, and then kills the coordinator.
#[test]
fn next_coordinator_delivers_run_end_event_once() {
    let mut cluster = Cluster::new();
    let unreachable = format!("http://127.0.0.1:{}/", free_port());
    cluster.set_coordinator_flags(&["--webhook", &unreachable]);
    cluster.start_all(&["w0"]);
    cluster.submit(&[&WIDTH[..], &["--max-depth", "6"]].concat());
    let run = cluster.watch();
    cluster.coordinator().kill();
    let server = Server::start();
    cluster.set_coordinator_flags(&["--webhook", &server.url]);
    cluster.start_coordinator();
    let event = server.receive();
    assert_eq!(event["event"], "finished");
    assert_eq!(event["end"], "max-depth");
    assert_eq!(event["depth"], 6);
    assert_eq!(event["replay"], run.end["replay"]);
    cluster.coordinator().stop();
    cluster.start_coordinator();
    cluster.coordinator().stop();
    let again = server.accepted.try_recv();
    assert!(again.is_err(), "delivered again: {again:?}");
}
