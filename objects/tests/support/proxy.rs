//! A network that does what it is told to: a proxy between a client and a server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// What goes wrong on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// It is closed as soon as it is made.
    Close,
    /// It is made, and then nothing comes.
    Silence,
    /// The first request is answered with this status and code, and the server does not see it.
    Answer(u16, &'static str),
    /// Each piece of an answer is late.
    Delay(Duration),
    /// It is cut when so many bytes of answers have come.
    CutAnswer(usize),
    /// It is cut when so many bytes of requests have gone.
    CutRequest(usize),
    /// It is cut when an answer comes to a request whose first line is such.
    LoseAnswer(fn(&str) -> bool),
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// How often it is to happen yet.
    left: usize,
    /// How often it has happened.
    happened: usize,
    connections: Vec<AbortHandle>,
}

/// A proxy, which lets everything through until told otherwise.
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
                let connection = tokio::spawn(carry(client, server, shared.clone()));
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

    /// The address of the proxy, to be spoken to in place of the server.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets a fault happen so many times, on new connections, and cuts those that there are.
    pub(crate) fn set(&self, fault: Fault, times: usize) {
        self.change(Some(fault), times);
    }

    /// Lets everything through from now on; says how often the fault has happened.
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

    /// How often the fault has happened.
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

/// Whether the fault is to happen now, and then it counts as happened.
fn strikes(state: &Mutex<State>) -> bool {
    let mut state = state.lock().unwrap();
    let strikes = state.left > 0;
    if strikes {
        state.left -= 1;
        state.happened += 1;
    }
    strikes
}

async fn carry(mut client: TcpStream, server: SocketAddr, state: Arc<Mutex<State>>) {
    let fault = {
        let state = state.lock().unwrap();
        state.fault.filter(|_| state.left > 0)
    };
    match fault {
        Some(Fault::Close) if strikes(&state) => return,
        Some(Fault::Silence) if strikes(&state) => {
            // Until the client gives up.
            let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
            return;
        }
        // A connection that is closed before it is used does not count.
        Some(Fault::Answer(status, code))
            if client.peek(&mut [0]).await.is_ok_and(|read| read > 0) && strikes(&state) =>
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
    let xml = format!("<Error><Code>{code}</Code><Message>As the test will.</Message></Error>");
    let answer = format!(
        "HTTP/1.1 {status} Fault\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{xml}",
        xml.len()
    );
    if client.write_all(answer.as_bytes()).await.is_ok() {
        // What is not read makes the operating system take the answer back.
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
    let mut carried = 0;
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if let Some(Fault::LoseAnswer(such)) = fault {
            let text = String::from_utf8_lossy(&piece[..read]);
            if text.lines().next().is_some_and(such) {
                *lose.lock().unwrap() = true;
            }
        }
        carried += read;
        if let Some(Fault::CutRequest(most)) = fault
            && carried > most
            && strikes(state)
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
    let mut carried = 0;
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if *lose.lock().unwrap() && strikes(state) {
            return;
        }
        match fault {
            Some(Fault::Delay(late)) if strikes(state) => tokio::time::sleep(late).await,
            Some(Fault::CutAnswer(most)) if carried + read > most && strikes(state) => {
                // The last bytes come, so that the cut is where it was asked for.
                let _ = to.write_all(&piece[..most.saturating_sub(carried)]).await;
                return;
            }
            _ => {}
        }
        carried += read;
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
