//! Checks that the keys that [`PathFinder`] finds for a child produce this child when they are played.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{greedy_wells, random_wells};
use hatebeam_game::{Board, Children, Emulator, Geometry, Key, PathFinder, Position, Rules, Well};

/// Plays the keys by the rules and returns the well after the lock. Panics unless the last key
/// locks the piece and all others move it.
fn press(board: &Board, piece: hatebeam_game::Piece, keys: &[Key]) -> Well {
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
            let lock = board.lock(piece, position, Rules::default());
            assert!(!lock.over);
            return lock.board.well();
        }
    }
    panic!("the piece is not locked after {keys:?}");
}

fn check(wells: &[Well]) {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let mut paths = PathFinder::new(Geometry::STANDARD, Rules::default());
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
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    check(&random_wells(&emulator, 60_000, 17));
}

#[test]
fn key_paths_lead_to_children_of_beam_wells() {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    check(&greedy_wells(&emulator, 60_000, 400));
}
