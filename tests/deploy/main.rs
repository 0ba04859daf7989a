//! Tests of the files in `deploy/` and `terraform/`, of the scripts and of the dependencies. They compare the options,
//! variables, ports and metrics in these files with the program, and run external tools that check the files.
//!
//! `scripts/deploy-tools.sh` and `scripts/terraform-tools.sh` find these tools. If a tool is missing, the tests that
//! need it print a message and pass.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // the lint exempts test functions but not helper functions

mod compose;
mod image;
mod kubernetes;
mod monitoring;
mod rocksdb;
mod scripts;
#[path = "../../objects/tests/support/servers.rs"]
#[allow(dead_code)] // these tests use only some of the servers
mod servers;
mod support;
mod systemd;
mod terraform;
