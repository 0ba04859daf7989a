//! Tests of the chances of perfect clears. They compare the chances with test vectors from a second implementation
//! and with an enumeration of all piece sequences.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_agents::json::{Finders, pc_chance, pc_position};
use hatebeam_agents::pc::{
    BestMove, BoardTable, PcError, PcFinder, PcPosition, Solver, TableError, best_move, chances,
};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, DropMode, KickTable, Kicks, LowField, parse_field};
use serde_json::{Value, json};

fn vectors(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn finder() -> PcFinder {
    PcFinder::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft)
}

/// Returns the field that six pieces fill.
fn field_of_six() -> LowField {
    let rows = ["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"];
    LowField::of(&parse_field(&rows).unwrap(), 4).unwrap()
}

fn position(field: LowField, seen: &str, left: &str, pieces_in_all: usize) -> PcPosition {
    PcPosition {
        field,
        seen: Piece::parse_sequence(seen).unwrap(),
        bag: Bag::of(&Piece::parse_sequence(left).unwrap()).unwrap(),
        pieces_in_all,
    }
}

fn sorted_moves(value: &Value) -> Vec<String> {
    let moves = value["moves"].as_array().unwrap();
    let mut moves: Vec<String> = moves.iter().map(Value::to_string).collect();
    moves.sort_unstable();
    moves
}

#[test]
fn chances_of_first_moves_match_test_vectors() {
    for case in vectors("pc_first_moves")["cases"].as_array().unwrap() {
        let answer = pc_chance(&case.to_string(), &mut Finders::default(), 2).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        for key in ["best_adaptive", "best_clairvoyant"] {
            assert_eq!(answer[key], case[key], "{}", case["name"]);
        }
        assert_eq!(
            sorted_moves(&answer),
            sorted_moves(case),
            "{}",
            case["name"]
        );
        let adaptive = &answer["moves"][0]["adaptive"];
        assert_eq!(
            *adaptive, answer["best_adaptive"],
            "the first move is the best move"
        );
        let mut request = case.clone();
        request["best"] = json!(true);
        let best = pc_chance(&request.to_string(), &mut Finders::default(), 1).unwrap();
        let best: Value = serde_json::from_str(&best).unwrap();
        assert_eq!(best["best_adaptive"], case["best_adaptive"]);
        assert!(answer["moves"].as_array().unwrap().iter().any(|found| {
            ["piece", "cells"].map(|key| &found[key]) == ["piece", "cells"].map(|key| &best[key])
                && found["adaptive"] == best["best_adaptive"]
        }));
    }
}

#[test]
fn best_adaptive_chances_from_empty_field_match_test_vectors() {
    let finder = finder();
    let mut uncertain = 0;
    for case in vectors("pc_adaptive")["cases"].as_array().unwrap() {
        let position = pc_position(&case.to_string()).unwrap();
        let is_certain = case["success"] == case["all"];
        // Skip cases with fewer than seven seen pieces, and all uncertain cases except one, because each of them takes
        // several seconds.
        if !is_certain && uncertain == 1 || position.seen.len() < 7 {
            continue;
        }
        let mut bounds = Vec::new();
        let improve = |best: &BestMove| bounds.push(best.adaptive.count);
        let best = best_move(&position, &finder, 2, improve).unwrap().unwrap();
        let found = (json!(best.adaptive.count), json!(best.adaptive.all));
        assert_eq!(
            found,
            (case["success"].clone(), case["all"].clone()),
            "{case}"
        );
        assert!(bounds.is_sorted(), "{bounds:?}");
        assert_eq!(bounds.last(), Some(&best.adaptive.count));
        if is_certain {
            continue;
        }
        uncertain += 1;
        let moves = chances(&position, &finder, 2).unwrap();
        assert_eq!(moves[0].adaptive, best.adaptive);
        assert!(
            moves.iter().any(|found| {
                (found.placement, found.adaptive) == (best.placement, best.adaptive)
            })
        );
    }
    assert_eq!(uncertain, 1);
}

#[test]
fn best_move_with_known_pieces_succeeds_if_some_move_does() {
    let (finder, field) = (finder(), field_of_six());
    let mut clears = 0;
    let queues = sequences(Bag::FULL, 6);
    for seen in queues.iter().step_by(53) {
        let position = PcPosition {
            field,
            seen: seen.clone(),
            bag: Bag::after(seen).unwrap(),
            pieces_in_all: 6,
        };
        let best = best_move(&position, &finder, 1, |_| ()).unwrap().unwrap();
        let moves = chances(&position, &finder, 1).unwrap();
        assert_eq!(best.adaptive, moves[0].adaptive, "{seen:?}");
        assert!(
            moves.iter().any(|found| {
                (found.placement, found.adaptive) == (best.placement, best.adaptive)
            })
        );
        clears += best.adaptive.count;
    }
    assert!(
        (1..95).contains(&clears),
        "{clears} of 96 queues have a perfect clear"
    );
}

