//! The coordinator in a browser: runs, cost, plots, workers, replays.
//!
//! A small HTTP server in front of the service that clients call by gRPC, in the same process: there is one
//! interface, and what is checked is checked there. [`Server::serve`] takes anything that is a
//! [`Runs`](hatebeam_proto::v1::runs_server::Runs). The pages are in the binary (`assets`) and load nothing from
//! elsewhere; what they show comes as JSON (`api`, `view`) and as server-sent events (`events`).
//!
//! Whoever reaches it can submit and stop runs. So it asks for the token, if there is one, and heeds nobody who
//! comes by way of another site in the same browser (`access`).

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

pub use form::{Estimate, EstimateRequest, Estimator, RunForm};
pub use server::{DashboardError, Server, Settings, bind};
pub use view::{CostView, MachineView, ProjectionView, WorkerView};
