//! Plays the published games of Nintendo Tetris and prints their summary.
//!
//! Arguments, with defaults in parentheses: the search `bfs` or `branching` (bfs), number of games (150), number of
//! threads (2), the rows 20, 22 or 20+2 (20). If the environment variable `SCORES` is set, also prints the score of
//! each game.

#![allow(clippy::unwrap_used)]

use hatebeam_agents::nes::{Bfs, Branching, GameRules, Summary, Widths, article_games};
use hatebeam_tetris::nes::{Rows, WEIGHTS_BFS};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.into());
    let games: usize = argument(1, "150").parse().unwrap();
    let threads: usize = argument(2, "2").parse().unwrap();
    let rows: Rows = argument(3, "20").parse().unwrap();
    let rules = GameRules {
        rows,
        ..GameRules::ARTICLE
    };
    let start = Instant::now();
    let results = match argument(0, "bfs").as_str() {
        "bfs" => article_games(205, games, threads, &rules, || Bfs::new(rows, WEIGHTS_BFS)),
        "branching" => article_games(205, games, threads, &rules, || {
            Branching::new(rows, WEIGHTS_BFS, Widths::ARTICLE)
        }),
        other => panic!("`{other}` is not a search: use bfs or branching"),
    };
    let elapsed = start.elapsed();
    let summary = Summary::of(&results).unwrap();
    println!(
        "{games} games: median {}, mean {:.2}, max {}, maxout {:.2} %, complete {}, {} moves, {:.2?}",
        summary.points.median,
        summary.points.mean,
        summary.points.max,
        100.0 * summary.maxout_share(),
        summary.complete,
        summary.moves,
        elapsed
    );
    if std::env::var_os("SCORES").is_some() {
        for (game, result) in results.iter().enumerate() {
            let score = result.score;
            println!(
                "{game} {} {} {} {}",
                score.points, score.level, score.lines, result.moves
            );
        }
    }
}
