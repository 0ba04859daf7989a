//! Searches for perfect clears with the queues in a file, and prints how long the searches take.
//!
//! Argument: a JSON file in the format of `pc_queues_many.json`. Each of its lines contains a queue of eleven pieces
//! and three digits with the expected results.

#![allow(clippy::unwrap_used)]

use hatebeam_agents::pc::Solver;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField};
use std::time::Instant;

/// Number of times that each search is repeated. The shortest time counts, because other processes can interrupt a
/// search.
const RUNS: usize = 5;

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    let field = LowField::empty(4).unwrap();
    for (kind, (count, hold)) in [(10, true), (10, false), (11, true)]
        .into_iter()
        .enumerate()
    {
        let (mut wrong, mut times) = (0, Vec::new());
        for line in json["queues"].as_array().unwrap().iter() {
            let (queue, answers) = line.as_str().unwrap().split_once(' ').unwrap();
            let queue = Piece::parse_sequence(&queue[..count]).unwrap();
            let mut found = false;
            let run = || {
                let start = Instant::now();
                found = solver.solve(&field, &queue, hold).unwrap().is_some();
                start.elapsed()
            };
            times.push(std::iter::repeat_with(run).take(RUNS).min().unwrap());
            wrong += usize::from(found != (answers.as_bytes()[kind] == b'1'));
        }
        times.sort_unstable();
        println!(
            "{count} pieces, hold {hold}: {} queues, {wrong} wrong, median {:.2?}, p90 {:.2?}, p99 {:.2?}, max {:.2?}",
            times.len(),
            times[times.len() / 2],
            times[times.len() * 9 / 10],
            times[times.len() * 99 / 100],
            times[times.len() - 1],
        );
    }
}
