//! The coordinator with its servers.

use crate::coordinator::Coordinator;
use crate::error::CoordinatorError;
use crate::parts::CoreSettings;
use crate::service::{Service, add_services};
use hatebeam_dashboard::Estimator;
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_net::{self as net, Tls, Token};
use std::net::SocketAddr;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A dashboard that listens already.
pub struct Dashboard {
    /// The server.
    pub server: hatebeam_dashboard::Server,
    /// Estimator of runs that are not submitted yet.
    pub estimator: Estimator,
}

/// Settings of a coordinator.
pub struct Settings {
    /// Settings of the coordinator without its servers. Its address is set when it listens.
    pub core: CoreSettings,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Certificate of the server; without one it is not encrypted.
    pub tls: Option<Tls>,
    /// Token that callers must show.
    pub token: Option<Token>,
    /// The metrics.
    pub registry: Registry,
    /// The dashboard.
    pub dashboard: Option<Dashboard>,
}

/// Runs a coordinator until `stop` is true. `ready` gets the address once callers are let in.
///
/// # Errors
/// [`CoordinatorError`].
pub async fn coordinate(
    settings: Settings,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), CoordinatorError> {
    let Settings {
        mut core,
        listen,
        tls,
        token,
        registry,
        dashboard,
    } = settings;
    let incoming = net::listen(listen)?;
    let address = incoming.local_addr().ok().unwrap_or(listen);
    core.address = address.to_string();
    let (name, store) = (core.name.clone(), core.objects.location().to_owned());
    let env = Env::system();
    let (coordinator, task) = Coordinator::start(&env, core, &registry).await?;
    let service = Service(coordinator);
    // They end with this set.
    let mut servers: JoinSet<Result<(), tonic::transport::Error>> = JoinSet::new();
    if let Some(Dashboard { server, estimator }) = dashboard {
        let dashboard = server.serve(service.clone(), estimator);
        servers.spawn(env.guard(async move {
            dashboard.await;
            Ok(())
        }));
    }
    let server = net::server(tls.as_ref())?;
    let server = add_services(server, &service, token).await;
    servers.spawn(env.guard(server.serve_with_incoming(incoming)));
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
    task.run(stopped).await?;
    failure.map_or(Ok(()), Err)
}

/// Waits until a server fails or panics, or the gRPC server ends.
async fn server_failure(
    servers: &mut JoinSet<Result<(), tonic::transport::Error>>,
) -> CoordinatorError {
    loop {
        match servers.join_next().await {
            Some(Ok(Err(error))) => return CoordinatorError::Server(error),
            Some(Err(error)) => return CoordinatorError::panicked("server", &error),
            Some(Ok(Ok(()))) => {}
            None => std::future::pending().await,
        }
    }
}
