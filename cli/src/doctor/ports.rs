//! The ports that a cluster uses: whether they are free, or who is there.

use super::check::Check;
use super::knock::exchange;
use crate::output::count;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// Ports, and what listens there by default or by custom.
const PORTS: [(u16, &str); 3] = [
    (7800, "the coordinator"),
    (7801, "a worker"),
    (7880, "the dashboard"),
];

const LIMIT: Duration = Duration::from_millis(1500);

/// Looks at all of them.
pub(super) fn ports() -> Vec<Check> {
    let taken: Vec<Check> = PORTS
        .iter()
        .filter_map(|(port, whose)| taken(*port, whose))
        .collect();
    if !taken.is_empty() {
        return taken;
    }
    let ports = PORTS.map(|(port, _)| port.to_string()).join(", ");
    let kind = count(PORTS.len(), "port");
    vec![Check::ok("ports", format!("{kind} free: {ports}"))]
}

/// What is found on a port that cannot be listened on.
fn taken(port: u16, whose: &str) -> Option<Check> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let error = TcpListener::bind(address).err()?;
    let found = match error.kind() {
        io::ErrorKind::AddrInUse => format!("{port}, that of {whose}: {} is there", who(address)),
        _ => format!("{port}, that of {whose}, cannot be listened on ({error})"),
    };
    Some(Check::warning(
        "ports",
        found,
        "if that is not what you started, give another address with --listen or --dashboard",
    ))
}

/// Who answers at an address, as far as its first bytes tell.
fn who(address: SocketAddr) -> &'static str {
    let said = exchange(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        LIMIT,
    );
    match said.as_deref() {
        Ok([b'H', b'T', b'T', b'P', b'/', ..]) => "a web server",
        // The first frame of HTTP/2 is the settings.
        Ok([_, _, _, 4, 0, 0, 0, 0, 0, ..]) => "a gRPC server, such as a coordinator or a worker,",
        Ok([21, 3, ..]) => "a server with TLS, such as a coordinator or a worker,",
        Ok([]) => "somebody silent",
        Ok(_) => "somebody of another tongue",
        Err(_) => "somebody who does not answer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// A server that answers with these bytes, once.
    fn server(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer).unwrap();
        });
        address
    }

    #[test]
    fn servers_are_told_apart() {
        for (answer, expected) in [
            (&b"HTTP/1.1 404 Not Found\r\n\r\n"[..], "a web server"),
            (&[0, 0, 6, 4, 0, 0, 0, 0, 0, 1], "a gRPC server"),
            (&[21, 3, 3, 0, 2, 2, 50], "a server with TLS"),
            (b"", "somebody silent"),
            (b"SSH-2.0-x\r\n", "somebody of another tongue"),
        ] {
            let found = who(server(answer));
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_told() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let check = taken(port, "the coordinator").unwrap().to_string();
        assert!(check.starts_with("warning  ports"), "{check}");
        assert!(check.contains(&port.to_string()), "{check}");
        drop(listener);
        assert_eq!(taken(port, "the coordinator"), None);
    }
}
