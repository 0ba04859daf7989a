//! Tests the dashboard over real sockets and in a real browser, in front of a fake coordinator.

#![allow(clippy::unwrap_used)] // also in helpers of tests

mod browser;
mod fake;
mod server;
#[path = "../support/mod.rs"]
mod support;
