//! Tests of guideline Tetris. They compare it with test vectors and, on random fields, with a slow search that moves
//! pieces cell by cell.

#![allow(clippy::unwrap_used)]

mod common;

use common::{list, numbers, random_rows, rows, vectors};
use hatebeam_tetris::srs::{
    Bag, DropMode, KickError, KickTable, Kicks, LowField, LowFieldError, LowPlacements,
    Orientation, Placements, SrsKey, SrsPlacement, keys_to, parse_field,
};
use hatebeam_tetris::{Field, Piece, Rng};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

type Cells = Vec<i64>;

fn cells_of(placement: &hatebeam_tetris::srs::SrsPlacement) -> Cells {
    placement
        .cells()
        .iter()
        .map(|&(x, y)| i64::from(y) * 10 + i64::from(x))
        .collect()
}

fn find(field: &Field, piece: Piece, kicks: Kicks, mode: DropMode) -> BTreeSet<Cells> {
    let set = Placements::new(KickTable::built_in(kicks), mode).find(field, piece);
    let cells: BTreeSet<Cells> = set.iter().map(|placement| cells_of(&placement)).collect();
    assert_eq!(cells.len(), set.iter().count(), "two placements are equal");
    cells
}

#[test]
fn placements_match_test_vectors() {
    let vectors = vectors("srs_placements");
    let mut lists = 0;
    for board in list(&vectors["boards"]) {
        let field = parse_field(&rows(&board["rows"])).unwrap();
        for (letter, expected) in board["pieces"].as_object().unwrap() {
            let piece: Piece = letter.parse().unwrap();
            let sets = |value: &serde_json::Value| -> BTreeSet<Cells> {
                list(value).iter().map(numbers).collect()
            };
            assert_eq!(
                find(&field, piece, Kicks::Srs, DropMode::Hard),
                sets(&expected["hard"])
            );
            let srs = sets(&expected["srs"]);
            assert_eq!(
                find(&field, piece, Kicks::Srs, DropMode::Soft),
                srs,
                "{piece}\n{field}"
            );
            for kicks in [
                Kicks::None,
                Kicks::SrsJstris180,
                Kicks::SrsTetrio180,
                Kicks::SrsPlus,
            ] {
                let change = &expected[kicks.name()];
                let mut all: BTreeSet<Cells> =
                    srs.difference(&sets(&change["fewer"])).cloned().collect();
                all.extend(sets(&change["more"]));
                assert_eq!(
                    find(&field, piece, kicks, DropMode::Soft),
                    all,
                    "{kicks} {piece}\n{field}"
                );
                lists += 1;
            }
            assert_lines(
                &field,
                piece,
                list(&expected["srs"]),
                &numbers(&expected["lines"]),
            );
        }
    }
    assert_eq!(lists, 15 * 7 * 4);
}

fn assert_lines(field: &Field, piece: Piece, cells: &[serde_json::Value], lines: &[i64]) {
    let finder = Placements::new(KickTable::built_in(Kicks::Srs), DropMode::Soft);
    for placement in finder.find(field, piece).iter() {
        let at = cells
            .iter()
            .position(|cells| numbers(cells) == cells_of(&placement))
            .unwrap();
        assert_eq!(i64::from(placement.put(field).1), lines[at]);
    }
}

/// Checks the numbers of placements and of distinct boards after each number of pieces (perft). Each piece can be any of
/// the seven.
#[test]
fn perft_counts_match_test_vectors() {
    for case in list(&vectors("srs_perft")["cases"]) {
        let field = parse_field(&rows(&case["rows"])).unwrap();
        let mode = if case["mode"] == "hard" {
            DropMode::Hard
        } else {
            DropMode::Soft
        };
        let finder = Placements::new(KickTable::built_in(Kicks::Srs), mode);
        // The boards, each with the number of ways to reach it.
        let mut boards = HashMap::from([(field, 1u64)]);
        for expected in list(&case["layers"]) {
            let mut next: HashMap<Field, u64> = HashMap::new();
            for (board, ways) in &boards {
                for piece in Piece::ALL {
                    for placement in finder.find(board, piece).iter() {
                        *next.entry(placement.put(board).0).or_default() += ways;
                    }
                }
            }
            boards = next;
            let placements: u64 = boards.values().sum();
            assert_eq!(placements, expected["placements"].as_u64().unwrap());
            assert_eq!(boards.len() as u64, expected["boards"].as_u64().unwrap());
        }
    }
}

