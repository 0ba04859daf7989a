//! In-process tests of the coordinator. They use an object store in memory, tokio's paused clock, and simulated workers
//! that take their answers from a single-threaded search.

pub(crate) mod cluster;
mod commits;
mod failures;
mod networks;
mod read_back;
mod restarts;
mod splits;
pub(crate) mod support;
mod updates;
mod world;
