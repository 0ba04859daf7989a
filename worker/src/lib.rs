//! The worker of a distributed beam search.
//!
//! A [`Worker`] carries out its coordinator's orders. Each worker owns some shards (ranges of well hashes). For each
//! depth, a worker:
//!
//! 1. expands the wells of its shards, and sends each child to the owner of the child's shard,
//! 2. counts its candidates, so that the coordinator can find the score threshold (the cut),
//! 3. keeps the candidates at or above the cut, and uploads them as tables to the object store.
//!
//! A table becomes part of a run once the run's [manifest](hatebeam_runs::Manifest) lists it, and only the coordinator
//! writes manifests. A worker that is lost or disconnected therefore cannot change a run.
//!
//! - `session` connects to the coordinator, sends heartbeats and receives orders.
//! - `executor` carries out the orders. Each of its source files handles one group of orders.
//! - `exchange` sends children to other workers and receives children from them.
//! - `tables` caches the tables of the most recent depths on this machine.
//! - `link` contains the gRPC connections to the coordinator and to other workers. Only this module uses protobuf
//!   types.
//! - `process` assembles these modules into the process that `hatebeam worker` runs.
//!
//! All external dependencies are values in [`Parts`]: time and tasks ([`Env`](hatebeam_env::Env)), the object store,
//! the disk ([`LocalStorage`]), the coordinator ([`CoordinatorLink`]) and the other workers ([`PeerLink`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod epoch;
mod error;
mod exchange;
mod executor;
mod games;
mod link;
mod process;
mod session;
mod tables;
#[cfg(test)]
mod testing;
mod worker;

pub use exchange::InboundExchange;
pub use link::{CoordinatorLink, PeerLink, Session};
pub use process::{Process, ProcessError, work};
pub use session::Refused;
pub use tables::{Bundle, LocalStorage, LocalTables, MemoryStorage, WriteTables, WrittenTables};
pub use worker::{Parts, Settings, Worker};

use std::sync::{Mutex, MutexGuard, PoisonError};

// A batch of children takes less than a quarter of the maximum message size.
const _: () = assert!(hatebeam_proto::batch::MAX_BYTES * 4 < hatebeam_net::MAX_MESSAGE);

/// Locks a mutex and ignores poisoning, because a panic while the lock is held makes the current order fail, and a
/// failed order ends the epoch.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
