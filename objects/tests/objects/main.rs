//! One suite for every kind of store, and tests of each kind: folder, memory with injected faults, S3 servers
//! over a faulty network.

#![allow(clippy::unwrap_used)] // helpers of tests

mod folder;
mod memory;
#[cfg(feature = "s3")]
mod network;
#[cfg(feature = "s3")]
mod s3;
mod suite;
#[cfg(feature = "s3")]
#[path = "../support/mod.rs"]
mod support;
