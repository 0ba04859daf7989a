//! `--on-event`, `--webhook` and `--metrics`: events and metrics of a run on this machine or in a cluster.

use crate::observers::{Observed, RunObserver};
use crate::result::ResultJson;
use anyhow::{Context, anyhow};
use hatebeam_metrics::{Registry, RunMetrics};
use hatebeam_net::check_bind;
use hatebeam_notify::{Event, EventKind, Events, Hooks, Milestones, Progress, SECRET_VARIABLE};
use hatebeam_objects::Objects;
use hatebeam_runs::{EndReason, Observer, Run};
use hatebeam_store::{DepthRecord, StoreError, bytes_below};
use hatebeam_telemetry::MetricsServer;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Time limit for queued events when a run has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Version of this program, as metrics show it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Hooks for events.
#[derive(Debug, clap::Args)]
pub(super) struct HookArgs {
    /// Run this command with sh -c for each event of a run: start, new best score, end (docs/events.md lists all). The
    /// event is a JSON object on standard input
    #[arg(long, value_name = "COMMAND")]
    on_event: Option<String>,
    /// Send each event to this URL by HTTP POST, signed if HATEBEAM_WEBHOOK_SECRET is set
    #[arg(
        long,
        value_name = "URL",
        env = "HATEBEAM_WEBHOOK",
        hide_env_values = true
    )]
    webhook: Option<String>,
    /// Depths between two events that report progress
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    event_every: u32,
}

impl HookArgs {
    /// Starts the hooks. `None` without hooks.
    pub(super) fn start(&self) -> anyhow::Result<Option<Events>> {
        Events::start(&self.hooks()?).context("--on-event and --webhook")
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

    /// Returns the number of depths between two events that report progress.
    pub(super) fn every(&self) -> u32 {
        self.event_every
    }
}

/// Where metrics are served.
#[derive(Debug, clap::Args)]
pub(super) struct MetricsArgs {
    /// Serve metrics over HTTP at this address, such as 127.0.0.1:9100; port 0 takes any free one. They contain names of
    /// runs, but no secrets
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl MetricsArgs {
    /// Refuses an address that other machines can reach, without --insecure-bind. Metrics are served without TLS.
    pub(super) fn check(&self, insecure_bind: bool) -> anyhow::Result<()> {
        let Some(address) = self.metrics else {
            return Ok(());
        };
        check_bind(address, false, insecure_bind).with_context(|| {
            format!("other machines could read the metrics at {address}: pass --insecure-bind to allow it")
        })
    }

    /// Serves the metrics of a process of a cluster. Must be called within a runtime.
    pub(super) async fn serve(
        &self,
        registry: &Registry,
        process: &'static str,
        objects: &Objects,
    ) -> anyhow::Result<()> {
        if let Some(address) = self.metrics {
            MetricsServer::watch_objects(registry, objects);
            let server = MetricsServer::bind(address, registry, process, VERSION);
            server.await?.spawn();
        }
        Ok(())
    }
}

/// Events and metrics of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArgs {
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Serve metrics on other addresses than the loopback
    #[arg(long, requires = "metrics")]
    insecure_bind: bool,
}

impl ObserveArgs {
    /// Checks the arguments before the run starts.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.metrics.check(self.insecure_bind)?;
        self.hooks.hooks()?.check().context("--webhook")
    }

    /// Starts the observers of a run that is about to be searched.
    pub(crate) fn start(&self, run: &Run, name: &str) -> anyhow::Result<Observed> {
        let mut observed = Observed::default();
        if let Some(address) = self.metrics.metrics {
            let registry = Registry::default();
            let metrics = MetricsObserver::new(&registry, run, name);
            observed.observers.push(Box::new(metrics));
            let url = MetricsServer::serve_in_thread(address, &registry, "run", VERSION)?;
            observed.metrics_url = Some(url);
        }
        if let Some(events) = self.hooks.start()? {
            let observer = EventObserver::start(events, self.hooks.every(), run, name);
            observed.observers.push(Box::new(observer));
        }
        Ok(observed)
    }
}

/// Sends the events of a run. On drop, it waits for queued events.
struct EventObserver {
    events: Events,
    run: String,
    milestones: Milestones,
}

