//! Export of spans to an OpenTelemetry collector.

use crate::TelemetryError;
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

/// Timeout for sending a batch of spans, including the last batch when the process ends.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The exporter, which sends spans to a collector. Dropping it sends the remaining spans.
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
    /// The runtime of the exporter. It must be dropped after the provider, which needs it to send the remaining spans.
    _runtime: Runtime,
}

impl Exporter {
    /// Creates an exporter that sends spans to the collector at `url`. `process` is the kind of this process, which becomes
    /// part of the service name. This function does not connect, so that a search does not wait for the collector. An
    /// unreachable collector is reported when spans are sent.
    pub(crate) fn open(url: &str, process: &'static str) -> Result<Exporter, TelemetryError> {
        if !url.starts_with("http://") {
            // TLS is not supported, because spans contain no secrets and a local collector can forward them over TLS.
            return Err(TelemetryError::NotHttp(url.to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spans")
            .enable_all()
            .build()
            .map_err(|source| TelemetryError::Thread {
                purpose: "spans",
                source,
            })?;
        let entered = runtime.enter();
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(url)
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|source| TelemetryError::Exporter {
                url: url.to_owned(),
                source,
            })?;
        drop(entered);
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

    /// Returns a layer that passes hatebeam's own spans to the exporter. Spans of libraries are excluded, because the
    /// libraries that send the spans would create new spans with each transfer.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let own = Targets::new().with_target("hatebeam", LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("hatebeam"))
            .with_location(false)
            .with_threads(false)
            .with_filter(own)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(TIMEOUT) {
            tracing::warn!(%error, "cannot send the last spans");
        }
    }
}
