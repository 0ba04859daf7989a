//! Plays HATETRIS with a Monte-Carlo tree search and checks the game by the exact rules.

mod graph;
mod search;
#[cfg(test)]
mod tests;

use clap::Parser;
use hatebeam_game::{Emulator, Geometry, Rules, Well};
use hatebeam_search::{Evaluator, EvaluatorKind, EvaluatorSpec, Network, Quiescence};
use hatebeam_train::exact_game;
use search::{Follow, Goal, Mcts, MctsSettings};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const AFTER_HELP: &str = "\
Each iteration walks from the current well down the graph of known wells, in which equal wells are merged. In each well it
chooses the child with the highest mean return plus a bonus for placements that were rarely tried (UCT). It then plays
on with the best-scored children (the rollout). After a number of iterations, the search places a piece.

The result is a function of the options. It is printed as a replay in Base2048, which `hatebeam replay verify` accepts.
If the loop rule of HATETRIS changes a piece, the game is cut there.

Examples:
  cargo run --release -p hatebeam-train --example mcts -- --iterations 200
  cargo run --release -p hatebeam-train --example mcts -- --evaluator patterns --seed 2
  cargo run --release -p hatebeam-train --example mcts -- --rollout 0 --iterations 1000 --exploration 0.02";

/// Play one game of HATETRIS with Monte-Carlo tree search
#[derive(Parser)]
#[command(after_help = AFTER_HELP)]
struct Arguments {
    /// Evaluator that orders children and chooses the placements of rollouts: knewjade, plain, plain-holes, patterns,
    /// network, taught, chains, selftaught, relay, foresight or outlook
    #[arg(long, default_value = "network")]
    evaluator: String,
    /// Number of iterations before each placement
    #[arg(long, default_value_t = 100)]
    iterations: u64,
    /// Seed of the rollouts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of pieces in a rollout; the network then predicts the rest [default: play to the end]
    #[arg(long)]
    rollout: Option<usize>,
    /// Number to maximize
    #[arg(long, value_enum, default_value = "lines")]
    goal: Goal,
    /// Placement to choose after the iterations: that of the best game found, or the most visited one [default: best,
    /// or visits with --rollout]
    #[arg(long, value_enum)]
    follow: Option<Follow>,
    /// Probability with which a rollout skips a child and considers the next best one
    #[arg(long, default_value_t = MctsSettings::default().skip)]
    skip: f64,
    /// Factor of the bonus for rarely tried placements
    #[arg(long, default_value_t = MctsSettings::default().exploration)]
    exploration: f64,
    /// Try at most this factor times the square root of the visits children of a well; 0 tries all
    #[arg(long, default_value_t = MctsSettings::default().widening)]
    widening: f64,
    /// Memory of the graph in MiB
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Maximum number of pieces to place
    #[arg(long)]
    pieces: Option<usize>,
    /// Print only the result
    #[arg(short, long)]
    quiet: bool,
}

impl Arguments {
    fn settings(&self) -> MctsSettings {
        let follow = match self.rollout {
            Some(_) => Follow::Visits,
            None => Follow::Best,
        };
        MctsSettings {
            seed: self.seed,
            iterations: self.iterations,
            goal: self.goal,
            follow: self.follow.unwrap_or(follow),
            rollout: self.rollout.unwrap_or(usize::MAX),
            estimate: self.rollout.is_some(),
            skip: self.skip,
            exploration: self.exploration,
            widening: self.widening,
            memory: self.memory << 20,
            pieces: self.pieces.unwrap_or(usize::MAX),
        }
    }

    fn evaluator(&self, emulator: &Emulator) -> Result<Evaluator, String> {
        let kind = match Network::shipped(&self.evaluator) {
            Some(network) => EvaluatorKind::Network(network.digest()),
            None if self.rollout.is_some() => {
                return Err(format!(
                    "evaluator {} does not predict the number of pieces: choose one of {}, or leave --rollout out",
                    self.evaluator,
                    Network::SHIPPED.join(", ")
                ));
            }
            None => *EvaluatorKind::ALL
                .iter()
                .find(|kind| kind.name() == self.evaluator)
                .ok_or_else(|| format!("unknown evaluator {}: see --help", self.evaluator))?,
        };
        let spec = EvaluatorSpec::new(kind, Quiescence::Off);
        Evaluator::new(emulator, &spec).map_err(|error| error.to_string())
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let mut evaluator = arguments.evaluator(&emulator)?;
    let mcts = Mcts::new(&emulator, &mut evaluator, arguments.settings());
    let start = Instant::now();
    let game = mcts.play(&Well::EMPTY, &AtomicBool::new(false), |pieces, lines| {
        if !arguments.quiet && pieces % 10 == 0 {
            eprintln!("placed {pieces} pieces, best game has {lines} lines");
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let exact = exact_game(&game.wells).map_err(|error| error.to_string())?;
    println!(
        "{} lines, {} pieces by the exact rules, {} iterations, {} wells, {seconds:.1} s",
        exact.lines, exact.pieces, game.iterations, game.nodes
    );
    println!("{}", exact.replay);
    Ok(())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