#[test]
fn empty_field_has_162_placements_with_every_table() {
    let field = parse_field::<&str>(&[]).unwrap();
    for kicks in Kicks::ALL {
        let all = Piece::ALL.map(|piece| find(&field, piece, kicks, DropMode::Soft).len());
        assert_eq!(all.iter().sum::<usize>(), 162, "{kicks}");
    }
}

/// An independent search that moves pieces cell by cell, with separate copies of the shapes and kick tables. All shifts
/// apply to the piece's box.
mod slow {
    use super::*;

    const BOXES: [(Piece, [&str; 4]); 7] = [
        (
            Piece::I,
            ["02 12 22 32", "20 21 22 23", "01 11 21 31", "10 11 12 13"],
        ),
        (
            Piece::J,
            ["01 02 11 21", "10 11 12 22", "01 11 20 21", "00 10 11 12"],
        ),
        (
            Piece::L,
            ["01 11 21 22", "10 11 12 20", "00 01 11 21", "02 10 11 12"],
        ),
        (
            Piece::O,
            ["00 01 10 11", "00 01 10 11", "00 01 10 11", "00 01 10 11"],
        ),
        (
            Piece::S,
            ["01 11 12 22", "11 12 20 21", "00 10 11 21", "01 02 10 11"],
        ),
        (
            Piece::T,
            ["01 11 12 21", "10 11 12 21", "01 10 11 21", "01 10 11 12"],
        ),
        (
            Piece::Z,
            ["02 11 12 21", "10 11 21 22", "01 10 11 20", "00 01 11 12"],
        ),
    ];
    /// Quarter turns: the orientations before and after the turn, the shifts for J, L, S, T and Z, the shifts for I in
    /// SRS, and the shifts for I in SRS+.
    const QUARTERS: [(usize, usize, &str, &str, &str); 8] = [
        (
            0,
            1,
            "0,0 -1,0 -1,1 0,-2 -1,-2",
            "0,0 -2,0 1,0 -2,-1 1,2",
            "0,0 1,0 -2,0 -2,-1 1,2",
        ),
        (
            1,
            0,
            "0,0 1,0 1,-1 0,2 1,2",
            "0,0 2,0 -1,0 2,1 -1,-2",
            "0,0 -1,0 2,0 -1,-2 2,1",
        ),
        (
            1,
            2,
            "0,0 1,0 1,-1 0,2 1,2",
            "0,0 -1,0 2,0 -1,2 2,-1",
            "0,0 -1,0 2,0 -1,2 2,-1",
        ),
        (
            2,
            1,
            "0,0 -1,0 -1,1 0,-2 -1,-2",
            "0,0 1,0 -2,0 1,-2 -2,1",
            "0,0 -2,0 1,0 -2,1 1,-2",
        ),
        (
            2,
            3,
            "0,0 1,0 1,1 0,-2 1,-2",
            "0,0 2,0 -1,0 2,1 -1,-2",
            "0,0 2,0 -1,0 2,1 -1,-2",
        ),
        (
            3,
            2,
            "0,0 -1,0 -1,-1 0,2 -1,2",
            "0,0 -2,0 1,0 -2,-1 1,2",
            "0,0 1,0 -2,0 1,2 -2,-1",
        ),
        (
            3,
            0,
            "0,0 -1,0 -1,-1 0,2 -1,2",
            "0,0 1,0 -2,0 1,-2 -2,1",
            "0,0 1,0 -2,0 1,-2 -2,1",
        ),
        (
            0,
            3,
            "0,0 1,0 1,1 0,-2 1,-2",
            "0,0 -1,0 2,0 -1,2 2,-1",
            "0,0 -1,0 2,0 2,-1 -1,2",
        ),
    ];
    /// Half turns: the orientations before and after the turn, and the shifts in Jstris and in TETR.IO.
    const HALVES: [(usize, usize, &str, &str); 4] = [
        (0, 2, "0,0 0,1", "0,0 0,1 1,1 -1,1 1,0 -1,0"),
        (2, 0, "0,0 0,-1", "0,0 0,-1 -1,-1 1,-1 -1,0 1,0"),
        (1, 3, "0,0 1,0", "0,0 1,0 1,2 1,1 0,2 0,1"),
        (3, 1, "0,0 -1,0", "0,0 -1,0 -1,2 -1,1 0,2 0,1"),
    ];

