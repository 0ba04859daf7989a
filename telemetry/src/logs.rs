//! Log lines on standard error.
//!
//! Each log line includes its spans, which contain the run, the epoch (a period with a fixed set of workers) and the
//! depth (number of placed pieces). With the feature `otlp`, the spans can also be sent to an OpenTelemetry collector.

use crate::TelemetryError;
#[cfg(feature = "otlp")]
use crate::spans::Exporter;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// Environment variable that selects the log level of each module.
const VARIABLE: &str = "HATEBEAM_LOG";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [LogFormat; 2] = [LogFormat::Text, LogFormat::Json];

    /// Returns the name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

/// Settings for the logs and spans of a process.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Format of the lines.
    pub format: LogFormat,
    /// Least severe level that is logged, unless `HATEBEAM_LOG` selects another level.
    pub level: LevelFilter,
    /// Kind of the process, such as `worker`, which is part of the spans' service name.
    pub process: &'static str,
    /// Address of the OpenTelemetry collector; `None` to send no spans. Without the feature `otlp`, this
    /// field has no effect.
    pub collector: Option<String>,
}

/// A guard for the log and the spans of a process. Dropping it sends the remaining spans.
#[must_use = "spans are sent only while this value exists"]
pub struct Logs {
    #[cfg(feature = "otlp")]
    _spans: Option<Exporter>,
}

impl Logs {
    /// Starts the log of this process, and the export of spans if a collector is given.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, a thread cannot be started, or logging has already been started.
    pub fn start(settings: &LogSettings) -> Result<Logs, TelemetryError> {
        let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
        let lines = match settings.format {
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
            LogFormat::Text => lines.boxed(),
        };
        let subscriber = registry().with(lines.with_filter(filter(settings.level)?));
        #[cfg(feature = "otlp")]
        let (spans, subscriber) = {
            let url = settings.collector.as_deref().filter(|url| !url.is_empty());
            let spans = url.map(|url| Exporter::open(url, settings.process));
            let spans = spans.transpose()?;
            let layer = spans.as_ref().map(Exporter::layer);
            (spans, subscriber.with(layer))
        };
        subscriber.try_init().map_err(TelemetryError::Logs)?;
        Ok(Logs {
            #[cfg(feature = "otlp")]
            _spans: spans,
        })
    }
}

fn filter(level: LevelFilter) -> Result<EnvFilter, TelemetryError> {
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .with_env_var(VARIABLE)
        .from_env()
        .map_err(TelemetryError::Filter)?;
    // At the level INFO, the AWS SDK logs the origin of the credentials, including the ID of the key. These lines appear
    // only if HATEBEAM_LOG is set.
    let is_set = std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
    let quiet: Option<Directive> = "aws_config=warn".parse().ok();
    Ok(match quiet.filter(|_| !is_set) {
        Some(quiet) => filter.add_directive(quiet),
        None => filter,
    })
}
