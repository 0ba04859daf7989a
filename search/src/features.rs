//! Counts the features of wells, processing 32 wells at a time.
//!
//! *Open* cells are empty cells from which a path of empty cells leads out of the well at the top.
//! Together they form the *surface*, the part of the well that pieces can still reach. All other
//! empty cells are *enclosed*.
//!
//! The wells are transposed into one array of 32 lanes per row, so that the compiler turns simple
//! loops over lanes into vector instructions. The code is compiled once per SIMD level, and the
//! level is chosen at run time.

use crate::network::RowInputs;
use hatebeam_game::{Geometry, MAX_HEIGHT, SimdLevel, Well};

/// Number of wells that are processed together.
pub const LANES: usize = 32;

/// The features of a well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Number of holes: empty cells with a filled cell above them in the same column, at any
    /// distance. Rows below the lowest open cell do not count.
    pub holes: u16,
    /// Number of enclosed cells. Rows below the lowest open cell do not count.
    pub enclosed: u16,
    /// Number of rows with an enclosed cell. Rows below the lowest open cell do not count.
    pub enclosed_lines: u16,
    /// Height of the surface: the index of the lowest row with an open cell. The bottom row has index 0.
    pub surface_height: u16,
    /// Sum of the absolute height differences between neighbouring columns, in rows.
    pub bumpiness: u16,
    /// Number of rows from the bottom to the topmost filled cell.
    pub stack_height: u16,
    /// Number of horizontal runs of empty cells in rows of the stack that have no enclosed cell.
    pub gaps: u16,
    /// Number of cells in the rows of the stack whose state (filled or empty) differs from that of the
    /// cell above.
    pub steps: u16,
    /// The counts [`Features::holes`], [`Features::enclosed`] and [`Features::enclosed_lines`] over
    /// all rows, including those below the lowest open cell.
    pub all: [u16; 3],
}

pub(crate) type Lane = [u16; LANES];

/// The rows of 32 wells. Each entry contains the same row of all wells.
pub(crate) type Rows = [Lane; MAX_HEIGHT];

/// Counts the features of `wells` (at most [`LANES`]) and writes them to `out` in the same order.
///
/// # Panics
///
/// Panics if the processor does not support `level`, or if there are more than [`LANES`] wells.
pub fn count(level: SimdLevel, geometry: Geometry, wells: &[Well], out: &mut [Features; LANES]) {
    let is_available = SimdLevel::available().any(|available| available == level);
    assert!(is_available, "the processor does not support {level}");
    count_open(
        level,
        geometry,
        wells,
        out,
        &mut [[0; LANES]; MAX_HEIGHT],
        None,
    );
}

/// Like [`count`], but does not check `level`, and also writes the open cells to `open`, with one bit
/// per column. Bits beyond the width are zero. If `inputs` is given, also finds the features of the rows for a network.
pub(crate) fn count_open(
    level: SimdLevel,
    geometry: Geometry,
    wells: &[Well],
    out: &mut [Features; LANES],
    open: &mut Rows,
    inputs: Option<&mut RowInputs>,
) {
    assert!(wells.len() <= LANES, "at most {LANES} wells at a time");
    let mut rows: Rows = [[0; LANES]; MAX_HEIGHT];
    for (lane, well) in wells.iter().enumerate() {
        for (row, &bits) in rows.iter_mut().zip(well.rows()) {
            row[lane] = bits;
        }
    }
    let lanes = Lanes {
        rows: &rows,
        geometry,
        out,
        open,
        inputs,
    };
    compiled(level, lanes);
}

