//! The coordinator of a distributed beam search.
//!
//! The coordinator assigns shards (ranges of well hashes) to workers, and answers client requests. For each depth of a
//! run, it orders the workers to expand their wells, finds the score threshold (the cut) by counting, and commits the
//! wells at or above the cut. The workers exchange wells directly. The coordinator receives only counts, table
//! locations, and the few wells that tie at the cut.
//!
//! All persistent state is in the object store, so a coordinator on any machine can take over from another. If two
//! coordinators run at once, conditional writes ensure that only one of them continues.
//!
//! [`Coordinator`] needs no sockets, and uses the clock, randomness and tasks of an [`Env`](hatebeam_env::Env).
//! [`coordinate`] runs a coordinator together with its gRPC server and dashboard.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alerts;
mod clients;
mod coordinator;
mod costs;
mod deadline;
mod driver;
mod error;
mod games;
mod lease;
mod metrics;
mod outbox;
mod parts;
mod queue;
mod read_back;
mod registry;
mod request;
mod serve;
mod service;
mod status;
mod submissions;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use alerts::{Alert, AlertKind};
pub use clients::Submission;
pub use coordinator::{Coordinator, CoordinatorTask, Running, Stop};
pub use costs::{Cost, CostParts, Rate};
pub use deadline::follow_deadline;
pub use error::CoordinatorError;
pub use games::Game;
pub use hatebeam_cost::{Machine, ObjectStorePrices};
pub use lease::LeaseError;
pub use outbox::{EventSink, NotifierSettings};
pub use parts::CoreSettings;
pub use read_back::TableSource;
pub use registry::{Expansion, WorkerRegistry, WorkerState, WorkerStatus};
pub use request::RequestError;
pub use serve::{Dashboard, Settings, coordinate};
pub use service::{estimate, program_constants};
pub use status::{CostProjection, RunStatus};
pub use update::LimitsChange;
