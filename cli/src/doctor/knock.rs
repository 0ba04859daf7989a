//! Finding out who is there, by what it answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The most bytes of an answer. The first few tell who it is.
const MAX_BYTES: usize = 16 << 10;

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
