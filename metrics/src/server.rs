//! Metrics over HTTP: `/metrics` and `/healthz`, nothing else, to be read only.
//!
//! A scraper that hangs costs its own connection, and a search never waits for any.

use crate::Registry;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hatebeam_http::{Limits, plain};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// A connection is for one request.
const LIMITS: Limits = Limits {
    connections: 32,
    head: Duration::from_secs(10),
    whole: Duration::from_secs(60),
    buffer: 16 << 10,
    keep_alive: false,
};
/// What OpenMetrics is called in HTTP.
const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server that listens already.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    registry: Registry,
}

/// Listens; port 0 takes any that is free. To be called within a runtime.
///
/// # Errors
/// What the system says of the address.
pub async fn bind(address: SocketAddr, registry: &Registry) -> io::Result<Server> {
    Ok(Server {
        listener: TcpListener::bind(address).await?,
        registry: registry.clone(),
    })
}

async fn metrics(registry: Registry) -> impl IntoResponse {
    match registry.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl Server {
    /// Where the metrics are.
    ///
    /// # Errors
    /// What the system says.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}/metrics", self.listener.local_addr()?))
    }

    /// Serves for as long as it is let.
    pub async fn serve(self) {
        let registry = self.registry;
        let router = Router::new()
            .route("/metrics", get(move || metrics(registry.clone())))
            .route("/healthz", get(|| async { "ok\n" }));
        hatebeam_http::serve(self.listener, router, LIMITS, plain).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn say(address: SocketAddr, words: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may hang up before it has heard all.
        let _ = stream.write_all(words).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn it_answers_what_it_knows_and_survives_the_rest() {
        let registry = Registry::default();
        crate::watch_process(&registry, "run", "0");
        let server = bind("127.0.0.1:0".parse().unwrap(), &registry)
            .await
            .unwrap();
        let address = server.listener.local_addr().unwrap();
        assert_eq!(server.url().unwrap(), format!("http://{address}/metrics"));
        let serving = tokio::spawn(server.serve());
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes();
        let text = say(address, &get("/metrics")).await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(
            text.contains(CONTENT) && text.ends_with("# EOF\n"),
            "{text}"
        );
        assert!(
            say(address, &get("/healthz"))
                .await
                .ends_with("\r\n\r\nok\n")
        );
        assert!(say(address, &get("/")).await.starts_with("HTTP/1.1 404 "));
        let post = b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        assert!(say(address, post).await.starts_with("HTTP/1.1 405 "));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
        for bad in [b"\r\n\r\n\0\0", &[0xff; 5000][..], long.as_bytes()] {
            let answer = say(address, bad).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
                "{answer}"
            );
        }
        // More callers than there is room for, who say nothing: the next one still gets in once they go.
        let mut silent = Vec::new();
        for _ in 0..LIMITS.connections + 3 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        drop(silent);
        assert!(say(address, &get("/healthz")).await.ends_with("ok\n"));
        serving.abort();
    }
}
