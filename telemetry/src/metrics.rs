//! A server for metrics over HTTP.

use crate::TelemetryError;
use hatebeam_metrics::{Build, ObjectMetrics, Registry, Server, bind, watch_process};
use hatebeam_objects::Objects;
use std::net::SocketAddr;

/// A metrics server that is already listening.
#[derive(Debug)]
pub struct MetricsServer {
    server: Server,
    /// URL of the metrics endpoint.
    pub url: String,
}

impl MetricsServer {
    /// Starts listening on `address`.
    ///
    /// # Errors
    /// Returns [`TelemetryError::Metrics`] if the server cannot listen on the address.
    pub async fn bind(
        address: SocketAddr,
        registry: &Registry,
        build: Build,
    ) -> Result<MetricsServer, TelemetryError> {
        let failed = |source| TelemetryError::Metrics { address, source };
        watch_process(registry, build);
        let server = bind(address, registry).await.map_err(failed)?;
        let url = server.url().map_err(failed)?;
        tracing::info!("metrics at {url}");
        Ok(MetricsServer { server, url })
    }

    /// Registers the metrics of an object store. They are updated before each scrape.
    pub fn watch_objects(registry: &Registry, objects: &Objects) {
        let metrics = ObjectMetrics::register(registry);
        let objects = objects.clone();
        registry.before_scrape(move || {
            let stats = objects.stats();
            let operations = [
                ("put", stats.puts),
                ("get", stats.gets),
                ("list", stats.lists),
                ("delete", stats.deletes),
            ];
            for (operation, count) in operations {
                if let Some(counter) = metrics.operations.get(operation) {
                    counter.set(count);
                }
            }
            metrics.received.set(stats.bytes_in);
            metrics.sent.set(stats.bytes_out);
            metrics.requests.set(stats.requests);
            metrics.retries.set(stats.retries);
            metrics.errors.set(stats.errors);
        });
    }

    /// Serves the metrics in a task of the current tokio runtime.
    pub fn spawn(self) {
        tokio::spawn(self.server.serve());
    }

    /// Starts listening like [`MetricsServer::bind`], serves the metrics in a new thread, and returns their URL. This
    /// function creates its own tokio runtime.
    ///
    /// # Errors
    /// Returns [`TelemetryError::Metrics`] if the server cannot listen on the address, and [`TelemetryError::Thread`] if
    /// the thread or its runtime cannot be started.
    pub fn serve_in_thread(
        address: SocketAddr,
        registry: &Registry,
        build: Build,
    ) -> Result<String, TelemetryError> {
        let no_thread = |source| TelemetryError::Thread {
            purpose: "metrics",
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let bound = runtime.block_on(Self::bind(address, registry, build))?;
        let MetricsServer { server, url } = bound;
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let serving = thread.spawn(move || runtime.block_on(server.serve()));
        serving.map_err(no_thread)?;
        Ok(url)
    }
}
