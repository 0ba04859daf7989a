//! The interface of simulated processes.

use std::task::Waker;
use std::time::Duration;

/// A host's decision on whether a task may be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The task may be polled.
    Run,
    /// The process is stalled. The host wakes the task when the process resumes.
    Wait,
    /// The process has crashed, so the task must be dropped.
    Drop,
}

/// A simulated process that replaces the operating system in an [`Env`](crate::Env). Each restart of the process
/// creates a new `Host`.
pub trait Host: Send + Sync + 'static {
    /// Returns the time of this process's wall clock, in milliseconds since 1970.
    fn wall_ms(&self) -> u64;

    /// Returns a random number that depends only on the simulation's seed.
    fn random(&self) -> u64;

    /// Returns the simulated duration of the next blocking operation. The operation runs inline after this delay.
    fn blocking_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Adds a task and returns its identifier, which is unique in this process.
    fn add_task(&self) -> u64;

    /// Decides whether a task may be polled now. The host must keep the waker and wake the task when the
    /// decision may have changed. In particular, a crash must wake every task so that it is dropped.
    fn admit(&self, task: u64, waker: &Waker) -> Admission;

    /// Removes a task that has ended or has been dropped.
    fn remove_task(&self, task: u64);
}
