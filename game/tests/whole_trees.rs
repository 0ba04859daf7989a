//! Compares whole game trees, level by level, with the counts that the reference implementation of
//! HATETRIS produced (see `tests/vectors/README.md`).

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{ABOVE_BAR, STANDARD, vector};
use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns the distinct (well, score) pairs after one more piece.
fn next_level(emulator: &Emulator, level: &[(Well, u32)]) -> Vec<(Well, u32)> {
    let mut children = Children::new();
    let mut next = Vec::new();
    for (well, score) in level {
        emulator.expand(well, &mut children);
        next.extend(
            children
                .iter()
                .map(|(child, lines)| (*child, score + u32::from(lines))),
        );
    }
    next.sort_unstable();
    next.dedup();
    next
}

#[test]
fn level_sizes_match_reference_implementation() {
    #[derive(Deserialize)]
    struct Perft {
        counts: Vec<usize>,
    }
    let expected: Perft = serde_json::from_str(&vector("perft.json")).unwrap();
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    let mut level = vec![(Well::EMPTY, 0)];
    for (depth, &count) in expected.counts.iter().enumerate() {
        if depth > 0 {
            level = next_level(&emulator, &level);
        }
        assert_eq!(level.len(), count, "depth {depth}");
    }
}

/// Returns the highest score, the number of pieces in the longest game, and the size of the widest
/// level.
fn whole_tree(geometry: Geometry, rules: Rules) -> (u32, u32, usize) {
    let emulator = Emulator::new(geometry, rules);
    let mut level = vec![(Well::EMPTY, 0)];
    let (mut best, mut longest, mut widest) = (0, 0, 0);
    loop {
        level = next_level(&emulator, &level);
        let Some(score) = level.iter().map(|(_, score)| *score).max() else {
            return (best, longest, widest);
        };
        best = best.max(score);
        longest += 1;
        widest = widest.max(level.len());
    }
}

#[derive(Deserialize)]
struct SmallWells {
    real_rules: BTreeMap<String, (u32, u32, usize)>,
    lines_clear_above_bar: BTreeMap<String, (u32, u32, usize)>,
}

fn check_small_wells(expected: &BTreeMap<String, (u32, u32, usize)>, rules: Rules) {
    assert!(!expected.is_empty());
    for (size, &expected) in expected {
        let (width, height) = size.split_once('x').unwrap();
        let geometry = Geometry::new(width.parse().unwrap(), height.parse().unwrap()).unwrap();
        assert_eq!(whole_tree(geometry, rules), expected, "{size} {rules:?}");
    }
}

#[test]
fn small_wells_match_reference_with_real_rules() {
    let wells: SmallWells = serde_json::from_str(&vector("small_wells.json")).unwrap();
    check_small_wells(&wells.real_rules, STANDARD);
}

#[test]
fn small_wells_match_reference_if_lines_clear_above_bar() {
    let wells: SmallWells = serde_json::from_str(&vector("small_wells.json")).unwrap();
    check_small_wells(&wells.lines_clear_above_bar, ABOVE_BAR);
}
