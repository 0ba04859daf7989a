//! Runs the fuzz targets of this crate's parsers a limited number of times on valid, damaged and random
//! inputs. For longer runs, see `fuzz/README.md`.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../fuzz/src/parsers.rs"]
mod parsers;

use common::vector;
use mutate::run;

/// Returns the texts with a prefix of two bytes that selects the geometry 10 × 16.
fn standard(texts: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    texts
        .map(|text| [&[6, 15], text.as_slice()].concat())
        .collect()
}

fn replays() -> Vec<Vec<u8>> {
    let games: serde_json::Value = serde_json::from_str(&vector("games.json")).unwrap();
    let replays = games.as_array().unwrap().iter().flat_map(|game| {
        game["replays"]
            .as_object()
            .unwrap()
            .values()
            .map(|text| text.as_str().unwrap().into())
    });
    replays.collect()
}

#[test]
fn replay_parser_handles_any_input() {
    run(parsers::replay, &replays(), 3_000);
}

#[test]
fn play_handles_any_keys() {
    run(parsers::play, &standard(replays().into_iter()), 1_500);
}

#[test]
fn well_parsers_handle_any_input() {
    let texts: Vec<String> = vector("bench_beam.txt")
        .lines()
        .take(50)
        .map(Into::into)
        .collect();
    let wells: Vec<_> = common::bench_wells("bench_beam.txt")
        .into_iter()
        .take(50)
        .collect();
    let geometry = hatebeam_game::Geometry::STANDARD;
    let hex = standard(texts.into_iter().map(String::into_bytes));
    run(parsers::well_hex, &hex, 20_000);
    let pictures = standard(wells.iter().map(|well| well.picture(geometry).into_bytes()));
    run(parsers::well_picture, &pictures, 20_000);
    let packed = standard(
        wells
            .iter()
            .map(|well| well.pack(geometry).as_bytes().to_vec()),
    );
    run(parsers::well_packed, &packed, 20_000);
}
