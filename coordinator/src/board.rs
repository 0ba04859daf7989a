//! How all runs stand: what clients are shown, and what they wish.

use crate::accounts::{Accounts, Cost};
use crate::alerts::alerts;
use crate::hub::Hub;
use hatebeam_cost::{Budget, StoppedBy};
use hatebeam_proto::v1;
use hatebeam_runs::{Depth, Manifest, State};
use hatebeam_runs::{Pace, Projection};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Where a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_depth: Option<u32>,
    pub(crate) budget: Budget,
}

impl Limits {
    pub(crate) fn of(manifest: &Manifest) -> Limits {
        Limits {
            max_depth: manifest.max_depth,
            budget: manifest.budget,
        }
    }

    pub(crate) fn put(self, manifest: &mut Manifest) {
        (manifest.max_depth, manifest.budget) = (self.max_depth, self.budget);
    }
}

/// What clients wish of a run that is open. It counts when the manifest says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// To stop elsewhere.
    pub(crate) limits: Option<Limits>,
    /// To be stopped at the end of its depth, or after all not.
    pub(crate) is_to_stop: Option<bool>,
}

impl Wish {
    /// Writes down what is wished, and gives what there was.
    pub(crate) fn put(self, manifest: &mut Manifest) -> Wish {
        let before = Wish {
            limits: Some(Limits::of(manifest)),
            is_to_stop: Some(manifest.is_to_stop),
        };
        if let Some(limits) = self.limits {
            limits.put(manifest);
        }
        if let Some(is_to_stop) = self.is_to_stop {
            manifest.is_to_stop = is_to_stop;
        }
        before
    }

    /// Whether it is written down.
    pub(crate) fn is_in(self, manifest: &Manifest) -> bool {
        self.limits
            .is_none_or(|limits| limits == Limits::of(manifest))
            && self
                .is_to_stop
                .is_none_or(|is_to_stop| is_to_stop == manifest.is_to_stop)
    }
}

struct Entry {
    manifest: Arc<Manifest>,
    /// What holds it up at present.
    note: String,
    /// What is not written down yet.
    wish: Option<Wish>,
}

/// How all runs stand.
pub(crate) struct Board {
    /// The run that is searched, or was the last.
    searched: Mutex<Option<String>>,
    runs: Mutex<BTreeMap<String, Entry>>,
    /// Counts what was changed.
    changes: watch::Sender<u64>,
    wishes: watch::Sender<u64>,
    hub: Arc<Hub>,
    pub(crate) accounts: Arc<Accounts>,
}

