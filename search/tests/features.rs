//! Compares the feature counts with a version that follows the definitions cell by cell.

#![allow(clippy::needless_range_loop)] // the indices are cell coordinates
#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Emulator, Geometry, Rules, SimdLevel, Well};
use hatebeam_search::{Features, LANES, count_features};

fn by_definition(geometry: Geometry, well: &Well) -> Features {
    let (width, height) = (geometry.width(), geometry.height());
    let filled = |x: usize, y: usize| well.rows()[y] >> x & 1 == 1;
    let mut open = vec![vec![false; width]; height];
    let mut stack: Vec<(usize, usize)> = (0..width).map(|x| (x, height - 1)).collect();
    while let Some((x, y)) = stack.pop() {
        if filled(x, y) || open[y][x] {
            continue;
        }
        open[y][x] = true;
        if x > 0 {
            stack.push((x - 1, y));
        }
        if x + 1 < width {
            stack.push((x + 1, y));
        }
        if y > 0 {
            stack.push((x, y - 1));
        }
        if y + 1 < height {
            stack.push((x, y + 1));
        }
    }
    let lowest = (0..height)
        .find(|&y| open[y].contains(&true))
        .unwrap_or(height);
    let count = |from: usize| {
        let (mut holes, mut enclosed, mut lines) = (0, 0, 0);
        for y in from..height {
            let mut shut = false;
            for x in 0..width {
                if filled(x, y) {
                    continue;
                }
                holes += u16::from((y + 1..height).any(|above| filled(x, above)));
                enclosed += u16::from(!open[y][x]);
                shut |= !open[y][x];
            }
            lines += u16::from(shut);
        }
        [holes, enclosed, lines]
    };
    let [holes, enclosed, enclosed_lines] = count(lowest);
    let heights: Vec<usize> = (0..width)
        .map(|x| (0..height).rfind(|&y| filled(x, y)).map_or(0, |y| y + 1))
        .collect();
    let differences = heights.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    let stack_height = heights.iter().copied().max().unwrap_or(0);
    let (mut gaps, mut steps) = (0, 0);
    for y in 0..stack_height {
        let is_empty = |x: usize| !filled(x, y);
        if (0..width).all(|x| filled(x, y) || open[y][x]) {
            gaps += (0..width)
                .filter(|&x| is_empty(x) && (x == 0 || !is_empty(x - 1)))
                .count();
        }
        steps += (0..width)
            .filter(|&x| filled(x, y) != (y + 1 < height && filled(x, y + 1)))
            .count();
    }
    Features {
        holes,
        enclosed,
        enclosed_lines,
        surface_height: lowest as u16,
        bumpiness: differences.sum::<usize>() as u16,
        stack_height: stack_height as u16,
        gaps: gaps as u16,
        steps: steps as u16,
        all: count(0),
    }
}

/// Returns the wells of random games.
fn wells(geometry: Geometry, count: usize) -> Vec<Well> {
    let emulator = Emulator::new(geometry, Rules::default());
    let mut children = Children::new();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut wells = Vec::new();
    let mut well = Well::EMPTY;
    while wells.len() < count {
        emulator.expand(&well, &mut children);
        if children.is_empty() {
            well = Well::EMPTY;
            continue;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        well = children.wells()[(state % children.len() as u64) as usize];
        wells.push(well);
    }
    wells
}

fn check(geometry: Geometry, wells: &[Well]) {
    let mut counted = [Features::default(); LANES];
    for batch in wells.chunks(LANES) {
        let expected: Vec<Features> = batch.iter().map(|w| by_definition(geometry, w)).collect();
        for level in SimdLevel::available() {
            count_features(level, geometry, batch, &mut counted);
            assert_eq!(&counted[..batch.len()], &expected[..], "{level} {geometry}");
        }
    }
}

#[test]
fn features_match_their_definitions() {
    check(Geometry::STANDARD, &wells(Geometry::STANDARD, 100_000));
    for (width, height) in [(4, 4), (5, 16), (6, 3), (15, 10), (16, 10), (10, 2)] {
        let geometry = Geometry::new(width, height).unwrap();
        check(geometry, &wells(geometry, 2_000));
    }
}

#[test]
fn features_of_random_cells_match_their_definitions() {
    // Random cells contain winding passages that do not occur in games.
    let mut state = 88_172_645_463_325_252u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let wells: Vec<Well> = (0..20_000)
        .map(|_| {
            let rows = std::array::from_fn(|_| {
                let row = (random() & random() & 0x3ff) as u16;
                if row == 0x3ff { 0 } else { row }
            });
            Well::from_rows(rows)
        })
        .collect();
    check(Geometry::STANDARD, &wells);
}
