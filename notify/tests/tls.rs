//! Tests that a webhook sends events over TLS only if the server's certificate is trusted.

#![allow(clippy::unwrap_used)] // test helpers

use hatebeam_notify::{Event, EventKind, Events, Hooks, Progress, Timing};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, UNIX_EPOCH};

/// Environment variable with the URL to which the child process sends its event.
const ADDRESS: &str = "HATEBEAM_TEST_ADDRESS";

/// Sends an event to a URL. This runs in a child process, because environment variables determine the trusted
/// certificates.
fn send_to(address: String) {
    let hooks = Hooks {
        webhook: Some(address),
        timing: Timing {
            first_wait: Duration::from_millis(5),
            ..Timing::default()
        },
        ..Hooks::default()
    };
    let events = Events::start(&hooks).unwrap().unwrap();
    let (sender, receipts) = channel();
    let event = Event::new(
        "r",
        Progress { depth: 1, lines: 2 },
        EventKind::Cancelled {},
        UNIX_EPOCH,
    );
    events.send_then(event, move |by_all| sender.send(by_all).unwrap());
    assert!(receipts.recv_timeout(Duration::from_secs(60)).unwrap());
}

/// Starts a server, and returns its port and a channel with the requests that it receives. Clients send a
/// request only if they trust the certificate.
fn server(certificate: &rcgen::CertifiedKey<rcgen::KeyPair>) -> (u16, Receiver<String>) {
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
    let config =
        ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.cert.der().clone()], key)
            .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut buffer = [0; 4096];
            let mut text = String::new();
            while !text.ends_with('}') {
                match stream.read(&mut buffer) {
                    Ok(read) if read > 0 => {
                        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap())
                    }
                    // The client does not trust the certificate, or has closed the connection.
                    _ => break,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 Well\r\ncontent-length: 0\r\n\r\n");
            if text.ends_with('}') && sender.send(text).is_err() {
                return;
            }
        }
    });
    (port, received)
}

#[test]
fn webhook_receives_events_only_if_its_certificate_is_trusted() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return send_to(address);
    }
    let dir = tempfile::tempdir().unwrap();
    let new = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (ours, other) = (new(), new());
    let (port, received) = server(&ours);
    for (trusted, is_trusted) in [(&other, false), (&ours, true)] {
        let file = dir.path().join("trusted.pem");
        std::fs::write(&file, trusted.cert.pem()).unwrap();
        let done = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "webhook_receives_events_only_if_its_certificate_is_trusted",
            ])
            .env(ADDRESS, format!("https://localhost:{port}/"))
            .env("SSL_CERT_FILE", &file)
            .output()
            .unwrap();
        assert_eq!(done.status.success(), is_trusted, "{done:?}");
        let event = received.try_recv();
        assert_eq!(event.is_ok(), is_trusted, "{event:?}");
    }
}
