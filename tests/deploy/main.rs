//! What is under `deploy/` and `terraform/` parses, and agrees with the program and with itself: options, variables, ports, metrics.
//!
//! Tools that not every machine has check what they can besides; `scripts/deploy-tools.sh` and `scripts/terraform-tools.sh`
//! find them. Where one is missing, that is said aloud.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod compose;
mod image;
mod kubernetes;
mod monitoring;
mod scripts;
mod support;
mod systemd;
mod terraform;
