//! Compares the backward emulator with the forward emulator and with the oracle (the slow emulator that
//! follows the rules cell by cell).

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{ABOVE_BAR, Random, STANDARD, bench_wells, emulators, greedy_wells, random_wells};
use hatebeam_game::reference::Reference;
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, EnemyState, Geometry, Offer, Parent, Piece, Well,
};

/// Checks that each well is among the parents of its children, and that each child is among the
/// children of its parents.
fn check_inverse(emulator: &Emulator, wells: &[Well]) {
    let mut backward = Backward::new(emulator);
    let (mut children, mut parents, mut grandchildren) =
        (Children::new(), Vec::new(), Children::new());
    for (index, well) in wells.iter().enumerate() {
        let piece = emulator.expand(well, &mut children);
        // Check one child per well, and all children with cleared lines, which are rare.
        let turn = index % children.len().max(1);
        for (at, (child, lines)) in children.iter().enumerate() {
            if at != turn && lines == 0 {
                continue;
            }
            backward.parents(child, &mut parents);
            let wanted = Parent {
                lines,
                piece,
                well: *well,
            };
            assert!(
                parents.contains(&wanted),
                "{wanted:?} is missing from the parents of {child:?}: {parents:?}"
            );
            assert!(parents.is_sorted() && parents.windows(2).all(|pair| pair[0] != pair[1]));
            for parent in &parents {
                assert_eq!(
                    emulator.expand(&parent.well, &mut grandchildren),
                    parent.piece
                );
                let found = grandchildren
                    .iter()
                    .any(|other| other == (child, parent.lines));
                assert!(found, "{parent:?} does not lead to {child:?}");
            }
        }
    }
}

#[test]
fn backward_inverts_forward_on_random_play() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check_inverse(&emulator, &random_wells(&emulator, 60_000, 7));
}

#[test]
fn backward_inverts_forward_on_a_greedy_beam() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check_inverse(&emulator, &greedy_wells(&emulator, 60_000, 300));
}

#[test]
fn backward_inverts_forward_in_every_geometry() {
    for (width, height) in (5..=15).flat_map(|w| [1, 2, 3, 5, 8, 12, 13, 16].map(|h| (w, h))) {
        let geometry = Geometry::new(width, height).unwrap();
        for rules in [STANDARD, ABOVE_BAR] {
            // Check fewer wells if the slow oracle handles the highest stacks.
            let slow = rules == ABOVE_BAR && height > 12;
            let count = if slow { 3 } else { 150 };
            let emulator = Emulator::new(geometry, rules);
            check_inverse(&emulator, &random_wells(&emulator, count, 3));
        }
    }
}

#[test]
fn every_simd_level_finds_same_parents_as_oracle() {
    for (width, height) in [(10, 16), (10, 4), (7, 5), (5, 8), (15, 3), (4, 4), (16, 2)] {
        let geometry = Geometry::new(width, height).unwrap();
        for rules in [STANDARD, ABOVE_BAR] {
            let oracle = Reference::new(geometry, rules);
            let first = Emulator::new(geometry, rules);
            let wells = random_wells(&first, 40, 11);
            for well in wells.iter().step_by(7) {
                let expected = oracle.parents(well, |parent, piece| oracle.piece(parent) == piece);
                for emulator in emulators(geometry, rules) {
                    let mut parents = Vec::new();
                    Backward::new(&emulator).parents(well, &mut parents);
                    assert_eq!(parents, expected, "{emulator:?} {well:?}");
                }
            }
        }
    }
}

#[test]
fn all_simd_levels_find_same_parents_for_beam_wells() {
    let mut all: Vec<_> = emulators(Geometry::STANDARD, STANDARD)
        .iter()
        .map(Backward::new)
        .collect();
    for well in bench_wells("bench_beam.txt").iter().step_by(20) {
        let mut expected: Option<Vec<Parent>> = None;
        for backward in &mut all {
            let mut parents = Vec::new();
            backward.parents(well, &mut parents);
            let expected = expected.get_or_insert_with(|| parents.clone());
            assert_eq!(&parents, expected, "{well:?}");
            assert!(!parents.is_empty());
        }
    }
}

#[test]
fn parents_by_finds_every_parent_with_an_offered_piece() {
    const OFFERED: &[Piece] = &[Piece::I, Piece::T];
    for (width, height) in [(10, 16), (6, 5), (8, 4)] {
        let geometry = Geometry::new(width, height).unwrap();
        let emulator = Emulator::new(geometry, STANDARD);
        let mut backward = Backward::new(&emulator);
        let oracle = Reference::new(geometry, STANDARD);
        let (mut children, mut parents) = (Children::new(), Vec::new());
        for (index, well) in random_wells(&emulator, 4_000, 5).iter().enumerate() {
            let piece = OFFERED[index % 2];
            emulator.children(well, piece, &mut children);
            // Check all children with cleared lines, plus one child of every 50th well.
            let clearing = children.iter().filter(|(_, lines)| *lines > 0);
            let rest = children.iter().take(usize::from(index % 50 == 0));
            for (child, lines) in clearing.chain(rest) {
                backward.parents_by(child, Offer::AnyOf(OFFERED), &mut parents);
                let wanted = Parent {
                    lines,
                    piece,
                    well: *well,
                };
                assert!(
                    parents.contains(&wanted),
                    "{wanted:?} is missing from the parents of {child:?}"
                );
                if index % 200 == 0 {
                    let offered = |_: &Well, piece: Piece| OFFERED.contains(&piece);
                    assert_eq!(parents, oracle.parents(child, offered));
                }
            }
        }
    }
}

#[test]
fn offer_of_enemy_includes_every_piece_that_the_enemy_gives() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    let mut backward = Backward::new(&emulator);
    let (mut children, mut parents) = (Children::new(), Vec::new());
    for enemy in Enemy::ALL {
        let mut random = Random(enemy as u64);
        let (mut state, mut well) = (EnemyState::new(enemy), Well::EMPTY);
        for _ in 0..300 {
            let piece = state.next_piece(&emulator, &well, &mut children);
            emulator.children(&well, piece, &mut children);
            if children.is_empty() {
                (state, well) = (EnemyState::new(enemy), Well::EMPTY);
                continue;
            }
            let at = random.below(children.len());
            let (child, lines) = (children.wells()[at], children.lines()[at]);
            backward.parents_by(&child, Offer::of(enemy), &mut parents);
            assert!(
                parents.contains(&Parent { lines, piece, well }),
                "{enemy}: {well:?} to {child:?}"
            );
            well = child;
        }
    }
}

#[test]
fn well_with_empty_row_has_no_parents() {
    let text = "000000000000000000000000000000000000000001000003";
    let well = Well::from_hex(Geometry::STANDARD, text).unwrap();
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    let mut parents = vec![];
    Backward::new(&emulator).parents(&well, &mut parents);
    assert!(parents.is_empty());
}
