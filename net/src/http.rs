//! A router served over HTTP within limits: so many connections at once, so long each, so many bytes set aside.
//!
//! A caller that hangs costs its own connection, and nothing else of the process waits for any.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a server bears with its callers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long a caller may take over the handshake, and again to say what he wants, once the connection is
    /// there or the last answer was given.
    pub head: Duration,
    /// How long a connection may last.
    pub whole: Duration,
    /// The most bytes that are set aside for what a caller says. What is said beyond its headers is the
    /// router's to bound.
    pub buffer: usize,
    /// Whether a connection is for more than one request.
    pub keep_alive: bool,
}

/// A connection as it comes.
///
/// # Errors
/// None.
pub async fn plain(stream: TcpStream) -> io::Result<TcpStream> {
    Ok(stream)
}

/// Serves for as long as it is let; when it is dropped, its connections end. `handshake` makes of a
/// connection what is spoken over: [`plain`], or TLS.
pub async fn serve<H, F, S>(listener: TcpListener, router: Router, limits: Limits, handshake: H)
where
    H: Fn(TcpStream) -> F,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        // Those that have ended, of which there cannot be more than there are permits.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let (router, hands) = (router.clone(), handshake(stream));
                connections.spawn(async move {
                    let answer = answer(hands, router, limits);
                    let _ = tokio::time::timeout(limits.whole, answer).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Such as too many open files: later there may be fewer.
                tracing::debug!(%error, "a connection is not accepted");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer<S>(hands: impl Future<Output = io::Result<S>>, router: Router, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = match tokio::time::timeout(limits.head, hands).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a caller does not get through the handshake");
            return;
        }
        Err(_) => return,
    };
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.buffer)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = answered {
        tracing::debug!(%error, "a caller is gone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::net::SocketAddr;
    use std::time::Instant;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LIMITS: Limits = Limits {
        connections: 3,
        head: Duration::from_millis(200),
        whole: Duration::from_secs(60),
        buffer: 16 << 10,
        keep_alive: true,
    };
    const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

    async fn start(limits: Limits) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let wait = || async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            "late"
        };
        let router = Router::new()
            .route("/", get(|| async { "fine" }))
            .route("/wait", get(wait));
        (
            address,
            tokio::spawn(serve(listener, router, limits, plain)),
        )
    }

    async fn say(address: SocketAddr, words: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may hang up before it has heard all.
        let _ = stream.write_all(words).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn callers_who_say_nothing_make_room_again() {
        let (address, serving) = start(LIMITS).await;
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(say(address, GET).await.ends_with("fine"));
        serving.abort();
    }

    #[tokio::test]
    async fn a_connection_that_is_kept_alive_is_not_kept_for_ever() {
        let (address, serving) = start(LIMITS).await;
        let begun = Instant::now();
        let kept = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let twice = [kept.as_slice(), kept].concat();
        assert_eq!(say(address, &twice).await.matches("fine").count(), 2);
        assert!(begun.elapsed() < Duration::from_secs(10));
        let limits = Limits {
            whole: Duration::from_millis(300),
            ..LIMITS
        };
        let (address, other) = start(limits).await;
        let wait = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(say(address, wait).await, "");
        assert!(begun.elapsed() < Duration::from_secs(20));
        serving.abort();
        other.abort();
    }

    #[tokio::test]
    async fn connections_end_with_the_server() {
        let (address, serving) = start(LIMITS).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let wait = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(wait).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        serving.abort();
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_u8()).await;
        assert!(ended.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_handshake_that_fails_or_hangs_costs_its_connection_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "fine" }));
        // Only who says `+` first is let in; who says nothing, never.
        let hands = |mut stream: TcpStream| async move {
            match stream.read_u8().await? {
                b'+' => Ok(stream),
                _ => Err(io::Error::other("no")),
            }
        };
        let serving = tokio::spawn(serve(listener, router, LIMITS, hands));
        let silent: Vec<_> = [(); 3].map(|()| TcpStream::connect(address)).into();
        for stream in silent {
            std::mem::forget(stream.await.unwrap());
        }
        assert_eq!(say(address, GET).await, "");
        let plus = [b"+".as_slice(), GET].concat();
        assert!(say(address, &plus).await.ends_with("fine"));
        serving.abort();
    }
}
