//! The search of one run, depth by depth.
//!
//! An *epoch* is a period of a run with a fixed set of workers and a fixed assignment of shards (ranges of well hashes)
//! to them. The coordinator takes each depth of an epoch through these steps:
//!
//! 1. The workers expand their wells, which gives the candidates for the next depth.
//! 2. The workers count candidates, and the coordinator finds the *cut*: the lowest rank (a score with its tie-breaks)
//!    that survives.
//! 3. Each worker selects its survivors (the candidates at or above the cut), and uploads them as tables while the next
//!    depth is expanded.
//! 4. When all tables of the depth are in the object store, the coordinator saves a manifest that lists them. This
//!    write commits the depth.
//!
//! When a worker joins, is lost, or wants to leave, the epoch ends. The next epoch resumes after the last committed
//! depth.
//!
//! | module | contents |
//! |---|---|
//! | [`run`] | the epochs of a run |
//! | [`readiness`] | waiting for workers |
//! | [`assign`] | assignment of shards to workers |
//! | [`epoch`] | one epoch: preparation and depths |
//! | [`workers`], [`cut`] | orders to all workers of an epoch; the search for the cut |
//! | [`commit`], [`uploaded`] | committing a depth; checks of uploaded tables |
//! | [`updates`] | limits and stop requests from clients |
//! | [`recovery`], [`failures`] | failed depths: retries, quarantine, failure of the run |
//! | [`speeds`] | measured speeds of the workers, which determine their shares of the shards |
//! | [`damage`] | committed depths whose tables cannot be read |
//! | [`finish`] | the end of a run, garbage collection |
//! | [`read_back`] | reading back the best game, on a worker if possible |

mod assign;
mod commit;
mod contradictions;
mod cut;
mod damage;
mod epoch;
mod error;
mod failures;
mod finish;
mod read_back;
mod readiness;
mod recovery;
mod run;
mod speeds;
mod state;
mod updates;
mod uploaded;
mod workers;

pub(crate) use error::DriverError;
pub(crate) use finish::{Failed, end_idle, mark_failed};
pub(crate) use readiness::missing_memory;
pub(crate) use state::RunDriver;
