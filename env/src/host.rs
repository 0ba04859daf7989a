//! What stands in for the operating system.

use std::task::Waker;
use std::time::Duration;

/// Whether a task may be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The task is polled.
    Run,
    /// The process is stalled: the host wakes the task when the process resumes.
    Wait,
    /// The process has crashed: the task is dropped.
    Drop,
}

/// A simulated process, as [`Env`](crate::Env) sees it. A restarted process is a new host.
pub trait Host: Send + Sync + 'static {
    /// Returns the milliseconds since 1970 on this process's wall clock.
    fn wall_ms(&self) -> u64;

    /// Draws a random number that depends on the simulation's seed alone.
    fn random(&self) -> u64;

    /// Returns how long the next blocking work takes. The work runs inline after that time.
    fn blocking_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Adds a task and returns its identifier, which is unique in this process.
    fn add_task(&self) -> u64;

    /// Decides whether a task may be polled now. The host keeps the waker and wakes the task when the answer may have
    /// changed: a crash must wake every task so that it is dropped.
    fn admit(&self, task: u64, waker: &Waker) -> Admission;

    /// Removes a task that has ended or was dropped.
    fn remove_task(&self, task: u64);
}
