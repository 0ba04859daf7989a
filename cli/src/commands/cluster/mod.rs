//! The cluster commands, and the cluster arguments that other commands share.

mod args;
mod cancel;
mod certs;
mod client;
mod coordinator;
mod dashboard;
mod demo;
mod doctor;
mod drain;
mod limit;
mod observe;
mod plan;
mod replays;
mod server;
mod status;
mod stored;
mod submit;
mod wait;
mod watch;
mod worker;

pub(crate) use doctor::CheckedClusterArgs;
pub(crate) use observe::ObserveArgs;
pub(crate) use stored::FromStoreArgs;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Run a small search in a cluster on this machine: a coordinator and two workers
    Demo(demo::DemoArgs),
    /// Estimate the time and cost of a search on many machines
    Plan(plan::PlanArgs),
    /// Create the certificates and tokens of a cluster
    Certs(certs::CertsArgs),
    /// Run the coordinator of a cluster
    Coordinator(coordinator::CoordinatorArgs),
    /// Run a worker, which executes the searches of a coordinator
    Worker(worker::WorkerArgs),
    /// Submit a run to a coordinator
    Submit(submit::SubmitArgs),
    /// Print a coordinator's runs and workers
    Status(status::StatusArgs),
    /// Show the progress of a coordinator's run until it ends
    Watch(watch::WatchArgs),
    /// Wait for a coordinator's run to end
    Wait(wait::WaitArgs),
    /// Change a run's limits
    Limit(limit::LimitArgs),
    /// Stop a coordinator's run and keep its committed depths
    Cancel(cancel::CancelArgs),
    /// Drain a worker: assign no shards to it until --undo
    Drain(drain::DrainArgs),
    /// List and download replays from the object store
    Replays(replays::ReplaysArgs),
}

impl ClusterCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            ClusterCommand::Demo(args) => args.run(),
            ClusterCommand::Plan(args) => args.run(),
            ClusterCommand::Certs(args) => args.run(),
            ClusterCommand::Coordinator(args) => args.run(),
            ClusterCommand::Worker(args) => args.run(),
            ClusterCommand::Submit(args) => args.run(),
            ClusterCommand::Status(args) => args.run(),
            ClusterCommand::Watch(args) => args.run(),
            ClusterCommand::Wait(args) => args.run(),
            ClusterCommand::Limit(args) => args.run(),
            ClusterCommand::Cancel(args) => args.run(),
            ClusterCommand::Drain(args) => args.run(),
            ClusterCommand::Replays(args) => args.run(),
        }
    }
}
