//! Computes the chances of first moves from the empty field and prints the times.
//!
//! Arguments: a JSON file in the format of `pc_adaptive.json`; number of threads (1); a table.

#![allow(clippy::unwrap_used)]

use hatebeam_agents::pc::{BoardTable, PcFinder, PcPosition, chances};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, DropMode, KickTable, Kicks, LowField};
use std::time::Instant;

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let threads = std::env::args()
        .nth(2)
        .map_or(1, |text| text.parse().unwrap());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let finder = PcFinder::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    let finder = match std::env::args().nth(3) {
        Some(path) => {
            let start = Instant::now();
            let table = BoardTable::read(std::fs::File::open(path).unwrap()).unwrap();
            let finder = finder.with_table(table);
            println!("table read in {:.2?}", start.elapsed());
            finder
        }
        None => finder,
    };
    for case in json["cases"].as_array().unwrap() {
        let pieces = |key: &str| Piece::parse_sequence(case[key].as_str().unwrap()).unwrap();
        let position = PcPosition {
            field: LowField::empty(4).unwrap(),
            seen: pieces("seen"),
            bag: Bag::of(&pieces("left_in_bag")).unwrap(),
            pieces_in_all: 11,
        };
        let start = Instant::now();
        let moves = chances(&position, &finder, threads).unwrap();
        println!(
            "{} {}: {}/{}, expected {}/{}, {} moves, {:.2?}",
            case["seen"],
            case["left_in_bag"],
            moves[0].adaptive.count,
            moves[0].adaptive.all,
            case["success"],
            case["all"],
            moves.len(),
            start.elapsed()
        );
    }
}
