//! Tests of the search for perfect clears: its results match test vectors from independent programs, and its
//! solutions are playable.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_agents::json::pc_placements;
use hatebeam_agents::pc::{PcError, Solution, Solver};
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField, Placements, parse_field};
use hatebeam_tetris::{Field, Piece};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn rows(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_str().unwrap())
        .collect()
}

/// Plays a solution on a field of full height. Checks that every placement is reachable, that the order of the
/// pieces is possible, and that the field is empty at the end.
fn assert_playable(
    field: &Field,
    queue: &[Piece],
    hold: bool,
    kicks: Kicks,
    mode: DropMode,
    solution: &Solution,
) {
    let finder = Placements::new(KickTable::built_in(kicks), mode);
    let mut field = *field;
    let mut known = queue.to_vec();
    for placement in solution {
        let mut next = known.iter().take(1 + usize::from(hold));
        let position = next.position(|&piece| piece == placement.piece);
        known.remove(position.unwrap());
        assert!(
            finder
                .find(&field, placement.piece)
                .iter()
                .any(|found| found == *placement)
        );
        field = placement.put(&field).0;
    }
    assert_eq!(field.pile_height(), 0);
}

fn assert_queue(solver: &mut Solver, queue: &[Piece], hold: bool, expected: bool) {
    let field = LowField::empty(4).unwrap();
    let found = solver.solve(&field, queue, hold).unwrap();
    assert_eq!(found.is_some(), expected, "{queue:?}, hold {hold}");
    if let Some(solution) = found {
        assert_eq!(solution.len(), 10);
        assert_playable(
            &field.to_field(),
            queue,
            hold,
            Kicks::Srs,
            DropMode::Soft,
            &solution,
        );
    }
}

#[test]
fn results_for_queues_from_empty_field_match_test_vectors() {
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    for entry in vectors("pc_queues")["queues"]
        .as_array()
        .unwrap()
        .iter()
        .step_by(4)
    {
        let queue = Piece::parse_sequence(entry["queue"].as_str().unwrap()).unwrap();
        for (count, hold, key) in [
            (11, true, "eleven_hold"),
            (10, true, "ten_hold"),
            (10, false, "ten_no_hold"),
        ] {
            let expected = entry[key].as_bool().unwrap();
            assert_queue(&mut solver, &queue[..count], hold, expected);
        }
    }
}

#[test]
fn results_for_queues_of_eleven_pieces_match_test_vectors() {
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    for line in vectors("pc_queues_many")["queues"]
        .as_array()
        .unwrap()
        .iter()
        .step_by(10)
    {
        let (queue, answers) = line.as_str().unwrap().split_once(' ').unwrap();
        let queue = Piece::parse_sequence(queue).unwrap();
        assert_queue(&mut solver, &queue, true, answers.ends_with('1'));
    }
}

/// Returns all sequences of `count` distinct pieces, in the order of the test vectors.
fn permutations(count: usize) -> Vec<Vec<Piece>> {
    let mut all: Vec<Vec<Piece>> = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .iter()
            .flat_map(|start| {
                let others = Piece::ALL
                    .into_iter()
                    .filter(|piece| !start.contains(piece));
                others
                    .map(|piece| [&start[..], &[piece]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

/// Parses the bits of a test vector. They are hexadecimal digits if `count` is a multiple of four, and digits 0 and 1
/// otherwise.
fn bits(text: &str, count: usize) -> Vec<bool> {
    if !count.is_multiple_of(4) {
        return text.chars().map(|digit| digit == '1').collect();
    }
    let digits = text.chars().map(|digit| digit.to_digit(16).unwrap());
    digits
        .flat_map(|digit| [8, 4, 2, 1].map(|bit| digit & bit != 0))
        .collect()
}

#[test]
fn results_for_fields_match_test_vectors() {
    let mut compared = 0;
    for case in vectors("pc_fields")["cases"].as_array().unwrap() {
        let kicks: Kicks = case["mode"].as_str().unwrap().parse().unwrap();
        let mode: DropMode = case["drop"].as_str().unwrap().parse().unwrap();
        let hold = case["hold"].as_bool().unwrap();
        let pieces = case["pattern"]
            .as_str()
            .unwrap()
            .strip_prefix("*p")
            .unwrap()
            .parse()
            .unwrap();
        let queues = permutations(pieces);
        let expected = bits(case["bits"].as_str().unwrap(), queues.len());
        assert_eq!(expected.len(), queues.len());
        let whole = parse_field(&rows(&case["rows"])).unwrap();
        let field = LowField::of(&whole, case["lines"].as_u64().unwrap() as usize).unwrap();
        let mut solver = Solver::new(&KickTable::built_in(kicks), mode);
        for (queue, expected) in queues.iter().zip(expected).step_by(13) {
            let found = solver.solve(&field, queue, hold).unwrap();
            assert_eq!(
                found.is_some(),
                expected,
                "{} {kicks} {mode} {queue:?}",
                case["name"]
            );
            if let Some(solution) = found {
                assert_playable(&field.to_field(), queue, hold, kicks, mode, &solution);
            }
            compared += 1;
        }
    }
    assert!(compared > 9_000, "{compared}");
}

#[test]
fn results_for_fixed_queues_match_solution_finder() {
    let mut compared = 0;
    for case in vectors("pc_percent")["cases"].as_array().unwrap() {
        let pattern = case["pattern"].as_str().unwrap();
        if pattern.contains(['*', '[']) {
            continue;
        }
        let queue = Piece::parse_sequence(&pattern.replace(',', "")).unwrap();
        let kicks: Kicks = case["mode"].as_str().unwrap().parse().unwrap();
        let whole = parse_field(&rows(&case["rows"])).unwrap();
        let field = LowField::of(&whole, case["lines"].as_u64().unwrap() as usize).unwrap();
        let mut solver = Solver::new(&KickTable::built_in(kicks), DropMode::Soft);
        let found = solver
            .solve(&field, &queue, case["hold"].as_bool().unwrap())
            .unwrap();
        assert_eq!(
            u64::from(found.is_some()),
            case["success"].as_u64().unwrap(),
            "{case}"
        );
        compared += 1;
    }
    assert!(compared > 2, "{compared}");
}

#[test]
fn solver_rejects_short_queue_and_solves_cleared_field() {
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    let empty = LowField::empty(4).unwrap();
    let short = solver.solve(&empty, &[Piece::I; 9], true);
    assert_eq!(
        short,
        Err(PcError::ShortQueue {
            given: 9,
            needed: 10
        })
    );
    let full = LowField::of(&parse_field(&["XXXXXXXXXX"]).unwrap(), 1).unwrap();
    assert_eq!(solver.solve(&full, &[], true), Ok(Some(Vec::new())));
    assert_eq!(solver.solve(&full, &[Piece::T], true), Ok(Some(Vec::new())));
}

#[test]
fn requested_number_of_rows_limits_placements() {
    let count = |lines: &str| {
        let answer = pc_placements(&format!(r#"{{"piece":"O"{lines}}}"#)).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["placements"].as_array().unwrap().len()
    };
    let huge = format!(r#","lines":{}"#, usize::MAX);
    assert_eq!([count(""), count(&huge), count(r#","lines":2"#)], [9; 3]);
    assert_eq!([count(r#","lines":1"#), count(r#","lines":0"#)], [0; 2]);
}
