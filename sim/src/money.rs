//! Upper bounds on the time that may be charged for machines and runs.

use crate::process::Clock;
use hatebeam_cost::UsageLedger;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Rounding tolerance in milliseconds: a ledger counts whole milliseconds.
const SLACK_MS: u64 = 5;

/// Upper bounds on the time that may be charged. A bound is the time that has passed, plus the greatest difference
/// between the coordinators' wall clocks for each time that charging is resumed.
///
/// Clocks are compared by their offsets. An offset is a clock's reading minus the time since the simulation began.
/// Readings from different times cannot be compared directly: the time between them may hide that one clock is behind.
#[derive(Debug)]
pub(crate) struct Presence {
    clocks: Vec<Arc<Clock>>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Starts of the worker processes, by name and start time on the worker's clock.
    since: BTreeMap<(String, u64), Begun>,
    /// Start of the simulation.
    all: Option<Begun>,
    /// Greatest offset of any clock so far, in milliseconds.
    greatest_ms: i64,
}

/// The start of a process or of the simulation.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Instant,
    /// Least offset of any clock since the start, in milliseconds.
    least_ms: i64,
}

impl Begun {
    fn now(least_ms: i64) -> Begun {
        let at = Instant::now();
        Begun { at, least_ms }
    }
}

impl Presence {
    pub(crate) fn new(clocks: Vec<Arc<Clock>>) -> Presence {
        let presence = Presence {
            clocks,
            began: Instant::now(),
            state: Mutex::default(),
        };
        let least = presence.read();
        presence.state().all = Some(Begun::now(least));
        presence
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the extreme offsets, and returns the current least offset. Must be called before and after a clock
    /// jumps.
    pub(crate) fn read(&self) -> i64 {
        let passed = self.began.elapsed().as_millis() as i64;
        let offsets = self
            .clocks
            .iter()
            .map(|clock| clock.read_ms() as i64 - passed);
        let offsets: Vec<i64> = offsets.collect();
        let least = offsets.iter().copied().min().unwrap_or_default();
        let greatest = offsets.into_iter().max().unwrap_or_default();
        let mut state = self.state();
        state.greatest_ms = state.greatest_ms.max(greatest);
        let State { since, all, .. } = &mut *state;
        for begun in since.values_mut().chain(all) {
            begun.least_ms = least.min(begun.least_ms);
        }
        least
    }

    pub(crate) fn started(&self, name: &str, started_ms: u64) {
        let least = self.read();
        let key = (name.to_owned(), started_ms);
        self.state().since.entry(key).or_insert(Begun::now(least));
    }

    /// Returns a description of the excess if a ledger charges too much time. `resumed` is the maximum number of
    /// times that charging was resumed, either by another process or after it had been stopped.
    pub(crate) fn excess(&self, ledger: &UsageLedger, resumed: u64) -> Option<String> {
        self.read();
        let state = self.state();
        let most = |begun: Begun| {
            let passed = begun.at.elapsed().as_millis() as u64;
            let skew = state.greatest_ms.abs_diff(begun.least_ms);
            passed + resumed * skew + (resumed + 1) * SLACK_MS
        };
        let all = state.all?;
        let of_run = most(all);
        if ledger.milliseconds > of_run {
            let charged = ledger.milliseconds;
            return Some(format!(
                "the run is charged for {charged} ms, but only {of_run} ms have passed"
            ));
        }
        ledger.machines.iter().find_map(|usage| {
            let key = (usage.name.clone(), usage.started_ms);
            let most = most(state.since.get(&key).copied().unwrap_or(all));
            let (name, charged) = (&usage.name, usage.milliseconds);
            (charged > most).then(|| {
                format!("{name} is charged for {charged} ms, but was running for {most} ms")
            })
        })
    }
}
