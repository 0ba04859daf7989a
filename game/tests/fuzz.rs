//! Runs the fuzz targets of this crate's parsers a limited number of times on valid, damaged and random
//! inputs. For longer runs, see `fuzz/README.md`.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;
#[path = "../../fuzz/src/parsers.rs"]
mod parsers;

use common::{Random, vector};

/// Damages an input: flips bits, removes or inserts bytes, repeats the end of the input, or
/// truncates it.
fn damage(random: &mut Random, input: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(5) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => drop(input.remove(at)),
            2 => input.insert(at, random.next() as u8),
            3 => input.truncate(at),
            _ => input.extend_from_within(at..),
        }
    }
    input.truncate(4096);
}

/// Runs `target` on the seeds, on damaged copies of them, and on random bytes.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>], runs: usize) {
    let mut random = Random(42);
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..runs {
        let mut input = seeds[random.below(seeds.len())].clone();
        damage(&mut random, &mut input);
        target(&input);
        let noise: Vec<u8> = (0..random.below(64)).map(|_| random.next() as u8).collect();
        target(&noise);
    }
}

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
