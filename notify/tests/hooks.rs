//! Hooks that fail, hang and come late: real commands, and a real server.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![cfg(unix)]

use hatebeam_notify::{Event, EventKind, Events, Hooks, Timing};
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

fn event(run: &str, what: EventKind) -> Event {
    Event::new(run, (7, 3), what, UNIX_EPOCH)
}

fn finished(run: &str) -> Event {
    let what = EventKind::Finished {
        end: "over".to_owned(),
        pieces: Some(9),
        replay: Some("ϥقໂ".to_owned()),
        files: Vec::new(),
    };
    event(run, what)
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

/// A request, as it came.
#[derive(Debug)]
struct Heard {
    head: String,
    body: Vec<u8>,
}

fn hear(stream: &TcpStream) -> Heard {
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
    Heard { head, body }
}

/// A server that answers one request after the other with these; one that is empty hangs up.
fn server(answers: Vec<&'static str>) -> (SocketAddr, Receiver<Heard>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (say, heard) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            say.send(hear(&stream)).unwrap();
            if !answer.is_empty() {
                write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (address, heard)
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

/// Sends an event, and waits for its receipt.
fn is_taken_in(events: &Events, event: Event) -> bool {
    let (say, said) = channel();
    events.send_then(event, move |by_all| say.send(by_all).unwrap());
    said.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn a_command_gets_every_event_in_its_order() {
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
    // Nothing is taken in any more, and the receipt says so.
    assert!(!is_taken_in(&events, finished("late")));
    assert_eq!(lines(&file).len(), 3);
}

#[test]
fn a_command_that_fails_or_does_not_read_is_only_said_to() {
    let events = commanded("test $HATEBEAM_EVENT = started", quick());
    assert!(is_taken_in(
        &events,
        event("r", EventKind::Started { width: 1 })
    ));
    assert!(!is_taken_in(&events, event("r", EventKind::Cancelled {})));
    // An event that no pipe holds, to a command that never reads.
    let events = commanded("exit 0", quick());
    let reason = "x".repeat(1 << 20);
    assert!(is_taken_in(
        &events,
        event("r", EventKind::Failed { reason })
    ));
}

#[test]
fn a_command_that_hangs_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let timing = Timing {
        command: Duration::from_millis(400),
        ..quick()
    };
    let begun = Instant::now();
    let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
    let events = commanded(&command, timing);
    assert!(!is_taken_in(&events, finished("r")));
    assert!(begun.elapsed() < PATIENCE);
    let pid = std::fs::read_to_string(&file).unwrap();
    let status = format!("/proc/{}/stat", pid.trim());
    let gone = || {
        // One that nobody has waited for yet is dead as well.
        let stat = std::fs::read_to_string(&status).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !gone() {
        assert!(begun.elapsed() < PATIENCE, "{pid} lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn closing_waits_for_what_is_told_but_not_for_ever() {
    let events = commanded("sleep 1000", Timing::default());
    let (say, said) = channel();
    for run in ["a", "b"] {
        let say = say.clone();
        events.send_then(finished(run), move |by_all| {
            say.send((run, by_all)).unwrap()
        });
    }
    let begun = Instant::now();
    events.close(Duration::from_millis(300));
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(10),
        "{took:?}"
    );
    let mut told = [
        said.recv_timeout(PATIENCE).unwrap(),
        said.recv_timeout(PATIENCE).unwrap(),
    ];
    told.sort_unstable();
    assert_eq!(told, [("a", false), ("b", false)]);
}

#[test]
fn a_webhook_that_fails_at_first_gets_the_event_in_the_end() {
    let answers = vec!["500 Oh", "", "429 Slowly", "204 Well"];
    let (address, heard) = server(answers);
    let events = hooked(address, Some("word"));
    assert!(is_taken_in(&events, finished("r")));
    let heard: Vec<Heard> = heard.iter().collect();
    assert_eq!(heard.len(), 4);
    for request in &heard {
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
fn a_webhook_that_refuses_or_redirects_is_asked_once() {
    for answer in ["404 No", "302 There\r\nlocation: http://127.0.0.1:1/"] {
        let (address, heard) = server(vec![answer, "200 Well"]);
        let events = hooked(address, None);
        assert!(!is_taken_in(&events, finished("r")), "{answer}");
        let first = heard.try_recv().unwrap();
        assert!(!first.head.contains("x-hatebeam-signature"));
        // The next request is the next event.
        assert!(is_taken_in(&events, event("s", EventKind::Cancelled {})));
        let next: Event = serde_json::from_slice(&heard.recv().unwrap().body).unwrap();
        assert_eq!(next.run, "s");
    }
}

#[test]
fn a_webhook_that_is_not_there_keeps_nobody() {
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
    let (say, said) = channel();
    events.send_then(finished("r"), move |by_all| say.send(by_all).unwrap());
    let begun = Instant::now();
    // The command has it, whatever becomes of the webhook.
    while lines(&file).is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    events.close(Duration::from_millis(100));
    assert!(begun.elapsed() < PATIENCE);
    // One hook has it and the other has not: it is not taken in by all.
    assert!(!said.recv_timeout(PATIENCE).unwrap());
}
