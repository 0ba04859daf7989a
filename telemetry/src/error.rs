//! Errors in starting the log, the spans or the metrics of a process.

use thiserror::Error;

/// Error in starting the log, the spans or the metrics of a process.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The filter in the variable `HATEBEAM_LOG` is invalid.
    #[error("HATEBEAM_LOG is not valid")]
    Filter(#[source] tracing_subscriber::filter::FromEnvError),
    /// Logging has already been started in this process.
    #[error("cannot start logging")]
    Logs(#[source] tracing_subscriber::util::TryInitError),
    /// The address of the collector does not begin with `http://`.
    #[cfg(feature = "otlp")]
    #[error("cannot send spans to {0}: give the address of a collector as http://HOST:PORT")]
    NotHttp(String),
    /// The span exporter cannot be created.
    #[cfg(feature = "otlp")]
    #[error("cannot send spans to {url}")]
    Exporter {
        /// Address of the collector.
        url: String,
        /// The cause.
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// The metrics server cannot listen.
    #[cfg(feature = "cluster")]
    #[error("cannot serve metrics at {address}")]
    Metrics {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The operating system cannot start a thread.
    #[cfg(any(feature = "cluster", feature = "otlp"))]
    #[error("cannot start a thread for {purpose}")]
    Thread {
        /// Purpose of the thread, such as `metrics`.
        purpose: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}
