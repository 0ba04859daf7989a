//! Compares the endgame search with whole game trees, and tests its limits.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};
use hatebeam_search::endgame::{Endgame, EndgameLimits, EndgameResult};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn search(endgame: &mut Endgame, well: &Well, limits: EndgameLimits) -> EndgameResult {
    endgame.search(well, &limits, &AtomicBool::new(false))
}

/// Checks that the wells of `outcome` form a game that starts in `from` and clears `outcome.lines`
/// lines.
fn check(emulator: &Emulator, from: &Well, outcome: &EndgameResult) {
    let mut children = Children::new();
    let (mut well, mut total) = (*from, 0);
    for next in &outcome.wells {
        emulator.expand(&well, &mut children);
        let (_, lines) = children.iter().find(|(child, _)| *child == next).unwrap();
        total += u32::from(lines);
        well = *next;
    }
    assert_eq!(total, outcome.lines);
}

/// Returns the maximum number of lines that can still be cleared from a well. `known` contains the
/// results for all wells seen so far.
fn value(emulator: &Emulator, well: &Well, known: &mut HashMap<Well, u32>) -> u32 {
    if let Some(value) = known.get(well) {
        return *value;
    }
    let mut children = Children::new();
    emulator.expand(well, &mut children);
    let children: Vec<(Well, u8)> = children.iter().map(|(w, lines)| (*w, lines)).collect();
    let values = children
        .iter()
        .map(|(child, lines)| u32::from(*lines) + value(emulator, child, known));
    let best = values.max().unwrap_or(0);
    known.insert(*well, best);
    best
}

#[test]
fn values_of_empty_wells_match_reference_implementation() {
    #[derive(Deserialize)]
    struct SmallWells {
        real_rules: BTreeMap<String, (u32, u32, u64)>,
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../game/tests/vectors/small_wells.json"
    );
    let published: SmallWells =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (size, (best, ..)) in published.real_rules {
        let (width, height) = size.split_once('x').unwrap();
        let geometry = Geometry::new(width.parse().unwrap(), height.parse().unwrap()).unwrap();
        let emulator = Emulator::new(geometry, Rules::default());
        let mut endgame = Endgame::new(&emulator, 64 << 20);
        let outcome = search(&mut endgame, &Well::EMPTY, EndgameLimits::default());
        assert_eq!((outcome.lines, outcome.proven), (best, true), "{size}");
        check(&emulator, &Well::EMPTY, &outcome);
    }
}

#[test]
fn values_match_brute_force_for_all_table_sizes() {
    let geometry = Geometry::new(8, 4).unwrap();
    let emulator = Emulator::new(geometry, Rules::default());
    let mut known = HashMap::new();
    value(&emulator, &Well::EMPTY, &mut known);
    assert!(known.len() > 1000);
    for table_bytes in [0, 1000, 1 << 20] {
        let mut endgame = Endgame::new(&emulator, table_bytes);
        let mut wells: Vec<&Well> = known.keys().collect();
        wells.sort();
        for well in wells.into_iter().step_by(29) {
            let outcome = search(&mut endgame, well, EndgameLimits::default());
            assert_eq!((outcome.lines, outcome.proven), (known[well], true));
            check(&emulator, well, &outcome);
        }
    }
}

#[test]
fn stopped_search_returns_a_valid_game() {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    for nodes in [1, 100, 20_000] {
        let limits = EndgameLimits {
            nodes: Some(nodes),
            deadline: None,
        };
        let outcomes = [(); 2].map(|()| {
            let mut endgame = Endgame::new(&emulator, 1 << 20);
            let outcome = search(&mut endgame, &Well::EMPTY, limits);
            assert!(endgame.nodes() <= nodes + 1000);
            outcome
        });
        assert_eq!(outcomes[0], outcomes[1]);
        assert!(!outcomes[0].proven);
        check(&emulator, &Well::EMPTY, &outcomes[0]);
    }
    let begun = Instant::now();
    let limits = EndgameLimits {
        nodes: None,
        deadline: Some(begun + Duration::from_millis(100)),
    };
    let mut endgame = Endgame::new(&emulator, 1 << 20);
    assert!(!search(&mut endgame, &Well::EMPTY, limits).proven);
    let outcome = endgame.search(
        &Well::EMPTY,
        &EndgameLimits::default(),
        &AtomicBool::new(true),
    );
    assert!(!outcome.proven);
    assert!(begun.elapsed() < Duration::from_secs(20));
}
