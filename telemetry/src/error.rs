//! Errors at the start of telemetry.

use thiserror::Error;

/// Why logs, spans or metrics cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The variable with the filter is not valid.
    #[error("HATEBEAM_LOG is not valid")]
    Filter(#[source] tracing_subscriber::filter::FromEnvError),
    /// The process logs already.
    #[error("cannot start logging")]
    Logs(#[source] tracing_subscriber::util::TryInitError),
    /// The address of the collector is not usable.
    #[cfg(feature = "otlp")]
    #[error("spans go to a collector at http://HOST:PORT, not to {0}")]
    NotHttp(String),
    /// The exporter refuses the collector.
    #[cfg(feature = "otlp")]
    #[error("cannot send spans to {url}")]
    Exporter {
        /// Address of the collector.
        url: String,
        /// The cause.
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// The server of metrics cannot listen.
    #[cfg(feature = "cluster")]
    #[error("cannot serve metrics at {address}")]
    Metrics {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The system starts no thread.
    #[cfg(any(feature = "cluster", feature = "otlp"))]
    #[error("cannot start a thread for {purpose}")]
    Thread {
        /// What the thread is for.
        purpose: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}
