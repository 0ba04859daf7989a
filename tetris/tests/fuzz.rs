//! Runs the fuzz target of this crate's parsers a limited number of times on valid, damaged and random inputs. For longer
//! runs, see `fuzz/README.md`.

#[path = "../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../fuzz/src/tetris.rs"]
mod tetris;

use hatebeam_tetris::Piece;
use mutate::seed;

/// Returns a kick table with a list of shifts for L and references for all other pieces.
fn kick_table() -> String {
    let turns = ["NE", "ES", "SW", "WN", "NW", "WS", "SE", "EN"];
    let half_turns = ["NS", "EW", "SN", "WE"];
    let mut table = "# a comment\n! another one\n".to_owned();
    for turn in turns.iter().chain(&half_turns) {
        table += &format!("L.{turn}=(0,0)(@-1,0)(-1,+1)(0,-3)(+1, 2)\n");
        for piece in Piece::ALL.iter().filter(|piece| **piece != Piece::L) {
            table += &format!("{piece}.{turn}=&L.{turn}\n");
        }
    }
    table
}

#[test]
fn text_parsers_handle_any_input() {
    let rows = "XX__X___XX\nxxxx.#__##\nXXXXX XXXX\n";
    let seeds = [
        // 10 columns (28 modulo 18), and 20 or 56 rows (modulo 58).
        seed(0, format!("\u{1c}\u{14}{rows}")),
        seed(0, format!("\u{1c}\u{38}{}", rows.repeat(13))),
        seed(1, rows),
        seed(1, rows.repeat(7)),
        seed(2, "SOLTZJIsoltzji"),
        seed(3, "T\n.#.\n###\n\n// a comment\nlong:\n####\n\nXX\nX_\n"),
        seed(
            3,
            "square\n##\n##\n\ndiagonal\n#.\n.#\n\ncorner\n.#\n##\n\ndot\n#\n",
        ),
        seed(4, kick_table()),
        seed(4, kick_table()),
    ];
    mutate::run(tetris::text, &seeds, 20_000);
}

#[test]
fn kick_table_of_the_test_is_valid() {
    let table = hatebeam_tetris::srs::KickTable::parse(&kick_table());
    assert!(table.is_ok(), "{table:?}");
}
