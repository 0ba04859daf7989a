//! What a process logs to standard error, and the spans that it sends elsewhere.
//!
//! Whatever is logged stands in spans that say of which run, epoch and depth it is; with the feature `otlp`
//! they go to a collector as well.

#[cfg(feature = "otlp")]
mod otlp;

use anyhow::Context;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Where spans go, besides the log.
#[derive(Debug, clap::Args)]
pub(crate) struct SpanArgs {
    /// Send spans (run, epoch, depth, table) to the OpenTelemetry collector at this address, by gRPC
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

/// What is to be ended when a process ends.
pub(crate) struct Logs {
    #[cfg(feature = "otlp")]
    _spans: Option<otlp::Exporter>,
}

impl SpanArgs {
    /// Sends what is logged from this level on to standard error, and the spans where they are to go, as
    /// those of this process, for as long as the value lives.
    pub(crate) fn start(
        &self,
        format: Option<LogFormat>,
        level: LevelFilter,
        process: &'static str,
    ) -> anyhow::Result<Logs> {
        let filter = EnvFilter::builder()
            .with_default_directive(level.into())
            .with_env_var("HATEBEAM_LOG")
            .from_env()
            .context("HATEBEAM_LOG")?;
        // AWS's SDK tells at length where credentials come from, and the key's id. Who asks for more gets it.
        let asked = std::env::var_os("HATEBEAM_LOG").is_some_and(|asked| !asked.is_empty());
        let filter = match asked {
            true => filter,
            false => filter.add_directive("aws_config=warn".parse()?),
        };
        let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
        let lines = match format {
            Some(LogFormat::Json) => lines.json().flatten_event(true).boxed(),
            _ => lines.boxed(),
        };
        let subscriber = registry().with(lines.with_filter(filter));
        #[cfg(feature = "otlp")]
        let (spans, subscriber) = {
            let spans = self.otlp.as_deref().filter(|url| !url.is_empty());
            let spans = spans.map(|url| otlp::Exporter::open(url, process));
            let spans = spans.transpose()?;
            let layer = spans.as_ref().map(otlp::Exporter::layer);
            (spans, subscriber.with(layer))
        };
        #[cfg(not(feature = "otlp"))]
        let _ = process;
        subscriber
            .try_init()
            .map_err(|error| anyhow::anyhow!("logs cannot be started: {error}"))?;
        Ok(Logs {
            #[cfg(feature = "otlp")]
            _spans: spans,
        })
    }
}