    /// A turn: the orientations before and after it, and the shifts of the piece's box.
    type Turn = (usize, usize, Vec<(i32, i32)>);

    fn shifts(text: &str) -> Vec<(i32, i32)> {
        let pair = |pair: &str| {
            let (dx, dy) = pair.split_once(',').unwrap();
            (dx.parse().unwrap(), dy.parse().unwrap())
        };
        text.split(' ').map(pair).collect()
    }

    fn turns(piece: Piece, kicks: Kicks) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (from, to, others, i, i_plus) in QUARTERS {
            let text = match (piece, kicks) {
                (Piece::O, _) | (_, Kicks::None) => "0,0",
                (Piece::I, Kicks::SrsPlus) => i_plus,
                (Piece::I, _) => i,
                _ => others,
            };
            turns.push((from, to, shifts(text)));
        }
        for (from, to, jstris, tetrio) in HALVES {
            match kicks {
                Kicks::None | Kicks::Srs => {}
                Kicks::SrsJstris180 => turns.push((from, to, shifts(jstris))),
                Kicks::SrsTetrio180 | Kicks::SrsPlus => turns.push((from, to, shifts(tetrio))),
            }
        }
        turns
    }

    fn boxes(piece: Piece) -> [Vec<(i32, i32)>; 4] {
        let boxes = BOXES.iter().find(|(name, _)| *name == piece).unwrap().1;
        boxes.map(|text| {
            let cell = |cell: &str| {
                (
                    i32::from(cell.as_bytes()[0] - b'0'),
                    i32::from(cell.as_bytes()[1] - b'0'),
                )
            };
            text.split(' ').map(cell).collect()
        })
    }

    /// Presses keys one by one and returns the cells at which the piece locks. Every key must move the piece.
    pub(crate) fn lock(field: &Field, piece: Piece, kicks: Kicks, keys: &[SrsKey]) -> Cells {
        let (boxes, turns) = (boxes(piece), turns(piece, kicks));
        let cells = |(turn, x, y): (usize, i32, i32)| {
            boxes[turn].iter().map(move |&(dx, dy)| (x + dx, y + dy))
        };
        let fits = |state| {
            cells(state).all(|(x, y)| {
                (0..10).contains(&x)
                    && (0..40).contains(&y)
                    && !field.is_filled(x as usize, y as usize)
            })
        };
        let low = boxes[0].iter().map(|cell| cell.1).min().unwrap();
        let mut at = (0, if piece == Piece::O { 4 } else { 3 }, 20 - low);
        assert!(fits(at));
        for &key in keys {
            let (turn, x, y) = at;
            let turned = |by: usize| {
                let to = (turn + by) % 4;
                let found = turns.iter().find(|turn| (turn.0, turn.1) == (at.0, to));
                let shifts = found.map_or(&[][..], |turn| &turn.2);
                let shifted = shifts.iter().map(|&(dx, dy)| (to, x + dx, y + dy));
                shifted.into_iter().find(|&state| fits(state)).unwrap()
            };
            at = match key {
                SrsKey::Left => (turn, x - 1, y),
                SrsKey::Right => (turn, x + 1, y),
                SrsKey::Down => (turn, x, y - 1),
                SrsKey::Clockwise => turned(1),
                SrsKey::HalfTurn => turned(2),
                SrsKey::Anticlockwise => turned(3),
                SrsKey::SoftDrop | SrsKey::HardDrop => {
                    let lowest = (0..=y + 4).map(|down| (turn, x, y - down));
                    lowest.take_while(|&state| fits(state)).last().unwrap()
                }
            };
            assert!(fits(at), "{key}");
        }
        assert_eq!(keys.last(), Some(&SrsKey::HardDrop));
        let mut locked: Cells = cells(at).map(|(x, y)| i64::from(y * 10 + x)).collect();
        locked.sort_unstable();
        locked
    }

    pub(crate) fn placements(field: &Field, piece: Piece, kicks: Kicks) -> BTreeSet<Cells> {
        let boxes = boxes(piece);
        let cells = |(turn, x, y): (usize, i32, i32)| {
            boxes[turn].iter().map(move |&(dx, dy)| (x + dx, y + dy))
        };
        let fits = |state| {
            cells(state).all(|(x, y)| {
                (0..10).contains(&x)
                    && (0..40).contains(&y)
                    && !field.is_filled(x as usize, y as usize)
            })
        };
        let low = boxes[0].iter().map(|cell| cell.1).min().unwrap();
        let start = (0usize, if piece == Piece::O { 4 } else { 3 }, 20 - low);
        let turns = turns(piece, kicks);
        let mut open: Vec<(usize, i32, i32)> = Some(start)
            .filter(|&start| fits(start))
            .into_iter()
            .collect();
        let mut seen: BTreeSet<(usize, i32, i32)> = open.iter().copied().collect();
        let mut rests = BTreeSet::new();
        while let Some((turn, x, y)) = open.pop() {
            let mut next = vec![(turn, x - 1, y), (turn, x + 1, y), (turn, x, y - 1)];
            for (_, to, shifts) in turns.iter().filter(|(from, _, _)| *from == turn) {
                let shifted = shifts.iter().map(|&(dx, dy)| (*to, x + dx, y + dy));
                next.extend(shifted.into_iter().find(|&state| fits(state)));
            }
            for state in next {
                if fits(state) && seen.insert(state) {
                    open.push(state);
                }
            }
            if !fits((turn, x, y - 1)) {
                let mut rest: Cells = cells((turn, x, y))
                    .map(|(x, y)| i64::from(y * 10 + x))
                    .collect();
                rest.sort_unstable();
                rests.insert(rest);
            }
        }
        rests
    }
}

