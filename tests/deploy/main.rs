//! Tests of the files in `deploy/` and `terraform/`. They compare these files with the program (options, variables,
//! ports, metrics) and run checkers on them.
//!
//! `scripts/deploy-tools.sh` and `scripts/terraform-tools.sh` find the checkers. A test whose checker is missing prints
//! a message and passes.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod compose;
mod image;
mod kubernetes;
mod monitoring;
mod scripts;
#[path = "../../objects/tests/support/servers.rs"]
#[allow(dead_code)] // other tests use the other servers
mod servers;
mod support;
mod systemd;
mod terraform;
