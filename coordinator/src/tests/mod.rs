//! Tests of the coordinator in process: a store in memory, tokio's paused clock, and workers that answer from a
//! search that one thread has made.

pub(crate) mod cluster;
mod commits;
mod failures;
mod restarts;
pub(crate) mod support;
mod updates;
mod world;
