//! Tests of the searches for Nintendo Tetris. They must reproduce the moves, results and summary of the published
//! games. The expected games are test vectors from an independent implementation of the published searches.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_agents::nes::{
    Bfs, Branching, GameRules, Move, Search, Summary, Widths, article_games, find_search, play,
    play_traced,
};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{ArticleSets, Rows, WEIGHTS_BFS};
use serde_json::{Value, json};

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/nes_games.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn trace(search: &mut dyn Search, pieces: &[Piece], moves: usize) -> Vec<Value> {
    let mut trace = Vec::new();
    play_traced(search, pieces, &GameRules::ARTICLE, |made: &Move| {
        let at = made.placement;
        trace.push(json!([
            made.piece.to_string(),
            at.orientation,
            at.x,
            at.y,
            made.lines,
            made.points
        ]));
        trace.len() < moves
    });
    trace
}

#[test]
fn bfs_reproduces_results_of_published_games() {
    let vectors = vectors();
    let results = article_games(205, 150, 2, &GameRules::ARTICLE, || {
        Bfs::new(Rows::Twenty, WEIGHTS_BFS)
    });
    for expected in vectors["bfs_results"].as_array().unwrap() {
        let game = expected[0].as_u64().unwrap() as usize;
        let result = &results[game];
        let score = result.score;
        assert_eq!(
            json!([game, score.points, score.level, score.lines, result.moves]),
            *expected
        );
    }
    let summary = Summary::of(&results).unwrap();
    assert_eq!(summary.points.median, 1_066_910.0);
    assert_eq!((summary.points.mean * 100.0).round(), 105_301_573.0);
    assert_eq!(summary.points.max, 1_300_780.0);
    assert_eq!(
        (summary.maxouts, summary.complete, summary.moves),
        (122, 146, 87_493)
    );
}

#[test]
fn bfs_reproduces_moves_of_published_games() {
    let vectors = vectors();
    for expected in vectors["bfs_traces"].as_array().unwrap() {
        let pieces = Piece::parse_sequence(expected["pieces"].as_str().unwrap()).unwrap();
        let moves = expected["moves"].as_array().unwrap();
        let found = trace(
            &mut Bfs::new(Rows::Twenty, WEIGHTS_BFS),
            &pieces,
            moves.len(),
        );
        assert_eq!(found[..moves.len().min(found.len())], moves[..found.len()]);
        // The trace may be one move shorter than the expected moves, because the last piece is only a preview or cannot
        // spawn.
        assert!(found.len() + 1 >= moves.len());
    }
}

#[test]
fn branching_search_reproduces_moves_of_published_game() {
    let vectors = vectors();
    let mut sets = ArticleSets::new(205);
    let game = sets.game();
    for expected in vectors["branch_traces"].as_array().unwrap() {
        assert_eq!(expected["game"], 0);
        let moves = expected["moves"].as_array().unwrap();
        let mut search = Branching::new(Rows::Twenty, WEIGHTS_BFS, Widths::ARTICLE);
        assert_eq!(trace(&mut search, &game, moves.len()), *moves);
    }
}

#[test]
fn results_do_not_depend_on_thread_count() {
    let run = |threads| {
        article_games(7, 6, threads, &GameRules::ARTICLE, || {
            Bfs::new(Rows::Twenty, WEIGHTS_BFS)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn stacking_search_clears_mostly_four_rows_at_once_whatever_the_thread_count() {
    let search = find_search("stacking").unwrap();
    let widths = Some("6/2/1".parse().unwrap());
    let run = |threads| {
        article_games(7, 3, threads, &GameRules::ARTICLE, || {
            search.with_weights(Rows::Twenty, widths, search.weights)
        })
    };
    let results = run(1);
    assert_eq!(results, run(2));
    let summary = Summary::of(&results).unwrap();
    let bfs = article_games(7, 3, 1, &GameRules::ARTICLE, || {
        Bfs::new(Rows::Twenty, WEIGHTS_BFS)
    });
    let bfs = Summary::of(&bfs).unwrap();
    assert!(summary.points.mean > bfs.points.mean, "{summary:?} {bfs:?}");
}

#[test]
fn game_ends_if_no_pieces_are_left_or_a_piece_cannot_spawn() {
    let mut search = Bfs::new(Rows::Twenty, WEIGHTS_BFS);
    let none = play(&mut search, &[Piece::I], &GameRules::ARTICLE);
    assert_eq!((none.moves, none.complete), (0, false));
    // Every game with only S and Z pieces is lost.
    let pieces: Vec<Piece> = (0..1000)
        .map(|i| if i % 3 == 0 { Piece::S } else { Piece::Z })
        .collect();
    let lost = play(&mut search, &pieces, &GameRules::ARTICLE);
    assert!(lost.moves < 999 && !lost.complete);
}
