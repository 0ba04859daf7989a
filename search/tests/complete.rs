//! Compares complete searches with the counts that the reference implementation of HATETRIS produced
//! and with a brute-force search. The latter keeps each level (the wells that are possible after a
//! number of pieces) in a set.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{
    Children, Emulator, Enemy, Geometry, Piece, Rules, Well, play, replay_of_wells,
};
use hatebeam_search::complete::{
    GameTree, MIN_MEMORY, Progress, Resources, Solution, SolveError, check_scratch, solve,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn game(width: usize, height: usize) -> GameTree {
    GameTree {
        geometry: Geometry::new(width, height).unwrap(),
        rules: Rules::default(),
        enemy: Enemy::Hatetris,
    }
}

fn resources(threads: usize) -> Resources {
    Resources {
        threads,
        memory: 1 << 30,
        scratch: std::env::temp_dir(),
    }
}

fn solved_with(game: GameTree, resources: &Resources) -> Result<Solution, SolveError> {
    let cancel = AtomicBool::new(false);
    let mut levels = Vec::new();
    let mut on_level = |level: usize, wells: u64| {
        assert_eq!(level, levels.len());
        levels.push(wells);
    };
    let solution = solve(
        game,
        resources,
        &cancel,
        &Progress::default(),
        &mut on_level,
    )?;
    assert_eq!(levels, solution.levels);
    assert!(solution.bytes > 0);
    // The best game has at least one piece, because a game without pieces has no replay.
    assert!(solution.best.len() > 1);
    // The stored sizes are not compared, because they depend on the thread count and the memory
    // limit.
    Ok(Solution {
        bytes: 0,
        scratch_bytes: 0,
        ..solution
    })
}

fn solved(game: GameTree) -> Solution {
    solved_with(game, &resources(2)).unwrap()
}

/// Returns the number of wells in each level, counted by collecting the wells in sets.
fn brute_force(game: GameTree) -> Vec<u64> {
    let emulator = Emulator::new(game.geometry, game.rules);
    let mut children = Children::new();
    let mut level = HashSet::from([Well::EMPTY]);
    let mut counts = Vec::new();
    while !level.is_empty() {
        let mut next = HashSet::new();
        for well in &level {
            match game.enemy {
                Enemy::Lovetris => emulator.children(well, Piece::I, &mut children),
                Enemy::Burgiel => {
                    let piece = [Piece::S, Piece::Z][counts.len() % 2];
                    emulator.children(well, piece, &mut children);
                }
                _ => {
                    emulator.expand(well, &mut children);
                }
            }
            next.extend(children.wells().iter().copied());
        }
        counts.push(level.len() as u64);
        level = next;
    }
    counts
}

/// Plays the wells of a game by the exact rules and returns the number of lines cleared.
fn played(game: GameTree, wells: &[Well]) -> u32 {
    let GameTree {
        geometry,
        rules,
        enemy,
    } = game;
    let keys = replay_of_wells(geometry, rules, enemy, wells, false).unwrap();
    let record = play(geometry, rules, enemy, &keys);
    assert!(!record.over);
    assert_eq!(record.wells().collect::<Vec<_>>(), wells);
    record.score
}

#[derive(Deserialize)]
struct SmallWells {
    real_rules: BTreeMap<String, (u32, usize, u64)>,
    lines_clear_above_bar: BTreeMap<String, (u32, usize, u64)>,
}

#[test]
fn small_wells_match_reference_implementation() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../game/tests/vectors/small_wells.json"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let published: SmallWells = serde_json::from_str(&text).unwrap();
    for (table, clear_above_bar) in [
        (published.real_rules, false),
        (published.lines_clear_above_bar, true),
    ] {
        assert!(table.len() > 10);
        for (size, (best, longest, widest)) in table {
            let (width, height) = size.split_once('x').unwrap();
            let mut game = game(width.parse().unwrap(), height.parse().unwrap());
            game.rules = Rules { clear_above_bar };
            let solution = solved(game);
            let found = (
                solution.best_lines,
                solution.longest.len() - 1,
                *solution.levels.iter().max().unwrap(),
            );
            assert_eq!(found, (best, longest, widest), "{size} {clear_above_bar}");
            assert_eq!(played(game, &solution.best), best, "{size}");
            played(game, &solution.longest);
        }
    }
}

#[test]
fn levels_match_brute_force() {
    for (width, height) in [(4, 3), (5, 4), (7, 4), (9, 4), (16, 3), (8, 5), (16, 2)] {
        let game = game(width, height);
        assert_eq!(solved(game).levels, brute_force(game), "{width} x {height}");
    }
    for (width, height) in [(5, 4), (6, 3), (10, 2), (10, 3)] {
        for enemy in [Enemy::Mild, Enemy::Burgiel, Enemy::Lovetris] {
            if (width, enemy) == (5, Enemy::Lovetris) {
                continue; // this game can continue forever
            }
            let mut game = game(width, height);
            game.enemy = enemy;
            let solution = solved(game);
            assert_eq!(solution.levels, brute_force(game), "{enemy}");
            assert_eq!(played(game, &solution.best), solution.best_lines);
            played(game, &solution.longest);
        }
    }
}

#[test]
fn solution_does_not_depend_on_threads_or_memory() {
    let game = game(10, 5);
    let expected = solved(game);
    for threads in [1, 8] {
        assert_eq!(solved_with(game, &resources(threads)).unwrap(), expected);
    }
    // With 300 threads, each thread uses the minimum size of the buffers. The unit tests use even
    // lower limits and check scratch files.
    for threads in [2, 300] {
        let tight = Resources {
            threads,
            memory: MIN_MEMORY,
            scratch: std::env::temp_dir(),
        };
        assert_eq!(solved_with(game, &tight).unwrap(), expected);
    }
}

#[test]
fn endless_game_is_rejected() {
    let mut shallow = game(4, 3);
    shallow.rules.clear_above_bar = true;
    let with_enemy = |enemy, width| GameTree {
        enemy,
        ..game(width, 4)
    };
    for endless in [
        game(4, 4),
        game(4, 6),
        shallow,
        with_enemy(Enemy::Lovetris, 5),
        with_enemy(Enemy::Burgiel, 8),
    ] {
        let error = solved_with(endless, &resources(2)).unwrap_err();
        assert!(matches!(error, SolveError::Endless { .. }), "{error}");
    }
}

#[test]
fn unsupported_search_or_resources_are_rejected() {
    let mut brzustowski = game(10, 4);
    brzustowski.enemy = Enemy::Brzustowski;
    let error = solved_with(brzustowski, &resources(1)).unwrap_err();
    assert!(matches!(error, SolveError::Enemy(_)), "{error}");
    let error = solved_with(game(10, 16), &resources(1)).unwrap_err();
    assert!(
        matches!(error, SolveError::TooLarge { cells: 160 }),
        "{error}"
    );
    let mut too_little = resources(1);
    too_little.memory = 1000;
    let error = solved_with(game(10, 4), &too_little).unwrap_err();
    assert!(matches!(error, SolveError::Memory(1000)), "{error}");
    let error = check_scratch(Path::new("/missing/folder")).unwrap_err();
    assert!(error.to_string().contains("/missing/folder"), "{error}");
}

#[test]
fn cancelled_search_returns_error() {
    let (cancel, progress) = (AtomicBool::new(true), Progress::default());
    let stopped = solve(
        game(10, 6),
        &resources(2),
        &cancel,
        &progress,
        &mut |_, _| {},
    );
    assert!(matches!(stopped, Err(SolveError::Cancelled)));
}
