//! Helpers for the unit tests.

use crate::costs::Cost;
use crate::registry::{Expansion, WorkerState, WorkerStatus};
use crate::status::RunStatus;
use hatebeam_cost::{Machine, Micros};
use hatebeam_objects::faults::{After, Before, Call, FaultPlan, Hook, Operation};
use hatebeam_objects::{Memory, ObjectError, Objects, Options, Random};
use hatebeam_runs::{CommittedDepth, Manifest, Retention, RunSpec, RunState, first_record};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn options() -> Options {
    Options {
        random: Random::seeded(1),
        ..Options::default()
    }
}

/// Opens a store in memory without faults.
pub(crate) fn direct(memory: &Memory) -> Objects {
    Objects::in_memory(memory, &options()).unwrap()
}

/// Opens a store in memory whose requests are subject to a fault plan.
pub(crate) fn faulty(memory: &Memory, plan: Arc<dyn FaultPlan>) -> Objects {
    Objects::with_faults(memory, &options(), plan).unwrap()
}

/// A predicate that selects the calls that a fault affects.
type Selection = Box<dyn Fn(&Call<'_>) -> bool + Send + Sync>;

/// Faults of an object store that a test can switch on and off.
#[derive(Default)]
pub(crate) struct Faults {
    lost: Mutex<Option<Selection>>,
    failing: Mutex<Option<Selection>>,
    /// The next selected call finds no object.
    missing: Mutex<Option<Selection>>,
    /// Delay before each attempt of a call.
    delay: Mutex<Duration>,
}

impl Faults {
    pub(crate) fn new() -> Arc<Faults> {
        Arc::default()
    }

    /// Makes writes return an error although they are applied. Also makes `Head` requests fail, since a client could
    /// use them to check whether a write was applied.
    pub(crate) fn lose_answers(&self) {
        let select =
            |call: &Call<'_>| call.operation.is_write() || call.operation == Operation::Head;
        *self.lost.lock().unwrap() = Some(Box::new(select));
    }

    /// Makes all operations fail without effect.
    pub(crate) fn fail_all(&self) {
        self.fail(|_| true);
    }

    /// Makes the selected operations fail without effect.
    pub(crate) fn fail(&self, select: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static) {
        *self.failing.lock().unwrap() = Some(Box::new(select));
    }

    /// Makes the next selected operation find no object.
    pub(crate) fn miss_once(&self, select: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static) {
        *self.missing.lock().unwrap() = Some(Box::new(select));
    }

    /// Returns whether an operation selected by [`Faults::miss_once`] has found no object.
    pub(crate) fn has_missed(&self) -> bool {
        self.missing.lock().unwrap().is_none()
    }

    pub(crate) fn delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    pub(crate) fn end(&self) {
        *self.lost.lock().unwrap() = None;
        *self.failing.lock().unwrap() = None;
        *self.delay.lock().unwrap() = Duration::ZERO;
    }
}

fn selects(selection: &Mutex<Option<Selection>>, call: &Call<'_>) -> bool {
    let selection = selection.lock().unwrap();
    selection.as_ref().is_some_and(|select| select(call))
}

impl FaultPlan for Faults {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        let delay = *self.delay.lock().unwrap();
        let fails = selects(&self.failing, call);
        let is_missing = selects(&self.missing, call);
        if is_missing {
            *self.missing.lock().unwrap() = None;
        }
        Box::pin(async move {
            if delay > Duration::ZERO {
                tokio::time::sleep(delay).await;
            }
            if fails {
                return Before::Fail(call.unavailable("no route to host"));
            }
            if is_missing {
                return Before::Fail(ObjectError::NotFound {
                    store: "memory".to_owned(),
                    key: call.key.to_owned(),
                });
            }
            Before::Proceed
        })
    }

    fn after<'a>(&'a self, call: &'a Call<'a>, _: Result<(), &'a ObjectError>) -> Hook<'a, After> {
        let is_lost = selects(&self.lost, call);
        Box::pin(async move {
            if is_lost {
                return After::Fail(call.unavailable("the connection was reset"));
            }
            After::Deliver
        })
    }
}

pub(crate) fn spec() -> RunSpec {
    RunSpec::new(
        10,
        EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off),
    )
}

/// Returns the manifest of a queued run with this many committed depths, each with one well.
pub(crate) fn manifest(name: &str, depths: u32) -> Manifest {
    let mut manifest = Manifest::new(name.to_owned(), spec(), Retention::All, 1, 0);
    for depth in 0..depths {
        let mut record = first_record(&manifest.spec).unwrap();
        record.depth = depth;
        manifest.depths.push(CommittedDepth {
            record,
            sent: 0,
            sent_bytes: 0,
            tables: None,
            cost: Micros::ZERO,
            waiting: Micros::ZERO,
        });
    }
    manifest
}

pub(crate) fn run_status(state: RunState, note: &str) -> RunStatus {
    let mut manifest = manifest("r", 1);
    manifest.state = state;
    RunStatus {
        note: note.to_owned(),
        expansion: Expansion::default(),
        cost: Cost::without_prices(&manifest),
        projection: None,
        manifest: Arc::new(manifest),
    }
}

pub(crate) fn worker_status(name: &str) -> WorkerStatus {
    WorkerStatus {
        name: name.to_owned(),
        address: String::new(),
        state: WorkerState::Idle,
        note: String::new(),
        threads: 1,
        shards: 0,
        expanded: 0,
        parents: 0,
        rss_bytes: 0,
        memory_bytes: 0,
        disk_free_bytes: 0,
        disk_bytes: 0,
        silent: Duration::ZERO,
        slow: false,
        machine: Machine::default(),
        uploading_bytes: 0,
        uploads_behind: false,
    }
}
