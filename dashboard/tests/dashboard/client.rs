//! A simple HTTP client.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response. Header names are in lower case.
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }

    #[track_caller]
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A client that sends requests with the same headers to one address.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Client {
        let host = ("Host".to_owned(), address.to_string());
        Client {
            address,
            headers: vec![host],
        }
    }

    /// Returns a copy of the client with an added or replaced header.
    pub(crate) fn with(&self, name: &str, value: impl Into<String>) -> Client {
        let mut client = self.clone();
        client.headers.retain(|(other, _)| other != name);
        client.headers.push((name.to_owned(), value.into()));
        client
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let headers: String = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &[u8]) -> Response {
        let stream = TcpStream::connect(self.address).await.unwrap();
        exchange(stream, &self.request(method, path, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send("GET", path, b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let client = self.with("Content-Type", "application/json");
        client.send("POST", path, body.to_string().as_bytes()).await
    }
}

pub(crate) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
) -> Response {
    // The server may respond and close the connection before it reads the whole request, so writing may fail.
    let _ = stream.write_all(request).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let fields = fields
        .split("\r\n")
        .map(|field| match field.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
            None => field.to_owned(),
        });
    let head = std::iter::once(line.to_owned()).chain(fields);
    let is_chunked = response
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Response {
        status: status.unwrap_or(0),
        head: head.collect::<Vec<_>>().join("\n"),
        body: if is_chunked {
            decode_chunks(body)
        } else {
            body.to_owned()
        },
    }
}

fn decode_chunks(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else {
            break;
        };
        whole.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or("");
    }
    whole
}

/// Returns the name and data of a stream's events. Reads until there are at least `count` events, or the stream ends.
pub(crate) async fn events(client: &Client, path: &str, count: usize) -> Vec<(String, Value)> {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    stream
        .write_all(&client.request("GET", path, b""))
        .await
        .unwrap();
    let mut text = String::new();
    let mut buffer = vec![0; 1 << 16];
    let read = async {
        loop {
            let found = parse_events(&text);
            if found.len() >= count {
                return found;
            }
            match stream.read(&mut buffer).await.unwrap() {
                0 => return found,
                size => text.push_str(&String::from_utf8_lossy(&buffer[..size])),
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    read.expect("the expected events did not arrive within 20 seconds")
}

/// Parses the complete events of a chunked response.
fn parse_events(text: &str) -> Vec<(String, Value)> {
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let whole = decode_chunks(body);
    let ends = whole.rfind("\n\n").unwrap_or(0);
    let events = whole[..ends].split("\n\n").filter_map(|event| {
        let name = event
            .lines()
            .find_map(|line| line.strip_prefix("event: "))?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
        Some((name.to_owned(), serde_json::from_str(data).unwrap()))
    });
    events.collect()
}
