//! The command line of `hatebeam`: arguments, commands and their output.

mod args;
#[cfg(feature = "cluster")]
mod certs;
#[cfg(feature = "cluster")]
mod cluster;
mod config;
#[cfg(feature = "cluster")]
mod demo;
mod doctor;
mod endgame;
#[cfg(feature = "cluster")]
mod hooks;
mod input;
mod interrupt;
mod keyframes;
mod logs;
mod machine;
mod manual;
#[cfg(feature = "cluster")]
mod metrics;
mod output;
mod perft;
#[cfg(feature = "cluster")]
mod plan;
#[cfg(feature = "cluster")]
mod rent;
mod replay;
mod run;
mod runs;
mod show;
mod solve;
mod state;
mod well;

use anyhow::Context;
use args::{Args, Command, ReplayCommand};
use clap::CommandFactory;
use output::Failure;
use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    machine::return_large_blocks();
    machine::open_more_files();
    match config::command_line().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::report(&error),
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        None => Args::command().print_help().context(output::CANNOT_WRITE),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Resume(args)) => run::resume(&args),
        Some(Command::Keyframes(args)) => keyframes::keyframes(&args),
        Some(Command::Runs(args)) => runs::runs(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Plan(args)) => plan::plan(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Certs(args)) => certs::certs(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Coordinator(args)) => cluster::coordinator(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Worker(args)) => cluster::worker(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Submit(args)) => cluster::submit(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Status(args)) => cluster::status(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Watch(args)) => cluster::watch(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Wait(args)) => cluster::wait(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Limit(args)) => cluster::limit(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Cancel(args)) => cluster::cancel(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Drain(args)) => cluster::drain(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Replays(args)) => cluster::replays(&args),
        Some(Command::Solve(args)) => solve::run(&args),
        Some(Command::Endgame(args)) => endgame::run(&args),
        Some(Command::Replay { command }) => match command {
            ReplayCommand::Verify(args) => replay::verify(&args),
            ReplayCommand::Convert(args) => replay::convert(&args),
            ReplayCommand::Show(args) => show::show(&args),
        },
        Some(Command::Well(args)) => well::well(&args),
        Some(Command::Perft(args)) => perft::perft(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Demo(args)) => demo::demo(&args),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        Some(Command::Config(command)) => config::config(&command, args.config.as_deref()),
        Some(Command::Completions(args)) => manual::completions(&args),
        Some(Command::Man(args)) => manual::man(&args),
    }
}
