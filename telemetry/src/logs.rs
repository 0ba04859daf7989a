//! Log lines on standard error.
//!
//! Log lines are within spans that name the run, the epoch and the depth. With the feature `otlp` a collector receives
//! these spans too.

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

/// Variable that selects levels and modules.
const VARIABLE: &str = "HATEBEAM_LOG";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [LogFormat; 2] = [LogFormat::Text, LogFormat::Json];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

/// What a process logs.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Format of the lines.
    pub format: LogFormat,
    /// Lowest level, unless `HATEBEAM_LOG` says otherwise.
    pub level: LevelFilter,
    /// Kind of the process, for spans.
    pub process: &'static str,
    /// Address of the OpenTelemetry collector. Without the feature `otlp` it has no effect.
    pub collector: Option<String>,
}

/// Logs of a process. On drop, the remaining spans are sent.
#[must_use = "spans are sent as long as this value lives"]
pub struct Logs {
    #[cfg(feature = "otlp")]
    _spans: Option<Exporter>,
}

impl Logs {
    /// Starts the logs of this process.
    ///
    /// # Errors
    /// [`TelemetryError`].
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
    // AWS's SDK logs at length where credentials come from, with the identifier of the key: only on request.
    let is_set = std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
    let quiet: Option<Directive> = "aws_config=warn".parse().ok();
    Ok(match quiet.filter(|_| !is_set) {
        Some(quiet) => filter.add_directive(quiet),
        None => filter,
    })
}
