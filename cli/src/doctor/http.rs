//! As much of HTTP as it takes to find out who is there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The most bytes of an answer. Those that are wanted have some dozens.
const MAX_BYTES: usize = 16 << 10;

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// What a server sends back to some bytes, until it closes, is silent, or has said enough.
pub(super) fn exchange(
    address: SocketAddr,
    request: &[u8],
    limit: Duration,
) -> io::Result<Vec<u8>> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(request)?;
    let mut said = Vec::new();
    let mut part = [0; 1024];
    while said.len() < MAX_BYTES {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => said.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What it said before it fell silent or was cut off may do.
            Err(_) => break,
        }
    }
    Ok(said)
}

/// Makes a request with these header lines.
pub(super) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    limit: Duration,
) -> io::Result<Answer> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    request.push_str("Content-Length: 0\r\nConnection: close\r\n\r\n");
    let said = exchange(address, request.as_bytes(), limit)?;
    parse(&String::from_utf8_lossy(&said))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP"))
}

fn parse(said: &str) -> Option<Answer> {
    let (head, body) = said.split_once("\r\n\r\n")?;
    let mut words = head.strip_prefix("HTTP/1.")?.split(' ');
    let status = words.nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = parse("HTTP/1.1 200 OK\r\nServer: x\r\n\r\nc5d.large\n").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "c5d.large"));
        assert_eq!(parse("HTTP/1.0 404\r\n\r\n").unwrap().status, 404);
        for odd in ["", "HTTP/1.1 200 OK", "HTTP/1.1\r\n\r\n", "SSH-2.0\r\n\r\n"] {
            assert!(parse(odd).is_none(), "{odd}");
        }
    }
}
