//! A fake of version 2 of the AWS instance metadata service, which refuses requests without a session token.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SESSION: &str = "a-session";

/// A fake metadata service of a spot instance.
pub(crate) struct MetadataService {
    pub(crate) endpoint: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Whether the service announces that AWS will reclaim the machine.
    is_interrupted: AtomicBool,
    /// Number of requests refused because they lack the session token.
    refused: AtomicUsize,
}

impl MetadataService {
    pub(crate) fn start() -> MetadataService {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || state.serve(&stream));
            }
        });
        MetadataService { endpoint, state }
    }

    pub(crate) fn interrupt(&self) {
        self.state.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Returns the number of requests refused because they lacked the session token.
    pub(crate) fn refused(&self) -> usize {
        self.state.refused.load(Ordering::Relaxed)
    }
}

impl State {
    /// Answers all requests on a connection.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            let ttl = request.header("x-aws-ec2-metadata-token-ttl-seconds");
            let (status, body) = self.answer(&request, ttl.is_some());
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nx-aws-ec2-metadata-token-ttl-seconds: {}\r\n\
                 content-length: {}\r\n\r\n{body}",
                ttl.unwrap_or_default(),
                body.len()
            );
            let mut writer = stream;
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Returns the status and the body of the response.
    fn answer(&self, request: &Request, opens_session: bool) -> (&'static str, &'static str) {
        if request.method == "PUT" && request.path == "/latest/api/token" && opens_session {
            return ("200 OK", SESSION);
        }
        if request.header("x-aws-ec2-metadata-token") != Some(SESSION) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return ("401 Unauthorized", "");
        }
        let body = match request.path.as_str() {
            "/latest/meta-data/instance-type" => "c5d.18xlarge",
            "/latest/meta-data/instance-life-cycle" => "spot",
            "/latest/meta-data/instance-id" => "i-0123456789",
            "/latest/meta-data/placement/region" => "us-east-1",
            "/latest/meta-data/placement/availability-zone" => "us-east-1b",
            "/latest/meta-data/spot/instance-action"
                if self.is_interrupted.load(Ordering::Relaxed) =>
            {
                r#"{"action": "terminate", "time": "2030-01-01T00:00:00Z"}"#
            }
            _ => return ("404 Not Found", ""),
        };
        ("200 OK", body)
    }
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// Reads a request without a body. Returns `None` if the connection ends or the request is not valid.
    fn read(reader: &mut impl BufRead) -> Option<Request> {
        let mut lines = reader.lines().map_while(Result::ok);
        let first = lines.next()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let mut headers = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Request {
            method,
            path,
            headers,
        })
    }

    /// Returns the value of a header. `name` must be lower case.
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
