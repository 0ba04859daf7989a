//! Tests of human-readable solutions: pictures, keys and Fumen codes.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use fumen::{CellColor, Fumen};
use hatebeam_agents::pc::{HoldSlot, PcError, PcGame, Solution, Solver, Step};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{
    DropMode, KickTable, Kicks, LowField, Orientation, SrsKey, SrsPlacement, parse_field,
};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

fn game(rows: &[&str], queue: &str) -> PcGame {
    PcGame {
        field: LowField::of(&parse_field(rows).unwrap(), 4).unwrap(),
        queue: Piece::parse_sequence(queue).unwrap(),
        hold: HoldSlot::Empty,
        kicks: KickTable::built_in(Kicks::Srs),
        drop: DropMode::Soft,
    }
}

/// Rows of a field that six pieces fill.
const ROWS: [&str; 4] = ["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"];

fn solve(game: &PcGame) -> Solution {
    game.solutions(NonZeroUsize::MIN).unwrap().remove(0)
}

#[test]
fn solution_of_two_squares_has_keys_and_picture() {
    let game = game(
        &["XXXXXXXX__", "XXXXXXXX__", "XXXXXXXX__", "XXXXXXXX__"],
        "OO",
    );
    let solution = solve(&game);
    let steps = game.steps(&solution).unwrap();
    let right = [SrsKey::Right; 4];
    let keys = [&right[..], &[SrsKey::HardDrop]].concat();
    assert_eq!(steps.len(), 2);
    for step in &steps {
        assert_eq!((step.hold, &step.keys, step.lines), (false, &keys, 2));
    }
    assert_eq!(game.picture(&solution).unwrap(), ["XXXXXXXXOO"; 4]);
}

#[test]
fn picture_shows_pieces_in_their_original_rows() {
    // The I piece clears the lowest row. The O piece then rests on the floor, but the picture shows it one row higher.
    let game = PcGame {
        field: LowField::of(
            &parse_field(&["XXXX__XXXX", "XXXX__XXXX", "____XXXXXX"]).unwrap(),
            3,
        )
        .unwrap(),
        ..game(&[], "IO")
    };
    let solution = solve(&game);
    assert_eq!(
        game.picture(&solution).unwrap(),
        ["XXXXOOXXXX", "XXXXOOXXXX", "IIIIXXXXXX"]
    );
}

/// Simulates the current piece and the hold slot. Checks that each step places the piece that is current after the
/// hold key, if the step presses it.
fn assert_hold(game: &PcGame, steps: &[Step]) {
    let mut coming = game.queue.iter().copied();
    let mut slot = if game.hold == HoldSlot::Full {
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
fn hold_key_is_pressed_only_if_current_piece_is_not_placed() {
    let mut presses = 0;
    for (queue, hold) in [
        ("SOLTZJIZLSI", HoldSlot::Empty),
        ("LOSJIZTTLIS", HoldSlot::Full),
        ("TOSLZIJJIOT", HoldSlot::Empty),
        ("LTSOZJILSTO", HoldSlot::Full),
    ] {
        let game = PcGame {
            hold,
            ..game(&[], queue)
        };
        let solution = solve(&game);
        let steps = game.steps(&solution).unwrap();
        assert_hold(&game, &steps);
        presses += steps.iter().filter(|step| step.hold).count();
    }
    assert!(presses > 3, "{presses}");
    let other = solve(&game(&[], "SOLTZJIZLSI"));
    assert_eq!(game(&[], "ZZ").steps(&other), Err(PcError::NotPlayable));
}

#[test]
fn hold_key_is_never_pressed_if_hold_is_disabled() {
    let rows = ["XXXXXX____", "XXXXXX____"];
    let game = PcGame {
        field: LowField::of(&parse_field(&rows).unwrap(), 2).unwrap(),
        hold: HoldSlot::Disabled,
        ..game(&[], "OO")
    };
    let solutions = game.solutions(NonZeroUsize::MAX).unwrap();
    assert!(!solutions.is_empty());
    for solution in solutions {
        let steps = game.steps(&solution).unwrap();
        assert!(steps.iter().all(|step| !step.hold), "{steps:?}");
    }
}

#[test]
fn solutions_are_limited_and_have_different_pictures() {
    let game = game(&ROWS, "TJZSLI");
    for limit in 1..=3 {
        let solutions = game.solutions(NonZeroUsize::new(limit).unwrap()).unwrap();
        let pictures: BTreeSet<_> = solutions
            .iter()
            .map(|solution| game.picture(solution).unwrap())
            .collect();
        assert_eq!((solutions.len(), pictures.len()), (limit, limit));
    }
}

#[test]
fn cleared_field_has_one_empty_solution() {
    let game = PcGame {
        field: LowField::of(&parse_field(&["XXXXXXXXXX"]).unwrap(), 1).unwrap(),
        ..game(&[], "T")
    };
    for limit in [1, 2] {
        let solutions = game.solutions(NonZeroUsize::new(limit).unwrap());
        assert_eq!(solutions, Ok(vec![Vec::new()]));
    }
}

#[test]
fn picture_of_placement_outside_the_field_is_an_error() {
    let game = game(&[], "O");
    for (x, y) in [(0, 3), (9, 0)] {
        let placement = SrsPlacement {
            piece: Piece::O,
            orientation: Orientation::Spawn,
            x,
            y,
        };
        assert_eq!(game.picture(&[placement]), Err(PcError::NotPlayable));
        assert_eq!(game.text(&[placement]), Err(PcError::NotPlayable));
    }
}

#[test]
fn fumen_code_matches_documented_example() {
    // The documentation of the crate `fumen` contains this code for a T piece in columns 1 to 3 on the floor.
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
fn last_page_of_fumen_code_clears_field() {
    for (rows, queue) in [
        (&[][..], "SOLTZJIZLSI"),
        (&[], "LOSJIZTTLIS"),
        (&ROWS, "TJZSLI"),
    ] {
        let game = game(rows, queue);
        let solution = solve(&game);
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
fn solver_visits_each_perfect_clear_once() {
    let game = game(&ROWS, "TJZSLI");
    let mut found = Vec::new();
    let visit = |solution: &[SrsPlacement]| {
        found.push(solution.to_vec());
        true
    };
    let mut solver = Solver::new(&game.kicks, game.drop);
    solver
        .solve_each(&game.field, &game.queue, true, visit)
        .unwrap();
    let distinct: BTreeSet<_> = found.iter().collect();
    assert_eq!(distinct.len(), found.len());
    assert!(found.len() > 5, "{}", found.len());
    for solution in &found {
        assert!(game.steps(solution).is_ok());
        assert!(!game.picture(solution).unwrap().concat().contains('_'));
    }
    let mut few = 0;
    let count = |_: &[SrsPlacement]| {
        few += 1;
        few < 3
    };
    solver
        .solve_each(&game.field, &game.queue, true, count)
        .unwrap();
    assert_eq!(few, 3);
}
