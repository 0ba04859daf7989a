//! What must hold of every store, a folder or a server, and of the way to a server when it is bad.

#![allow(clippy::unwrap_used)] // in helpers of tests

#[cfg(feature = "s3")]
mod faults;
mod folder;
#[cfg(feature = "s3")]
mod s3;
mod suite;
#[cfg(feature = "s3")]
#[path = "../support/mod.rs"]
mod support;
