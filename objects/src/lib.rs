//! Objects (named byte sequences) in a folder, in S3 or in memory, with one interface.
//!
//! [`Objects::open`] opens the store at a *location*, which is the path of a folder or `s3://bucket/prefix`.
//! [`Objects::in_memory`] opens a [`Memory`]. [`Objects::with_faults`] opens a [`Memory`] with injected [faults] for
//! simulations.
//!
//! Each object has a *key*, which consists of names joined by `/`. Writes are atomic: a reader sees either
//! the old bytes or the new bytes. [`Objects::put_if`] writes an object only if a condition holds. If several
//! writers with the same condition run concurrently, only one of them succeeds. Some servers that implement the S3
//! protocol ignore the condition; [`Objects::probe`] detects such servers.
//!
//! Operations in S3 and in memory retry transient failures a bounded number of times. An operation that still fails
//! returns an [`ObjectError`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod backoff;
mod checksum;
mod conditional;
mod entry;
mod error;
pub mod faults;
mod folder;
mod key;
mod local;
mod location;
mod memory;
mod objects;
mod options;
#[cfg(feature = "s3")]
mod pieces;
mod probe;
mod random;
#[cfg(feature = "s3")]
mod s3;
mod stats;

pub use checksum::{Checksum, Stored};
pub use entry::{Condition, Entry, Version};
pub use error::ObjectError;
pub use key::check_key;
pub use memory::Memory;
pub use objects::{Objects, Operation};
pub use options::{Encryption, NotEncryption, Options};
pub use probe::Probe;
pub use random::Random;
pub use stats::Stats;
