//! The faults that an object store can have toward the machines.

use hatebeam_objects::faults::Operation;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Behavior of the object store toward one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreMode {
    /// No faults and a low latency.
    Normal,
    /// A latency of up to 2 seconds in each direction.
    Slow,
    /// Every operation fails with a transient error.
    Down,
    /// Some operations fail with a transient error.
    Failing,
    /// Some responses are lost after the store has executed the operation.
    LosingAnswers,
    /// Some writes get no response, and are applied after a delay of up to 100 seconds.
    Late,
    /// Some operations get no response. Writes among them are applied after a delay of up to 100 seconds.
    Hanging,
    /// Some lists do not contain the most recent changes.
    StaleLists,
}

impl StoreMode {
    /// Returns the range of the latency in each direction, in milliseconds.
    pub(crate) fn latency(self) -> RangeInclusive<u64> {
        match self {
            StoreMode::Slow => 100..=2000,
            _ => 1..=12,
        }
    }

    /// Returns `per_mille` if the mode is `of`, and 0 otherwise.
    pub(crate) fn per_mille(self, of: StoreMode, per_mille: u64) -> u64 {
        match self == of {
            true => per_mille,
            false => 0,
        }
    }
}

/// The effect of a [`Trigger`] on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The process stalls for this time.
    Stall(Duration),
    /// The process crashes.
    Crash,
    /// The task that makes the request panics.
    Panic,
}

/// A fault that occurs once, at a specific request to the object store.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    /// Prefix of the names of matching processes.
    pub(crate) process: &'static str,
    pub(crate) operation: Operation,
    /// Substring of matching keys.
    pub(crate) key: &'static str,
    /// Number of matching requests that are skipped before the fault occurs.
    pub(crate) skip: u32,
    /// Whether the fault occurs after the store has executed the operation, rather than before.
    pub(crate) is_after: bool,
    pub(crate) effect: Effect,
}

/// Payload of an injected panic.
pub(crate) const INJECTED: &str = "injected panic";

/// The [`StoreMode`] of one machine, shared with the open stores of its processes.
pub(crate) type SharedMode = Arc<Mutex<StoreMode>>;

pub(crate) fn set_mode(store_mode: &SharedMode, mode: StoreMode) {
    *store_mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
}
