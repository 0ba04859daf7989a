//! Checks that the keys that [`PathFinder`] finds for a child produce this child when they are played, and
//! that no shorter sequence produces it.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{STANDARD, expansions, greedy_wells, random_wells};
use hatebeam_game::reference::Reference;
use hatebeam_game::{Board, Children, Emulator, Geometry, Key, PathFinder, Piece, Position, Well};
use std::collections::{BTreeMap, HashSet};

/// Plays the keys by the rules and returns the well after the lock. Panics unless the last key
/// locks the piece and all others move it.
fn press(board: &Board, piece: Piece, keys: &[Key]) -> Well {
    let mut position = Position::spawn(board.geometry());
    for (at, &key) in keys.iter().enumerate() {
        let next = position.moved(key);
        if board.is_free(piece, next) {
            position = next;
        } else {
            assert_eq!(
                (key, at),
                (Key::Down, keys.len() - 1),
                "a key had no effect"
            );
            let lock = board.lock(piece, position, STANDARD);
            assert!(!lock.over);
            return lock.board.well();
        }
    }
    panic!("the piece is not locked after {keys:?}");
}

fn check(wells: &[Well]) {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    let mut paths = PathFinder::new(Geometry::STANDARD, STANDARD);
    let (mut children, mut keys) = (Children::new(), Vec::new());
    for (index, well) in wells.iter().enumerate() {
        let piece = emulator.expand(well, &mut children);
        let Some(child) = children.wells().get(index % children.len().max(1)) else {
            continue;
        };
        keys.clear();
        assert!(
            paths.find(well, piece, child, &mut keys),
            "{well:?} to {child:?}"
        );
        assert_eq!(
            press(&Board::new(Geometry::STANDARD, well), piece, &keys),
            *child
        );
    }
}

#[test]
fn key_paths_lead_to_children_of_random_wells() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check(&random_wells(&emulator, 60_000, 17));
}

#[test]
fn key_paths_lead_to_children_of_beam_wells() {
    let emulator = Emulator::new(Geometry::STANDARD, STANDARD);
    check(&greedy_wells(&emulator, 60_000, 400));
}

/// Returns the length of the shortest key path to each child in which the game is not over, found by
/// pressing every key in every reachable position.
fn plain_search(well: &Well, piece: Piece) -> BTreeMap<Well, usize> {
    let board = Board::new(Geometry::STANDARD, well);
    let mut lengths = BTreeMap::new();
    let mut now = vec![Position::spawn(Geometry::STANDARD)];
    let mut seen: HashSet<Position> = now.iter().copied().collect();
    for length in 1.. {
        let mut next = Vec::new();
        for position in now {
            for key in Key::ALL {
                let to = position.moved(key);
                if board.is_free(piece, to) {
                    if seen.insert(to) {
                        next.push(to);
                    }
                } else if key == Key::Down {
                    let lock = board.lock(piece, position, STANDARD);
                    if !lock.over {
                        lengths.entry(lock.board.well()).or_insert(length);
                    }
                }
            }
        }
        if next.is_empty() {
            break;
        }
        now = next;
    }
    lengths
}

#[test]
fn key_paths_are_the_shortest() {
    let mut finder = PathFinder::new(Geometry::STANDARD, STANDARD);
    let oracle = Reference::new(Geometry::STANDARD, STANDARD);
    let mut keys = Vec::new();
    for expansion in expansions("expand_play.jsonl").iter().step_by(8) {
        let well = Well::from_hex(Geometry::STANDARD, &expansion.well).unwrap();
        for piece in Piece::ALL {
            let lengths = plain_search(&well, piece);
            for (child, &length) in &lengths {
                keys.clear();
                assert!(finder.find(&well, piece, child, &mut keys));
                assert_eq!(keys.len(), length, "{well:?} {piece} {child:?}");
            }
            let outcome = oracle.expand(&well, piece);
            assert_eq!(lengths.len(), outcome.children.len());
            assert_eq!(finder.find_end(&well, piece, &mut keys), outcome.can_die);
        }
    }
}
