//! The HTTP server.

use crate::access::{self, AccessControl};
use crate::api::{self, App};
use crate::assets;
use crate::form::Estimator;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use hatebeam_net::http::{Limits, plain};
use hatebeam_net::{Guard, Tls, Tokens, WireError, check_bind};
use hatebeam_proto::v1::runs_server::Runs;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Limits of the HTTP server. A browser opens at most six connections and uses one of them for an event stream.
const LIMITS: Limits = Limits {
    connections: 128,
    header_timeout: Duration::from_secs(20),
    connection_timeout: Duration::from_secs(900),
    // The longest calls, which read games back, can complete. An event stream ends after this time, and its browser
    // reconnects. Without a limit, 64 browsers that read nothing would occupy all event streams.
    drain_timeout: api::GAME_TIMEOUT,
    buffer: 32 << 10,
    keep_alive: true,
};

/// Address and access control of the dashboard.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on. Port 0 picks any free port.
    pub listen: SocketAddr,
    /// Certificate of the server for HTTPS; `None` for plain HTTP. Browsers do not need a client certificate.
    pub tls: Option<Tls>,
    /// Tokens. If any token is set, a client must send one.
    pub tokens: Tokens,
    /// Whether to allow an address that other machines can reach even if there is no TLS or no token.
    pub insecure_bind: bool,
}

/// Error that can occur when the dashboard starts.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The address is not allowed without TLS, or the certificate is invalid.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// There is no token, so anyone on the network could submit and stop runs.
    #[error(
        "other machines can reach the dashboard at {0}, but there is no token: pass --token-file, set \
         HATEBEAM_TOKEN, or allow this with --insecure-bind"
    )]
    NoToken(SocketAddr),
    /// The server cannot listen on the address.
    #[error("the dashboard cannot listen on {address}: {reason}")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Error from the operating system.
        reason: io::Error,
    },
}

impl DashboardError {
    /// Returns whether another process already uses the address.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Listen { reason, .. } if reason.kind() == io::ErrorKind::AddrInUse)
    }
}

/// A dashboard server that is already listening.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    access: AccessControl,
}

/// Starts listening. Must be called within a tokio runtime.
///
/// # Errors
/// Returns an error if the address is not allowed with these settings or is in use, or if the certificate is invalid.
pub async fn bind(settings: Settings) -> Result<Server, DashboardError> {
    let address = settings.listen;
    let tls = settings.tls.as_ref().map(Tls::https).transpose()?;
    check_bind(address, tls.is_some(), settings.insecure_bind)?;
    let is_local = address.ip().to_canonical().is_loopback();
    if !is_local && settings.tokens.full.is_none() && !settings.insecure_bind {
        return Err(DashboardError::NoToken(address));
    }
    let failed = |reason| DashboardError::Listen { address, reason };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Server {
        access: AccessControl::new(Guard::new(settings.tokens), address, tls.is_some()),
        tls: tls.map(Arc::new),
        listener,
        address,
    })
}

impl Server {
    /// Returns the URL of the dashboard.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Serves requests until the future is dropped. The API passes requests about runs and workers to `runs`, and
    /// `estimator` estimates the time and cost of a new run.
    pub async fn serve<R: Runs>(self, runs: R, estimator: Estimator) {
        let app = Arc::new(App::new(runs, estimator, self.access));
        let (for_token, for_origin) = (Arc::clone(&app), Arc::clone(&app));
        let private = api::private(&app).layer(from_fn(move |request: Request, next: Next| {
            let app = Arc::clone(&for_token);
            async move { access::require_token(&app.access, request, next).await }
        }));
        let router = Router::new()
            .merge(api::public(&app))
            .merge(private)
            .merge(assets::router())
            .fallback(api::not_found)
            .layer(from_fn(move |request: Request, next: Next| {
                let app = Arc::clone(&for_origin);
                async move { access::reject_foreign(&app.access, request, next).await }
            }))
            .layer(from_fn(access::security_headers));
        match self.tls {
            None => hatebeam_net::http::serve(self.listener, router, LIMITS, plain).await,
            Some(config) => {
                let tls = TlsAcceptor::from(config);
                let handshake = move |stream| tls.accept(stream);
                hatebeam_net::http::serve(self.listener, router, LIMITS, handshake).await;
            }
        }
    }
}
