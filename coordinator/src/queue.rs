//! How all runs stand: what clients are shown, and what they update.

use crate::alerts::alerts;
use crate::costs::{Cost, CostTracker};
use crate::registry::WorkerRegistry;
use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_runs::{
    CommittedDepth, EndReason, Limits, Manifest, ProgressEstimator, Projection, RunState,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What clients update of a run that is open. It counts when the manifest says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunUpdate {
    /// To stop elsewhere.
    pub(crate) limits: Option<Limits>,
    /// To be stopped at the end of its depth, or after all not.
    pub(crate) stop_requested: Option<bool>,
}

impl RunUpdate {
    /// Writes down what is wished, and gives what there was.
    pub(crate) fn put(self, manifest: &mut Manifest) -> RunUpdate {
        let before = RunUpdate {
            limits: Some(manifest.limits),
            stop_requested: Some(manifest.stop_requested),
        };
        if let Some(limits) = self.limits {
            manifest.limits = limits;
        }
        if let Some(stop_requested) = self.stop_requested {
            manifest.stop_requested = stop_requested;
        }
        before
    }

    /// Whether it is written down.
    pub(crate) fn is_in(self, manifest: &Manifest) -> bool {
        self.limits.is_none_or(|limits| limits == manifest.limits)
            && self
                .stop_requested
                .is_none_or(|stop_requested| stop_requested == manifest.stop_requested)
    }
}

struct Entry {
    manifest: Arc<Manifest>,
    /// What holds it up at present.
    note: String,
    /// What is not written down yet.
    update: Option<RunUpdate>,
}

/// How all runs stand.
pub(crate) struct RunQueue {
    /// The run that is searched, or was the last.
    searched: Mutex<Option<String>>,
    runs: Mutex<BTreeMap<String, Entry>>,
    /// Counts what was changed.
    changes: watch::Sender<u64>,
    updates: watch::Sender<u64>,
    registry: Arc<WorkerRegistry>,
    pub(crate) costs: Arc<CostTracker>,
}

impl RunQueue {
    pub(crate) fn new(registry: Arc<WorkerRegistry>, costs: Arc<CostTracker>) -> Arc<RunQueue> {
        Arc::new(RunQueue {
            searched: Mutex::default(),
            runs: Mutex::default(),
            changes: watch::Sender::new(0),
            updates: watch::Sender::new(0),
            registry,
            costs,
        })
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_searched(&self) -> MutexGuard<'_, Option<String>> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run that is searched, or was the last.
    pub(crate) fn searched(&self) -> Option<Arc<Manifest>> {
        let name = self.last_searched().clone();
        name.and_then(|name| self.manifest(&name))
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells when clients update something, or submit a run.
    pub(crate) fn updates(&self) -> watch::Receiver<u64> {
        self.updates.subscribe()
    }

    /// Takes note of what the manifest of a run says now.
    pub(crate) fn put(&self, manifest: &Manifest) {
        if manifest.state == RunState::Running {
            *self.last_searched() = Some(manifest.name.clone());
        }
        let mut runs = self.runs();
        let manifest = Arc::new(manifest.clone());
        match runs.get_mut(&manifest.name) {
            Some(entry) => entry.manifest = manifest,
            None => {
                let entry = Entry {
                    note: manifest.note.clone(),
                    update: None,
                    manifest: Arc::clone(&manifest),
                };
                runs.insert(manifest.name.clone(), entry);
            }
        }
        drop(runs);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Says what holds a run up; nothing if it is empty.
    pub(crate) fn note(&self, run: &str, note: String) {
        if let Some(entry) = self.runs().get_mut(run) {
            entry.note = note;
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Has whoever searches a run write down what is wished, with what was wished before and is not written yet.
    pub(crate) fn update(&self, run: &str, update: RunUpdate) {
        if let Some(entry) = self.runs().get_mut(run) {
            let before = entry.update.unwrap_or_default();
            entry.update = Some(RunUpdate {
                limits: update.limits.or(before.limits),
                stop_requested: update.stop_requested.or(before.stop_requested),
            });
        }
        self.told();
    }

    /// Has whoever waits for something to do look again.
    pub(crate) fn told(&self) {
        self.updates.send_modify(|count| *count += 1);
    }

    /// What is to be written down, once.
    pub(crate) fn take_update(&self, run: &str) -> Option<RunUpdate> {
        let mut runs = self.runs();
        runs.get_mut(run).and_then(|entry| entry.update.take())
    }

    pub(crate) fn has_update(&self, run: &str) -> bool {
        self.runs()
            .get(run)
            .is_some_and(|entry| entry.update.is_some())
    }

    pub(crate) fn manifest(&self, run: &str) -> Option<Arc<Manifest>> {
        self.runs()
            .get(run)
            .map(|entry| Arc::clone(&entry.manifest))
    }

    /// The run to work on next: one that was begun, or the one that waits longest.
    pub(crate) fn next(&self) -> Option<String> {
        let runs = self.runs();
        let open = runs
            .values()
            .map(|entry| &entry.manifest)
            .filter(|manifest| manifest.is_open());
        let next = open.min_by_key(|manifest| {
            (
                manifest.state != RunState::Running,
                manifest.submitted_ms,
                manifest.name.clone(),
            )
        });
        next.map(|manifest| manifest.name.clone())
    }

    pub(crate) fn status(&self, run: &str) -> Option<v1::RunStatus> {
        let runs = self.runs();
        runs.get(run).map(|entry| self.status_of(entry))
    }

    /// All runs, the last submitted first.
    pub(crate) fn statuses(&self) -> Vec<v1::RunStatus> {
        let runs = self.runs();
        let mut all: Vec<v1::RunStatus> =
            runs.values().map(|entry| self.status_of(entry)).collect();
        all.sort_by_key(|run| std::cmp::Reverse((run.submitted_ms, run.name.clone())));
        all
    }

    fn status_of(&self, entry: &Entry) -> v1::RunStatus {
        let manifest = &entry.manifest;
        let last = manifest.last().map(|last| &last.record);
        let (expanded, parents) = match manifest.state {
            RunState::Running => self.registry.progress(manifest.epoch),
            _ => (0, 0),
        };
        let state = match manifest.state {
            RunState::Queued => v1::State::Queued,
            RunState::Running => v1::State::Running,
            RunState::Finished => v1::State::Finished,
            RunState::Cancelled => v1::State::Cancelled,
            RunState::Failed => v1::State::Failed,
        };
        let cost = self.costs.cost(manifest);
        let projection = match manifest.state {
            RunState::Running => projection(manifest),
            _ => None,
        };
        v1::RunStatus {
            name: manifest.name.clone(),
            state: state.into(),
            spec: serde_json::to_string(&manifest.spec).unwrap_or_default(),
            width: manifest.spec.width,
            shards: manifest.shards,
            depth: last.map_or(0, |last| last.depth),
            best_lines: manifest.best_lines(),
            expanded,
            parents,
            epoch: manifest.epoch,
            seconds: manifest.seconds,
            stored_bytes: manifest.stored_bytes(),
            note: match entry.note.is_empty() {
                true => manifest.note.clone(),
                false => entry.note.clone(),
            },
            result: manifest.result.as_ref().map(|result| v1::Result {
                score: result.lines,
                pieces: result.pieces,
                replay: result.replay.clone(),
                lookups: result.lookups,
                keyframe_seconds: result.seconds,
            }),
            submitted_ms: manifest.submitted_ms,
            max_depth: manifest.limits.max_depth.unwrap_or(0),
            cost: Some(cost.to_wire()),
            max_cost_micros: manifest.limits.max_cost.map_or(0, |max| max.0),
            max_seconds: manifest.limits.max_time.map_or(0, |max| max.as_secs()),
            stopped_by: manifest
                .end
                .filter(|end| end.is_limit())
                .map_or("", EndReason::name)
                .to_owned(),
            projection: projection.map(|projection| to_wire(&projection, &cost)),
        }
    }

    /// The records of a run's depths from this one on, at most `most`.
    pub(crate) fn records(&self, run: &str, from: u32, most: usize) -> Vec<v1::DepthRecord> {
        let Some(manifest) = self.manifest(run) else {
            return Vec::new();
        };
        let wanted = manifest
            .depths
            .iter()
            .filter(|depth| depth.record.depth >= from);
        wanted.take(most).map(record_to_wire).collect()
    }

    /// What a person who watches this run should look at.
    pub(crate) fn alerts(
        &self,
        run: &v1::RunStatus,
        workers: &[v1::WorkerStatus],
    ) -> Vec<v1::Alert> {
        let manifest = self.manifest(&run.name);
        let cost = manifest.map(|manifest| self.costs.cost(&manifest));
        alerts(run, workers, &self.registry.lately_lost(), cost.as_ref())
    }

    /// How the workers stand, with the shards they have of the run that is worked on.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let epoch = {
            let runs = self.runs();
            let running = runs
                .values()
                .find(|e| e.manifest.state == RunState::Running);
            running.map_or(0, |entry| entry.manifest.epoch)
        };
        self.registry.statuses(epoch)
    }
}

fn record_to_wire(depth: &CommittedDepth) -> v1::DepthRecord {
    let record = &depth.record;
    v1::DepthRecord {
        depth: record.depth,
        count: record.count,
        digest: record.digest.clone(),
        best_eval: record.best_eval,
        median_eval: record.median_eval,
        worst_eval: record.worst_eval,
        best_lines: u32::from(record.best_lines),
        best_well: record.best_well.clone(),
        children: record.children,
        seconds: record.seconds,
        bytes: record.bytes,
        kept: record.kept,
        sent: depth.sent,
        sent_bytes: depth.sent_bytes,
        cost_micros: depth.cost.0,
    }
}

/// Where a run may end.
fn projection(manifest: &Manifest) -> Option<Projection> {
    let mut pace = ProgressEstimator::new(&manifest.spec, manifest.limits.max_depth);
    let skipped = manifest
        .depths
        .len()
        .saturating_sub(ProgressEstimator::DEPTHS);
    for depth in &manifest.depths[skipped..] {
        pace.add(&depth.record);
    }
    pace.projection()
}

fn to_wire(projection: &Projection, cost: &Cost) -> v1::Projection {
    let until = |seconds: f64| {
        let more = cost.per_hour().0 as f64 / 3600.0 * seconds;
        cost.total().saturating_add(Micros(more as u64)).0
    };
    v1::Projection {
        depth_low: projection.depths.0,
        depth_high: projection.depths.1,
        seconds_low: projection.seconds.0,
        seconds_high: projection.seconds.1,
        micros_low: until(projection.seconds.0),
        micros_high: until(projection.seconds.1),
        basis: projection.basis.to_owned(),
    }
}
