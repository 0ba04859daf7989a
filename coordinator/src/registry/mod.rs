//! The registry of connected workers: their sessions, their heartbeats, and the orders sent to them.

mod orders;
mod session;
mod slow;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use orders::{PeerFault, PeerReport, WorkerError, WorkerErrorKind};
pub use state::WorkerRegistry;
pub(crate) use state::{LostWorker, Member, RegistrySettings, RequestCounts};
pub use status::{Expansion, WorkerState, WorkerStatus};
