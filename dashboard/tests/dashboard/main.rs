//! The dashboard over real sockets, in front of a coordinator that was made up; and in a real browser.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod browser;
mod made_up;
mod server;
#[path = "../support/mod.rs"]
mod support;
