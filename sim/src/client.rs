//! The simulated clients. They submit runs, change limits, stop runs and drain workers. After the faults have ended,
//! they submit and change the runs until every search is complete.

use crate::learned;
use crate::network::spawn;
use crate::plan::Class;
use crate::serving::Serving;
use crate::world::World;
use hatebeam_coordinator::{Coordinator, LimitsChange, RequestError, Submission};
use hatebeam_runs::{EndReason, Limits, Manifest, RUNS, RunState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Time after which a drained worker may be used again.
const DRAINED: Duration = Duration::from_secs(5);
/// Timeout of a request.
const CALL: Duration = Duration::from_secs(30);
/// Pause before an unanswered request is repeated.
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum number of attempts per request.
const TRIES: u32 = 8;
/// Interval between checks of the runs after the faults have ended.
const LOOK: Duration = Duration::from_secs(5);

type Call = Pin<Box<dyn Future<Output = Result<(), RequestError>> + Send>>;

/// A request to a coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Submit { run: usize, max_depth: Option<u32> },
    Limit { run: usize, max_depth: Option<u32> },
    Stop(usize),
    Drain(usize),
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Done,
    /// The coordinator refused the request. A retry would be refused too.
    Refused,
    /// There was no answer, or the answer was an error after which a retry may succeed.
    Unanswered,
}

/// The clients of the simulated cluster.
pub(crate) struct Client {
    world: Arc<World>,
    /// Whether all events of the plan (the faults and client requests that the seed determines) have occurred.
    is_settling: AtomicBool,
}

impl Client {
    pub(crate) fn new(world: &Arc<World>) -> Client {
        Client {
            world: Arc::clone(world),
            is_settling: AtomicBool::new(false),
        }
    }

    /// Starts a task that makes a request up to [`TRIES`] times, until a coordinator answers or the plan's events have
    /// occurred.
    pub(crate) fn start(self: &Arc<Self>, request: Request) {
        let client = Arc::clone(self);
        spawn(async move {
            for _ in 0..TRIES {
                let asked = client.ask(request).await;
                if asked != Asked::Unanswered || client.is_settling.load(Relaxed) {
                    return;
                }
                sleep(PAUSE).await;
            }
        });
    }

    /// Makes a request once.
    async fn ask(&self, request: Request) -> Asked {
        let Some(serving) = self.choose() else {
            return Asked::Unanswered;
        };
        let trace = &self.world.trace;
        let call = self.call(request, serving.coordinator.clone());
        let answer = timeout(CALL, serving.env.spawn(call)).await;
        if let Request::Drain(worker) = request {
            self.undrain_later(&serving, worker);
        }
        match answer {
            Ok(Ok(Ok(()))) => {
                trace.event("client", format_args!("{request:?}: done"));
                Asked::Done
            }
            Ok(Ok(Err(error))) => {
                trace.event("client", format_args!("{request:?}: {error}"));
                match error {
                    RequestError::Unavailable(_) | RequestError::Timeout(_) => Asked::Unanswered,
                    _ => Asked::Refused,
                }
            }
            // The coordinator has crashed or is stalled.
            Ok(Err(_)) | Err(_) => {
                trace.event("client", format_args!("{request:?}: no answer"));
                Asked::Unanswered
            }
        }
    }

    /// Undrains a worker after [`DRAINED`], because runs may need it after the plan's events have occurred.
    fn undrain_later(&self, serving: &Serving, worker: usize) {
        let coordinator = serving.coordinator.clone();
        let name = self.world.workers[worker].name.clone();
        serving.env.spawn(async move {
            sleep(DRAINED).await;
            // An error means that the worker is not drained.
            let _ = coordinator.undrain(&name);
        });
    }

    /// Returns the coordinator that holds the lease, if it is serving. If the seed uses [`Class::StaleSubmission`],
    /// returns a random serving coordinator instead.
    fn choose(&self) -> Option<Serving> {
        let serving = self.world.serving.all();
        if self.world.plan.classes.contains(&Class::StaleSubmission) {
            return self.world.rng.pick(&serving).cloned();
        }
        let holder = self.world.checker.holder()?;
        let mut serving = serving.into_iter();
        serving.find(|one| one.process.name == holder)
    }

    fn call(&self, request: Request, coordinator: Coordinator) -> Call {
        let runs = &self.world.plan.runs;
        match request {
            Request::Submit { run, max_depth } => {
                let plan = &runs[run];
                let submission = Submission {
                    spec: plan.spec.clone(),
                    keep: plan.keep,
                    shards: Some(plan.shards),
                    limits: Limits {
                        max_depth,
                        ..Limits::default()
                    },
                    network: learned::file(&plan.spec),
                };
                Box::pin(async move { coordinator.submit(submission).await.map(drop) })
            }
            Request::Limit { run, max_depth } => {
                let name = runs[run].spec.name();
                let change = LimitsChange {
                    max_depth: Some(max_depth),
                    ..LimitsChange::default()
                };
                Box::pin(async move {
                    let changed = coordinator.limit(&name, change);
                    changed.await.map(drop)
                })
            }
            Request::Stop(run) => {
                let name = runs[run].spec.name();
                Box::pin(async move { coordinator.cancel(&name).await.map(drop) })
            }
            Request::Drain(worker) => {
                let name = self.world.workers[worker].name.clone();
                Box::pin(async move { coordinator.drain(&name) })
            }
        }
    }

    /// Returns the index and the last manifest of each run whose manifest the plan has not damaged. The manifest is
    /// `None` if no manifest has been written yet.
    fn expected(&self) -> Vec<(usize, Option<Manifest>)> {
        let checker = &self.world.checker;
        let runs = self.world.plan.runs.iter().enumerate();
        let named = runs.map(|(at, run)| (at, run.spec.name()));
        let sound = named.filter(|(_, name)| !checker.is_damaged(name));
        sound
            .map(|(at, name)| (at, checker.manifest(&name)))
            .collect()
    }

