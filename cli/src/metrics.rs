//! `--metrics`: what a process counts, over HTTP.

use crate::output;
use anyhow::Context;
use hatebeam_metrics::{ObjectMetrics, Registry, Server, bind, watch_process};
use hatebeam_net::check_bind;
use hatebeam_objects::Objects;
use std::net::SocketAddr;

/// Where metrics are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Show metrics over HTTP at this address, such as 127.0.0.1:9100; port 0 takes any that is free. Whoever
    /// reaches it can read them: they hold no secrets, but names of runs
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl MetricsArgs {
    /// Refuses an address that the whole network could reach, unless that is meant. Certificates change
    /// nothing: metrics are shown without.
    pub(crate) fn check(&self, insecure_bind: bool) -> anyhow::Result<()> {
        let Some(address) = self.metrics else {
            return Ok(());
        };
        check_bind(address, false, insecure_bind).with_context(|| {
            format!("metrics at {address} could be read by anyone who reaches it: --insecure-bind allows it")
        })
    }

    /// Listens, if that is wanted. To be called within a runtime.
    async fn server(&self, registry: &Registry) -> anyhow::Result<Option<(Server, String)>> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let server = bind(address, registry).await;
        let server = server.with_context(|| format!("metrics cannot be shown at {address}"))?;
        let url = server.url()?;
        tracing::info!("metrics at {url}");
        Ok(Some((server, url)))
    }

    /// Shows the metrics of a member of a cluster from now on. To be called within a runtime.
    pub(crate) async fn serve(
        &self,
        registry: &Registry,
        process: &'static str,
        objects: &Objects,
    ) -> anyhow::Result<()> {
        watch_process(registry, process, env!("CARGO_PKG_VERSION"));
        watch_objects(registry, objects);
        if let Some((server, _)) = self.server(registry).await? {
            tokio::spawn(server.serve());
        }
        Ok(())
    }

    /// Shows the metrics of a process that has no runtime from now on, and says where, if somebody is to be
    /// told.
    pub(crate) fn serve_apart(&self, registry: &Registry, tell: bool) -> anyhow::Result<()> {
        if self.metrics.is_none() {
            return Ok(());
        }
        watch_process(registry, "run", env!("CARGO_PKG_VERSION"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("no thread for metrics")?;
        if let Some((server, url)) = runtime.block_on(self.server(registry))? {
            if tell {
                output::note(format_args!("metrics at {url}"));
            }
            let thread = std::thread::Builder::new().name("metrics".to_owned());
            let serving = thread.spawn(move || runtime.block_on(server.serve()));
            serving.context("no thread for metrics")?;
        }
        Ok(())
    }
}

fn watch_objects(registry: &Registry, objects: &Objects) {
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
