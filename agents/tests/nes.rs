//! Tests of the searches for Nintendo Tetris. They must reproduce the moves, results and summary of the published
//! games. The expected games are test vectors from an independent implementation of the published searches.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_agents::nes::{
    Bfs, Branching, GameResult, GameRules, LEARNED_FILE, LearningError, LearningSettings, Play,
    Search, Widths, find_search, learn, play, play_sets, read_patterns, write_patterns,
};
use hatebeam_agents::{Contest, NesPlayer, Series, SeriesSummary, WeightsError};
use hatebeam_files::{FolderLock, sealed, unsealed};
use hatebeam_tetris::nes::{ArticleSets, Cartridge, MAXOUT, Rows, Transitions, WEIGHTS_BFS};
use hatebeam_tetris::{Piece, Rng};
use serde_json::{Value, json};
use std::path::Path;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/nes_games.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Plays the first `games` games of a seed of the article's generator.
fn article_games<S: Search>(
    seed: u32,
    games: usize,
    threads: usize,
    rules: &GameRules,
    search: impl Fn() -> S + Sync,
) -> Vec<GameResult> {
    let mut sets = ArticleSets::new(seed);
    let sets: Vec<Vec<Piece>> = (0..games).map(|_| sets.game()).collect();
    play_sets(&sets, threads, rules, search, || true)
}

fn summary(results: &[GameResult]) -> SeriesSummary {
    let series = Series {
        name: "search".to_owned(),
        games: results.iter().map(|&result| result.into()).collect(),
        seconds: 1.0,
    };
    let contest = Contest {
        series: vec![series],
        unit: "points",
        goal: Some(("maxout", u64::from(MAXOUT))),
    };
    contest.summaries().remove(0)
}

fn trace(search: &mut dyn Search, pieces: &[Piece], moves: usize) -> Vec<Value> {
    let mut play = Play::new(&GameRules::ARTICLE);
    let step = |pair: &[Piece]| {
        let before = play.result().score.lines;
        let at = play.step(search, pair[0], pair[1])?;
        let (piece, score) = (pair[0].to_string(), play.result().score);
        let lines = score.lines - before;
        let made = json!([piece, at.orientation, at.x, at.y, lines, score.points]);
        Some(made)
    };
    pieces.windows(2).take(moves).map_while(step).collect()
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
    let summary = summary(&results);
    assert_eq!(summary.median, 1_066_910.0);
    assert_eq!((summary.mean * 100.0).round(), 105_301_573.0);
    assert_eq!(summary.goal_percent, Some(100.0 * 122.0 / 150.0));
    assert_eq!(
        (summary.max, summary.complete, summary.pieces),
        (1_300_780, 146, 87_493)
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
fn learned_search_reaches_high_scores_whatever_the_thread_count() {
    let search = find_search("learned").unwrap();
    let run = |threads, widths: &str| {
        let widths = Some(widths.parse().unwrap());
        article_games(7, 6, threads, &GameRules::ARTICLE, || {
            search.with_weights(Rows::Twenty, widths, search.weights)
        })
    };
    let (pairs, ahead) = (run(1, "1/1/0"), run(1, "6/1/1"));
    assert_eq!(ahead, run(2, "6/1/1"));
    for results in [pairs, ahead] {
        let summary = summary(&results);
        assert_eq!(summary.complete, 6);
        assert!(summary.mean > 1_200_000.0, "{summary:?}");
    }
}

/// Learns in a folder, and stops after `saves` saves.
fn learn_some(folder: &Path, seed: u64, saves: usize) -> Result<bool, LearningError> {
    let settings = LearningSettings { seed, games: 1200 };
    let mut count = 0;
    learn(folder, &GameRules::ARTICLE, &settings, |_| {
        count += 1;
        count < saves
    })
}

#[test]
fn interrupted_learning_gives_the_same_weights_and_refuses_other_settings() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [whole, parts] = folders.each_ref().map(|folder| folder.path());
    assert!(learn_some(whole, 1, usize::MAX).unwrap());
    for done in [false, false, true] {
        assert_eq!(learn_some(parts, 1, 1).unwrap(), done);
    }
    // A process that is killed between the two files of a save leaves no weights, or old ones.
    std::fs::remove_file(parts.join(LEARNED_FILE)).unwrap();
    assert!(learn_some(parts, 1, 1).unwrap());
    for file in ["learning.bin", LEARNED_FILE] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
        assert!(read(whole) == read(parts), "{file}");
    }
    let other = learn_some(parts, 2, 1);
    assert!(matches!(
        other,
        Err(LearningError::Settings {
            seed: 1,
            games: 1200,
            ..
        })
    ));

    let path = whole.join(LEARNED_FILE);
    let player = NesPlayer::read(&path).unwrap();
    assert_eq!(player.search.name, "learned");
    let weights: Vec<f32> = player.weights.iter().map(|&weight| weight as f32).collect();
    assert!(weights.iter().any(|&weight| weight > 10.0));
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(write_patterns(&weights), bytes);
    assert_eq!(read_patterns(&bytes[..bytes.len() - 2]), None);
    assert_eq!(
        read_patterns(&[&bytes[..8], b"\x02", &bytes[9..]].concat()),
        None
    );

    std::fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
    let damaged = NesPlayer::read(&path).unwrap_err();
    assert!(
        matches!(damaged, WeightsError::DamagedPatterns(_)),
        "{damaged}"
    );
}