fn random_field(rng: &mut Rng) -> Field {
    let (dense, count) = (rng.below(10), rng.below(22));
    parse_field(&random_rows(count, 10, dense, rng)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn placements_equal_placements_of_slow_search(seed: u64) {
        let mut rng = Rng::new(seed);
        let field = random_field(&mut rng);
        for kicks in Kicks::ALL {
            for piece in Piece::ALL {
                let expected = slow::placements(&field, piece, kicks);
                prop_assert_eq!(find(&field, piece, kicks, DropMode::Soft), expected, "{} {}\n{}", kicks, piece, field);
            }
        }
    }
}

fn random_low_field(rows: usize, rng: &mut Rng) -> Option<LowField> {
    let dense = rng.below(10);
    let text: Vec<String> = (0..rows)
        .map(|_| {
            (0..10)
                .map(|_| if rng.below(10) < dense { 'X' } else { '_' })
                .collect()
        })
        .collect();
    LowField::of(&parse_field(&text).unwrap(), rows).ok()
}

/// Returns a kick table that moves pieces as far down as searches for perfect clears permit.
fn deep_table() -> KickTable {
    let mut file = srs_file();
    for turn in ["T.NE", "T.NW"] {
        file = file.replace(
            &format!("{turn}=&L"),
            &format!("{turn}=(0,-1)(0,-3)(0,-6)\n# L"),
        );
    }
    KickTable::parse(&file.replace("Z.EN=L.EN", "Z.EN=(0,-2)(1,0)(-1,-2)(-1,-7)")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn low_placements_equal_placements_on_fields_of_full_height(seed: u64, rows in 1usize..=4) {
        let mut rng = Rng::new(seed);
        let Some(low) = random_low_field(rows, &mut rng) else { return Ok(()) };
        let field = low.to_field();
        let built_in = |kicks: Kicks| (kicks.name(), KickTable::built_in(kicks));
        let tables = Kicks::ALL.map(|kicks| (built_in(kicks), DropMode::Soft)).into_iter()
            .chain([(built_in(Kicks::None), DropMode::Hard)])
            .chain([(("deep", deep_table()), DropMode::Soft)]);
        for ((kicks, table), mode) in tables {
            let fast = LowPlacements::new(&table, mode);
            let slow = Placements::new(table, mode);
            for piece in Piece::ALL {
                let mut found = Vec::new();
                fast.for_each(&low, piece, |placement| found.push(placement));
                let fits = |placement: &SrsPlacement| {
                    placement.cells().iter().all(|&(_, y)| usize::from(y) < low.rows())
                };
                let expected: Vec<SrsPlacement> = slow.find(&field, piece).iter().filter(fits).collect();
                prop_assert_eq!(&found, &expected, "{} {} {}\n{}", kicks, mode, piece, field);
                for placement in found {
                    let (after, lines) = placement.put(&field);
                    let low_after = low.put(placement);
                    prop_assert_eq!(low_after.to_field(), after);
                    prop_assert_eq!(low_after.rows() + lines as usize, low.rows());
                }
            }
        }
    }
}

#[test]
fn low_field_that_cannot_be_cleared_is_an_error() {
    let low = |rows: &[&str], count| LowField::of(&parse_field(rows).unwrap(), count);
    assert_eq!(low(&[], 5), Err(LowFieldError::Rows(5)));
    assert_eq!(low(&[], 0), Err(LowFieldError::Rows(0)));
    assert_eq!(
        low(&["X_________", "__________"], 1),
        Err(LowFieldError::TooHigh(1))
    );
    assert_eq!(low(&["X_________"], 4), Err(LowFieldError::Cells(39)));
    assert_eq!(low(&["XXXXXXXXXX", "XX________"], 4).unwrap().rows(), 3);
    let narrow = Field::new(9, 20).unwrap();
    assert_eq!(LowField::of(&narrow, 4), Err(LowFieldError::Width(9)));
    // Three empty cells are left of the full column, and five are right of it.
    let split = low(&["XX_XXXXXXX", "_X_XXXXXXX", "_X_XXXXXXX", "_X__XXXXXX"], 4);
    assert!(split.unwrap().is_split());
    assert!(!low(&["_XXXXXXXX_"; 4], 4).unwrap().is_split());
}

const SRS_FILE: &str = "\
# The shifts apply to pivots, as in solution-finder's files.
L.NE=(0,0)(-1,0)(-1,+1)(0,-2)(-1,-2)\nL.ES=(0,0)(+1,0)(+1,-1)(0,+2)(+1,+2)
L.SW=(0,0)(+1,0)(+1,+1)(0,-2)(+1,-2)\nL.WN=(0,0)(-1,0)(-1,-1)(0,+2)(-1,+2)
L.NW=(0,0)(+1,0)(+1,+1)(0,-2)(+1,-2)\nL.WS=(0,0)(-1,0)(-1,-1)(0,+2)(-1,+2)
L.SE=(0,0)(-1,0)(-1,+1)(0,-2)(@-1,-2)\nL.EN=(0,0)(+1,0)(+1,-1)(0,+2)( +1,+2)
I.NE=(+1, 0)(-1, 0)(+2, 0)(-1,-1)(+2,+2)\nI.ES=( 0,-1)(-1,-1)(+2,-1)(-1,+1)(+2,-2)
I.SW=(-1, 0)(+1, 0)(-2, 0)(+1,+1)(-2,-2)\nI.WN=( 0,+1)(+1,+1)(-2,+1)(+1,-1)(-2,+2)
I.NW=( 0,-1)(-1,-1)(+2,-1)(-1,+1)(+2,-2)\nI.WS=(+1, 0)(-1, 0)(+2, 0)(-1,-1)(+2,+2)
I.SE=( 0,+1)(+1,+1)(-2,+1)(+1,-1)(-2,+2)\nI.EN=(-1, 0)(+1, 0)(-2, 0)(+1,+1)(-2,-2)
O.NE=( 0,+1)\nO.ES=(+1, 0)\nO.SW=( 0,-1)\nO.WN=(-1, 0)\nO.NW=(+1, 0)\nO.WS=( 0,+1)\nO.SE=(-1, 0)\nO.EN=( 0,-1)
";

fn srs_file() -> String {
    let mut file = SRS_FILE.to_owned();
    for (piece, mark) in [("J", ""), ("S", "&"), ("T", "&"), ("Z", "")] {
        for turn in ["NE", "ES", "SW", "WN", "NW", "WS", "SE", "EN"] {
            file += &format!("{piece}.{turn}={mark}L.{turn}\n");
        }
    }
    file
}

#[test]
fn kick_file_of_srs_gives_built_in_table() {
    assert_eq!(
        KickTable::parse(&srs_file()),
        Ok(KickTable::built_in(Kicks::Srs))
    );
}

#[test]
fn kick_file_with_half_turns_gives_built_in_table() {
    let mut file = srs_file();
    for piece in ["J", "L", "S", "T", "Z"] {
        let of = |turn: &str, shifts: &str| format!("{piece}.{turn}={shifts}\n");
        file += &(of("NS", "(0,0)(0,+1)")
            + &of("EW", "(0,0)(+1,0)")
            + &of("SN", "(0,0)(0,-1)")
            + &of("WE", "(0,0)(-1,0)"));
    }
    file += "I.NS=(+1,-1)(+1,0)\nI.EW=(-1,-1)(0,-1)\nI.SN=(-1,+1)(-1,0)\nI.WE=(+1,+1)(0,+1)\n";
    file += "O.NS=(+1,+1)\nO.EW=(+1,-1)\nO.SN=(-1,-1)\nO.WE=(-1,+1)\n";
    assert_eq!(
        KickTable::parse(&file),
        Ok(KickTable::built_in(Kicks::SrsJstris180))
    );
}

#[test]
fn kick_file_that_moves_pieces_too_far_down_is_an_error() {
    let with = |shifts: &str| KickTable::parse(&srs_file().replace("T.NE=&L.NE", shifts));
    // The lowest cell of the piece moves down by one row more than the pivot.
    assert!(with("T.NE=(0,-1)").is_ok());
    assert!(with("T.NE=(0,0)(0,-6)").is_ok());
    // The first shifts of the last two lists leave the well in some columns.
    for shifts in [
        "(0,-2)",
        "(0,-6)",
        "(0,-2)(0,0)",
        "(-2,0)(0,-6)",
        "(9,0)(0,-40)",
    ] {
        let error = with(&format!("T.NE={shifts}")).unwrap_err();
        assert!(
            matches!(error, KickError::TooDeep { .. }),
            "{shifts}: {error}"
        );
        assert!(error.to_string().contains("T.NE"), "{error}");
    }
}

#[test]
fn kick_file_with_a_turn_that_is_never_possible_is_an_error() {
    let with = |shifts: &str| KickTable::parse(&srs_file().replace("T.NE=&L.NE", shifts));
    assert!(with("T.NE=(7,0)").is_ok());
    let error = with("T.NE=(9,0)(-10,0)").unwrap_err();
    assert!(matches!(error, KickError::NeverFits { .. }), "{error}");
    assert!(error.to_string().contains("T.NE"), "{error}");
}

#[test]
fn error_for_invalid_kick_file_names_the_reason() {
    let with = |line: &str| KickTable::parse(&(srs_file() + line));
    assert!(matches!(
        KickTable::parse(""),
        Err(KickError::Missing { .. })
    ));
    assert!(matches!(with("nonsense"), Err(KickError::NoAssignment(_))));
    assert!(matches!(with("T.XY=(0,0)"), Err(KickError::Key { .. })));
    assert!(matches!(
        with("T.NE=(0,0)"),
        Err(KickError::Duplicate { .. })
    ));
    assert!(matches!(with("T.NS=(0;0)"), Err(KickError::Value { .. })));
    assert!(matches!(with("T.NS=(0,100)"), Err(KickError::Value { .. })));
    for shift in ["(-128,0)", "(0,-128)", "(11,0)", "(0,-41)"] {
        let error = with(&format!("T.NS={shift}"));
        assert!(matches!(error, Err(KickError::Value { .. })), "{shift}");
    }
    assert!(matches!(
        with("T.NS=(0,0)"),
        Err(KickError::MissingHalf { .. })
    ));
    assert!(matches!(
        "sega".parse::<Kicks>(),
        Err(KickError::UnknownTable(_))
    ));
    let circular = srs_file().replace("L.NE=(0,0)(-1,0)(-1,+1)(0,-2)(-1,-2)", "L.NE=J.NE");
    assert!(matches!(
        KickTable::parse(&circular),
        Err(KickError::Reference { .. })
    ));
}

#[test]
fn bag_tracks_the_pieces_left() {
    let pieces = |text: &str| Piece::parse_sequence(text).unwrap();
    assert_eq!(
        Bag::after(&pieces("OTJLISO")),
        Err(hatebeam_tetris::srs::BagError::Impossible {
            piece: Piece::O,
            position: 7,
            left: "Z".into(),
        })
    );
    assert_eq!(Bag::after(&pieces("IJLOSTZ")).unwrap(), Bag::FULL);
    assert_eq!(Bag::after(&pieces("IJLOSTZTT")).map_err(|_| ()), Err(()));
    assert_eq!(
        Bag::after(&pieces("IJLOSTZT")).unwrap().to_string(),
        "IJLOSZ"
    );
    assert_eq!(Bag::of(&[]).unwrap(), Bag::FULL);
    assert!(Bag::of(&pieces("II")).is_err());
    let mut bag = Bag::of(&pieces("SZ")).unwrap();
    let mut rng = Rng::new(1);
    let drawn: BTreeSet<Piece> = (0..2).map(|_| bag.draw(&mut rng)).collect();
    assert_eq!(drawn.len(), 2);
    assert_eq!(bag, Bag::FULL);
}

#[test]
fn piece_that_cannot_spawn_has_no_placements() {
    let rows = vec!["____X_____"; 22];
    let field = parse_field(&rows).unwrap();
    let finder = Placements::new(KickTable::built_in(Kicks::Srs), DropMode::Soft);
    assert_eq!(finder.find(&field, Piece::T).iter().count(), 0);
}

#[test]
fn keys_lead_to_every_placement() {
    let mut rng = Rng::new(1);
    let mut pressed = 0;
    for number in 0..15 {
        let field = random_field(&mut rng);
        let kicks = Kicks::ALL[number % Kicks::ALL.len()];
        let table = KickTable::built_in(kicks);
        for piece in Piece::ALL {
            for mode in [DropMode::Soft, DropMode::Hard] {
                let finder = Placements::new(table.clone(), mode);
                for placement in finder.find(&field, piece).iter() {
                    if field.pile_height() > 16 && mode == DropMode::Hard {
                        continue; // The finder turns pieces above the field. Keys turn them at the spawn row.
                    }
                    let keys = keys_to(&field, placement, &table, mode).unwrap();
                    let locked = slow::lock(&field, piece, kicks, &keys);
                    assert_eq!(locked, cells_of(&placement));
                    assert!(mode == DropMode::Soft || !keys.contains(&SrsKey::Down));
                    pressed += keys.len();
                }
            }
        }
    }
    assert!(pressed > 10_000, "{pressed}");
}

#[test]
fn unreachable_placements_have_no_keys() {
    let field = parse_field(&["XXXXXXXXX_", "__________"]).unwrap();
    let placement = SrsPlacement {
        piece: Piece::O,
        orientation: Orientation::Spawn,
        x: 0,
        y: 0,
    };
    let table = KickTable::built_in(Kicks::Srs);
    assert_eq!(keys_to(&field, placement, &table, DropMode::Soft), None);
}
