//! Tests of the Monte-Carlo tree search against exhaustive searches and the exact rules.

use crate::search::{Follow, Goal, Mcts, MctsGame, MctsSettings};
use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};
use hatebeam_search::endgame::{Endgame, EndgameLimits};
use hatebeam_search::{Evaluator, EvaluatorKind, EvaluatorSpec, Network, Quiescence};
use hatebeam_train::exact_game;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

static CONTINUE: AtomicBool = AtomicBool::new(false);

fn emulator(width: usize, height: usize) -> Emulator {
    Emulator::new(Geometry::new(width, height).unwrap(), Rules::default())
}

fn search(emulator: &Emulator, settings: MctsSettings) -> MctsGame {
    let spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off);
    let mut evaluator = Evaluator::new(emulator, &spec).unwrap();
    let mcts = Mcts::new(emulator, &mut evaluator, settings);
    mcts.play(&Well::EMPTY, &CONTINUE, |_, _| {})
}

/// Returns the greatest number of a game in which no well occurs twice, by trying all games.
fn brute_force(emulator: &Emulator, goal: Goal, game: &mut Vec<Well>) -> u32 {
    let mut children = Children::new();
    emulator.expand(&game[game.len() - 1], &mut children);
    let children: Vec<(Well, u8)> = children.iter().map(|(&well, n)| (well, n)).collect();
    let mut best = 0;
    for (well, lines) in children {
        if game.contains(&well) {
            continue;
        }
        game.push(well);
        let gain = match goal {
            Goal::Lines => u32::from(lines),
            Goal::Pieces => 1,
        };
        best = best.max(gain + brute_force(emulator, goal, game));
        game.pop();
    }
    best
}

fn gain(game: &MctsGame, goal: Goal) -> u32 {
    match goal {
        Goal::Lines => game.lines,
        Goal::Pieces => game.wells.len() as u32 - 1,
    }
}

/// Checks that a game is possible against HATETRIS Mild and clears its number of lines.
fn check(emulator: &Emulator, game: &MctsGame) {
    let mut children = Children::new();
    let mut total = 0;
    for pair in game.wells.windows(2) {
        emulator.expand(&pair[0], &mut children);
        let (_, lines) = children.iter().find(|(well, _)| **well == pair[1]).unwrap();
        total += u32::from(lines);
    }
    assert_eq!(total, game.lines);
}

#[test]
fn finds_optimum_of_wells_with_four_columns() {
    let mut optima = Vec::new();
    for height in 4..=7 {
        let emulator = emulator(4, height);
        for goal in [Goal::Lines, Goal::Pieces] {
            let best = brute_force(&emulator, goal, &mut vec![Well::EMPTY]);
            let settings = MctsSettings {
                iterations: 2_000,
                goal,
                ..MctsSettings::default()
            };
            let game = search(&emulator, settings);
            check(&emulator, &game);
            assert_eq!(gain(&game, goal), best, "{height} rows, {goal:?}");
            optima.push(best);
        }
    }
    assert_eq!(optima, [1, 3, 1, 4, 3, 7, 3, 8]);
}

#[test]
fn more_iterations_reach_optimum_that_few_miss() {
    let emulator = emulator(8, 5);
    let lines = |iterations| {
        let game = search(
            &emulator,
            MctsSettings {
                iterations,
                ..MctsSettings::default()
            },
        );
        check(&emulator, &game);
        game.lines
    };
    assert!(lines(1) < 3);
    assert_eq!(lines(20_000), 3);
}

#[test]
fn solved_well_has_proven_optimum() {
    for (width, height) in [(6, 5), (8, 4)] {
        let emulator = emulator(width, height);
        let limits = EndgameLimits::default();
        let expected = Endgame::new(&emulator, 1 << 20).search(&Well::EMPTY, &limits, &CONTINUE);
        assert!(expected.proven);
        let settings = MctsSettings {
            iterations: 1_000_000,
            ..MctsSettings::default()
        };
        let game = search(&emulator, settings);
        check(&emulator, &game);
        assert!(game.proven);
        assert_eq!(game.lines, expected.lines);
        assert!(
            game.iterations < 1_000_000,
            "{} iterations",
            game.iterations
        );
    }
}

#[test]
fn equal_wells_are_one_node() {
    // The graph of all wells has as many nodes as there are wells, plus none for repeated ones.
    let emulator = emulator(6, 4);
    let mut level = vec![Well::EMPTY];
    let mut distinct = BTreeSet::from([Well::EMPTY]);
    let mut children = Children::new();
    while let Some(well) = level.pop() {
        emulator.expand(&well, &mut children);
        level.extend(
            children
                .wells()
                .iter()
                .filter(|&&child| distinct.insert(child)),
        );
    }
    let settings = MctsSettings {
        iterations: 1_000_000,
        ..MctsSettings::default()
    };
    let game = search(&emulator, settings);
    assert!(game.proven);
    assert_eq!(game.nodes, distinct.len());
}

#[test]
fn same_seed_gives_same_game() {
    let play = |seed| {
        let settings = MctsSettings {
            seed,
            iterations: 10,
            skip: 0.2,
            ..MctsSettings::default()
        };
        search(&emulator(10, 16), settings)
    };
    let game = play(1);
    assert_eq!(game, play(1));
    assert!((2..6).any(|seed| play(seed).wells != game.wells));
}

#[test]
fn memory_stays_below_limit() {
    let emulator = emulator(10, 16);
    for memory in [1 << 10, 40_000, 1 << 20] {
        for follow in [Follow::Best, Follow::Visits] {
            let settings = MctsSettings {
                memory,
                follow,
                iterations: 100,
                pieces: 40,
                ..MctsSettings::default()
            };
            let game = search(&emulator, settings);
            check(&emulator, &game);
            assert!(game.bytes as u64 <= memory, "{} bytes", game.bytes);
            assert!(game.nodes * 100 <= game.bytes, "{} nodes", game.nodes);
            assert!(game.wells.len() > 15, "{} wells", game.wells.len());
        }
    }
}

#[test]
fn game_is_better_than_greedy_play_and_valid() {
    let emulator = emulator(10, 16);
    for (rollout, follow, estimate) in [
        (usize::MAX, Follow::Best, false),
        (0, Follow::Visits, true),
        (10, Follow::Visits, true),
    ] {
        let network = Network::shipped("network").unwrap();
        let mut evaluator = Evaluator::with_network(&emulator, network.clone(), Quiescence::Off);
        let settings = MctsSettings {
            iterations: 100,
            rollout,
            follow,
            estimate,
            ..MctsSettings::default()
        };
        let mcts = Mcts::new(&emulator, &mut evaluator, settings);
        let game = mcts.play(&Well::EMPTY, &CONTINUE, |_, _| {});
        let exact = exact_game(&game.wells).unwrap();
        assert_eq!(exact.lines, game.lines);
        // Greedy play with `network` clears 7 lines.
        assert!(exact.lines > 7, "{} lines, {rollout}", exact.lines);
    }
}

#[test]
fn cancelled_search_returns_game_so_far() {
    let emulator = emulator(10, 16);
    let spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off);
    let mut evaluator = Evaluator::new(&emulator, &spec).unwrap();
    let mcts = Mcts::new(&emulator, &mut evaluator, MctsSettings::default());
    let cancel = AtomicBool::new(false);
    let game = mcts.play(&Well::EMPTY, &cancel, |pieces, _| {
        cancel.store(pieces == 5, Ordering::Relaxed);
    });
    check(&emulator, &game);
    assert_eq!(game.iterations, 500);
}