impl EventObserver {
    fn start(events: Events, every: u32, run: &Run, name: &str) -> EventObserver {
        let progress = Progress {
            depth: run.store().depths().last().map_or(0, |last| last.depth),
            lines: run.best_lines(),
        };
        let observer = EventObserver {
            events,
            run: name.to_owned(),
            milestones: Milestones::new(every, progress),
        };
        let width = run.spec().width;
        observer.send(EventKind::Started { width });
        observer
    }

    fn send(&self, kind: EventKind) {
        self.send_with_lines(self.milestones.progress().lines, kind);
    }

    fn send_with_lines(&self, lines: u32, kind: EventKind) {
        let progress = Progress {
            lines,
            ..self.milestones.progress()
        };
        let event = Event::new(&self.run, progress, kind, SystemTime::now());
        self.events.send(event);
    }
}

impl Observer for EventObserver {
    fn begun(&mut self, _depth: u32, _parents: u64, _expanded: &Arc<AtomicU64>) {}

    fn committed(&mut self, record: &DepthRecord) {
        for event in self.milestones.committed(record) {
            self.send(event);
        }
    }

    fn damaged(&mut self, _depth: u32, _error: &StoreError) {}
}

impl RunObserver for EventObserver {
    fn ended(&mut self, result: Result<&ResultJson<'_>, &str>) {
        let result = match result {
            Ok(result) => result,
            Err(reason) => {
                let reason = reason.to_owned();
                return self.send(EventKind::Failed { reason });
            }
        };
        if result.end == EndReason::Interrupted {
            return self.send(EventKind::Cancelled {});
        }
        let files = result.files.iter().map(|file| file.display().to_string());
        let kind = EventKind::Finished {
            end: result.end.name().to_owned(),
            pieces: result.pieces,
            replay: result.replay.map(str::to_owned),
            files: files.collect(),
        };
        let lines = self.milestones.progress().lines;
        self.send_with_lines(result.best_lines.unwrap_or(lines), kind);
    }
}

impl Drop for EventObserver {
    fn drop(&mut self) {
        self.events.close(DRAIN_TIMEOUT);
    }
}

/// Updates the metrics of a run.
struct MetricsObserver {
    metrics: RunMetrics,
    /// Number of expanded wells of the current depth.
    expanded: Arc<Mutex<Arc<AtomicU64>>>,
    seconds: f64,
    best_lines: u32,
}

impl MetricsObserver {
    fn new(registry: &Registry, run: &Run, name: &str) -> MetricsObserver {
        let depths = run.store().depths();
        let observer = MetricsObserver {
            metrics: RunMetrics::register(registry),
            expanded: Arc::default(),
            seconds: depths.iter().map(|record| record.seconds).sum(),
            best_lines: run.best_lines(),
        };
        let metrics = observer.metrics.clone();
        metrics.width.set(run.spec().width);
        if let Some(last) = depths.last() {
            observer.show(last);
        }
        let labels = [("run", name), ("state", "running")];
        let labels = labels.map(|(label, value)| (label, value.to_owned()));
        metrics.info.set(labels.to_vec());
        let dir = run.store().dir().to_owned();
        let expanded = Arc::clone(&observer.expanded);
        registry.before_scrape(move || {
            metrics.stored.set(bytes_below(&dir));
            let expanded = expanded.lock().unwrap_or_else(PoisonError::into_inner);
            let count = expanded.load(Ordering::Relaxed);
            metrics.depth_wells_expanded.set(count);
        });
        observer
    }

    fn show(&self, record: &DepthRecord) {
        self.metrics.depth.set(u64::from(record.depth));
        self.metrics.wells.set(record.count);
        self.metrics.best_lines.set(u64::from(self.best_lines));
        self.metrics.searched.set_f64(self.seconds);
    }
}

impl Observer for MetricsObserver {
    fn begun(&mut self, _depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        self.metrics.depth_wells.set(parents);
        *self.expanded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(expanded);
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.metrics.depths.add(1);
        self.metrics.children.add(record.children);
        self.metrics.depth_seconds.observe_seconds(record.seconds);
        self.seconds += record.seconds;
        self.best_lines = self.best_lines.max(u32::from(record.best_lines));
        self.show(record);
    }

    fn damaged(&mut self, _depth: u32, _error: &StoreError) {}
}

impl RunObserver for MetricsObserver {
    fn ended(&mut self, _result: Result<&ResultJson<'_>, &str>) {}
}
