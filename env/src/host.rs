//! The interface of simulated processes.

use std::task::Waker;
use std::time::Duration;

/// The result of [`Host::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The task may be polled.
    Run,
    /// The process is stalled, so the task must wait. The host wakes the task when the process resumes.
    Wait,
    /// The process has crashed, so the task must be dropped.
    Drop,
}

/// A simulated process that replaces the operating system in an [`Env`](crate::Env). Each restart of the process
/// creates a new `Host`.
pub trait Host: Send + Sync + 'static {
    /// Returns the time of the process's wall clock, in milliseconds since 1970.
    fn wall_ms(&self) -> u64;

    /// Returns a random number that depends only on the simulation's seed.
    fn random(&self) -> u64;

    /// Returns the simulated duration of the next blocking operation.
    fn blocking_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Adds a task and returns its identifier, which is unique within the process.
    fn add_task(&self) -> u64;

    /// Decides whether a task may be polled now. The host must keep the waker and wake the task when the
    /// result may have changed. In particular, a crash must wake every task, so that the task is dropped.
    fn admit(&self, task: u64, waker: &Waker) -> Admission;

    /// Removes a task that has ended or has been dropped.
    fn remove_task(&self, task: u64);
}
