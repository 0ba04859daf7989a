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
///
/// The difference of two clocks is that of their offsets, which are readings minus the time since the simulation began.
/// The difference of two readings at different times is no bound: the time in between may hide that one clock is behind.
#[derive(Debug)]
pub(crate) struct Presence {
    clocks: Vec<Arc<Clock>>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Worker processes, by name and start time.
    since: BTreeMap<(String, u64), Begun>,
    /// The simulation.
    all: Option<Begun>,
    /// The greatest offset of any clock so far.
    greatest_ms: i64,
}

/// When something began.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Instant,
    /// The least offset of any clock since then.
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

    /// Reads the clocks, and returns the least offset. Must be called before and after a clock jumps.
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