    /// Makes requests until the search of every run is complete. Records a violation for each run that is still open
    /// after `within`.
    pub(crate) async fn settle(&self, within: Duration) {
        self.is_settling.store(true, Relaxed);
        let deadline = Instant::now() + within;
        loop {
            let mut open = Vec::new();
            for (run, manifest) in self.expected() {
                match self.next_request(run, manifest.as_ref()) {
                    Next::Nothing => continue,
                    Next::Ask(request) => drop(self.ask(request).await),
                    Next::Wait => {}
                }
                open.push(run);
            }
            if open.is_empty() {
                return;
            }
            if Instant::now() > deadline {
                return self.stuck(&open);
            }
            sleep(LOOK).await;
        }
    }

    fn stuck(&self, open: &[usize]) {
        for &run in open {
            let name = self.world.plan.runs[run].spec.name();
            let manifest = self.world.checker.manifest(&name);
            let state = manifest.map_or("unknown".to_owned(), |manifest| {
                let (epoch, depths) = (manifest.epoch, manifest.depths.len());
                format!("{} in epoch {epoch} with {depths} depths", manifest.state)
            });
            let serving = self.choose();
            let status = serving.and_then(|serving| serving.coordinator.run(&name));
            let note = status.map_or(String::new(), |status| status.note);
            let what = format!("{name} did not finish: {state}; {note}");
            self.world.checker.violate(what);
        }
    }

    /// Checks the results of the finished runs, and the delivery of their end events, which report the end of a search.
    pub(crate) async fn check(&self) {
        // Wait until pending events are delivered. An event that a hook has refused stays in the outbox (the events
        // that are stored for delivery) until the next start of a coordinator.
        sleep(LOOK).await;
        let has_store_faults = self.world.plan.classes.contains(&Class::Store);
        for (_, manifest) in self.expected() {
            let Some(manifest) = manifest else {
                continue;
            };
            if self.cannot_finish(&manifest) {
                continue;
            }
            self.world.checker.check_end(&manifest).await;
            // If the store was unavailable, the coordinator may have lost the event before it was in the outbox.
            let is_known = has_store_faults || self.world.inbox.has_end_of(&manifest.name);
            let is_staged = self.is_staged(&manifest.name).await;
            if !is_known && !is_staged {
                let what = format!("no hook received the end event of {}", manifest.name);
                self.world.checker.violate(what);
            }
        }
    }

    /// Whether an event of a run is still in the outbox.
    async fn is_staged(&self, run: &str) -> bool {
        let prefix = format!("events/{run}-");
        let staged = self.world.checker.direct().list("events").await;
        staged.is_ok_and(|staged| staged.iter().any(|entry| entry.key.starts_with(&prefix)))
    }

    /// Deletes the manifest of a run if `is_gone`, and overwrites it with invalid data otherwise. Does nothing if the
    /// run is not queued.
    pub(crate) fn damage_manifest(&self, run: usize, is_gone: bool) {
        let name = self.world.plan.runs[run].spec.name();
        let key = format!("{RUNS}/{name}/manifest.json");
        let checker = Arc::clone(&self.world.checker);
        spawn(async move {
            let queued = checker.manifest(&name);
            if !queued.is_some_and(|manifest| manifest.state == RunState::Queued) {
                return;
            }
            checker.damage(&name);
            let damaged = match is_gone {
                true => checker.direct().delete(&key).await,
                false => checker.direct().put(&key, "{".into()).await,
            };
            if let Err(error) = damaged {
                checker.violate(error.to_string());
            }
        });
    }

    /// Deletes a table of the last committed depth of a run.
    pub(crate) fn damage_table(&self, run: usize) {
        let name = self.world.plan.runs[run].spec.name();
        let checker = Arc::clone(&self.world.checker);
        spawn(async move {
            let Some(manifest) = checker.manifest(&name) else {
                return;
            };
            let Some(last) = manifest.last() else {
                return;
            };
            let list = manifest.tables(checker.direct(), last).await;
            if let Some(table) = list.ok().and_then(|list| list.tables.into_iter().next()) {
                let key = format!("{}/{}", manifest.prefix(), table.key);
                checker.delete_table(&name, last.record.depth, &key);
                let _ = checker.direct().delete(&key).await;
            }
        });
    }
}

/// The next step toward the completion of a run.
enum Next {
    /// No step is needed: the run is complete, or it cannot be completed.
    Nothing,
    /// The run is open and needs no change.
    Wait,
    Ask(Request),
}

impl Client {
    /// Whether a run has failed because too few workers have enough memory.
    fn cannot_finish(&self, manifest: &Manifest) -> bool {
        self.world.lacks_memory() && manifest.note.contains("workers were lost")
    }

    fn next_request(&self, run: usize, manifest: Option<&Manifest>) -> Next {
        let max_depth = None;
        let submit = Request::Submit { run, max_depth };
        let Some(manifest) = manifest else {
            return Next::Ask(submit);
        };
        match manifest.state {
            RunState::Finished if manifest.end == Some(EndReason::Over) => Next::Nothing,
            RunState::Failed if self.cannot_finish(manifest) => Next::Nothing,
            RunState::Finished | RunState::Cancelled | RunState::Failed => Next::Ask(submit),
            RunState::Queued | RunState::Running => {
                if manifest.limits != Limits::default() {
                    Next::Ask(Request::Limit { run, max_depth })
                } else if manifest.stop_requested {
                    Next::Ask(submit)
                } else {
                    Next::Wait
                }
            }
        }
    }
}
