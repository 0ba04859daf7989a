//! The coordinator with its servers: gRPC and the dashboard.

use crate::coordinator::{Coordinator, Running};
use crate::error::CoordinatorError;
use crate::parts::CoreSettings;
use crate::service::{Service, add_services};
use hatebeam_dashboard::Estimator;
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_net::{self as net, Role, Tls, Tokens};
use std::net::SocketAddr;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A dashboard whose server is already listening.
pub struct Dashboard {
    /// The HTTP server.
    pub server: hatebeam_dashboard::Server,
    /// Estimator for the time and cost of runs before they are submitted.
    pub estimator: Estimator,
}

/// Settings of a coordinator and its servers.
pub struct Settings {
    /// Settings of the coordinator, except those of its servers. [`coordinate`] replaces `address`.
    pub core: CoreSettings,
    /// Address for the gRPC server to listen on.
    pub listen: SocketAddr,
    /// URI of this coordinator to store in the lease (the object that identifies the active coordinator). If `None`,
    /// the lease contains the address on which the gRPC server listens.
    pub advertise: Option<String>,
    /// TLS settings of the gRPC server. If `None`, its connections are not encrypted.
    pub tls: Option<Tls>,
    /// Tokens that authorize callers.
    pub tokens: Tokens,
    /// Registry of the metrics.
    pub registry: Registry,
    /// The dashboard, if any.
    pub dashboard: Option<Dashboard>,
}

/// Runs a coordinator and its servers until `stop` becomes `true` or the coordinator's idle timeout expires. Calls
/// `ready` with the gRPC address once the servers accept calls.
///
/// # Errors
/// Returns a [`CoordinatorError`] if the coordinator cannot start or cannot continue, or if a server fails.
pub fn coordinate(
    settings: Settings,
    stop: watch::Receiver<bool>,
    ready: Box<dyn FnOnce(SocketAddr) + Send>,
) -> Running<'static, ()> {
    Box::pin(serve(settings, stop, ready))
}

async fn serve(
    settings: Settings,
    mut stop: watch::Receiver<bool>,
    ready: Box<dyn FnOnce(SocketAddr) + Send>,
) -> Result<(), CoordinatorError> {
    let Settings {
        mut core,
        listen,
        advertise,
        tls,
        tokens,
        registry,
        dashboard,
    } = settings;
    let incoming = net::listen(listen)?;
    let address = incoming.local_addr().ok().unwrap_or(listen);
    core.address = advertise.unwrap_or_else(|| address.to_string());
    let (name, store) = (core.name.clone(), core.objects.location().to_owned());
    let env = Env::system();
    let (coordinator, task) = Coordinator::start(&env, core, &registry).await?;
    let service = Service(coordinator);
    // An early return drops the set, which aborts the servers.
    let mut servers: JoinSet<CoordinatorError> = JoinSet::new();
    if let Some(Dashboard { server, estimator }) = dashboard {
        let dashboard = server.serve(service.clone(), estimator);
        servers.spawn(env.guard(async move {
            dashboard.await;
            CoordinatorError::ServerEnded {
                server: "dashboard",
            }
        }));
    }
    let server = net::server(tls.as_ref(), Role::Coordinator)?;
    let server = add_services(server, &service, tokens).await;
    let serving = server.serve_with_incoming(incoming);
    servers.spawn(env.guard(async move { end_of_grpc(serving.await) }));
    tracing::info!(name, %address, store, "listening");
    ready(address);
    let mut failure = None;
    let stopped = async {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            error = server_failure(&mut servers) => failure = Some(error),
        }
    };
    task.run(Box::pin(stopped)).await?;
    failure.map_or(Ok(()), Err)
}

/// Returns the error for the end of the gRPC server, which should serve until it is aborted.
fn end_of_grpc(ended: Result<(), tonic::transport::Error>) -> CoordinatorError {
    match ended {
        Ok(()) => CoordinatorError::ServerEnded { server: "gRPC" },
        Err(error) => CoordinatorError::Server(error),
    }
}

/// Waits until a server ends or panics. Waits forever if there are no servers.
async fn server_failure(servers: &mut JoinSet<CoordinatorError>) -> CoordinatorError {
    match servers.join_next().await {
        Some(Ok(error)) => error,
        Some(Err(error)) => CoordinatorError::panicked("server", &error),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tonic::service::Routes;
    use tonic::transport::Server;

    #[tokio::test(start_paused = true)]
    async fn server_that_ends_without_an_error_is_a_failure() {
        // The empty stream of connections ends the server without an error.
        let incoming = tokio_stream::empty::<std::io::Result<tokio::io::DuplexStream>>();
        let server = Server::builder().add_routes(Routes::default());
        let mut servers = JoinSet::new();
        servers.spawn(async move { end_of_grpc(server.serve_with_incoming(incoming).await) });
        let failure = tokio::time::timeout(Duration::from_secs(60), server_failure(&mut servers));
        let error = failure.await.unwrap().to_string();
        assert!(
            error.starts_with("the gRPC server ended unexpectedly"),
            "{error}"
        );
    }
}