/// Returns every sequence of `count` pieces that can be drawn from a bag.
fn sequences(bag: Bag, count: usize) -> Vec<Vec<Piece>> {
    let Some(rest) = count.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let after = |piece| {
        let following = sequences(bag.take(piece).unwrap(), rest);
        following
            .into_iter()
            .map(move |rest| [&[piece], &rest[..]].concat())
    };
    bag.pieces().flat_map(after).collect()
}

#[test]
fn clairvoyant_chances_equal_fractions_of_solvable_sequences() {
    let (finder, field) = (finder(), field_of_six());
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    for (seen, left, in_all) in [("TI", "JLOSZ", 6), ("SZT", "JL", 6), ("TIL", "JOSZ", 5)] {
        let position = position(field, seen, left, in_all);
        let moves = chances(&position, &finder, 1).unwrap();
        assert!(!moves.is_empty());
        let seen = &position.seen;
        let futures = sequences(position.bag, in_all - seen.len());
        for first in moves {
            let at = seen
                .iter()
                .position(|&piece| piece == first.placement.piece)
                .unwrap();
            let child = field.put(first.placement);
            let wins = futures.iter().filter(|future| {
                let mut queue = [&seen[..], future].concat();
                queue.remove(at);
                solver.solve(&child, &queue, true).unwrap().is_some()
            });
            let found = first.clairvoyant;
            assert_eq!(
                (found.count as usize, found.all as usize),
                (wins.count(), futures.len())
            );
            assert!(first.adaptive.count <= found.count);
        }
    }
}

#[test]
fn knowing_more_pieces_never_lowers_adaptive_chance() {
    let finder = finder();
    let field = LowField::of(&parse_field(&["XXXX______"; 4]).unwrap(), 4).unwrap();
    let best = |seen: &str, left: &str| {
        let position = position(field, seen, left, 7);
        chances(&position, &finder, 1).unwrap()[0]
            .adaptive
            .probability()
    };
    // If only one piece is left in the bag, the next piece is certain.
    assert_eq!(best("OTSZIJ", "L"), best("OTSZIJL", ""));
    let mean = (best("OTSZIJ", "L") + best("OTSZIL", "J")) / 2.0;
    assert!(best("OTSZI", "JL") <= mean);
}

#[test]
fn error_for_impossible_position_names_the_reason() {
    let finder = finder();
    let refused = |seen: &str, left: &str, in_all| {
        let position = position(LowField::empty(4).unwrap(), seen, left, in_all);
        chances(&position, &finder, 1).unwrap_err()
    };
    assert_eq!(refused("IJL", "JOSTZ", 11), PcError::Impossible(Piece::J));
    assert_eq!(refused("IJJL", "OSZ", 11), PcError::Impossible(Piece::J));
    // The last pieces before a full bag are from one bag, as are the pieces of every earlier bag.
    assert_eq!(
        refused("ITTT", "IJLOSTZ", 11),
        PcError::Impossible(Piece::T)
    );
    assert_eq!(refused("LIIIJ", "LOSTZ", 11), PcError::Impossible(Piece::I));
    let short = PcError::ShortQueue {
        given: 9,
        needed: 10,
    };
    assert_eq!(refused("IJL", "OSTZ", 9), short);
    assert_eq!(refused("", "IJLOSTZ", 11), PcError::NothingSeen);
    let unseen = PcError::Unseen { unseen: 8, most: 6 };
    assert_eq!(refused("IJL", "OSTZ", 11), unseen);
}

fn two_rows(kicks: Kicks, drop: DropMode) -> BoardTable {
    let table = KickTable::built_in(kicks);
    BoardTable::build(2, kicks.name(), &table, drop, 2, |_| ()).unwrap()
}

#[test]
fn table_for_two_rows_has_known_board_counts() {
    let vectors = vectors("pc_counts");
    let counts = &vectors["two_lines"]["legal_boards_by_pieces"];
    for (kicks, drop, key) in [
        (Kicks::Srs, DropMode::Soft, "srs soft"),
        (Kicks::Srs, DropMode::Hard, "srs hard"),
        (Kicks::None, DropMode::Soft, "nokick soft"),
    ] {
        let table = two_rows(kicks, drop);
        assert_eq!(json!(table.header().counts), counts[key], "{key}");
    }
}

