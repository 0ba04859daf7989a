//! Beams of the graph heuristic, whose statistics come from beams of a network.

mod clearability;
mod heuristic;
mod statistics;
#[cfg(test)]
mod tests;

use clap::Parser;
use clearability::Clearability;
use hatebeam_game::{Emulator, Geometry, Rules};
use hatebeam_search::{
    Evaluator, EvaluatorKind, EvaluatorSpec, Network, Quiescence, VALUE_ONE, Weights,
};
use hatebeam_train::{Beam, BeamSettings, Noise, Scorer, exact_game, run_beam};
use heuristic::{FlatHeuristic, FlatScorer};
use statistics::FlatStatistics;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const AFTER_HELP: &str = "\
First plays games for the statistics: each is the longest game of a narrow beam of a network, with noise on the scores.
Then prints one line for each width: the lines and pieces of the beam's longest game by the exact rules, and seconds.

The clearability of a row is its probability to be cleared: from maximum flows through the observed transitions of rows to
`cleared` and to `immortal`, or from the frequencies of the transitions. The permeability is the observed share of pieces
that continue from a row to the next lower one.

Examples:
  cargo run --release -p hatebeam-train --example flats
  cargo run --release -p hatebeam-train --example flats -- --clearability frequency --widths 1000,10000
  cargo run --release -p hatebeam-train --example flats -- --weight 200    # added to knewjade";

/// Search with the graph heuristic: the clearability and permeability of rows, from statistics of games
#[derive(Parser)]
#[command(after_help = AFTER_HELP)]
struct Arguments {
    /// Number of games for the statistics
    #[arg(long, default_value_t = 2000)]
    games: u64,
    /// Width of the beams that find these games
    #[arg(long, default_value_t = 30)]
    game_width: usize,
    /// Network of these beams: network, taught, chains, selftaught, relay, foresight or outlook
    #[arg(long, default_value = "network")]
    player: String,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Calculation of the clearability
    #[arg(long, value_enum, default_value = "flow")]
    clearability: Clearability,
    /// Add the heuristic with this weight to `knewjade`; an empty row weighs as much as the weight [default: search with the
    /// heuristic alone]
    #[arg(long)]
    weight: Option<i32>,
    /// Widths of the beams to measure
    #[arg(long, value_delimiter = ',', default_values_t = [700, 1000, 1400, 2000, 2800])]
    widths: Vec<usize>,
    /// Print the replay of each game
    #[arg(long)]
    replays: bool,
}

static CONTINUE: AtomicBool = AtomicBool::new(false);

fn search(emulator: &Emulator, scorer: &mut impl Scorer, width: usize, noise: Noise) -> Beam {
    let settings = BeamSettings {
        noise,
        keeps: true,
        ..BeamSettings::new(width, 10_000)
    };
    run_beam(emulator, scorer, &settings, &CONTINUE)
}

/// Plays the games and counts what happens to their rows.
fn statistics(arguments: &Arguments, emulator: &Emulator) -> Result<FlatStatistics, String> {
    let network = Network::shipped(&arguments.player).ok_or_else(|| {
        format!(
            "unknown player {}: choose one of {}",
            arguments.player,
            Network::SHIPPED.join(", ")
        )
    })?;
    let mut evaluator = Evaluator::with_network(emulator, network.clone(), Quiescence::Off);
    let mut statistics = FlatStatistics::default();
    let mut pieces = 0;
    for game in 0..arguments.games {
        let noise = Noise {
            seed: arguments.seed << 32 | game,
            first: 0.15 * f64::from(VALUE_ONE),
            rest: 0.03 * f64::from(VALUE_ONE),
        };
        let beam = search(emulator, &mut evaluator, arguments.game_width, noise);
        let wells = beam.longest_game(emulator.geometry());
        pieces += wells.len();
        statistics.add_game(emulator, &wells);
    }
    println!(
        "{} games, {pieces} pieces, {} transitions, {} pairs of rows, {:.1} % of flats cleared",
        statistics.games,
        statistics.growths.len(),
        statistics.passes.len(),
        100.0 * statistics.cleared_share()
    );
    Ok(statistics)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let start = Instant::now();
    let statistics = statistics(arguments, &emulator)?;
    let heuristic = FlatHeuristic::new(&statistics, arguments.clearability);
    println!("statistics took {:.1} s", start.elapsed().as_secs_f64());
    let base = match arguments.weight {
        None => None,
        Some(weight) => {
            let spec = EvaluatorSpec {
                kind: EvaluatorKind::Knewjade,
                weights: Weights::KNEWJADE,
                quiescence: Quiescence::Off,
            };
            let evaluator = Evaluator::new(&emulator, &spec).map_err(|error| error.to_string())?;
            Some((evaluator, weight))
        }
    };
    let mut scorer = FlatScorer { heuristic, base };
    for &width in &arguments.widths {
        let start = Instant::now();
        let beam = search(&emulator, &mut scorer, width, Noise::default());
        let seconds = start.elapsed().as_secs_f64();
        let wells = beam.longest_game(emulator.geometry());
        let game = exact_game(&wells).map_err(|error| error.to_string())?;
        println!(
            "width {width}: {} lines, {} pieces, {seconds:.1} s",
            game.lines, game.pieces
        );
        if arguments.replays {
            println!("{}", game.replay);
        }
    }
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
