//! The worker of a cluster.
//!
//! A [`Worker`] carries out its coordinator's orders, depth by depth. It expands the wells of its shards, sends the
//! children to the owners of their shards, counts them in the search for the cut, keeps the survivors, and uploads
//! their tables to the object store. A table counts once the run's [manifest](hatebeam_runs::Manifest) names it, and
//! only the coordinator writes the manifest. A lost or disconnected worker therefore cannot change a run.
//!
//! - `session` connects to the coordinator, sends heartbeats and passes orders on.
//! - `executor` carries them out, one file per group of orders.
//! - `exchange` sends children to other workers and receives theirs.
//! - `tables` keeps the tables of the last depths on this machine.
//! - `link` is the gRPC side of both, and the only place with protobuf types.
//! - `process` assembles all of it into the process that `hatebeam worker` runs.
//!
//! Whatever reaches outside is a value in [`Parts`]: time and tasks ([`Env`](hatebeam_env::Env)), the object store,
//! the disk ([`LocalStorage`]), the coordinator ([`CoordinatorLink`]) and the other workers ([`PeerLink`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod epoch;
mod error;
mod exchange;
mod executor;
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
pub use tables::{Bundle, LocalStorage, LocalTables, WriteTables, WrittenTables};
pub use worker::{Parts, Settings, Worker};

use std::sync::{Mutex, MutexGuard, PoisonError};

// A batch of children fits into a message with room to spare.
const _: () = assert!(hatebeam_proto::batch::MAX_BYTES * 4 < hatebeam_net::MAX_MESSAGE);

/// Locks a mutex. A panic while the lock is held fails the order and with it the epoch, so a poisoned lock is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