/// Enumerates 14 to 15 million boards for each kick table. `cargo test --release -p hatebeam-agents --test pc_chance --
/// --ignored` runs this test, which takes several minutes and 1 GB of memory.
#[test]
#[ignore = "takes several minutes"]
fn tables_for_four_rows_have_known_board_counts() {
    for (kicks, counts) in vectors("pc_counts")["legal_boards_by_pieces"]
        .as_object()
        .unwrap()
    {
        let Ok(kicks) = kicks.parse::<Kicks>() else {
            continue; // This entry is for two kick tables together.
        };
        let table = KickTable::built_in(kicks);
        let built = BoardTable::build(4, kicks.name(), &table, DropMode::Soft, 2, |_| ()).unwrap();
        assert_eq!(json!(built.header().counts), counts["layers"], "{kicks}");
    }
}

#[test]
fn table_has_documented_format_and_damage_is_detected() {
    let table = two_rows(Kicks::Srs, DropMode::Soft);
    let bytes = table.bytes();
    let text = String::from_utf8_lossy(&bytes);
    let header = "hatebeam-pc-table 1\n{\"lines\":2,\"kicks\":\"srs\",\"drop\":\"soft\",\"counts\":[1,28,172,185,28,1],";
    assert!(
        text.starts_with(header),
        "the format of tables must not change: {text}"
    );
    let again = BoardTable::read(&bytes[..]).unwrap();
    assert_eq!(again.header(), table.header());
    assert!(again.check_rules("srs", DropMode::Soft).is_ok());
    assert!(matches!(
        again.check_rules("srs", DropMode::Hard),
        Err(TableError::Rules { .. })
    ));
    for position in [0, 30, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        assert!(BoardTable::read(&damaged[..]).is_err(), "byte {position}");
    }
    assert!(BoardTable::read(&bytes[..bytes.len() - 1]).is_err());
    assert!(BoardTable::read(&[&bytes[..], &[0]].concat()[..]).is_err());
    let bytes_key = text.find("\"bytes\":[").unwrap() + 9;
    let large = format!(
        "{}{}",
        &text[..bytes_key],
        &text[bytes_key..].replacen('1', "300000000", 1)
    );
    assert!(matches!(
        BoardTable::read(large.as_bytes()),
        Err(TableError::Size(_))
    ));
}

/// The digest of a table covers only its lists of boards, not its header.
#[test]
fn table_with_wrong_number_of_rows_is_refused() {
    let bytes = two_rows(Kicks::Srs, DropMode::Soft).bytes();
    let replaced = |old: &str, new: &str| {
        let start = bytes.windows(old.len()).position(|at| at == old.as_bytes());
        let (before, after) = bytes.split_at(start.unwrap());
        let bytes = [before, new.as_bytes(), &after[old.len()..]].concat();
        BoardTable::read(&bytes[..])
    };
    assert!(replaced("\"lines\":2", "\"lines\":2").is_ok());
    for lines in [0, 1, 3, 4, 5, usize::MAX] {
        let read = replaced("\"lines\":2", &format!("\"lines\":{lines}"));
        assert!(matches!(read, Err(TableError::Damaged)), "{lines} rows");
    }
    // The number of lists of this table is right, but not the number of cells of its boards.
    let read = replaced(
        "\"lines\":2,\"kicks\":\"srs\",\"drop\":\"soft\",\"counts\":[1,28,172,185,28,1],\"bytes\":[",
        "\"lines\":3,\"kicks\":\"srs\",\"drop\":\"soft\",\"counts\":[0,0,1,28,172,185,28,1],\"bytes\":[0,0,",
    );
    assert!(matches!(read, Err(TableError::Damaged)), "too few cells");
    let read = replaced("[1,28,172,185,28,1]", "[1,28,172,185,28,1,0]");
    assert!(matches!(read, Err(TableError::Damaged)), "more counts");
    // No pieces fill one row, so this table contains only the cleared field.
    let kicks = KickTable::built_in(Kicks::Srs);
    let table = BoardTable::build(1, "srs", &kicks, DropMode::Soft, 1, |_| ()).unwrap();
    assert_eq!(table.header().counts, [0, 0, 1]);
    assert!(BoardTable::read(&table.bytes()[..]).is_ok());
}

#[test]
fn table_does_not_change_chances() {
    let plain = finder();
    let with_table = plain
        .clone()
        .with_table(two_rows(Kicks::Srs, DropMode::Soft));
    // The last field cannot be reached from the empty field, so the table does not contain it.
    for rows in [&[][..], &["XXXX____XX", "XXXX____XX"], &["XX__XX____"]] {
        let field = LowField::of(&parse_field(rows).unwrap(), 2).unwrap();
        for (seen, left) in [("IJLO", "STZ"), ("LJOI", "STZ"), ("TOIJ", "LSZ")] {
            let position = position(field, seen, left, field.pieces_left() + 1);
            let expected = chances(&position, &plain, 1).unwrap();
            assert_eq!(
                chances(&position, &with_table, 2).unwrap(),
                expected,
                "{rows:?} {seen}"
            );
        }
    }
}
