//! The coordinator's dashboard for browsers: runs, cost, plots, workers, replays.
//!
//! This is a small HTTP server in the coordinator's process, in front of the service that clients call over gRPC. The
//! service validates all requests; [`Server::serve`] accepts any implementation of
//! [`Runs`](hatebeam_proto::v1::runs_server::Runs). The pages are compiled into the binary (`assets`) and load nothing
//! from other hosts. Their data comes as JSON (`api`, `view`) and as server-sent events (`events`).
//!
//! A client of the dashboard can submit and stop runs. The server therefore requires the token, if there is one, and
//! rejects requests that other sites cause in the same browser (`access`).

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
pub use view::{CostView, MachineView, ProjectionView, WorkerView};
