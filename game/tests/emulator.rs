//! Compares the fast emulator at every SIMD level with the test vectors and with the oracle (the slow
//! emulator that follows the rules cell by cell).

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{ABOVE_BAR, STANDARD, bench_wells, emulators, greedy_wells, random_wells};
use hatebeam_game::reference::Reference;
use hatebeam_game::{Children, Clears, Emulator, Follow, Geometry, Piece, Rules, Well};

fn sorted(children: &Children) -> Vec<(Well, u8)> {
    let mut all: Vec<_> = children
        .iter()
        .map(|(well, lines)| (*well, lines))
        .collect();
    all.sort_unstable();
    all
}

/// Checks that every emulator agrees with the oracle on the ratings, the piece that the enemy gives,
/// the children of this piece and of `also`, and the pieces that can clear lines. Also checks that all
/// emulators return the children in the same order.
fn check(emulators: &[Emulator], well: &Well, also: Piece) {
    let (geometry, rules) = (emulators[0].geometry(), emulators[0].rules());
    let oracle = Reference::new(geometry, rules);
    let ratings = Piece::ALL.map(|piece| oracle.rating(well, piece));
    let piece = oracle.piece(well);
    let outcomes = [piece, also].map(|piece| (piece, oracle.expand(well, piece)));
    let mut clears = Clears::default();
    for piece in Piece::ALL {
        oracle.for_each_lock(well, piece, |_, lock| {
            clears.pieces |= u8::from(lock.lines > 0) << piece.index();
            clears.several |= u8::from(lock.lines > 1) << piece.index();
        });
    }
    let first_not_several = Piece::ALL
        .into_iter()
        .find(|piece| clears.several >> piece.index() & 1 == 0);
    assert_eq!(
        clears.first(),
        first_not_several.filter(|piece| clears.pieces >> piece.index() & 1 == 1)
    );
    let choices: [fn(Clears) -> Option<Piece>; 2] = [Clears::single, Clears::first];
    let followed = choices.map(|choose| {
        let after = choose(clears).map(|piece| {
            let mut after = oracle.expand(well, piece).children;
            after.retain(|&(_, lines)| lines > 0);
            after
        });
        (choose, after)
    });
    let mut children = Children::new();
    let mut first_order: Option<Vec<Well>> = None;
    for emulator in emulators {
        let name = format!("{} {geometry} {rules:?} {well:?}", emulator.level());
        assert_eq!(emulator.ratings(well), ratings, "{name} ratings");
        assert_eq!(emulator.piece(well), piece, "{name} piece");
        for (piece, expected) in &outcomes {
            emulator.children(well, *piece, &mut children);
            assert_eq!(sorted(&children), expected.children, "{name} {piece}");
            assert_eq!(
                children.can_die(),
                expected.can_die,
                "{name} {piece} can die"
            );
        }
        assert_eq!(emulator.clears(well, 0, None), clears, "{name} clears");
        for (choose, expected) in &followed {
            let before = sorted(&children);
            let follow = Follow {
                choose: *choose,
                children: &mut children,
            };
            emulator.clears(well, 0, Some(follow));
            let expected = expected.as_ref().unwrap_or(&before);
            assert_eq!(&sorted(&children), expected, "{name} after line clears");
        }
        let [_, (_, expected)] = &followed;
        let before = sorted(&children);
        let first = emulator.first_clear(well, 0, &mut children);
        assert_eq!(first, clears.first(), "{name} first clear");
        let expected = expected.as_ref().unwrap_or(&before);
        assert_eq!(&sorted(&children), expected, "{name} after first clear");
        assert_eq!(emulator.expand(well, &mut children), piece, "{name} expand");
        assert_eq!(sorted(&children), outcomes[0].1.children, "{name} expand");
        assert_eq!(
            children.can_die(),
            outcomes[0].1.can_die,
            "{name} expand can die"
        );
        let order = first_order.get_or_insert_with(|| children.wells().to_vec());
        assert_eq!(children.wells(), order, "{name} order");
    }
}

fn check_all(geometry: Geometry, rules: Rules, wells: &[Well]) {
    let emulators = emulators(geometry, rules);
    for (index, well) in wells.iter().enumerate() {
        check(&emulators, well, Piece::ALL[index % 7]);
    }
}

#[test]
fn expansions_match_test_vectors() {
    for file in ["expand_records.jsonl", "expand_play.jsonl"] {
        for expected in common::expansions(file) {
            let well = Well::from_hex(Geometry::STANDARD, &expected.well).unwrap();
            for emulator in emulators(Geometry::STANDARD, STANDARD) {
                let mut children = Children::new();
                let piece = emulator.expand(&well, &mut children);
                let mut found: Vec<String> = sorted_text(&children);
                found.sort();
                let mut wanted = expected.children.clone();
                wanted.sort();
                assert_eq!(piece.letter(), expected.piece, "{}", expected.well);
                assert_eq!(found, wanted, "{}", expected.well);
                assert_eq!(children.can_die(), expected.can_die, "{}", expected.well);
            }
        }
    }
}

fn sorted_text(children: &Children) -> Vec<String> {
    let text = |(well, lines): (&Well, u8)| match lines {
        0 => well.to_hex(Geometry::STANDARD),
        _ => format!("{}+{lines}", well.to_hex(Geometry::STANDARD)),
    };
    children.iter().map(text).collect()
}

#[test]
fn every_simd_level_matches_oracle_on_random_play() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check_all(
        Geometry::STANDARD,
        STANDARD,
        &random_wells(&emulator, 15_000, 1),
    );
}

#[test]
fn every_simd_level_matches_oracle_on_a_greedy_beam() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check_all(
        Geometry::STANDARD,
        STANDARD,
        &greedy_wells(&emulator, 20_000, 500),
    );
}

#[test]
fn every_simd_level_matches_oracle_on_benchmark_wells() {
    check_all(
        Geometry::STANDARD,
        STANDARD,
        &bench_wells("bench_random.txt"),
    );
    check_all(Geometry::STANDARD, STANDARD, &bench_wells("bench_beam.txt"));
}

#[test]
fn every_simd_level_matches_oracle_in_every_geometry() {
    for width in 4..=16 {
        for height in 1..=16 {
            let geometry = Geometry::new(width, height).unwrap();
            for rules in [STANDARD, ABOVE_BAR] {
                let emulator = Emulator::new(geometry, rules);
                let mut wells = random_wells(&emulator, 25, (width * height) as u64);
                wells.extend(greedy_wells(&emulator, 15, 5));
                check_all(geometry, rules, &wells);
            }
        }
    }
}

#[test]
fn every_simd_level_matches_oracle_on_well_with_empty_row() {
    let text = "000000000000000000000000000000000000000001000003";
    let well = Well::from_hex(Geometry::STANDARD, text).unwrap();
    assert!(well.has_gap());
    check_all(Geometry::STANDARD, STANDARD, &[well]);
}
