//! Observers that report events and metrics of a run on one machine.

use hatebeam_metrics::{Registry, RunMetrics};
use hatebeam_notify::{Event, EventKind, Events, Milestones, Progress};
use hatebeam_runs::{EndReason, Observer, Run, SearchResult};
use hatebeam_store::{DepthRecord, bytes_below};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Maximum time to deliver queued events after a run has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// An observer that sends the events of a run to hooks (a command, a webhook, or both). Dropping it waits up to ten
/// seconds for queued events.
pub struct EventObserver {
    events: Events,
    run: String,
    folder: PathBuf,
    milestones: Milestones,
}

impl EventObserver {
    /// Creates the observer of a run whose search is about to begin, and sends [`EventKind::Started`]. `every` is the
    /// number of depths between two progress events.
    pub fn start(events: Events, every: u32, run: &Run, name: &str) -> EventObserver {
        let progress = Progress {
            depth: run.store().depths().last().map_or(0, |last| last.depth),
            lines: run.best_lines(),
        };
        let observer = EventObserver {
            events,
            run: name.to_owned(),
            folder: run.store().dir().to_owned(),
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
    fn committed(&mut self, record: &DepthRecord) {
        for event in self.milestones.committed(record) {
            self.send(event);
        }
    }

    fn ended(&mut self, result: Result<&SearchResult, &str>) {
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
        let game = result.game.as_ref();
        let files = result.files_in(&self.folder).into_iter();
        let kind = EventKind::Finished {
            end: result.end.name().to_owned(),
            pieces: game.map(|game| game.pieces),
            replay: game.map(|game| game.replay.clone()),
            files: files.map(|file| file.display().to_string()).collect(),
        };
        let lines = self.milestones.progress().lines;
        self.send_with_lines(game.map_or(lines, |game| game.lines), kind);
    }
}

impl Drop for EventObserver {
    fn drop(&mut self) {
        self.events.close(DRAIN_TIMEOUT);
    }
}

/// An observer that updates the metrics of a run.
pub struct MetricsObserver {
    metrics: RunMetrics,
    /// The search's counter of expanded wells at the current depth. Each depth has a new counter.
    expanded: Arc<Mutex<Arc<AtomicU64>>>,
    seconds: f64,
    best_lines: u32,
}

impl MetricsObserver {
    /// Registers the metrics of a run whose search is about to begin.
    pub fn register(registry: &Registry, run: &Run, name: &str) -> MetricsObserver {
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
}
