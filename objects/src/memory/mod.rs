//! A store in the memory of this process, for tests and simulations.
//!
//! The store behaves like S3: it has conditional writes, versions that depend only on the bytes, sorted lists, and
//! metadata with the mark of the write that stored an object. It spawns no threads or tasks.

mod client;
mod contents;

pub(crate) use client::Client;
use contents::Contents;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Name of every store in memory, in errors and in [`Objects::location`](crate::Objects::location).
pub(crate) const STORE: &str = "memory";

/// The contents of a store in memory. Clones share these contents.
///
/// Any number of [`Objects`](crate::Objects) values can be opened for one `Memory`. Each of them is a client
/// with separate options, counters and faults.
///
/// # Examples
///
/// ```
/// use hatebeam_objects::{Memory, Objects, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), hatebeam_objects::ObjectError> {
/// let memory = Memory::new();
/// let one = Objects::in_memory(&memory, &Options::default())?;
/// let other = Objects::in_memory(&memory, &Options::default())?;
/// one.put("runs/17/manifest", "{}".into()).await?;
/// assert_eq!(other.get("runs/17/manifest").await?.0, "{}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    contents: Contents,
    late: Vec<Late>,
}

/// A delayed write. Its client gets no response.
struct Late {
    due: Instant,
    apply: Box<dyn FnOnce(&mut Contents) + Send>,
}

impl Memory {
    /// Maximum number of changes that a [stale](crate::faults::Before::Stale) read can miss.
    pub const HISTORY: usize = 1024;

    /// Creates an empty store.
    pub fn new() -> Memory {
        Memory::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the late writes that are due, then runs an operation on the contents.
    fn with<T>(&self, apply: impl FnOnce(&mut Contents) -> T) -> T {
        let mut state = self.state();
        if !state.late.is_empty() {
            state.apply_due(Instant::now());
        }
        apply(&mut state.contents)
    }

    /// Returns the contents as they were before the last `changes` changes.
    fn before_changes(&self, changes: usize) -> Contents {
        self.with(|contents| contents.before_changes(changes))
    }

    fn apply_late(&self, delay: Duration, apply: impl FnOnce(&mut Contents) + Send + 'static) {
        let due = Instant::now() + delay;
        let mut state = self.state();
        // Writes that are due at the same time keep their order.
        let at = state.late.partition_point(|late| late.due <= due);
        let apply = Box::new(apply);
        state.late.insert(at, Late { due, apply });
    }
}

impl State {
    fn apply_due(&mut self, now: Instant) {
        let due = self.late.partition_point(|late| late.due <= now);
        for late in self.late.drain(..due) {
            (late.apply)(&mut self.contents);
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.state().contents.len();
        f.debug_struct("Memory")
            .field("objects", &objects)
            .finish_non_exhaustive()
    }
}
