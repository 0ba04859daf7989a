//! Tests of the game of dropped pieces. They compare it with test vectors and, on random fields, with slow
//! implementations that process single cells.

#![allow(clippy::unwrap_used)]

mod common;

use common::{list, numbers, random_rows, rows, vectors};
use hatebeam_tetris::drop::{
    Action, ControllerFeatures, DropError, DropGame, FieldCounts, Generator, GeneratorKind,
    PaperFeatures, PieceSet, SetError,
};
use hatebeam_tetris::{Field, Rng};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashSet;

fn game_of(key: &str) -> (DropGame, usize) {
    let (set, name) = key.split_once(':').unwrap();
    let set = PieceSet::built_in(set).unwrap();
    let piece = set.index_of(name).unwrap();
    (DropGame::new(10, 20, set).unwrap(), piece)
}

#[test]
fn rotations_match_test_vectors() {
    let vectors = vectors("drop_placements");
    for (key, shape) in vectors["shapes"].as_object().unwrap() {
        let (game, piece) = game_of(key);
        let text: String = rows(shape).iter().map(|row| format!("{row}\n")).collect();
        let parsed = PieceSet::parse(&text).unwrap();
        assert_eq!(
            parsed.piece(0).rotations(),
            game.set().piece(piece).rotations(),
            "{key}"
        );
    }
}