#[test]
fn damaged_state_of_learning_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    learn_some(folder.path(), 1, 1).unwrap();
    let path = folder.path().join("learning.bin");
    let state = std::fs::read(&path).unwrap();
    let mut flipped = state.clone();
    flipped[1000] ^= 1;
    let mut infinite = unsealed(&state).unwrap().to_vec();
    infinite[1000..1004].copy_from_slice(&f32::INFINITY.to_le_bytes());
    for damaged in [&state[..100], &flipped, &sealed(infinite)] {
        std::fs::write(&path, damaged).unwrap();
        assert!(matches!(
            learn_some(folder.path(), 1, 1),
            Err(LearningError::Format(_))
        ));
    }
    std::fs::write(&path, &state).unwrap();
    learn_some(folder.path(), 1, 1).unwrap();
}

#[test]
fn folder_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lock = FolderLock::take(folder.path()).unwrap();
    let second = learn_some(folder.path(), 1, 1);
    assert!(matches!(second, Err(LearningError::InUse(used)) if used == folder.path()));
    drop(lock);
    assert!(!learn_some(folder.path(), 1, 1).unwrap());
}

#[test]
fn learning_improves_play() {
    let folder = tempfile::tempdir().unwrap();
    let settings = LearningSettings {
        seed: 1,
        games: 3000,
    };
    let mut means = Vec::new();
    learn(folder.path(), &GameRules::ARTICLE, &settings, |progress| {
        means.push(progress.mean);
        true
    })
    .unwrap();
    assert!(means[0] < 1000 && means[5] > 100_000, "{means:?}");
}

#[test]
fn gravity_costs_points_and_ends_games_at_level_29() {
    let games = |level, gravity| {
        let rules = GameRules {
            start_level: level,
            gravity,
            ..GameRules::ARTICLE
        };
        let search = || Bfs::new(Rows::Twenty, WEIGHTS_BFS);
        let results = article_games(205, 20, 2, &rules, search);
        let lines = results.iter().map(|result| result.score.lines).sum::<u32>();
        (summary(&results).mean, lines / 20)
    };
    let [(free, _), (falling, lines)] = [false, true].map(|gravity| games(19, gravity));
    assert!(
        falling < 0.95 * free && lines > 40,
        "{falling} of {free} points, {lines} lines"
    );
    let (_, lines) = games(29, true);
    assert!(lines < 100, "{lines} lines at level 29");
}

#[test]
fn searches_use_the_probabilities_of_the_generator() {
    let pieces = Cartridge::from_seed(7).game(400, None, &mut Rng::new(7));
    for name in ["branching", "learned"] {
        let search = find_search(name).unwrap();
        let moves = |transitions| {
            let rules = GameRules {
                transitions,
                ..GameRules::ARTICLE
            };
            let mut search = search.with_weights(rules.rows, None, search.weights);
            let mut play = Play::new(&rules);
            let moves = pieces
                .windows(2)
                .map_while(|pair| play.step(search.as_mut(), pair[0], pair[1]));
            moves.collect::<Vec<_>>()
        };
        let [article, cartridge] = [Transitions::ARTICLE, Transitions::CARTRIDGE].map(moves);
        assert_ne!(article, cartridge, "{name}");
    }
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
