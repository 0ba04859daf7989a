//! Tests of hooks with real commands and a real server, including hooks that fail, hang or are slow.

#![allow(clippy::unwrap_used)] // test helpers
#![cfg(unix)]

use hatebeam_notify::{Event, EventKind, Events, Hooks, Progress, Timing};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(30);

fn quick() -> Timing {
    Timing {
        command: Duration::from_secs(20),
        request: Duration::from_secs(2),
        first_wait: Duration::from_millis(20),
    }
}

fn event(run: &str, kind: EventKind) -> Event {
    Event::new(run, Progress { depth: 7, lines: 3 }, kind, UNIX_EPOCH)
}

fn finished(run: &str) -> Event {
    let kind = EventKind::Finished {
        end: "over".to_owned(),
        pieces: Some(9),
        replay: Some("ϥقໂ".to_owned()),
        files: Vec::new(),
    };
    event(run, kind)
}

fn commanded(command: &str, timing: Timing) -> Events {
    let hooks = Hooks {
        command: Some(command.to_owned()),
        timing,
        ..Hooks::default()
    };
    Events::start(&hooks).unwrap().unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[derive(Debug)]
struct Received {
    head: String,
    body: Vec<u8>,
}

fn receive(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let head = head.to_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Received { head, body }
}

/// Starts a server that answers successive requests with `answers`. For an empty answer, it closes the
/// connection instead.
fn server(answers: Vec<&'static str>) -> (SocketAddr, Receiver<Received>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            sender.send(receive(&stream)).unwrap();
            if !answer.is_empty() {
                write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (address, received)
}

fn hooked(address: SocketAddr, secret: Option<&str>) -> Events {
    let hooks = Hooks {
        webhook: Some(format!("http://{address}/hook?key=1")),
        secret: secret.map(str::to_owned),
        timing: quick(),
        ..Hooks::default()
    };
    Events::start(&hooks).unwrap().unwrap()
}

/// Sends an event, and returns whether all hooks accepted it.
fn is_accepted(events: &Events, event: Event) -> bool {
    let (sender, receipts) = channel();
    events.send_then(event, move |by_all| sender.send(by_all).unwrap());
    receipts.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn command_receives_all_events_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (file, env) = (dir.path().join("events"), dir.path().join("env"));
    let command = format!(
        "cat >> {0}; echo >> {0}; echo \"$HATEBEAM_EVENT $HATEBEAM_RUN $HATEBEAM_SCORE\" >> {1}",
        file.display(),
        env.display()
    );
    let events = commanded(&command, quick());
    events.send(event("a b", EventKind::Started { width: 10 }));
    events.send(event("a b", EventKind::BestScore {}));
    events.send(finished("a b"));
    events.close(PATIENCE);
    let names: Vec<Value> = lines(&file)
        .iter()
        .map(|line| line["event"].clone())
        .collect();
    assert_eq!(names, ["started", "best-score", "finished"]);
    let env = std::fs::read_to_string(&env).unwrap();
    assert_eq!(env, "started a b 3\nbest-score a b 3\nfinished a b 3\n");
    // A closed queue refuses events.
    assert!(!is_accepted(&events, finished("late")));
    assert_eq!(lines(&file).len(), 3);
}

#[test]
fn event_is_accepted_only_if_the_command_succeeds() {
    let events = commanded("test $HATEBEAM_EVENT = started", quick());
    assert!(is_accepted(
        &events,
        event("r", EventKind::Started { width: 1 })
    ));
    assert!(!is_accepted(&events, event("r", EventKind::Cancelled {})));
    // The event is larger than a pipe's buffer, and the command never reads it.
    let events = commanded("exit 0", quick());
    let reason = "x".repeat(1 << 20);
    assert!(is_accepted(
        &events,
        event("r", EventKind::Failed { reason })
    ));
}

#[test]
fn hanging_command_is_killed_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let timing = Timing {
        command: Duration::from_millis(400),
        ..quick()
    };
    let begun = Instant::now();
    let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
    let events = commanded(&command, timing);
    assert!(!is_accepted(&events, finished("r")));
    assert!(begun.elapsed() < PATIENCE);
    let pid = std::fs::read_to_string(&file).unwrap();
    let status = format!("/proc/{}/stat", pid.trim());
    let gone = || {
        // A zombie process counts as dead.
        let stat = std::fs::read_to_string(&status).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !gone() {
        assert!(begun.elapsed() < PATIENCE, "{pid} is still alive");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn close_waits_for_deliveries_up_to_its_limit() {
    let events = commanded("sleep 1000", Timing::default());
    let (sender, receipts) = channel();
    for run in ["a", "b"] {
        let sender = sender.clone();
        events.send_then(finished(run), move |by_all| {
            sender.send((run, by_all)).unwrap()
        });
    }
    let begun = Instant::now();
    events.close(Duration::from_millis(300));
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(10),
        "{took:?}"
    );
    let mut outcomes = [
        receipts.recv_timeout(PATIENCE).unwrap(),
        receipts.recv_timeout(PATIENCE).unwrap(),
    ];
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("a", false), ("b", false)]);
}

#[test]
fn webhook_is_retried_after_transient_failures() {
    let answers = vec!["500 Oh", "", "429 Slowly", "204 Well"];
    let (address, received) = server(answers);
    let events = hooked(address, Some("word"));
    assert!(is_accepted(&events, finished("r")));
    let received: Vec<Received> = received.iter().collect();
    assert_eq!(received.len(), 4);
    for request in &received {
        assert!(
            request.head.starts_with("post /hook?key=1 http/1.1\r\n"),
            "{}",
            request.head
        );
        for line in [
            "content-type: application/json",
            "x-hatebeam-event: finished",
        ] {
            assert!(request.head.contains(line), "{}", request.head);
        }
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"word");
        let signature = request
            .head
            .split("x-hatebeam-signature: sha256=")
            .nth(1)
            .unwrap();
        let tag: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&signature[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        ring::hmac::verify(&key, &request.body, &tag).unwrap();
        let body: Event = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body, finished("r"));
    }
}

#[test]
fn webhook_is_not_retried_after_refusal_or_redirect() {
    for answer in ["404 No", "302 There\r\nlocation: http://127.0.0.1:1/"] {
        let (address, received) = server(vec![answer, "200 Well"]);
        let events = hooked(address, None);
        assert!(!is_accepted(&events, finished("r")), "{answer}");
        let first = received.try_recv().unwrap();
        assert!(!first.head.contains("x-hatebeam-signature"));
        // The next request belongs to the next event, so the first event was not retried.
        assert!(is_accepted(&events, event("s", EventKind::Cancelled {})));
        let next: Event = serde_json::from_slice(&received.recv().unwrap().body).unwrap();
        assert_eq!(next.run, "s");
    }
}

#[test]
fn unreachable_webhook_does_not_delay_the_command() {
    let address = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events");
    let hooks = Hooks {
        command: Some(format!("cat >> {}", file.display())),
        webhook: Some(format!("http://{address}/")),
        timing: Timing {
            first_wait: Duration::from_secs(60),
            ..quick()
        },
        ..Hooks::default()
    };
    let events = Events::start(&hooks).unwrap().unwrap();
    let (sender, receipts) = channel();
    events.send_then(finished("r"), move |by_all| sender.send(by_all).unwrap());
    let begun = Instant::now();
    // The command receives the event while the webhook waits for its retry.
    while lines(&file).is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    events.close(Duration::from_millis(100));
    assert!(begun.elapsed() < PATIENCE);
    // Only one of the two hooks accepted the event.
    assert!(!receipts.recv_timeout(PATIENCE).unwrap());
}
