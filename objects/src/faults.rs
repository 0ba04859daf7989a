//! Faults on the way to a store in memory.
//!
//! A simulation implements [`FaultPlan`] and opens its stores with [`Objects::with_faults`]. The plan is asked
//! before and after every attempt of every operation, and chooses the fault:
//!
//! | fault | how |
//! |---|---|
//! | latency | await `tokio::time::sleep` in a hook; an attempt ends after [`Options::timeout`] |
//! | unreachable, throttled | [`Before::Fail`] with [`Call::unavailable`] |
//! | permanent refusal | [`Before::Fail`] with [`Call::refused`] |
//! | lost answer | [`After::Fail`] with [`Call::unavailable`]: the write was applied |
//! | late write | [`Before::Late`]: the caller gives up, the write is applied afterwards |
//! | stale read or list | [`Before::Stale`] |
//! | ignored condition | [`Before::Unconditional`] |
//!
//! Transient errors are attempted again inside [`Objects`] as with S3: at most [`Options::max_attempts`]
//! attempts, with waits that grow from [`Options::first_wait`]. The waits use tokio's clock and draw their
//! jitter from [`Options::random`]. With a paused clock and [`Random::seeded`] everything here depends on the
//! plan and the seed alone.
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
//! /// Loses the answer to the first write.
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
//!     // The second attempt finds the mark of the first one: the write succeeded.
//!     let version = faulty.put_if("lease", "mine".into(), &Condition::Absent).await?;
//!     // Another client of the same store, without faults.
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

/// The future that a hook of a [`FaultPlan`] returns.
pub type Hook<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Chooses the faults of the operations of one [`Objects`](crate::Objects) and its clones.
///
/// Each client of a simulation has a plan of its own, so that a plan can cut off one of them. Both hooks do
/// nothing by default.
pub trait FaultPlan: Send + Sync {
    /// Chooses the fault before an attempt reaches the store.
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        let _ = call;
        Box::pin(std::future::ready(Before::Proceed))
    }

    /// Chooses the fault after the store has handled an attempt and answered. Not called if
    /// [`before`](FaultPlan::before) kept the attempt from the store.
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
    /// The key, or the prefix of a list.
    pub key: &'a str,
    /// Bytes to write; 0 for other operations.
    pub bytes: u64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl Call<'_> {
    /// Returns the transient error [`ObjectError::Unavailable`].
    pub fn unavailable(&self, reason: &str) -> ObjectError {
        ObjectError::Unavailable {
            store: STORE.to_owned(),
            key: self.key.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Returns the permanent error [`ObjectError::Refused`].
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
/// [`delete_prefix`](crate::Objects::delete_prefix) is one [`List`](Operation::List) and a
/// [`Delete`](Operation::Delete) for each object, so that it can fail in the middle. In doubt about a lost
/// answer, [`put_if`](crate::Objects::put_if) adds a [`Head`](Operation::Head).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Unconditional write.
    Put,
    /// Conditional write.
    PutIf,
    /// Read of an object or of a range.
    Get,
    /// Read of an object's size or mark.
    Head,
    /// Deletion of one object.
    Delete,
    /// List of objects or of names.
    List,
}

impl Operation {
    /// Whether the operation changes the store.
    pub fn is_write(self) -> bool {
        matches!(self, Operation::Put | Operation::PutIf | Operation::Delete)
    }
}

/// What happens on the way to the store.
#[derive(Debug)]
pub enum Before {
    /// The attempt reaches the store.
    Proceed,
    /// The attempt fails and the store is unchanged.
    Fail(ObjectError),
    /// A write reaches the store after this time and is applied then if its condition still holds. The caller
    /// gets no answer: its attempt ends after [`Options::timeout`](crate::Options::timeout). A read gets no
    /// answer either.
    Late(Duration),
    /// A read sees the store as it was before this number of changes, [`Memory::HISTORY`](crate::Memory::HISTORY)
    /// at most. A write proceeds.
    Stale(usize),
    /// A conditional write is applied whatever its condition, as on a server that ignores conditions. Any other
    /// operation proceeds.
    Unconditional,
}

/// What happens on the way back.
#[derive(Debug)]
pub enum After {
    /// The caller gets the store's answer.
    Deliver,
    /// The caller gets this error, although the store has handled the attempt.
    Fail(ObjectError),
}
