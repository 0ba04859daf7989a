//! Objects: named bytes in a folder, in S3 or in memory, behind one interface.
//!
//! [`Objects::open`] opens the store at a *location*: the path of a folder or `s3://bucket/prefix`.
//! [`Objects::in_memory`] and [`Objects::with_faults`] open a [`Memory`], the latter with injected
//! [faults] for simulations.
//!
//! Each object has a *key*, which consists of names joined by `/`. A write is atomic: a reader sees the old
//! bytes or the new ones. [`Objects::put_if`] lets one of several concurrent writers succeed. Some servers that
//! speak the protocol of S3 ignore its condition; [`Objects::probe`] detects them. [`Objects::put_file`] returns
//! the length and checksum of what it [`Stored`], for a manifest.
//!
//! Transient failures are retried a bounded number of times. The remaining failures are [`ObjectError`]s, which
//! name the cause and the remedy.

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
pub use key::{MAX_KEY_BYTES, MAX_NAME_BYTES, check_key};
pub use memory::Memory;
pub use objects::Objects;
pub use options::{Encryption, MAX_PART_BYTES, MIN_PART_BYTES, NotEncryption, Options};
pub use probe::Probe;
pub use random::Random;
pub use stats::Stats;
