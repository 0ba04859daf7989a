//! The coordinator of a beam search over many machines.
//!
//! The coordinator knows runs, workers and depths, but not the wells. It assigns shards to workers, takes each depth
//! through expansion, the search for the cut, selection and commit, and answers the requests of clients. Its state is
//! in the object store, so that another coordinator can take over anywhere. Conditional writes there ensure that only
//! one of them continues.
//!
//! [`Coordinator`] works without sockets and takes time, randomness and tasks from an [`Env`](hatebeam_env::Env).
//! [`coordinate`] puts the servers around it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alerts;
mod clients;
mod coordinator;
mod costs;
mod driver;
mod error;
mod estimate;
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
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use alerts::{Alert, AlertKind};
pub use clients::Submission;
pub use coordinator::{Coordinator, CoordinatorTask};
pub use costs::{Cost, CostParts, Rate};
pub use error::CoordinatorError;
pub use estimate::{estimate, program_constants};
pub use games::Game;
pub use hatebeam_cost::{Machine, ObjectStorePrices};
pub use lease::LeaseError;
pub use outbox::{EventSink, NotifierSettings};
pub use parts::CoreSettings;
pub use read_back::TableSource;
pub use registry::{Expansion, LostWorker, WorkerRegistry, WorkerState, WorkerStatus};
pub use request::RequestError;
pub use serve::{Dashboard, Settings, coordinate};
pub use status::{CostProjection, RunStatus};
