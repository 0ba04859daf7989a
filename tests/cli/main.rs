//! Tests of the program's commands.

#![allow(clippy::unwrap_used)] // the lint exempts test functions but not helper functions
mod certs;
mod config;
mod doctor;
mod endgame;
mod film;
mod games;
mod general;
mod help;
mod interrupted;
mod manual;
mod perft;
mod plan;
#[path = "../program.rs"]
mod program;
mod replay;
mod report;
mod run;
mod runs;
mod solve;
mod splice;
mod state;
mod support;
mod train;
mod tune;
mod well;
