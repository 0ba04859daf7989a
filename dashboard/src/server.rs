//! Listening, and what is served.

use crate::access::{self, Access};
use crate::api::{self, App};
use crate::assets;
use crate::form::Estimator;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use hatebeam_net::http::{Limits, plain};
use hatebeam_net::{Guard, Tls, Token, WireError, check_bind};
use hatebeam_proto::v1::runs_server::Runs;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A browser makes six connections at most, and keeps one of them for events.
const LIMITS: Limits = Limits {
    connections: 128,
    header_timeout: Duration::from_secs(20),
    // Streams of events are begun anew after that, which nobody notices.
    connection_timeout: Duration::from_secs(900),
    buffer: 32 << 10,
    keep_alive: true,
};

/// Where the dashboard is, and who may see it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The certificate, if it is served over HTTPS. Browsers need to show none.
    pub tls: Option<Tls>,
    /// What callers must know, if anything.
    pub token: Option<Token>,
    /// It may be open to the network without TLS and without a token.
    pub insecure_bind: bool,
}

/// Why there is no dashboard.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// It would be open to the network, or its certificate is no good.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It would be open to the network, and everybody could submit and stop runs.
    #[error(
        "the dashboard at {0} can be reached from other machines, and there is no token: give --token-file or set \
         HATEBEAM_TOKEN, or say --insecure-bind if nobody else is on the network"
    )]
    NoToken(SocketAddr),
    /// It cannot listen.
    #[error("the dashboard cannot listen on {address}: {reason}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
}

impl DashboardError {
    /// Somebody else listens there.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Listen { reason, .. } if reason.kind() == io::ErrorKind::AddrInUse)
    }
}

/// A server that listens already.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    access: Access,
}

/// Listens. To be called within a runtime.
///
/// # Errors
/// [`DashboardError`].
pub async fn bind(settings: Settings) -> Result<Server, DashboardError> {
    let address = settings.listen;
    let tls = settings.tls.as_ref().map(Tls::https).transpose()?;
    check_bind(address, tls.is_some(), settings.insecure_bind)?;
    let is_local = address.ip().to_canonical().is_loopback();
    if !is_local && settings.token.is_none() && !settings.insecure_bind {
        return Err(DashboardError::NoToken(address));
    }
    let failed = |reason| DashboardError::Listen { address, reason };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Server {
        access: Access::new(Guard::new(settings.token), address, tls.is_some()),
        tls: tls.map(Arc::new),
        listener,
        address,
    })
}

impl Server {
    /// Where it is.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Serves for as long as it is let. `runs` is asked for everything; `estimator` says what a run would take.
    pub async fn serve<R: Runs>(self, runs: R, estimator: Estimator) {
        let app = Arc::new(App::new(runs, estimator, self.access));
        let (of_guard, of_entrance) = (Arc::clone(&app), Arc::clone(&app));
        let guarded = api::guarded(&app).layer(from_fn(move |request: Request, next: Next| {
            let app = Arc::clone(&of_guard);
            async move { access::signed_in(&app.access, request, next).await }
        }));
        let router = Router::new()
            .merge(api::open(&app))
            .merge(guarded)
            .merge(assets::router())
            .fallback(api::nothing)
            .layer(from_fn(move |request: Request, next: Next| {
                let app = Arc::clone(&of_entrance);
                async move { access::from_here(&app.access, request, next).await }
            }))
            .layer(from_fn(access::headers));
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
