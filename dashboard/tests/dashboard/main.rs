//! Tests of the dashboard with a fake coordinator, over real sockets and in a real browser.

#![allow(clippy::unwrap_used)] // test helpers also unwrap

mod access;
mod api;
mod browser;
mod client;
mod fake;
#[path = "../support/mod.rs"]
mod support;
