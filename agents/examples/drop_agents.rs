//! Plays games of dropped pieces and prints their statistics.
//!
//! Arguments, with defaults in parentheses: agent (heuristic), number of games (100), number of threads (1), maximum
//! number of pieces in a game (no limit), width (10), height (20).

#![allow(clippy::unwrap_used)]

use hatebeam_agents::Statistics;
use hatebeam_agents::drop::{DropRun, find_agent, play_games};
use hatebeam_tetris::drop::{DropGame, GeneratorKind, PieceSet};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.into());
    let agent = find_agent(&argument(0, "heuristic")).unwrap_or_else(|error| panic!("{error}"));
    let games: usize = argument(1, "100").parse().unwrap();
    let threads: usize = argument(2, "1").parse().unwrap();
    let run = DropRun {
        game: DropGame::new(
            argument(4, "10").parse().unwrap(),
            argument(5, "20").parse().unwrap(),
            PieceSet::standard(),
        )
        .unwrap(),
        generator: GeneratorKind::Uniform,
        seed: 1,
        previews: 1,
        most_pieces: argument(3, &u64::MAX.to_string()).parse().unwrap(),
    };
    let start = Instant::now();
    let results = play_games(&run, || agent.published(), games, threads, || true);
    let elapsed = start.elapsed();
    let lines = Statistics::of(results.iter().map(|result| result.lines as f64)).unwrap();
    let pieces: u64 = results.iter().map(|result| result.pieces).sum();
    let unfinished = results.iter().filter(|result| !result.lost).count();
    let half_width = lines
        .half_width
        .map_or("–".to_owned(), |half| format!("{half:.4}"));
    println!(
        "{}: {games} games, {:.4} ± {half_width} lines, median {}, max {}, {unfinished} stopped, {pieces} pieces, {elapsed:.2?}",
        agent.name, lines.mean, lines.median, lines.max
    );
}
