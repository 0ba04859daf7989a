//! Tests of games of consecutive perfect clears.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_agents::GameRecord;
use hatebeam_agents::json::PcFollower;
use hatebeam_agents::pc::{PcError, PcFinder, PcPosition, PcStreak, Solver, StreakRules};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, DropMode, KickTable, Kicks, LowField, SrsPlacement};
use serde_json::{Value, json};

fn finder() -> PcFinder {
    PcFinder::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft)
}

fn cells(placement: SrsPlacement) -> Vec<usize> {
    let number = |(x, y)| usize::from(y) * 10 + usize::from(x);
    placement.cells().map(number).to_vec()
}

fn answer(follower: &mut PcFollower, request: &Value) -> Value {
    let text = follower.answer(&request.to_string()).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns a chance such as `5/42` in units of 1/840.
fn in_840ths(chance: &Value) -> u32 {
    let text = chance.as_str().unwrap();
    let (count, all) = text.split_once('/').unwrap_or((text, "1"));
    let (count, all): (u32, u32) = (count.parse().unwrap(), all.parse().unwrap());
    assert_eq!(840 % all, 0);
    count * 840 / all
}

#[test]
fn game_continues_with_leftover_pieces_after_a_clear() {
    let queue = Piece::parse_sequence("SOLTZJIZLSI").unwrap();
    let field = LowField::empty(4).unwrap();
    let mut solver = Solver::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    let solution = solver.solve(&field, &queue, true).unwrap().unwrap();
    let start = PcPosition {
        field,
        seen: Vec::new(),
        bag: Bag::FULL,
        pieces_in_all: 11,
    };
    let (finder, mut game) = (finder(), PcStreak::new(start, 4).unwrap());
    for &piece in &queue {
        game.reveal(piece).unwrap();
    }
    assert_eq!(game.reveal(Piece::Z), Err(PcError::Impossible(Piece::Z)));
    assert_eq!(
        game.place(Piece::L, &[0, 1, 2, 12], &finder),
        Err(PcError::Placement),
        "the third piece cannot be placed"
    );
    assert_eq!(
        game.place(Piece::O, &[10, 11, 20, 21], &finder),
        Err(PcError::Placement),
        "a piece cannot rest in the air"
    );
    for (number, placement) in solution.iter().enumerate() {
        let is_clear = game.place(placement.piece, &cells(*placement), &finder);
        assert_eq!(is_clear, Ok(number == 9));
    }
    assert_eq!((game.clears(), game.placed()), (1, 10));
    let position = game.position();
    assert_eq!((position.field, position.pieces_in_all), (field, 11));
    let mut all: Vec<Piece> = solution.iter().map(|placement| placement.piece).collect();
    all.extend(&position.seen);
    all.sort_unstable();
    let mut expected = queue;
    expected.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn chance_of_a_move_is_the_mean_of_the_chances_after_each_next_piece() {
    let mut follower = PcFollower::new(None, 1);
    let start = json!({
        "rows": ["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"],
        "seen": "TIL",
        "left_in_bag": "JOSZ",
    });
    let first = answer(&mut follower, &start);
    let moves = first["moves"].as_array().unwrap();
    assert!(!moves.is_empty() && first["impossible"].as_u64().unwrap() > 0);
    assert!(moves.iter().all(|found| found["clairvoyant"] != "0"));
    let mut chances = Vec::new();
    for found in moves {
        let mut sum = 0;
        for piece in ["J", "O", "S", "Z"] {
            answer(&mut follower, &start);
            let mut request = json!({ "reveal": piece });
            for key in ["piece", "cells"] {
                request[key] = found[key].clone();
            }
            let after = answer(&mut follower, &request);
            assert_eq!(after["placed"], 1);
            sum += in_840ths(&after["best_adaptive"]);
        }
        assert_eq!(sum, 4 * in_840ths(&found["adaptive"]), "{found}");
        chances.push(sum);
    }
    assert!(chances.iter().any(|&sum| sum > 0 && sum < 4 * 840));
}

#[test]
fn moves_and_solutions_drop_out_until_the_field_is_clear() {
    let mut follower = PcFollower::new(None, 1);
    let start = json!({
        "rows": ["XXXX______", "XXXX_____X", "XXXX_____X", "XXXXX____X"],
        "seen": "TJZSLI",
        "left_in_bag": "O",
    });
    let mut position = answer(&mut follower, &start);
    let mut pictures = position["solutions"].as_array().unwrap().clone();
    for placed in 1..=5 {
        assert_eq!(position["best_adaptive"], "1");
        let best = &position["moves"][0];
        let request = json!({ "piece": best["piece"], "cells": best["cells"] });
        position = answer(&mut follower, &request);
        assert_eq!(position["placed"], placed);
        if placed < 5 {
            let left = position["solutions"].as_array().unwrap().clone();
            assert!(!left.is_empty() && left.len() <= pictures.len());
            pictures = left;
        }
    }
    assert_eq!(
        (&position["clears"], &position["lines"]),
        (&json!(1), &json!(4))
    );
    assert_eq!(position["missing"], 4, "only one of eleven pieces is known");
    let revealed = answer(&mut follower, &json!({ "reveal": "O" }));
    assert_eq!(revealed["missing"], 3);
}

#[test]
fn game_that_starts_with_three_rows_continues_with_four() {
    let mut follower = PcFollower::new(None, 1);
    let rows = ["XXXX__XXXX", "XXXX__XXXX", "____XXXXXX"];
    let start = json!({ "seen": "IO", "lines": 3, "rows": rows });
    let first = answer(&mut follower, &start);
    assert_eq!(
        (&first["lines"], &first["best_adaptive"]),
        (&json!(3), &json!("1"))
    );
    let moves = [("O", [14, 15, 24, 25], (1, 0)), ("I", [0, 1, 2, 3], (4, 1))];
    for (piece, cells, (lines, clears)) in moves {
        let request = json!({ "piece": piece, "cells": cells });
        let after = answer(&mut follower, &request);
        assert_eq!(
            (&after["lines"], &after["clears"]),
            (&json!(lines), &json!(clears))
        );
    }
}

#[test]
fn invalid_line_does_not_change_the_game() {
    let mut follower = PcFollower::new(None, 1);
    let error = follower.answer(r#"{"reveal":"T"}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no game has started: start one with `seen`"
    );
    let before = answer(&mut follower, &json!({ "seen": "TI", "best": true }));
    for line in [
        r#"{"piece":"T","cells":[0,1,2,11],"reveal":"T"}"#,
        r#"{"piece":"J","cells":[0,1,2,12]}"#,
        r#"{"piece":"T","cells":[10,11,12,21]}"#,
        r#"{"place":"T"}"#,
        r#"{"piece":"T"}"#,
        r#"{"cells":[10,11,12,21],"reveal":"J"}"#,
        r#"{"seen":"TT"}"#,
    ] {
        assert!(follower.answer(line).is_err(), "{line}");
        assert_eq!(answer(&mut follower, &json!({})), before, "{line}");
    }
}

#[test]
fn computer_clears_several_times_with_any_number_of_threads() {
    let finder = finder();
    // With ten previews, the player always knows all pieces of the next perfect clear.
    let rules = StreakRules::new(4, 10, 5).unwrap();
    let play = |threads| rules.play_games(&finder, 3, 8, threads, || true).unwrap();
    let games = play(1);
    assert_eq!(games, play(2));
    for GameRecord {
        score,
        lines,
        pieces,
        is_complete,
    } in &games
    {
        assert!(
            *score >= 1,
            "every first bag and a half has a perfect clear"
        );
        assert_eq!((*lines, *is_complete), (4 * score, *score == 5));
        assert!(*pieces >= 10 * score && *pieces < 10 * score + 10);
    }
    assert!(games.iter().any(|game| game.is_complete));
}

#[test]
fn computer_plays_with_unknown_pieces() {
    let rules = StreakRules::new(4, 8, 1).unwrap();
    let games = rules.play_games(&finder(), 5, 2, 2, || true).unwrap();
    let complete = GameRecord {
        score: 1,
        lines: 4,
        pieces: 10,
        is_complete: true,
    };
    assert_eq!(games, [complete; 2]);
    assert_eq!(
        StreakRules::new(4, 3, 1).unwrap_err(),
        PcError::Previews {
            previews: 3,
            least: 4
        }
    );
    assert!(matches!(
        StreakRules::new(3, 6, 1).unwrap_err(),
        PcError::Rows(_)
    ));
}
