//! Logs, spans and metrics of a process, and the progress and the list of runs.

mod error;
mod logs;
#[cfg(feature = "cluster")]
mod metrics;
mod observers;
mod progress_line;
mod result;
#[cfg(feature = "cluster")]
mod run;
mod runs;
mod screen;
#[cfg(feature = "otlp")]
mod spans;

pub use error::TelemetryError;
pub use logs::{LogFormat, LogSettings, Logs};
#[cfg(feature = "cluster")]
pub use metrics::MetricsServer;
pub use observers::Observers;
pub use progress_line::{ProgressLine, show_progress};
pub use result::{DepthView, ResultView, depth_table};
#[cfg(feature = "cluster")]
pub use run::{EventObserver, MetricsObserver};
pub use runs::{RunLine, end_of, run_table};
pub use screen::{Screen, ScreenOptions};