#[test]
fn actions_and_features_match_test_vectors() {
    let vectors = vectors("drop_placements");
    let mut weights: Vec<f64> = list(&vectors["weights_first_six"])
        .iter()
        .map(|weight| weight.as_f64().unwrap())
        .collect();
    let length = weights
        .iter()
        .map(|weight| weight * weight)
        .sum::<f64>()
        .sqrt();
    weights.iter_mut().for_each(|weight| *weight /= length);
    weights.push(-1000.0);
    let mut compared = 0;
    for board in list(&vectors["boards"]) {
        let field = Field::parse(10, 20, &rows(&board["rows"])).unwrap();
        assert_counts(&FieldCounts::of(&field), &board["board"]);
        for (key, expected) in board["pieces"].as_object().unwrap() {
            let (game, piece) = game_of(key);
            assert_eq!(
                game.actions(piece).count() as u64,
                expected["actions_in_all"].as_u64().unwrap()
            );
            let distinct = list(&expected["distinct"]);
            assert_eq!(game.distinct_actions(piece).len(), distinct.len());
            for (&action, row) in game.distinct_actions(piece).iter().zip(distinct) {
                assert_action(&game, &field, piece, action, row, &weights);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 2540);
}

fn assert_counts(counts: &FieldCounts, expected: &Value) {
    let expected = |key: &str| expected[key].as_i64().unwrap() as i32;
    assert_eq!(counts.height, expected("height"));
    assert_eq!(counts.height_program, expected("height_code"));
    assert_eq!(counts.holes, expected("holes"));
    assert_eq!(counts.blocked, expected("blocked"));
    assert_eq!(counts.aggregate_blocked, expected("aggregate_blocked"));
    assert_eq!(
        counts.aggregate_blocked_program,
        expected("aggregate_blocked_code")
    );
    assert_eq!(counts.total_height, expected("total_height"));
}

fn assert_action(
    game: &DropGame,
    field: &Field,
    piece: usize,
    action: Action,
    row: &Value,
    weights: &[f64],
) {
    assert_eq!(u64::from(action.rotation), row[0].as_u64().unwrap());
    assert_eq!(u64::from(action.column), row[1].as_u64().unwrap());
    let drop = game.drop(field, piece, action);
    let features = PaperFeatures::new(&FieldCounts::of(field), &drop);
    let to_i64 = |features: [i32; 7]| features.map(i64::from).to_vec();
    assert_eq!(to_i64(features.paper()), numbers(&row[2]));
    let program = features.program();
    assert_eq!(
        vec![i64::from(program[3]), i64::from(program[4])],
        numbers(&row[3])
    );
    let turned = &game.set().piece(piece).rotations()[usize::from(action.rotation)];
    let controller = ControllerFeatures::new(&drop, turned);
    let mut expected: Vec<f64> = list(&row[4])
        .iter()
        .map(|number| number.as_f64().unwrap())
        .collect();
    // The vectors do not count the transitions of empty rows and the wells below the surface, unlike the program with
    // which the published weights were tuned.
    expected[2] += 2.0 * (field.height() - drop.field.pile_height()) as f64;
    if controller.holes > 0 {
        assert!(f64::from(controller.cumulative_wells) >= expected[5]);
        expected[5] = f64::from(controller.cumulative_wells);
    }
    assert_eq!(controller.array()[..8], expected, "{field}{action:?}");
    let value: f64 = program
        .iter()
        .zip(weights)
        .map(|(&feature, weight)| f64::from(feature) * weight)
        .sum();
    assert!((value - row[5].as_f64().unwrap()).abs() < 1e-8);
}

/// Drops a piece from above the field, one row at a time, until it would collide. Returns the filled cells after full
/// rows have been removed, the number of these rows, and whether the game is lost.
fn slow_drop(
    field: &Field,
    cells: &[(usize, usize)],
    column: usize,
) -> (HashSet<(usize, usize)>, usize, bool) {
    let (width, height) = (field.width(), field.height());
    let filled = |x: usize, y: usize| y < height && field.is_filled(x, y);
    let mut row = height;
    while row > 0 && cells.iter().all(|&(x, y)| !filled(column + x, row - 1 + y)) {
        row -= 1;
    }
    let mut after: HashSet<(usize, usize)> = (0..width)
        .flat_map(|x| (0..height).map(move |y| (x, y)))
        .filter(|&(x, y)| filled(x, y))
        .collect();
    let lost = cells.iter().any(|&(_, y)| row + y >= height);
    after.extend(
        cells
            .iter()
            .map(|&(x, y)| (column + x, row + y))
            .filter(|cell| cell.1 < height),
    );
    let full: Vec<usize> = (0..height)
        .filter(|&y| (0..width).all(|x| after.contains(&(x, y))))
        .collect();
    let moved = after
        .iter()
        .filter(|cell| !full.contains(&cell.1))
        .map(|&(x, y)| (x, y - full.iter().filter(|&&row| row < y).count()))
        .collect();
    (moved, full.len(), lost)
}

fn random_field(width: usize, height: usize, rng: &mut Rng) -> Field {
    let (dense, count) = (1 + rng.below(9), rng.below(height + 1));
    Field::parse(width, height, &random_rows(count, width, dense, rng)).unwrap()
}

/// Returns whether a cell is filled. Cells beside and below the field count as filled, and cells above it as empty.
fn is_solid(field: &Field, x: i32, y: i32) -> bool {
    if x < 0 || x >= field.width() as i32 || y < 0 {
        return true;
    }
    y < field.height() as i32 && field.is_filled(x as usize, y as usize)
}

/// Returns the number of changes between filled and empty cells along rows and along columns.
fn transitions(field: &Field) -> [i32; 2] {
    let (width, height) = (field.width() as i32, field.height() as i32);
    let solid = |x, y| is_solid(field, x, y);
    let rows = (0..height).flat_map(|y| (0..=width).map(move |x| (x, y)));
    let columns = (0..width).flat_map(|x| (0..=height).map(move |y| (x, y)));
    [
        rows.filter(|&(x, y)| solid(x, y) != solid(x - 1, y))
            .count() as i32,
        columns
            .filter(|&(x, y)| solid(x, y) != solid(x, y - 1))
            .count() as i32,
    ]
}

fn wells(field: &Field) -> i32 {
    let (width, height) = (field.width() as i32, field.height() as i32);
    let cells = (0..width).flat_map(|x| (0..height).map(move |y| (x, y)));
    let is_well = |&(x, y): &(i32, i32)| {
        !is_solid(field, x, y) && is_solid(field, x - 1, y) && is_solid(field, x + 1, y)
    };
    cells
        .filter(is_well)
        .map(|(x, y)| {
            (0..=y)
                .rev()
                .take_while(|&y| !is_solid(field, x, y))
                .count() as i32
        })
        .sum()
}

#[test]
fn wells_of_documented_example_add_up_to_20() {
    // The example is from the documentation of MDPTetris.
    let rows = [
        "...X....", "...XX...", ".X.XX...", ".XXXXX.X", ".XXXXX.X", "XXXXX..X", "...XXX.X",
        "X.X..X.X",
    ];
    let field = Field::parse(8, 10, &rows).unwrap();
    assert_eq!(wells(&field), 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn drop_gives_same_result_as_slow_drop(seed: u64, width in 4usize..=16, height in 1usize..=40) {
        let mut rng = Rng::new(seed);
        let field = random_field(width, height, &mut rng);
        for set in [PieceSet::standard(), PieceSet::small()] {
            let game = DropGame::new(width, height, set).unwrap();
            for piece in 0..game.set().len() {
                for action in game.actions(piece) {
                    let turned = &game.set().piece(piece).rotations()[usize::from(action.rotation)];
                    let cells: Vec<(usize, usize)> = (0..turned.width())
                        .flat_map(|x| (0..turned.height()).map(move |y| (x, y)))
                        .filter(|&(x, y)| turned.columns()[x] >> y & 1 == 1)
                        .collect();
                    let (after, lines, lost) = slow_drop(&field, &cells, usize::from(action.column));
                    let drop = game.drop(&field, piece, action);
                    prop_assert_eq!(usize::from(drop.lines), lines);
                    prop_assert_eq!(drop.lost, lost);
                    for x in 0..width {
                        for y in 0..height {
                            prop_assert_eq!(drop.field.is_filled(x, y), after.contains(&(x, y)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn transitions_and_wells_equal_counts_of_single_cells(
        seed: u64, width in 4usize..=16, height in 1usize..=40,
    ) {
        let mut rng = Rng::new(seed);
        let game = DropGame::new(width, height, PieceSet::standard()).unwrap();
        let field = random_field(width, height, &mut rng);
        let piece = rng.below(game.set().len());
        for &action in game.distinct_actions(piece) {
            let drop = game.drop(&field, piece, action);
            let turned = &game.set().piece(piece).rotations()[usize::from(action.rotation)];
            let features = ControllerFeatures::new(&drop, turned);
            let [rows, columns] = transitions(&drop.field);
            prop_assert_eq!(features.row_transitions, rows);
            prop_assert_eq!(features.column_transitions, columns);
            prop_assert_eq!(features.cumulative_wells, wells(&drop.field));
        }
    }

    #[test]
    fn hole_count_equals_count_of_slow_flood_fill(seed: u64, width in 1usize..=16, height in 1usize..=40) {
        let mut rng = Rng::new(seed);
        let field = random_field(width, height, &mut rng);
        let mut open: Vec<(usize, usize)> =
            (0..width).map(|x| (x, height - 1)).filter(|&(x, y)| !field.is_filled(x, y)).collect();
        let mut seen: HashSet<(usize, usize)> = open.iter().copied().collect();
        while let Some((x, y)) = open.pop() {
            let near = [(x + 1, y), (x.wrapping_sub(1), y), (x, y + 1), (x, y.wrapping_sub(1))];
            for (x, y) in near {
                if x < width && y < height && !field.is_filled(x, y) && seen.insert((x, y)) {
                    open.push((x, y));
                }
            }
        }
        let empty = (0..width).flat_map(|x| (0..height).map(move |y| (x, y)))
            .filter(|&(x, y)| !field.is_filled(x, y)).count();
        prop_assert_eq!(FieldCounts::of(&field).holes as usize, empty - seen.len());
    }
}

#[test]
fn multiplicities_add_up_to_number_of_actions() {
    let game = DropGame::standard();
    for piece in 0..game.set().len() {
        let actions = game.distinct_actions(piece).iter();
        let all: usize = actions
            .map(|&action| game.multiplicity(piece, action))
            .sum();
        assert_eq!(all, game.actions(piece).count());
    }
}

#[test]
fn bag_contains_each_piece_once() {
    let mut generator = Generator::new(GeneratorKind::Bag, 7, Rng::new(3));
    for _ in 0..100 {
        let bag: HashSet<usize> = (0..7).map(|_| generator.draw()).collect();
        assert_eq!(bag.len(), 7);
    }
}

#[test]
fn error_for_invalid_set_names_the_reason() {
    assert_eq!(PieceSet::parse("// nothing\n\n"), Err(SetError::Empty));
    assert!(matches!(
        PieceSet::parse("##\n#?\n"),
        Err(SetError::Cell {
            line: 2,
            found: '?'
        })
    ));
    assert!(matches!(
        PieceSet::parse("a\n#\n\na\n##\n"),
        Err(SetError::DuplicateName(_))
    ));
    assert!(matches!(
        PieceSet::parse("hollow\n#.#\n"),
        Err(SetError::EmptyColumn(_))
    ));
    assert_eq!(
        PieceSet::parse("apart\n#\n.\n#\n"),
        Err(SetError::EmptyRow("apart".to_owned()))
    );
    let wide = PieceSet::parse("#########\n").unwrap_err();
    assert!(wide.to_string().contains("at most 8"), "{wide}");
    assert!(matches!(
        PieceSet::parse("name\n..\n"),
        Err(SetError::NoCell(_))
    ));
    let named = PieceSet::parse("P\n##\n##\n#.\n\n#\n").unwrap();
    assert_eq!(
        (named.len(), named.piece(0).name(), named.piece(1).name()),
        (2, "P", "2")
    );
}

#[test]
fn first_line_of_piece_is_a_name_a_row_or_an_error() {
    let name = |text: &str| PieceSet::parse(text).map(|set| set.piece(0).name().to_owned());
    for (text, expected) in [
        ("X:\n##\n##\n", "X"),
        ("_ :\nX\n", "_"),
        ("  big L\n#\n##\n", "big L"),
        ("7\n#\n", "7"),
        ("T'\n#\n", "T'"),
        ("XX\n_X\n", "1"),
        ("#\n##\n", "1"),
    ] {
        assert_eq!(name(text).as_deref(), Ok(expected), "{text}");
    }
    for text in ["X\n##\n##\n", "// X\n_\nXX\n", "X\nXX\n", "XX\n#.\n"] {
        let error = name(text);
        assert!(
            matches!(error, Err(SetError::AmbiguousName { .. })),
            "{text}: {error:?}"
        );
    }
    for (text, line, found) in [
        ("#?\n##\n", 1, '?'),
        (" #\n##\n", 1, ' '),
        ("X?\n##\n", 1, '?'),
        ("a#\n##\n", 1, 'a'),
        ("P\n##\nP\n", 3, 'P'),
    ] {
        assert_eq!(name(text), Err(SetError::Cell { line, found }), "{text}");
    }
}

#[test]
fn invalid_games_actions_and_fields_are_errors() {
    let narrow = DropGame::new(3, 20, PieceSet::standard());
    assert!(matches!(
        narrow,
        Err(DropError::PieceTooWide { needed: 4, .. })
    ));
    assert!(DropGame::new(17, 20, PieceSet::small()).is_err());
    assert!(DropGame::new(10, 57, PieceSet::small()).is_err());
    let game = DropGame::standard();
    let exists = |rotation, column| {
        let action = Action { rotation, column };
        game.actions(0).any(|other| other == action)
    };
    assert!(!exists(0, 9));
    assert!(!exists(4, 0));
    assert!(exists(3, 8));
    assert!(Field::parse(10, 20, &["X".repeat(11)]).is_err());
    assert!(Field::parse(10, 1, &["__________", "__________"]).is_err());
    assert!(Field::parse(10, 1, &["_________?"]).is_err());
}
