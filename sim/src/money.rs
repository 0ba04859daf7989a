//! Upper bounds of the time that may be charged for machines and runs.

use crate::process::Clock;
use hatebeam_cost::UsageLedger;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tolerance in milliseconds, because a ledger counts whole milliseconds.
const SLACK_MS: u64 = 5;

/// Upper bounds of the time that may be charged. A coordinator measures time with its wall clock, so the bounds follow
/// from the coordinators' clocks.
#[derive(Debug)]
pub(crate) struct Presence {
    clocks: Vec<Arc<Clock>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For each worker process, by name and start time: the lowest reading of any clock since the process started.
    since: BTreeMap<(String, u64), u64>,
    /// The lowest reading of any clock.
    first_ms: u64,
    /// The highest reading of any clock.
    last_ms: u64,
}

impl Presence {
    pub(crate) fn new(clocks: Vec<Arc<Clock>>) -> Presence {
        let first_ms = clocks.iter().map(|clock| clock.read_ms()).min();
        let state = State {
            first_ms: first_ms.unwrap_or_default(),
            ..State::default()
        };
        Presence {
            clocks,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the clocks, and returns the lowest reading. Must be called before and after a clock jumps.
    pub(crate) fn read(&self) -> u64 {
        let readings: Vec<u64> = self.clocks.iter().map(|clock| clock.read_ms()).collect();
        let least = readings.iter().copied().min().unwrap_or_default();
        let greatest = readings.into_iter().max().unwrap_or_default();
        let mut state = self.state();
        state.last_ms = state.last_ms.max(greatest);
        state.first_ms = state.first_ms.min(least);
        for since in state.since.values_mut() {
            *since = least.min(*since);
        }
        least
    }

    /// Records the start of a worker process.
    pub(crate) fn started(&self, name: &str, started_ms: u64) {
        let least = self.read();
        let key = (name.to_owned(), started_ms);
        self.state().since.entry(key).or_insert(least);
    }

    /// Checks a ledger, and returns a description if it charges too much time. `closed` is the number of times that the
    /// ledger was closed. After each close, charging may restart at any clock reading, so the bounds apply to each
    /// period.
    pub(crate) fn excess(&self, ledger: &UsageLedger, closed: u64) -> Option<String> {
        self.read();
        let state = self.state();
        let most = |since: u64| (state.last_ms.saturating_sub(since) + SLACK_MS) * (closed + 1);
        let of_run = most(state.first_ms);
        if ledger.milliseconds > of_run {
            let charged = ledger.milliseconds;
            return Some(format!(
                "the run is charged for {charged} ms, but only {of_run} ms have passed"
            ));
        }
        ledger.machines.iter().find_map(|usage| {
            let key = (usage.name.clone(), usage.started_ms);
            let most = most(state.since.get(&key).copied().unwrap_or(state.first_ms));
            let (name, charged) = (&usage.name, usage.milliseconds);
            (charged > most).then(|| {
                format!("{name} is charged for {charged} ms, but was running for {most} ms")
            })
        })
    }
}
