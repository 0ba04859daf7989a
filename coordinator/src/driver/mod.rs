//! The search of one run, depth by depth.
//!
//! An *epoch* is a set of workers with an assignment of shards. Within an epoch each depth is expanded, the cut is found
//! by counting, and the survivors are selected. Their tables are uploaded while the next depth is expanded. When all
//! tables of a depth are in the object store, the manifest names them: then the depth is committed. When a worker is
//! lost, joins or wants to leave, the epoch ends, and the next one resumes after the last committed depth.
//!
//! | module | step |
//! |---|---|
//! | [`run`] | the epochs of a run |
//! | [`readiness`] | waiting for workers |
//! | [`epoch`] | one epoch: preparation and the depths |
//! | [`workers`], [`cut`] | orders to all workers of an epoch; the search for the cut |
//! | [`commit`] | committing a depth |
//! | [`updates`] | limits and stop requests of clients |
//! | [`recovery`], [`failures`] | failed depths: retry, quarantine, giving up |
//! | [`finish`] | the end: reading the best game back, garbage collection |

mod assign;
mod commit;
mod cut;
mod epoch;
mod error;
mod failures;
mod finish;
mod readiness;
mod recovery;
mod run;
mod state;

mod updates;
mod workers;

pub(crate) use error::DriverError;
pub(crate) use finish::{Failed, mark_failed};
pub(crate) use state::RunDriver;
