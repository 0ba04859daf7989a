//! A read-only HTTP server for `/metrics` and `/healthz`.
//!
//! A scraper that hangs occupies only its own connection, and only until the connection times out.

use crate::Registry;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hatebeam_net::http::{Limits, plain};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Limits of the server. Each connection serves only one request.
const LIMITS: Limits = Limits {
    connections: 32,
    header_timeout: Duration::from_secs(10),
    connection_timeout: Duration::from_secs(60),
    drain_timeout: Duration::ZERO,
    buffer: 16 << 10,
    keep_alive: false,
};
/// Media type of the OpenMetrics format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metrics server that is listening, but serves no requests until [`Server::serve`] runs.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    registry: Registry,
}

/// Starts to listen on `address`. Use port 0 to pick any free port.
///
/// # Errors
/// Returns the operating system's error if the address cannot be bound.
pub async fn bind(address: SocketAddr, registry: &Registry) -> io::Result<Server> {
    Ok(Server {
        listener: TcpListener::bind(address).await?,
        registry: registry.clone(),
    })
}

async fn metrics(registry: Registry) -> impl IntoResponse {
    match registry.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl Server {
    /// Returns the URL of the metrics.
    ///
    /// # Errors
    /// Returns the operating system's error if the socket's address cannot be determined.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}/metrics", self.listener.local_addr()?))
    }

    /// Serves requests until the future is dropped.
    pub async fn serve(self) {
        let registry = self.registry;
        let router = Router::new()
            .route("/metrics", get(move || metrics(registry.clone())))
            .route("/healthz", get(|| async { "ok\n" }));
        hatebeam_net::http::serve(self.listener, router, LIMITS, plain).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn send(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close the connection before it has read the whole request.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn server_responds_to_known_paths_and_survives_bad_requests() {
        let registry = Registry::default();
        let build = crate::Build {
            version: "0",
            search: String::new(),
            process: "run",
        };
        crate::watch_process(&registry, build);
        let server = bind("127.0.0.1:0".parse().unwrap(), &registry)
            .await
            .unwrap();
        let address = server.listener.local_addr().unwrap();
        assert_eq!(server.url().unwrap(), format!("http://{address}/metrics"));
        let serving = tokio::spawn(server.serve());
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes();
        let text = send(address, &get("/metrics")).await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(
            text.contains(CONTENT_TYPE) && text.ends_with("# EOF\n"),
            "{text}"
        );
        assert!(
            send(address, &get("/healthz"))
                .await
                .ends_with("\r\n\r\nok\n")
        );
        assert!(send(address, &get("/")).await.starts_with("HTTP/1.1 404 "));
        let post = b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        assert!(send(address, post).await.starts_with("HTTP/1.1 405 "));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
        for bad in [b"\r\n\r\n\0\0", &[0xff; 5000][..], long.as_bytes()] {
            let answer = send(address, bad).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
                "{answer}"
            );
        }
        // Open more silent connections than the limit allows. The next client must be served once they have
        // been closed.
        let mut silent = Vec::new();
        for _ in 0..LIMITS.connections + 3 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        drop(silent);
        assert!(send(address, &get("/healthz")).await.ends_with("ok\n"));
        serving.abort();
    }
}
