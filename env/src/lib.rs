//! Access to the clock, random numbers and tasks, either real or simulated.
//!
//! The coordinator and the worker access the clock, random numbers and the task scheduler only through an
//! [`Env`]. [`Env::system`] uses the operating system and tokio. [`Env::with_host`] uses a simulated process (a
//! [`Host`]). In this way, a simulation runs many processes on one thread, and stalls and crashes each of them
//! independently.
//!
//! Tokio's `sleep`, `timeout` and `interval` are exceptions: the coordinator and the worker call them directly. With
//! tokio's paused clock, these functions and [`Env::now`] use virtual time. The module [`watch`] replaces tokio's `watch`
//! channel, because tokio's channel wakes its receivers in random order.
//!
//! # Examples
//!
//! ```
//! use hatebeam_env::Env;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), hatebeam_env::Panicked> {
//! let env = Env::system();
//! let began = env.now();
//! let sum = env.run_blocking(|| (1..=100).sum::<u32>()).await?;
//! assert_eq!(sum, 5050);
//! assert!(env.now() >= began);
//! # Ok(())
//! # }
//! ```

mod guard;
mod host;
pub mod watch;

pub use host::{Admission, Host};

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The clock, random numbers and tasks of one process. Clones belong to the same process.
#[derive(Clone)]
pub struct Env {
    /// The simulated process, or `None` for the operating system.
    host: Option<Arc<dyn Host>>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.as_ref().map_or("system", |_| "host");
        f.debug_tuple("Env").field(&host).finish()
    }
}

/// Error returned if blocking work panics or is cancelled.
#[derive(Debug, Error)]
#[error("blocking work {0}")]
pub struct Panicked(String);

impl Panicked {
    fn new(payload: &(dyn Any + Send)) -> Panicked {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Panicked(format!("panicked: {}", text.unwrap_or("no message")))
    }
}

impl Env {
    /// Returns the environment of the operating system. Its tasks require a tokio runtime.
    pub fn system() -> Env {
        Env { host: None }
    }

    /// Returns the environment of a process simulated by `host`.
    pub fn with_host(host: Arc<dyn Host>) -> Env {
        Env { host: Some(host) }
    }

    /// Returns the monotonic time, which is virtual if tokio's clock is paused.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns the time of the process's wall clock, in milliseconds since 1970. The clock may jump forwards
    /// or backwards.
    pub fn wall_ms(&self) -> u64 {
        match &self.host {
            Some(host) => host.wall_ms(),
            None => system_wall_ms(),
        }
    }

    /// Returns a random number. Results of a search must not depend on it.
    pub fn random(&self) -> u64 {
        match &self.host {
            Some(host) => host.random(),
            None => system_random(),
        }
    }

    /// Wraps a future so that it belongs to this process.
    ///
    /// In the operating system's environment, the wrapper only polls the future. With a host, the
    /// wrapper does not poll the future while the process is stalled, and drops it when the process crashes.
    /// After a crash, the wrapper remains pending indefinitely.
    pub fn guard<F>(&self, future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
    {
        let host = self.host.clone();
        async move {
            match host {
                None => future.await,
                Some(host) => guard::Guarded::new(host, future).await,
            }
        }
    }

    /// Spawns a task that belongs to this process.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        #[allow(
            clippy::disallowed_methods,
            reason = "`guard` makes the future belong to the process"
        )]
        tokio::spawn(self.guard(future))
    }

    /// Runs blocking work on a thread of tokio's blocking pool. With a host, the work runs in a task instead, after the
    /// host's [blocking delay](Host::blocking_delay). If the returned future is dropped after its first poll, the work
    /// still runs to its end.
    ///
    /// # Errors
    /// Returns [`Panicked`] if the work panics, or if the runtime shuts down before the work has run.
    pub async fn run_blocking<T, F>(&self, work: F) -> Result<T, Panicked>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let worked = match &self.host {
            None => {
                #[allow(clippy::disallowed_methods, reason = "`Env` itself wraps the pool")]
                let task = tokio::task::spawn_blocking(work);
                task.await
            }
            Some(host) => {
                let delay = host.blocking_delay();
                let task = self.spawn(async move {
                    if delay > Duration::ZERO {
                        tokio::time::sleep(delay).await;
                    }
                    catch_unwind(AssertUnwindSafe(work))
                });
                match task.await {
                    Ok(Ok(value)) => Ok(value),
                    Ok(Err(payload)) => return Err(Panicked::new(&*payload)),
                    Err(error) => Err(error),
                }
            }
        };
        worked.map_err(|error| match error.try_into_panic() {
            Ok(payload) => Panicked::new(&*payload),
            Err(_) => Panicked("was cancelled, because the program is shutting down".to_owned()),
        })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "`Env` itself wraps the real clock"
)]
fn system_wall_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn system_random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let mut bytes = [0; 8];
    match getrandom::getrandom(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // The standard library seeds `RandomState` with its own random numbers.
        Err(_) => RandomState::new().hash_one(0),
    }
}