/// The rows of 32 wells, and the places for what is counted in them.
struct Lanes<'a> {
    rows: &'a Rows,
    geometry: Geometry,
    out: &'a mut [Features; LANES],
    open: &'a mut Rows,
    inputs: Option<&'a mut RowInputs>,
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn compiled(level: SimdLevel, lanes: Lanes<'_>) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx2(lanes: Lanes<'_>) {
        count_lanes(lanes);
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx512(lanes: Lanes<'_>) {
        count_lanes(lanes);
    }
    match level {
        SimdLevel::Portable => count_lanes(lanes),
        // SAFETY: the processor supports the level. `count` asserts this, and all other callers
        // pass the level of an `Emulator`, which cannot be created with a level that is not
        // supported.
        SimdLevel::Avx2 => unsafe { avx2(lanes) },
        // SAFETY: as above.
        SimdLevel::Avx512 | SimdLevel::Avx512Vbmi2 => unsafe { avx512(lanes) },
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn compiled(_: SimdLevel, lanes: Lanes<'_>) {
    count_lanes(lanes);
}

/// Evaluates an expression for each lane and returns the results as an array.
macro_rules! lanes {
    ($($name:ident),* => $value:expr) => {{
        let mut result = [0u16; LANES];
        let mut lane = 0;
        while lane < LANES {
            $(let $name = $name[lane];)*
            result[lane] = $value;
            lane += 1;
        }
        result
    }};
}

/// Returns the horizontal runs of cells in `empty` that contain a cell of `seed`. `seed` must be a subset
/// of `empty`.
#[inline(always)]
fn fill(seed: &Lane, empty: &Lane) -> Lane {
    lanes!(seed, empty => {
        // Towards higher bits, the carry of an addition passes through a run. Towards lower bits,
        // four doubling steps cover sixteen columns.
        let up = seed | (empty & !(empty.wrapping_add(seed)));
        let mut all = up;
        let mut through = empty;
        all |= through & (all >> 1);
        through &= through >> 1;
        all |= through & (all >> 2);
        through &= through >> 2;
        all |= through & (all >> 4);
        through &= through >> 4;
        all |= through & (all >> 8);
        all
    })
}

/// Counts the bits that are set in each lane.
#[inline(always)]
pub(crate) fn ones(lane: &Lane) -> Lane {
    lanes!(lane => {
        let pairs = lane - ((lane >> 1) & 0x5555);
        let fours = (pairs & 0x3333) + ((pairs >> 2) & 0x3333);
        let bytes = (fours + (fours >> 4)) & 0x0f0f;
        (bytes + (bytes >> 8)) & 0x1f
    })
}

/// Finds the empty cells and the open cells.
#[inline(always)]
fn find_open(rows: &Rows, geometry: Geometry, empty: &mut Rows, open: &mut Rows) {
    let full = geometry.full_row();
    let height = geometry.height();
    let mut above = [full; LANES];
    for y in (0..height).rev() {
        let row = &rows[y];
        empty[y] = lanes!(row => !row & full);
        let here = &empty[y];
        let seed = lanes!(here, above => here & above);
        open[y] = fill(&seed, here);
        above = open[y];
    }
    // Repeat upwards and downwards until nothing changes. Few wells need more than one round, because
    // passages that lead upwards are rare.
    loop {
        let mut changed = [0u16; LANES];
        for y in 1..height {
            let (below, row, here) = (&open[y - 1], &open[y], &empty[y]);
            let seed = lanes!(below, row, here => row | (below & here));
            let now = fill(&seed, here);
            changed = lanes!(changed, now, row => changed | (now ^ row));
            open[y] = now;
        }
        if changed == [0; LANES] {
            break;
        }
        for y in (0..height - 1).rev() {
            let (over, row, here) = (&open[y + 1], &open[y], &empty[y]);
            let seed = lanes!(over, row, here => row | (over & here));
            open[y] = fill(&seed, here);
        }
    }
}

#[inline(always)]
fn count_lanes(lanes: Lanes<'_>) {
    let Lanes {
        rows,
        geometry,
        out,
        open,
        inputs,
    } = lanes;
    let height = geometry.height();
    let mut empty = [[0u16; LANES]; MAX_HEIGHT];
    find_open(rows, geometry, &mut empty, open);
    let mut cover = [0u16; LANES];
    let mut totals = [[0u16; LANES]; 3];
    let mut surface = [[0u16; LANES]; 3];
    let mut lowest = [height as u16; LANES];
    let (mut bumps, mut high) = ([0u16; LANES], [0u16; LANES]);
    let (mut gaps, mut steps, mut over) = ([0u16; LANES], [0u16; LANES], [0u16; LANES]);
    let inner = geometry.full_row() >> 1;
    for y in (0..height).rev() {
        let (row, here, reached) = (&rows[y], &empty[y], &open[y]);
        let covered = lanes!(cover, here => cover & here);
        let shut = lanes!(here, reached => here & !reached);
        let counts = [
            ones(&covered),
            ones(&shut),
            lanes!(shut => u16::from(shut != 0)),
        ];
        let at = y as u16;
        let is_open = lanes!(reached => u16::from(reached != 0).wrapping_neg());
        lowest = lanes!(lowest, is_open => (lowest & !is_open) | (at & is_open));
        for kind in 0..3 {
            let (total, count) = (&totals[kind], &counts[kind]);
            let sum = lanes!(total, count => total + count);
            let kept = &surface[kind];
            // Save the sum at every row with an open cell, so that the last saved sum covers all
            // rows down to the lowest open cell.
            surface[kind] = lanes!(kept, sum, is_open => (kept & !is_open) | (sum & is_open));
            totals[kind] = sum;
        }
        cover = lanes!(cover, row => cover | row);
        // Find the pairs of neighbouring columns of which exactly one reaches this row.
        let bump = lanes!(cover => (cover ^ (cover >> 1)) & inner);
        let bump = ones(&bump);
        bumps = lanes!(bumps, bump => bumps + bump);
        // Find the lowest bit of each run of empty cells in rows of the stack without enclosed cells.
        let ends = lanes!(here, shut, cover => {
            let counts = (u16::from(shut == 0) & u16::from(cover != 0)).wrapping_neg();
            here & !(here << 1) & counts
        });
        let ends = ones(&ends);
        gaps = lanes!(gaps, ends => gaps + ends);
        let step = lanes!(row, over => row ^ over);
        let step = ones(&step);
        steps = lanes!(steps, step => steps + step);
        over = *row;
        high = lanes!(high, cover => high + u16::from(cover != 0));
    }
    if let Some(inputs) = inputs {
        inputs.find(rows, open, &high);
    }
    for lane in 0..LANES {
        out[lane] = Features {
            holes: surface[0][lane],
            enclosed: surface[1][lane],
            enclosed_lines: surface[2][lane],
            surface_height: lowest[lane],
            bumpiness: bumps[lane],
            stack_height: high[lane],
            gaps: gaps[lane],
            steps: steps[lane],
            all: [totals[0][lane], totals[1][lane], totals[2][lane]],
        };
    }
}
