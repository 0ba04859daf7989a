//! An HTTP server that limits the number, duration and read buffers of its connections.
//!
//! Each connection has its own task. If a client hangs, a time limit closes its connection.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Limits of an HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of open connections. Additional clients wait until a connection closes.
    pub connections: usize,
    /// Maximum duration of the handshake. It is also the maximum time from the end of the handshake, or of the previous
    /// response, until the headers of a request have arrived.
    pub header_timeout: Duration,
    /// Time after which a connection accepts no further requests.
    pub connection_timeout: Duration,
    /// Maximum time after `connection_timeout` until the response in progress is complete. Then the connection closes.
    pub drain_timeout: Duration,
    /// Maximum size of a connection's read buffer, in bytes. The router must limit request bodies itself.
    pub buffer: usize,
    /// Whether a connection may serve more than one request.
    pub keep_alive: bool,
}

/// Returns the stream unchanged. This is the handshake for connections without TLS.
///
/// # Errors
/// This function never returns an error.
pub async fn plain(stream: TcpStream) -> io::Result<TcpStream> {
    Ok(stream)
}

/// Serves `router` until the future is dropped, which also closes all connections.
///
/// `handshake` converts a TCP connection to the stream for HTTP. It is [`plain`] or a TLS handshake.
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
        // Remove closed connections from the set, so that it does not grow without limit.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let (router, handshake) = (router.clone(), handshake(stream));
                connections.spawn(async move {
                    serve_connection(handshake, router, limits).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // The cause is usually transient, such as too many open files.
                tracing::debug!(%error, "failed to accept connection");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn serve_connection<S>(
    handshake: impl Future<Output = io::Result<S>>,
    router: Router,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = match tokio::time::timeout(limits.header_timeout, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "handshake failed");
            return;
        }
        Err(_) => return,
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.buffer)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let timeout = tokio::time::timeout(limits.connection_timeout, connection.as_mut());
    let served = match timeout.await {
        Ok(served) => Ok(served),
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(limits.drain_timeout, connection).await
        }
    };
    if let Ok(Err(error)) = served {
        tracing::debug!(%error, "connection failed");
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
        header_timeout: Duration::from_millis(200),
        connection_timeout: Duration::from_secs(60),
        drain_timeout: Duration::ZERO,
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
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            "slow"
        };
        let router = Router::new()
            .route("/", get(|| async { "fine" }))
            .route("/slow", get(slow))
            .route("/wait", get(wait));
        (
            address,
            tokio::spawn(serve(listener, router, limits, plain)),
        )
    }

    async fn send(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close the connection before it has read the whole request.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn silent_connections_time_out() {
        let (address, serving) = start(LIMITS).await;
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(send(address, GET).await.ends_with("fine"));
        serving.abort();
    }

    #[tokio::test]
    async fn keep_alive_connection_serves_requests_until_its_timeout() {
        let (address, serving) = start(LIMITS).await;
        let begun = Instant::now();
        let kept = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let twice = [kept.as_slice(), kept].concat();
        assert_eq!(send(address, &twice).await.matches("fine").count(), 2);
        assert!(begun.elapsed() < Duration::from_secs(10));
        let limits = Limits {
            connection_timeout: Duration::from_millis(300),
            ..LIMITS
        };
        let (address, other) = start(limits).await;
        let wait = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(send(address, wait).await, "");
        assert!(begun.elapsed() < Duration::from_secs(20));
        serving.abort();
        other.abort();
    }

    #[tokio::test]
    async fn connection_timeout_does_not_interrupt_a_response() {
        let limits = Limits {
            connection_timeout: Duration::from_millis(300),
            drain_timeout: Duration::from_secs(5),
            ..LIMITS
        };
        let (address, serving) = start(limits).await;
        let begun = Instant::now();
        let slow = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n".as_slice();
        // The second request arrives while the first response is in progress, and is not served.
        let answer = send(address, &[slow, slow].concat()).await;
        assert_eq!(answer.matches("slow").count(), 1, "{answer}");
        let wait = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(send(address, wait).await, "");
        assert!(begun.elapsed() < Duration::from_secs(20));
        serving.abort();
    }

    #[tokio::test]
    async fn dropping_server_closes_connections() {
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
    async fn server_continues_after_failed_and_hanging_handshakes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "fine" }));
        // The handshake waits for a byte, and succeeds if the byte is `+`.
        let handshake = |mut stream: TcpStream| async move {
            match stream.read_u8().await? {
                b'+' => Ok(stream),
                _ => Err(io::Error::other("no")),
            }
        };
        let serving = tokio::spawn(serve(listener, router, LIMITS, handshake));
        let silent: Vec<_> = [(); 3].map(|()| TcpStream::connect(address)).into();
        for stream in silent {
            std::mem::forget(stream.await.unwrap());
        }
        assert_eq!(send(address, GET).await, "");
        let plus = [b"+".as_slice(), GET].concat();
        assert!(send(address, &plus).await.ends_with("fine"));
        serving.abort();
    }
}
