//! Check of a cluster's default ports. It finds ports that are in use, and identifies the servers that use them.

use crate::check::Check;
use hatebeam_report::count;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Ports that the servers of a cluster use by default or by convention.
const PORTS: [(u16, &str); 3] = [
    (7800, "the coordinator"),
    (7801, "a worker"),
    (7880, "the dashboard"),
];

/// Time limit for connecting to a server, and for sending a request. The answer is read until this time has passed
/// since connecting began.
const LIMIT: Duration = Duration::from_millis(1500);
/// Number of bytes after which an answer is no longer read. The first bytes are enough to identify the server.
const MAX_BYTES: usize = 16 << 10;

pub(crate) fn ports() -> Vec<Check> {
    let taken: Vec<Check> = PORTS
        .iter()
        .filter_map(|(port, owner)| taken(*port, owner))
        .collect();
    if !taken.is_empty() {
        return taken;
    }
    let ports = PORTS.map(|(port, _)| port.to_string()).join(", ");
    let kind = count(PORTS.len() as u64, "port");
    vec![Check::ok("ports", format!("{kind} free: {ports}"))]
}

/// Returns a warning if this process cannot listen on a port.
fn taken(port: u16, owner: &str) -> Option<Check> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let error = TcpListener::bind(address).err()?;
    let found = match error.kind() {
        io::ErrorKind::AddrInUse => format!("{port}, for {owner}: used by {}", server_at(address)),
        _ => format!("{port}, for {owner}: cannot listen ({error})"),
    };
    Some(Check::warning(
        "ports",
        found,
        "if you did not start this server, pass another address with --listen or --dashboard",
    ))
}

/// Identifies the server at an address by the first bytes of its answer.
fn server_at(address: SocketAddr) -> &'static str {
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    match exchange(address, request).as_deref() {
        Ok([b'H', b'T', b'T', b'P', b'/', ..]) => "a web server",
        // An HTTP/2 server begins with a SETTINGS frame.
        Ok([_, _, _, 4, 0, 0, 0, 0, 0, ..]) => "a gRPC server, such as a coordinator or a worker",
        // A TLS server answers unencrypted data with an alert record.
        Ok([21, 3, ..]) => "a server with TLS, such as a coordinator or a worker",
        Ok([]) => "a server that sends nothing",
        Ok(_) => "a server with an unknown protocol",
        Err(_) => "a server that does not answer",
    }
}

/// Sends a request and reads the answer until the server closes the connection or a limit is reached.
fn exchange(address: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut part = [0; 1024];
    while answer.len() < MAX_BYTES {
        let left = LIMIT.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The bytes received so far may be enough.
            Err(_) => break,
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that answers a single request with the given bytes. Returns its address.
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
    fn server_is_identified_by_its_answer() {
        for (answer, expected) in [
            (&b"HTTP/1.1 404 Not Found\r\n\r\n"[..], "a web server"),
            (&[0, 0, 6, 4, 0, 0, 0, 0, 0, 1], "a gRPC server"),
            (&[21, 3, 3, 0, 2, 2, 50], "a server with TLS"),
            (b"", "a server that sends nothing"),
            (b"SSH-2.0-x\r\n", "a server with an unknown protocol"),
        ] {
            let found = server_at(server(answer));
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn used_port_gives_a_warning() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let check = taken(port, "the coordinator").unwrap().to_string();
        assert!(check.starts_with("warning  ports"), "{check}");
        assert!(check.contains(&port.to_string()), "{check}");
        drop(listener);
        assert_eq!(taken(port, "the coordinator"), None);
    }
}
