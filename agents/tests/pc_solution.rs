//! Tests of solutions for people: pictures, keys and Fumen codes.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use fumen::{CellColor, Fumen};
use hatebeam_agents::pc::{PcError, PcGame, Solver, Step};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{
    DropMode, KickTable, Kicks, LowField, Orientation, SrsKey, SrsPlacement, parse_field,
};
use std::collections::BTreeSet;

fn game(rows: &[&str], queue: &str) -> PcGame {
    PcGame {
        field: LowField::of(&parse_field(rows).unwrap(), 4).unwrap(),
        queue: Piece::parse_sequence(queue).unwrap(),
        hold: true,
        starts_held: false,
        kicks: KickTable::built_in(Kicks::Srs),
        drop: DropMode::Soft,
    }
}

fn solver(game: &PcGame) -> Solver {
    Solver::new(&game.kicks, game.drop)
}

#[test]
fn two_pieces_are_shown_with_keys_and_picture() {
    let game = game(
        &["XXXXXXXX__", "XXXXXXXX__", "XXXXXXXX__", "XXXXXXXX__"],
        "OO",
    );
    let solution = solver(&game)
        .solve(&game.field, &game.queue, true)
        .unwrap()
        .unwrap();
    let steps = game.steps(&solution).unwrap();
    let right = [SrsKey::Right; 4];
    let keys = [&right[..], &[SrsKey::HardDrop]].concat();
    assert_eq!(steps.len(), 2);
    for step in &steps {
        assert_eq!((step.hold, &step.keys, step.lines), (false, &keys, 2));
    }
    assert_eq!(game.picture(&solution), ["XXXXXXXXOO"; 4]);
}

#[test]
fn picture_shows_pieces_in_rows_that_were_cleared_before() {
    // The lowest row is cleared first, and the square then falls one row lower.
    let game = game(&[], "");
    let game = PcGame {
        field: LowField::of(
            &parse_field(&["XXXX__XXXX", "XXXX__XXXX", "____XXXXXX"]).unwrap(),
            3,
        )
        .unwrap(),
        queue: vec![Piece::I, Piece::O],
        ..game
    };
    let solution = solver(&game)
        .solve(&game.field, &game.queue, true)
        .unwrap()
        .unwrap();
    assert_eq!(
        game.picture(&solution),
        ["XXXXOOXXXX", "XXXXOOXXXX", "IIIIXXXXXX"]
    );
}

/// Plays moves with a current piece and a hold slot. Checks that the placed piece is the current one.
fn assert_hold(game: &PcGame, steps: &[Step]) {
    let mut coming = game.queue.iter().copied();
    let mut slot = if game.starts_held {
        coming.next()
    } else {
        None
    };
    let mut current = coming.next();
    for step in steps {
        if step.hold {
            let before = slot.is_some();
            std::mem::swap(&mut slot, &mut current);
            if !before {
                current = coming.next();
            }
        }
        assert_eq!(current, Some(step.placement.piece), "{steps:?}");
        current = coming.next();
    }
}

#[test]
fn hold_is_pressed_only_for_the_held_piece() {
    let mut presses = 0;
    for (queue, starts_held) in [
        ("SOLTZJIZLSI", false),
        ("LOSJIZTTLIS", true),
        ("TOSLZIJJIOT", false),
        ("LTSOZJILSTO", true),
    ] {
        let game = PcGame {
            starts_held,
            ..game(&[], queue)
        };
        let solution = solver(&game)
            .solve(&game.field, &game.queue, true)
            .unwrap()
            .unwrap();
        let steps = game.steps(&solution).unwrap();
        assert_hold(&game, &steps);
        presses += steps.iter().filter(|step| step.hold).count();
    }
    assert!(presses > 3, "{presses}");
    let t = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft)
        .solve(
            &LowField::empty(4).unwrap(),
            &Piece::parse_sequence("SOLTZJIZLSI").unwrap(),
            true,
        )
        .unwrap()
        .unwrap();
    assert_eq!(game(&[], "ZZ").steps(&t), Err(PcError::NotPlayable));
}

#[test]
fn fumen_codes_are_those_of_the_editor() {
    // A T piece in column 2 on the floor: code of the crate's documentation of the format.
    let game = game(&[], "T");
    let t = SrsPlacement {
        piece: Piece::T,
        orientation: Orientation::Spawn,
        x: 1,
        y: 0,
    };
    assert_eq!(game.fumen(&[t]), "v115@vhAVPJ");
}

#[test]
fn last_page_of_a_fumen_code_clears_the_field() {
    for (rows, queue) in [
        (&[][..], "SOLTZJIZLSI"),
        (&[], "LOSJIZTTLIS"),
        (
            &["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"],
            "TJZSLI",
        ),
    ] {
        let game = game(rows, queue);
        let solution = solver(&game)
            .solve(&game.field, &game.queue, true)
            .unwrap()
            .unwrap();
        let fumen = Fumen::decode(&game.fumen(&solution)).unwrap();
        assert_eq!(fumen.pages.len(), solution.len());
        let mut field = game.field;
        for (page, placement) in fumen.pages.iter().zip(&solution) {
            let cells = page.field.iter().flatten();
            let filled = cells.filter(|cell| **cell != CellColor::Empty).count();
            assert_eq!(
                filled as u32,
                10 * field.rows() as u32 - field.empty_cells()
            );
            field = field.put(*placement);
        }
        let after = fumen.pages.last().unwrap().next_page();
        assert_eq!(after.field, [[CellColor::Empty; 10]; 23]);
        assert_eq!(game.steps(&solution).unwrap().len(), solution.len());
    }
}

#[test]
fn all_perfect_clears_are_visited_once() {
    let game = game(
        &["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"],
        "TJZSLI",
    );
    let mut found = Vec::new();
    let visit = |solution: &[SrsPlacement]| {
        found.push(solution.to_vec());
        true
    };
    solver(&game)
        .solve_each(&game.field, &game.queue, true, visit)
        .unwrap();
    let distinct: BTreeSet<_> = found.iter().collect();
    assert_eq!(distinct.len(), found.len());
    assert!(found.len() > 5, "{}", found.len());
    for solution in &found {
        assert!(game.steps(solution).is_ok());
        assert!(!game.picture(solution).concat().contains('_'));
    }
    let mut few = 0;
    let count = |_: &[SrsPlacement]| {
        few += 1;
        few < 3
    };
    solver(&game)
        .solve_each(&game.field, &game.queue, true, count)
        .unwrap();
    assert_eq!(few, 3);
}
