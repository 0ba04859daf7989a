//! Logs, spans and metrics of a process.

mod error;
mod logs;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "otlp")]
mod spans;

pub use error::TelemetryError;
pub use logs::{LogFormat, LogSettings, Logs};
#[cfg(feature = "metrics")]
pub use metrics::MetricsServer;
