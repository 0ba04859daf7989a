//! Tests the dashboard over real sockets and in a real browser, in front of a fake coordinator.

#![allow(clippy::unwrap_used)] // also in helpers of tests

mod access;
mod api;
mod browser;
mod client;
mod fake;
#[path = "../support/mod.rs"]
mod support;
