//! Plays the published games of Nintendo Tetris and prints their summary.
//!
//! Arguments, with defaults in parentheses: the name of the search (bfs), number of games (150), number of threads (2),
//! the rows 20, 22 or 20+2 (20), the widths of the search (its default widths). If the environment variable `SCORES` is
//! set, also prints the score of each game.

#![allow(clippy::unwrap_used)]

use hatebeam_agents::nes::{GameRules, Summary, article_games, find_search};
use hatebeam_tetris::nes::Rows;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.into());
    let games: usize = argument(1, "150").parse().unwrap();
    let threads: usize = argument(2, "2").parse().unwrap();
    let rows: Rows = argument(3, "20").parse().unwrap();
    let search = find_search(&argument(0, "bfs")).unwrap();
    let widths = arguments.get(4).map(|text| text.parse().unwrap());
    let rules = GameRules {
        rows,
        ..GameRules::ARTICLE
    };
    let start = Instant::now();
    let results = article_games(205, games, threads, &rules, || {
        search.with_weights(rows, widths, search.weights)
    });
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
