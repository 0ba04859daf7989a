//! Objects: named bytes, kept in a folder or in S3 behind one interface.
//!
//! An [`Objects`] is opened at a *location*, which is the path of a folder or `s3://bucket/prefix`.
//! Each object has a *key*, names joined by `/`, and is written whole or not at all: who reads sees
//! the old bytes or the new ones. Where several may write one key, [`Objects::put_if`] lets one of
//! them win; not every server that speaks S3's protocol keeps to it, and [`Objects::probe`] finds
//! out. A file goes in with [`Objects::put_file`], which says what it [`Stored`], and comes out with
//! [`Objects::get_to_file`], which checks that.
//!
//! What fails for the moment is tried again, a bounded number of times; what still fails is an
//! [`ObjectError`] that says in words what to look at.

#[cfg(feature = "s3")]
mod backoff;
mod checksum;
mod error;
mod folder;
mod key;
mod local;
mod location;
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
pub use error::ObjectError;
pub use key::{MAX_KEY_BYTES, MAX_NAME_BYTES, check_key};
pub use objects::{Condition, Entry, Objects, Version};
pub use options::{Encryption, MAX_PART_BYTES, MIN_PART_BYTES, Options};
pub use probe::Probe;
pub use stats::Stats;
