//! Upper bounds of the time that may be charged for machines and runs.

use crate::process::Clock;
use hatebeam_cost::UsageLedger;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Tolerance in milliseconds, because a ledger counts whole milliseconds.
const SLACK_MS: u64 = 5;

/// Upper bounds of the time that may be charged: the time that has passed, and for each takeover the difference of the
/// coordinators' wall clocks.
#[derive(Debug)]
pub(crate) struct Presence {
    clocks: Vec<Arc<Clock>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Worker processes, by name and start time.
    since: BTreeMap<(String, u64), Begun>,
    /// The simulation.
    all: Option<Begun>,
    /// The highest reading of any clock.
    last_ms: u64,
}

/// When something began.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Instant,
    /// The lowest reading of any clock since then.
    least_ms: u64,
}

impl Begun {
    fn now(least_ms: u64) -> Begun {
        let at = Instant::now();
        Begun { at, least_ms }
    }
}

impl Presence {
    pub(crate) fn new(clocks: Vec<Arc<Clock>>) -> Presence {
        let first_ms = clocks.iter().map(|clock| clock.read_ms()).min();
        let state = State {
            all: first_ms.map(Begun::now),
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
        let State { since, all, .. } = &mut *state;
        for begun in since.values_mut().chain(all) {
            begun.least_ms = least.min(begun.least_ms);
        }
        least
    }

    /// Records the start of a worker process.
    pub(crate) fn started(&self, name: &str, started_ms: u64) {
        let least = self.read();
        let key = (name.to_owned(), started_ms);
        self.state().since.entry(key).or_insert(Begun::now(least));
    }

    /// Checks a ledger, and returns a description if it charges too much time. `resumed` is the number of times that
    /// charging was resumed by another process, or after the ledger was closed.
    pub(crate) fn excess(&self, ledger: &UsageLedger, resumed: u64) -> Option<String> {
        self.read();
        let state = self.state();
        let most = |begun: Begun| {
            let passed = begun.at.elapsed().as_millis() as u64;
            let by_clocks = state.last_ms.saturating_sub(begun.least_ms);
            let skew = by_clocks.saturating_sub(passed);
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
