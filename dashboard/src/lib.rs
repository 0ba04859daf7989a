//! The coordinator's web dashboard: runs, cost, plots, workers and replays.
//!
//! The dashboard is a small HTTP server in the coordinator's process. It calls the same service as gRPC clients
//! do, and this service validates all requests. [`Server::serve`] accepts any implementation of
//! [`Runs`](hatebeam_proto::v1::runs_server::Runs). The pages are compiled into the binary (`assets`) and load nothing
//! from other hosts. They receive their data as JSON (`api`, `view`) and as server-sent events (`events`).
//!
//! A client of the dashboard can submit and stop runs. Therefore, the server requires the token, if one is configured, and
//! rejects requests that other sites make in the same browser (`access`).

mod access;
mod api;
mod assets;
mod error;
mod events;
mod form;
mod game;
mod server;
mod sessions;
mod view;

pub use form::{EstimateRequest, Estimator, RunForm};
pub use hatebeam_cost::Estimate;
pub use server::{DashboardError, Server, Settings, bind};
pub use view::{StatusView, WorkerView};
