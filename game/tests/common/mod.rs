//! Test data: the files in `tests/vectors`, and wells from generated games.
#![allow(dead_code)] // each test file uses only a part of this module
#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Emulator, Geometry, Piece, Rules, SimdLevel, Well};
use serde::Deserialize;
use std::path::PathBuf;

/// The rules of the current game.
pub(crate) const STANDARD: Rules = Rules {
    clear_above_bar: false,
};
/// The rules in which full rows are removed even if the locked piece extends above the bar.
pub(crate) const ABOVE_BAR: Rules = Rules {
    clear_above_bar: true,
};

/// Returns the text of a file in `tests/vectors`.
pub(crate) fn vector(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the wells in a benchmark file.
pub(crate) fn bench_wells(name: &str) -> Vec<Well> {
    vector(name)
        .lines()
        .map(|line| Well::from_hex(Geometry::STANDARD, line).unwrap())
        .collect()
}

/// A line of an `expand_*.jsonl` file.
#[derive(Deserialize)]
pub(crate) struct Expansion {
    pub(crate) well: String,
    pub(crate) piece: char,
    pub(crate) children: Vec<String>,
    pub(crate) can_die: bool,
}

pub(crate) fn expansions(name: &str) -> Vec<Expansion> {
    vector(name)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns one emulator for each SIMD level that this machine supports.
pub(crate) fn emulators(geometry: Geometry, rules: Rules) -> Vec<Emulator> {
    SimdLevel::available()
        .map(|level| Emulator::with_level(geometry, rules, level).unwrap())
        .collect()
}

/// A random number generator (SplitMix64) with a seed, which makes tests repeatable.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Returns `count` wells of games with random placements. About every fourth piece is random, and
/// the emulator chooses the others.
pub(crate) fn random_wells(emulator: &Emulator, count: usize, seed: u64) -> Vec<Well> {
    let mut random = Random(seed);
    let mut children = Children::new();
    let mut wells = Vec::with_capacity(count);
    let mut well = Well::EMPTY;
    while wells.len() < count {
        wells.push(well);
        if random.below(4) == 0 {
            emulator.children(&well, Piece::ALL[random.below(7)], &mut children);
        } else {
            emulator.expand(&well, &mut children);
        }
        well = match children.len() {
            0 => Well::EMPTY,
            n => children.wells()[random.below(n)],
        };
    }
    wells
}

/// Returns `count` wells from a greedy beam of width `width`. At each depth, the beam keeps the
/// children with the lowest [`cost`]. A beam without children restarts with a random well.
pub(crate) fn greedy_wells(emulator: &Emulator, count: usize, width: usize) -> Vec<Well> {
    let mut children = Children::new();
    let mut wells = Vec::with_capacity(count);
    let mut frontier = vec![Well::EMPTY];
    let mut seed = 1;
    while wells.len() < count {
        let mut next: Vec<(u32, Well)> = Vec::new();
        for well in &frontier {
            emulator.expand(well, &mut children);
            next.extend(children.wells().iter().map(|child| (cost(child), *child)));
        }
        next.sort_unstable_by_key(|(cost, well)| (*cost, well.hash()));
        next.dedup();
        next.truncate(width);
        frontier = next.into_iter().map(|(_, well)| well).collect();
        if frontier.is_empty() {
            seed += 1;
            frontier = random_wells(emulator, 10, seed).split_off(9);
        }
        wells.extend(frontier.iter().take(count - wells.len()));
    }
    wells
}

/// Returns the cost of a well, which increases with its holes and its stack height.
fn cost(well: &Well) -> u32 {
    let (mut above, mut holes) = (0u16, 0);
    for &row in well.rows().iter().rev() {
        holes += (above & !row).count_ones();
        above |= row;
    }
    holes * 4 + well.stack_height() as u32
}
