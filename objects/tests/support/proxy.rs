//! A proxy between a client and a server, which simulates a faulty network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The proxy closes the connection immediately.
    Close,
    /// The proxy accepts the connection but never responds.
    Silence,
    /// The proxy responds to the first request with this status and error code, without forwarding the request.
    Answer(u16, &'static str),
    /// The proxy delays each chunk of a response.
    Delay(Duration),
    /// The connection breaks after this number of response bytes.
    CutAnswer(usize),
    /// The connection breaks after this number of request bytes.
    CutRequest(usize),
    /// The connection breaks when the server responds to a request whose first line matches this predicate.
    LoseAnswer(fn(&str) -> bool),
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// Maximum number of times that the fault can still occur.
    left: usize,
    happened: usize,
    connections: Vec<AbortHandle>,
}

/// A TCP proxy. It forwards all bytes unless a fault is set.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = tokio::spawn(forward(client, server, shared.clone()));
                shared
                    .lock()
                    .unwrap()
                    .connections
                    .push(connection.abort_handle());
            }
        });
        Proxy {
            address,
            state,
            accepting,
        }
    }

    /// Returns the proxy's URL, which clients use instead of the server's URL.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a fault occur on new connections, at most `times` times, and breaks the current connections.
    pub(crate) fn set(&self, fault: Fault, times: usize) {
        self.change(Some(fault), times);
    }

    /// Clears the fault, and returns the number of times that it has occurred.
    pub(crate) fn clear(&self) -> usize {
        self.change(None, 0)
    }

    fn change(&self, fault: Option<Fault>, times: usize) -> usize {
        let mut state = self.state.lock().unwrap();
        state.fault = fault;
        state.left = times;
        for connection in state.connections.drain(..) {
            connection.abort();
        }
        std::mem::take(&mut state.happened)
    }

    /// Returns the number of times that the current fault has occurred.
    pub(crate) fn happened(&self) -> usize {
        self.state.lock().unwrap().happened
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.clear();
    }
}

/// Returns whether the fault can still occur. If so, counts an occurrence.
fn happens(state: &Mutex<State>) -> bool {
    let mut state = state.lock().unwrap();
    let happens = state.left > 0;
    if happens {
        state.left -= 1;
        state.happened += 1;
    }
    happens
}

async fn forward(mut client: TcpStream, server: SocketAddr, state: Arc<Mutex<State>>) {
    let fault = {
        let state = state.lock().unwrap();
        state.fault.filter(|_| state.left > 0)
    };
    match fault {
        Some(Fault::Close) if happens(&state) => return,
        Some(Fault::Silence) if happens(&state) => {
            // Wait until the client closes the connection.
            let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
            return;
        }
        // A connection that the client closes without a request does not count.
        Some(Fault::Answer(status, code))
            if client.peek(&mut [0]).await.is_ok_and(|read| read > 0) && happens(&state) =>
        {
            answer(client, status, code).await;
            return;
        }
        _ => {}
    }
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let lose = Mutex::new(false);
    tokio::select! {
        () = requests(client_reads, server_writes, fault, &lose, &state) => {}
        () = answers(server_reads, client_writes, fault, &lose, &state) => {}
    }
}

async fn answer(mut client: TcpStream, status: u16, code: &str) {
    let xml = format!("<Error><Code>{code}</Code><Message>Injected by a test.</Message></Error>");
    let answer = format!(
        "HTTP/1.1 {status} Fault\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{xml}",
        xml.len()
    );
    if client.write_all(answer.as_bytes()).await.is_ok() {
        // Read the rest of the request, because closing a socket with unread bytes discards the response.
        let mut sink = tokio::io::sink();
        let rest = tokio::io::copy(&mut client, &mut sink);
        let _ = tokio::time::timeout(Duration::from_secs(2), rest).await;
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: Option<Fault>,
    lose: &Mutex<bool>,
    state: &Mutex<State>,
) {
    let mut piece = vec![0; 16 << 10];
    let mut forwarded = 0;
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if let Some(Fault::LoseAnswer(matches)) = fault {
            let text = String::from_utf8_lossy(&piece[..read]);
            if text.lines().next().is_some_and(matches) {
                *lose.lock().unwrap() = true;
            }
        }
        forwarded += read;
        if let Some(Fault::CutRequest(most)) = fault
            && forwarded > most
            && happens(state)
        {
            return;
        }
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: Option<Fault>,
    lose: &Mutex<bool>,
    state: &Mutex<State>,
) {
    let mut piece = vec![0; 16 << 10];
    let mut forwarded = 0;
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if *lose.lock().unwrap() && happens(state) {
            return;
        }
        match fault {
            Some(Fault::Delay(late)) if happens(state) => tokio::time::sleep(late).await,
            Some(Fault::CutAnswer(most)) if forwarded + read > most && happens(state) => {
                // Forward exactly `most` bytes in total.
                let _ = to.write_all(&piece[..most.saturating_sub(forwarded)]).await;
                return;
            }
            _ => {}
        }
        forwarded += read;
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
