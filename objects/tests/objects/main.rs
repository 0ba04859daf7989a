//! A test suite for all kinds of stores, and separate tests for folders, for memory with injected faults, and for S3
//! servers behind a faulty network.

#![allow(clippy::unwrap_used)] // test helpers

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
