//! The real binary, run as a user runs it.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
mod certs;
mod config;
mod doctor;
mod endgame;
mod film;
mod general;
mod manual;
mod perft;
mod plan;
mod replay;
mod report;
mod run;
mod solve;
mod support;
mod well;