impl Board {
    pub(crate) fn new(hub: Arc<Hub>, accounts: Arc<Accounts>) -> Arc<Board> {
        Arc::new(Board {
            searched: Mutex::default(),
            runs: Mutex::default(),
            changes: watch::Sender::new(0),
            wishes: watch::Sender::new(0),
            hub,
            accounts,
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

    /// Tells when clients wish something, or submit a run.
    pub(crate) fn wishes(&self) -> watch::Receiver<u64> {
        self.wishes.subscribe()
    }

    /// Takes note of what the manifest of a run says now.
    pub(crate) fn put(&self, manifest: &Manifest) {
        if manifest.state == State::Running {
            *self.last_searched() = Some(manifest.name.clone());
        }
        let mut runs = self.runs();
        let manifest = Arc::new(manifest.clone());
        match runs.get_mut(&manifest.name) {
            Some(entry) => entry.manifest = manifest,
            None => {
                let entry = Entry {
                    note: manifest.note.clone(),
                    wish: None,
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
    pub(crate) fn wish(&self, run: &str, wish: Wish) {
        if let Some(entry) = self.runs().get_mut(run) {
            let before = entry.wish.unwrap_or_default();
            entry.wish = Some(Wish {
                limits: wish.limits.or(before.limits),
                is_to_stop: wish.is_to_stop.or(before.is_to_stop),
            });
        }
        self.told();
    }

    /// Has whoever waits for something to do look again.
    pub(crate) fn told(&self) {
        self.wishes.send_modify(|count| *count += 1);
    }

    /// What is to be written down, once.
    pub(crate) fn take_wish(&self, run: &str) -> Option<Wish> {
        let mut runs = self.runs();
        runs.get_mut(run).and_then(|entry| entry.wish.take())
    }

    pub(crate) fn has_wish(&self, run: &str) -> bool {
        self.runs()
            .get(run)
            .is_some_and(|entry| entry.wish.is_some())
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
            .filter(|manifest| matches!(manifest.state, State::Queued | State::Running));
        let next = open.min_by_key(|manifest| {
            (
                manifest.state != State::Running,
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
            State::Running => self.hub.progress(manifest.epoch),
            _ => (0, 0),
        };
        let state = match manifest.state {
            State::Queued => v1::State::Queued,
            State::Running => v1::State::Running,
            State::Finished => v1::State::Finished,
            State::Cancelled => v1::State::Cancelled,
            State::Failed => v1::State::Failed,
        };
        let cost = self.accounts.cost(manifest);
        let projection = match manifest.state {
            State::Running => projection(manifest),
            _ => None,
        };
        let best = manifest
            .depths
            .iter()
            .map(|depth| depth.record.best_game_score);
        v1::RunStatus {
            name: manifest.name.clone(),
            state: state.into(),
            spec: serde_json::to_string(&manifest.spec).unwrap_or_default(),
            width: manifest.spec.width,
            shards: manifest.shards,
            depth: last.map_or(0, |last| last.depth),
            best_game_score: u32::from(best.max().unwrap_or(0)),
            expanded,
            parents,
            epoch: manifest.epoch,
            seconds: manifest.seconds,
            stored_bytes: manifest.stored_bytes(),
            note: match entry.note.is_empty() {
                true => manifest.note.clone(),
                false => entry.note.clone(),
            },
            result: manifest.outcome.as_ref().map(|outcome| v1::Result {
                score: outcome.score,
                pieces: outcome.pieces,
                replay: outcome.replay.clone(),
                lookups: outcome.lookups,
                keyframe_seconds: outcome.seconds,
            }),
            submitted_ms: manifest.submitted_ms,
            max_depth: manifest.max_depth.unwrap_or(0),
            cost: Some(cost.to_wire()),
            max_cost_micros: manifest.budget.max_cost_micros.unwrap_or(0),
            max_seconds: manifest.budget.max_seconds.unwrap_or(0),
            stopped_by: manifest.stopped_by.map_or("", StoppedBy::name).to_owned(),
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
        let cost = manifest.map(|manifest| self.accounts.cost(&manifest));
        alerts(run, workers, &self.hub.lately_lost(), cost.as_ref())
    }

    /// How the workers stand, with the shards they have of the run that is worked on.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let epoch = {
            let runs = self.runs();
            let running = runs.values().find(|e| e.manifest.state == State::Running);
            running.map_or(0, |entry| entry.manifest.epoch)
        };
        self.hub.statuses(epoch)
    }
}

fn record_to_wire(depth: &Depth) -> v1::DepthRecord {
    let record = &depth.record;
    v1::DepthRecord {
        depth: record.depth,
        count: record.count,
        digest: record.digest.clone(),
        best_score: record.best_score,
        median_score: record.median_score,
        worst_score: record.worst_score,
        best_game_score: u32::from(record.best_game_score),
        best_well: record.best_well.clone(),
        children: record.children,
        seconds: record.seconds,
        bytes: record.bytes,
        kept: record.kept,
        sent: depth.sent,
        sent_bytes: depth.sent_bytes,
        cost_micros: depth.cost_micros,
    }
}

/// Where a run may end.
fn projection(manifest: &Manifest) -> Option<Projection> {
    let mut pace = Pace::new(&manifest.spec, manifest.max_depth);
    let skipped = manifest.depths.len().saturating_sub(Pace::DEPTHS);
    for depth in &manifest.depths[skipped..] {
        pace.add(&depth.record);
    }
    pace.projection()
}

fn to_wire(projection: &Projection, cost: &Cost) -> v1::Projection {
    let spent = cost.micros();
    let until = |seconds: f64| {
        let more = cost.per_hour() as f64 / 3600.0 * seconds;
        spent.saturating_add(more as u64)
    };
    v1::Projection {
        depth_low: projection.depths.0,
        depth_high: projection.depths.1,
        seconds_low: projection.seconds.0,
        seconds_high: projection.seconds.1,
        micros_low: until(projection.seconds.0),
        micros_high: until(projection.seconds.1),
        judged_by: projection.judged_by.to_owned(),
    }
}
