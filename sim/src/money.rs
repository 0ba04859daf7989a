//! How long machines were there, for the check of what is charged.

use crate::process::Clock;
use hatebeam_cost::UsageLedger;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The greatest part of a charge that presence does not explain: a ledger counts whole milliseconds.
const SLACK_MS: u64 = 5;

/// Bounds of what may be charged, by the wall clocks of the coordinators, which charge by them.
#[derive(Debug)]
pub(crate) struct Presence {
    clocks: Vec<Arc<Clock>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By name of the worker and start of its process: the least reading of any clock since then.
    since: BTreeMap<(String, u64), u64>,
    /// The least reading of all.
    first_ms: u64,
    /// The greatest reading of all.
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

    /// Reads the clocks. Must be called before and after a clock jumps.
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

    /// Notes the start of a worker's process.
    pub(crate) fn started(&self, name: &str, started_ms: u64) {
        let least = self.read();
        let key = (name.to_owned(), started_ms);
        self.state().since.entry(key).or_insert(least);
    }

    /// Returns what a ledger charges although nothing was there. The ledger has been closed this many times: after that
    /// it starts again at whatever the clock says.
    pub(crate) fn excess(&self, ledger: &UsageLedger, closed: u64) -> Option<String> {
        self.read();
        let state = self.state();
        let most = |since: u64| (state.last_ms.saturating_sub(since) + SLACK_MS) * (closed + 1);
        let of_run = most(state.first_ms);
        if ledger.milliseconds > of_run {
            let charged = ledger.milliseconds;
            return Some(format!(
                "{charged} ms are charged, and {of_run} ms have passed"
            ));
        }
        ledger.machines.iter().find_map(|usage| {
            let key = (usage.name.clone(), usage.started_ms);
            let most = most(state.since.get(&key).copied().unwrap_or(state.first_ms));
            let (name, charged) = (&usage.name, usage.milliseconds);
            (charged > most)
                .then(|| format!("{charged} ms are charged for {name}, which was there {most} ms"))
        })
    }
}
