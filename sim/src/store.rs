//! The simulated object store, with latency, failures, lost responses, late writes and stale lists.

use crate::checks::Checker;
use crate::faults::{Effect, INJECTED, SharedMode, StoreMode, Trigger};
use crate::machine::Machine;
use crate::process::Process;
use crate::rng::Rng;
use crate::trace::Trace;
use hatebeam_objects::faults::{After, Before, Call, FaultPlan, Hook, Operation};
use hatebeam_objects::{Memory, ObjectError, Objects, Options, Random};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Faults of the object store that are not specific to a machine.
#[derive(Debug)]
pub(crate) struct StoreFaults {
    trace: Arc<Trace>,
    ignores_conditions: bool,
    triggers: Mutex<Vec<Trigger>>,
    /// Sends each process that a trigger has stalled, with the time after which the process resumes.
    stalled: mpsc::UnboundedSender<(Arc<Process>, Duration)>,
}

impl StoreFaults {
    pub(crate) fn new(
        trace: Arc<Trace>,
        ignores_conditions: bool,
        stalled: mpsc::UnboundedSender<(Arc<Process>, Duration)>,
    ) -> Arc<StoreFaults> {
        Arc::new(StoreFaults {
            trace,
            ignores_conditions,
            triggers: Mutex::default(),
            stalled,
        })
    }

    fn triggers(&self) -> MutexGuard<'_, Vec<Trigger>> {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_trigger(&self, trigger: Trigger) {
        self.triggers().push(trigger);
    }

    pub(crate) fn clear(&self) {
        self.triggers().clear();
    }

    /// Removes the first trigger that fires at this request, and returns its effect.
    fn take_effect(&self, process: &Process, call: &Call<'_>, is_after: bool) -> Option<Effect> {
        let mut triggers = self.triggers();
        let at = triggers.iter_mut().position(|trigger| {
            let matches = process.name.starts_with(trigger.process)
                && trigger.operation == call.operation
                && call.key.contains(trigger.key)
                && trigger.is_after == is_after;
            if matches && trigger.skip > 0 {
                trigger.skip -= 1;
                return false;
            }
            matches
        })?;
        Some(triggers.remove(at).effect)
    }

    async fn apply_trigger(&self, process: &Arc<Process>, call: &Call<'_>, is_after: bool) {
        let Some(effect) = self.take_effect(process, call, is_after) else {
            return;
        };
        let text = format!("{effect:?} at {:?} {}", call.operation, call.key);
        self.trace.event(&process.name, text);
        match effect {
            Effect::Stall(time) => {
                process.stall();
                let _ = self.stalled.send((Arc::clone(process), time));
            }
            Effect::Crash => process.crash(),
            Effect::Panic => std::panic::panic_any(INJECTED),
        }
        // If the process was stalled, this task is polled again when the process resumes.
        sleep(Duration::from_millis(1)).await;
    }
}

/// The fault plan for the store requests of one process.
struct Plan {
    machine: String,
    process: Arc<Process>,
    store_mode: SharedMode,
    rng: Rng,
    faults: Arc<StoreFaults>,
    checker: Arc<Checker>,
}

/// The object store of the simulated world.
pub(crate) struct Store {
    pub(crate) memory: Memory,
    pub(crate) faults: Arc<StoreFaults>,
    pub(crate) checker: Arc<Checker>,
}

impl Store {
    /// Opens the store for a process.
    pub(crate) fn open(
        &self,
        machine: &Machine,
        process: &Arc<Process>,
    ) -> Result<Objects, ObjectError> {
        let rng = process.rng().fork();
        let options = Options {
            random: Random::seeded(rng.next()),
            ..Options::default()
        };
        let plan = Plan {
            machine: machine.name.clone(),
            process: Arc::clone(process),
            store_mode: Arc::clone(&machine.store_mode),
            rng,
            faults: Arc::clone(&self.faults),
            checker: Arc::clone(&self.checker),
        };
        Objects::with_faults(&self.memory, &options, Arc::new(plan))
    }
}

impl Plan {
    fn mode(&self) -> StoreMode {
        let mode = *self
            .store_mode
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if mode != StoreMode::Normal {
            self.checker.disturb(&self.machine);
        }
        mode
    }

    async fn before_call(&self, call: &Call<'_>) -> Before {
        self.faults.apply_trigger(&self.process, call, false).await;
        let mode = self.mode();
        sleep(self.rng.millis(mode.latency())).await;
        let chance = |of, per_mille| self.rng.chance(mode.per_mille(of, per_mille));
        if mode == StoreMode::Down {
            return Before::Fail(call.unavailable("connection refused"));
        }
        if chance(StoreMode::Failing, 300) {
            return Before::Fail(call.unavailable("503 Slow Down"));
        }
        let is_write = call.operation.is_write();
        if chance(StoreMode::Hanging, 100) || is_write && chance(StoreMode::Late, 200) {
            if is_write {
                self.checker.expect_late(&self.process, call.key);
            }
            return Before::Late(self.rng.millis(0..=100_000));
        }
        if call.operation == Operation::List && chance(StoreMode::StaleLists, 700) {
            return Before::Stale(self.rng.range(1..=20) as usize);
        }
        // A coordinator's startup probe must not detect that the store ignores conditions.
        match self.faults.ignores_conditions && !call.key.starts_with("probe") {
            true => Before::Unconditional,
            false => Before::Proceed,
        }
    }

    async fn after_call(&self, call: &Call<'_>, is_done: bool) -> After {
        self.faults.apply_trigger(&self.process, call, true).await;
        let mode = self.mode();
        sleep(self.rng.millis(mode.latency())).await;
        let per_mille = mode.per_mille(StoreMode::LosingAnswers, 400);
        if is_done && self.rng.chance(per_mille) {
            return After::Fail(call.unavailable("connection reset"));
        }
        After::Deliver
    }
}

impl FaultPlan for Plan {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        Box::pin(self.before_call(call))
    }

    fn after<'a>(
        &'a self,
        call: &'a Call<'a>,
        answer: Result<(), &'a ObjectError>,
    ) -> Hook<'a, After> {
        Box::pin(async move {
            self.checker.saw(&self.process, call, answer.is_ok()).await;
            let name = &self.process.name;
            let trace = &self.faults.trace;
            trace.detail(name, || {
                let result = answer.map_or_else(ToString::to_string, |()| "ok".to_owned());
                format!("store {:?} {} {result}", call.operation, call.key)
            });
            self.after_call(call, answer.is_ok()).await
        })
    }
}
