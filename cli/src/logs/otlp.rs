//! Spans for an OpenTelemetry collector.

use anyhow::{Context, bail};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

/// How long the collector may take over a batch, also at the end of the process.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends spans until it is dropped; then, those that are left.
pub(super) struct Exporter {
    provider: SdkTracerProvider,
    /// What carries them. It goes last.
    _runtime: Runtime,
}

impl Exporter {
    /// To the collector at this address, as spans of this process. Whether anybody is there shows only when
    /// there is something to send; a search does not wait for it.
    pub(super) fn open(url: &str, process: &'static str) -> anyhow::Result<Exporter> {
        if !url.starts_with("http://") {
            // Spans hold no secrets, and a collector far away is reached through one that is near.
            bail!("spans go to a collector at http://HOST:PORT, not to {url}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spans")
            .enable_all()
            .build()
            .context("no thread for spans")?;
        let inside = runtime.enter();
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(url)
            .with_timeout(PATIENCE)
            .build()
            .with_context(|| format!("spans cannot go to {url}"))?;
        drop(inside);
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(format!("hatebeam-{process}"));
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Exporter {
            provider,
            _runtime: runtime,
        })
    }

    /// What hands spans to it: our own, and not those of what sends them.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let ours = Targets::new().with_target("hatebeam", LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("hatebeam"))
            .with_location(false)
            .with_threads(false)
            .with_filter(ours)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}
