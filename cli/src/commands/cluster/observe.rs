//! `--on-event`, `--webhook` and `--metrics`: events and metrics for a run on this machine or in a cluster.

use anyhow::{Context, anyhow};
use hatebeam_metrics::{Build, Registry};
use hatebeam_net::check_bind;
use hatebeam_notify::{Events, Hooks, SECRET_VARIABLE};
use hatebeam_objects::Objects;
use hatebeam_runs::Run;
use hatebeam_search::Fingerprint;
use hatebeam_telemetry::{EventObserver, MetricsObserver, MetricsServer, Observers};
use std::net::SocketAddr;

/// The program version that the metrics report.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Hooks that are called for each event of a run.
#[derive(Debug, clap::Args)]
pub(super) struct HookArgs {
    /// Run this command with sh -c for each event of a run, such as its start, a new best score or its end
    /// (docs/events.md lists all events). The command receives the event as a JSON object on standard input
    #[arg(long, value_name = "COMMAND")]
    on_event: Option<String>,
    /// Send each event of a run to this URL by HTTP POST; the request is signed if HATEBEAM_WEBHOOK_SECRET is set. Other
    /// users of the machine can see options, so set the variable instead if the URL is secret
    #[arg(
        long,
        value_name = "URL",
        env = "HATEBEAM_WEBHOOK",
        hide_env_values = true
    )]
    webhook: Option<String>,
    /// Number of depths between two progress events
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) event_every: u32,
}

impl HookArgs {
    /// Starts the hooks. Returns `None` if no hooks are configured.
    pub(super) fn start(&self) -> anyhow::Result<Option<Events>> {
        Events::start(&self.hooks()?).context("cannot start the hooks of --on-event and --webhook")
    }

    fn hooks(&self) -> anyhow::Result<Hooks> {
        let secret = std::env::var_os(SECRET_VARIABLE).map(|secret| secret.into_string());
        let secret = secret.transpose();
        let secret = secret.map_err(|_| anyhow!("{SECRET_VARIABLE} is not valid UTF-8"))?;
        Ok(Hooks {
            command: self.on_event.clone(),
            webhook: self.webhook.clone(),
            secret: secret.filter(|_| self.webhook.is_some()),
            ..Hooks::default()
        })
    }
}

/// Address of the metrics endpoint.
#[derive(Debug, clap::Args)]
pub(super) struct MetricsArgs {
    /// Serve Prometheus metrics over HTTP at this address, such as 127.0.0.1:9100; use port 0 to pick any free port. The
    /// metrics contain run names, but no secrets
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl MetricsArgs {
    /// Returns an error if other machines can reach the address, unless --insecure-bind is given. Metrics are served
    /// without TLS.
    pub(super) fn check(&self, insecure_bind: bool) -> anyhow::Result<()> {
        let Some(address) = self.metrics else {
            return Ok(());
        };
        // The error of the check suggests certificates, which metrics cannot use.
        check_bind(address, false, insecure_bind).map_err(|_| {
            anyhow!("other machines could read the metrics at {address}: pass --insecure-bind to allow this")
        })
    }

    /// Serves the metrics of a coordinator or a worker, if an address is given.
    pub(super) async fn serve(
        &self,
        registry: &Registry,
        process: &'static str,
        objects: &Objects,
    ) -> anyhow::Result<()> {
        if let Some(address) = self.metrics {
            MetricsServer::watch_objects(registry, objects);
            let server = MetricsServer::bind(address, registry, build(process));
            server.await?.spawn();
        }
        Ok(())
    }
}

fn build(process: &'static str) -> Build {
    Build {
        version: VERSION,
        search: Fingerprint::current().to_string(),
        process,
    }
}

/// Hooks and metrics for a run on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArgs {
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Allow --metrics to use an address that other machines can reach
    #[arg(long, requires = "metrics")]
    insecure_bind: bool,
}

impl ObserveArgs {
    /// Checks the arguments before the run starts.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.metrics.check(self.insecure_bind)?;
        self.hooks.hooks()?.check().context("--webhook")
    }

    /// Starts the observers of a run whose search is about to begin.
    pub(crate) fn start(&self, run: &Run, name: &str) -> anyhow::Result<Observers> {
        let mut observers = Observers::default();
        if let Some(address) = self.metrics.metrics {
            let registry = Registry::default();
            let metrics = MetricsObserver::register(&registry, run, name);
            observers.others.push(Box::new(metrics));
            let url = MetricsServer::serve_in_thread(address, &registry, build("run"))?;
            observers.metrics_url = Some(url);
        }
        if let Some(events) = self.hooks.start()? {
            let events = EventObserver::start(events, self.hooks.event_every, run, name);
            observers.others.push(Box::new(events));
        }
        Ok(observers)
    }
}
