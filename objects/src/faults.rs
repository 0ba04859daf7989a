//! Fault injection for stores in memory.
//!
//! A simulation implements [`FaultPlan`] and opens its stores with [`Objects::with_faults`]. The plan has two hooks,
//! which choose faults before and after each attempt of an operation:
//!
//! | fault | injection |
//! |---|---|
//! | latency | call `tokio::time::sleep` in a hook; an attempt ends after [`Options::timeout`] |
//! | unreachable, throttled | [`Before::Fail`] with [`Call::unavailable`] |
//! | permanent refusal | [`Before::Fail`] with [`Call::refused`] |
//! | lost response | [`After::Fail`] with [`Call::unavailable`]; the write is applied |
//! | late write | [`Before::Late`]; the write is applied after a delay, and the caller gets no response |
//! | stale read or list | [`Before::Stale`] |
//! | ignored condition | [`Before::Unconditional`] |
//!
//! As in S3, [`Objects`] retries an operation that fails with a transient error. An operation has at most
//! [`Options::max_attempts`] attempts, with waits that increase from [`Options::first_wait`]. The waits use tokio's
//! clock and jitter from [`Options::random`]. With a paused clock and [`Random::seeded`], a store's behavior depends
//! only on the operations, the plan and the seed.
//!
//! # Examples
//!
//! ```
//! use hatebeam_objects::faults::{After, Call, FaultPlan, Hook};
//! use hatebeam_objects::{Condition, Memory, ObjectError, Objects, Options, Random};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use std::time::Duration;
//!
//! /// Loses the response to the first write.
//! struct LoseFirstAnswer(AtomicU64);
//!
//! impl FaultPlan for LoseFirstAnswer {
//!     fn after<'a>(&'a self, call: &'a Call<'a>, _: Result<(), &'a ObjectError>) -> Hook<'a, After> {
//!         Box::pin(async move {
//!             tokio::time::sleep(Duration::from_millis(30)).await;
//!             if call.operation.is_write() && self.0.fetch_add(1, Relaxed) == 0 {
//!                 return After::Fail(call.unavailable("the connection was reset"));
//!             }
//!             After::Deliver
//!         })
//!     }
//! }
//!
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() -> Result<(), ObjectError> {
//!     let memory = Memory::new();
//!     let options = Options { random: Random::seeded(1), ..Options::default() };
//!     let faulty = Objects::with_faults(&memory, &options, Arc::new(LoseFirstAnswer(AtomicU64::new(0))))?;
//!     // The second attempt finds the object that the first attempt wrote. The object's mark, a random name that each
//!     // conditional write stores, shows that this client wrote it.
//!     let version = faulty.put_if("lease", "mine".into(), &Condition::Absent).await?;
//!     // This client of the same store has no faults.
//!     let direct = Objects::in_memory(&memory, &options)?;
//!     assert_eq!(direct.get("lease").await?, ("mine".into(), version));
//!     assert_eq!(faulty.stats().retries, 1);
//!     Ok(())
//! }
//! ```
//!
//! [`Objects`]: crate::Objects
//! [`Objects::with_faults`]: crate::Objects::with_faults
//! [`Options::timeout`]: crate::Options::timeout
//! [`Options::max_attempts`]: crate::Options::max_attempts
//! [`Options::first_wait`]: crate::Options::first_wait
//! [`Options::random`]: crate::Options::random
//! [`Random::seeded`]: crate::Random::seeded

use crate::error::ObjectError;
use crate::memory::STORE;
use std::pin::Pin;
use std::time::Duration;

/// The future returned by a hook of a [`FaultPlan`].
pub type Hook<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Chooses the faults for the operations of one [`Objects`](crate::Objects) value and its clones.
///
/// If each client in a simulation has its own plan, a plan can disconnect a single client. The default hooks inject no
/// faults.
pub trait FaultPlan: Send + Sync {
    /// Called before an attempt reaches the store. Returns the fault to inject.
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        let _ = call;
        Box::pin(std::future::ready(Before::Proceed))
    }

    /// Called after the store has handled an attempt. Returns the fault to inject. This hook is not called if
    /// [`before`](FaultPlan::before) prevented the attempt from reaching the store.
    fn after<'a>(
        &'a self,
        call: &'a Call<'a>,
        answer: Result<(), &'a ObjectError>,
    ) -> Hook<'a, After> {
        let _ = (call, answer);
        Box::pin(std::future::ready(After::Deliver))
    }
}

/// One attempt of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The operation.
    pub operation: Operation,
    /// The key, or the prefix of a list operation.
    pub key: &'a str,
    /// Number of bytes to write, or 0 for other operations.
    pub bytes: u64,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
}

impl Call<'_> {
    /// Creates the transient error [`ObjectError::Unavailable`] for this call.
    pub fn unavailable(&self, reason: &str) -> ObjectError {
        ObjectError::Unavailable {
            store: STORE.to_owned(),
            key: self.key.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Creates the permanent error [`ObjectError::Refused`] for this call.
    pub fn refused(&self, reason: &str) -> ObjectError {
        ObjectError::Refused {
            store: STORE.to_owned(),
            key: self.key.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// An operation on the store.
///
/// [`delete_prefix`](crate::Objects::delete_prefix) consists of one [`List`](Operation::List) and one
/// [`Delete`](Operation::Delete) per object, so it can fail after some deletions. After a lost response,
/// [`put_if`](crate::Objects::put_if) may use [`Head`](Operation::Head) to read the object's mark, which identifies the
/// write that stored the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Unconditional write.
    Put,
    /// Conditional write.
    PutIf,
    /// Read of an object, or of a range of an object.
    Get,
    /// Read of an object's size or mark.
    Head,
    /// Deletion of one object, possibly as part of the deletion of a prefix.
    Delete,
    /// List of objects or folder names.
    List,
}

impl Operation {
    /// Returns whether the operation changes the store.
    pub fn is_write(self) -> bool {
        matches!(self, Operation::Put | Operation::PutIf | Operation::Delete)
    }
}

/// A fault to inject before an attempt reaches the store.
#[derive(Debug)]
pub enum Before {
    /// No fault: the attempt reaches the store.
    Proceed,
    /// The attempt fails, and the store is unchanged.
    Fail(ObjectError),
    /// A write reaches the store after this delay, and is applied if its condition holds at that time. A read
    /// never reaches the store. In both cases, the caller gets no response, and the attempt ends after
    /// [`Options::timeout`](crate::Options::timeout).
    Late(Duration),
    /// A read misses this number of the most recent changes, at most
    /// [`Memory::HISTORY`](crate::Memory::HISTORY). Any other operation proceeds.
    Stale(usize),
    /// A conditional write is applied even if its condition does not hold, as on a server that ignores
    /// conditions. Any other operation proceeds.
    Unconditional,
}

/// A fault to inject after the store has handled an attempt.
#[derive(Debug)]
pub enum After {
    /// No fault: the caller gets the store's response.
    Deliver,
    /// The caller gets this error, although the store has handled the attempt.
    Fail(ObjectError),
}
