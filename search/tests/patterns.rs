//! Compares the `patterns` evaluator with a version that computes the score cell by cell.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Emulator, Geometry, Rules, SimdLevel, Well};
use hatebeam_search::{
    Evaluator, EvaluatorKind, EvaluatorSpec, Features, LANES, Quiescence, count_features,
};

const GEOMETRY: Geometry = Geometry::STANDARD;
const WIDTH: i32 = 10;

fn open_cells(well: &Well) -> Vec<[bool; 10]> {
    let mut open = vec![[false; 10]; 16];
    let mut stack: Vec<(i32, i32)> = (0..WIDTH).map(|x| (x, 15)).collect();
    while let Some((x, y)) = stack.pop() {
        if !(0..WIDTH).contains(&x) || !(0..16).contains(&y) {
            continue;
        }
        let here = &mut open[y as usize][x as usize];
        if *here || well.rows()[y as usize] >> x & 1 == 1 {
            continue;
        }
        *here = true;
        stack.extend([(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]);
    }
    open
}

/// Encodes cells as the bits of an integer. The first cell is the lowest bit.
fn number(cells: impl Iterator<Item = bool>) -> usize {
    cells
        .enumerate()
        .map(|(at, cell)| usize::from(cell) << at)
        .sum()
}

fn by_definition(file: &[i32], emulator: &Emulator, well: &Well, points: u16) -> i32 {
    let mut features = [Features::default(); LANES];
    count_features(SimdLevel::Portable, GEOMETRY, &[*well], &mut features);
    let found = features[0];
    let clears = emulator.clears(well, 0, None);
    let can = |piece: u32| clears.pieces >> piece & 1;
    let pieces: u8 = (0..7).map(can).sum();
    let counts = [
        found.holes,
        found.enclosed,
        found.enclosed_lines,
        found.surface_height,
        found.all[0],
        found.all[1],
        found.all[2],
        u16::from(pieces),
        u16::from(pieces == 7),
        u16::from(can(0) + can(1) == 2),
        (0..7).map(|p| u16::from(clears.several >> p & 1)).sum(),
        u16::from(pieces > 0),
        points,
    ];
    let (weights, rest) = file.split_at(13);
    let (stack, rest) = rest.split_at(17);
    let (clean, rest) = rest.split_at(1024);
    let (rows, rest) = rest.split_at(16 * 1024);
    let (pairs, triples) = rest.split_at(6 * 1024);
    assert_eq!(triples.len(), 7 * 4096);

    let open = open_cells(well);
    let filled = |x: usize, y: usize| y < 16 && well.rows()[y] >> x & 1 == 1;
    let top = (0..16)
        .rfind(|&y| (0..10).any(|x| filled(x, y)))
        .map_or(0, |y| y + 1);
    // All cells above the stack count as open.
    let shut = |x: usize, y: usize| y < top && !open[y][x];
    let mut sum: i32 = weights
        .iter()
        .zip(counts)
        .map(|(w, c)| w * i32::from(c))
        .sum();
    sum += stack[top];
    for y in 0..top {
        let row = number((0..10).map(|x| filled(x, y)));
        sum += rows[(top - 1 - y) * 1024 + row];
        if (0..10).all(|x| filled(x, y) == shut(x, y)) {
            sum += clean[row];
        }
        for from in 0..6 {
            let cells = [y, y + 1].map(|y| (from..from + 5).map(move |x| (x, y)));
            let window = number(cells.into_iter().flatten().map(|(x, y)| filled(x, y)));
            sum += pairs[from * 1024 + window];
        }
        for from in 0..7 {
            let cells = [y, y + 1, y + 2].map(|y| (from..from + 4).map(move |x| (x, y)));
            let window = number(cells.into_iter().flatten().map(|(x, y)| shut(x, y)));
            sum += triples[from * 4096 + window];
        }
    }
    sum
}

#[test]
fn scores_match_cell_by_cell_sums() {
    let bytes = include_bytes!("../src/patterns.bin");
    let file: Vec<i32> = bytes
        .chunks(2)
        .map(|two| i32::from(i16::from_le_bytes([two[0], two[1]])))
        .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Test the wells of random games, and also wells with random cells, which contain passages that
    // do not occur in games.
    let play = Emulator::new(GEOMETRY, Rules::default());
    let mut children = Children::new();
    let mut wells = vec![Well::EMPTY];
    while wells.len() < 20_000 {
        let last = wells[wells.len() - 1];
        play.expand(&last, &mut children);
        wells.push(match children.len() {
            0 => Well::EMPTY,
            count => children.wells()[(random() % count as u64) as usize],
        });
    }
    for _ in 0..5000 {
        let height = (random() % 17) as usize;
        wells.push(Well::from_rows(std::array::from_fn(|y| {
            let row = (random() & (random() | random()) & 0x3ff) as u16;
            match row {
                _ if y >= height => 0,
                0 | 0x3ff => 1,
                row => row,
            }
        })));
    }
    let points: Vec<u16> = wells.iter().map(|_| (random() % 400) as u16).collect();
    let expected: Vec<i32> = wells
        .iter()
        .zip(&points)
        .map(|(well, &points)| by_definition(&file, &play, well, points))
        .collect();
    let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off);
    for level in SimdLevel::available() {
        let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
        let mut scores = Vec::new();
        Evaluator::new(&emulator, &spec)
            .unwrap()
            .score(&wells, &points, &mut scores);
        assert_eq!(scores, expected, "{level}");
    }
}
