//! A webhook behind TLS: reached if its certificate is one that the machine trusts, and told nothing if not.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use hatebeam_notify::{Event, EventKind, Events, Hooks, Timing};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, UNIX_EPOCH};

/// Where the process that is started for it sends its event.
const ADDRESS: &str = "HATEBEAM_TEST_ADDRESS";

/// What a process of its own does, as which certificates a machine trusts is said in the environment.
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
    let (say, said) = channel();
    let event = Event::new("r", (1, 2), EventKind::Cancelled {}, UNIX_EPOCH);
    events.send_then(event, move |by_all| say.send(by_all).unwrap());
    assert!(said.recv_timeout(Duration::from_secs(60)).unwrap());
}

/// A server that tells what it hears once a caller has trusted it.
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
    let (say, heard) = channel();
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
                    // It does not trust the certificate.
                    _ => break,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 Well\r\ncontent-length: 0\r\n\r\n");
            if text.ends_with('}') && say.send(text).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

#[test]
fn a_webhook_is_told_only_if_its_certificate_is_trusted() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return send_to(address);
    }
    let dir = tempfile::tempdir().unwrap();
    let new = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (ours, other) = (new(), new());
    let (port, heard) = server(&ours);
    for (trusted, is_told) in [(&other, false), (&ours, true)] {
        let file = dir.path().join("trusted.pem");
        std::fs::write(&file, trusted.cert.pem()).unwrap();
        let done = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_webhook_is_told_only_if_its_certificate_is_trusted",
            ])
            .env(ADDRESS, format!("https://localhost:{port}/"))
            .env("SSL_CERT_FILE", &file)
            .output()
            .unwrap();
        assert_eq!(done.status.success(), is_told, "{done:?}");
        let said = heard.try_recv();
        assert_eq!(said.is_ok(), is_told, "{said:?}");
    }
}
