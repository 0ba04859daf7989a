//! The commands. Each command has one file or folder with its arguments and its function.

mod agents;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "no_cluster.rs"]
mod cluster;
mod config;
mod contest;
mod doctor;
mod endgame;
mod keyframes;
mod manual;
mod nes;
mod open_run;
mod page;
mod pc;
mod perft;
mod replay;
mod run;
mod runs;
mod solve;
mod splice;
mod train;
mod tune;
mod well;

use crate::output::CANNOT_WRITE;
use anyhow::Context;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Beam search for HATETRIS records.
#[derive(Debug, Parser)]
#[command(name = "hatebeam", bin_name = "hatebeam", version, after_help = help!("hatebeam"), disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    // This argument does not use clap's `env`: if a variable set an argument, commands with `arg_required_else_help` would
    // print no help.
    /// TOML file from which to read flags, or none to read no file [default: $HATEBEAM_CONFIG, or else
    /// ~/.config/hatebeam/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check this machine and a cluster for problems
    Doctor(doctor::DoctorArgs),
    /// Search for a game by beam search, or resume an interrupted run
    Run(run::RunArgs),
    /// Resume an existing run by name
    Resume(run::ResumeArgs),
    /// Read back a game from the stored wells of a run
    Keyframes(keyframes::KeyframesArgs),
    /// List, show, report, repair and remove runs
    Runs(runs::RunsArgs),
    #[command(flatten)]
    Cluster(cluster::ClusterCommand),
    /// Search the whole game tree of a small well
    Solve(solve::SolveArgs),
    /// Learn a network that scores wells
    Train(train::TrainArgs),
    /// Tune the weights of the evaluator `knewjade`
    Tune(tune::TuneArgs),
    /// Search all possible endings of a game for the best one
    Endgame(endgame::EndgameArgs),
    /// Find a longer game among the wells of given games
    Splice(splice::SpliceArgs),
    /// Verify, convert and show replays
    Replay(replay::ReplayArgs),
    /// Describe a well: picture, piece, children, parents
    Well(well::WellArgs),
    /// Count wells by number of pieces
    Perft(perft::PerftArgs),
    /// Play dropped pieces with agents, and compare them
    Agents(agents::AgentsArgs),
    /// Play Nintendo Tetris, and compare searches
    Nes(nes::NesArgs),
    /// Find perfect clears and their chances
    Pc(pc::PcArgs),
    /// Write web pages for playing the games
    Page(page::PageArgs),
    /// Check, show and create the configuration file
    Config(config::ConfigArgs),
    /// Print a completion script for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(manual::ManArgs),
}

/// Runs a command.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let Some(command) = args.command else {
        return crate::command().print_help().context(CANNOT_WRITE);
    };
    match command {
        Command::Doctor(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Resume(args) => args.run(),
        Command::Keyframes(args) => args.run(),
        Command::Runs(args) => args.run(),
        Command::Cluster(command) => command.run(),
        Command::Solve(args) => args.run(),
        Command::Train(args) => args.run(),
        Command::Tune(args) => args.run(),
        Command::Endgame(args) => args.run(),
        Command::Splice(args) => args.run(),
        Command::Replay(args) => args.run(),
        Command::Well(args) => args.run(),
        Command::Perft(args) => args.run(),
        Command::Agents(args) => args.run(),
        Command::Nes(args) => args.run(),
        Command::Pc(args) => args.run(),
        Command::Page(args) => args.run(),
        Command::Config(command) => command.run(&crate::command(), args.config.as_deref()),
        Command::Completions(command) => command.run(crate::command()),
        Command::Man(command) => command.run(crate::command()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_consistent() {
        crate::command().debug_assert();
    }
}
