//! What is counted in a well, for thirty-two wells at a time.
//!
//! *Open* cells are the empty cells with a path of empty cells to the row above the bar; they are the
//! *surface* that a game can still reach. Terms as [`Features`] has them.
//!
//! Wells are transposed, one array of 32 lanes a row, so that plain loops over lanes become vector
//! instructions: the whole is compiled for each kind of processor and chosen at run time. A test
//! compares it with a version that follows the definitions cell by cell.

use hatebeam_game::{Geometry, MAX_HEIGHT, SimdLevel, Well};

/// Wells that are looked at together.
pub const LANES: usize = 32;

/// What is counted in a well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Empty cells with a filled cell somewhere above them in the same column, in rows that are not
    /// below the lowest open cell.
    pub holes: u16,
    /// Empty cells that are not open, in the same rows.
    pub enclosed: u16,
    /// Rows with such a cell.
    pub enclosed_lines: u16,
    /// The lowest row with an open cell, 0 the bottom: how high the surface is.
    pub surface_height: u16,
    /// By how many rows the heights of neighbouring columns differ, added up.
    pub bumpiness: u16,
    /// The rows up to the topmost filled cell.
    pub stack_height: u16,
    /// Runs of empty cells in rows below the top of the stack that have no enclosed cell.
    pub gaps: u16,
    /// Cells that differ from the one above them, in rows up to the top of the stack.
    pub steps: u16,
    /// Holes and enclosed cells in all rows, and rows with enclosed cells.
    pub all: [u16; 3],
}

type Lane = [u16; LANES];

/// The same row of thirty-two wells.
pub(crate) type Rows = [Lane; MAX_HEIGHT];

/// Counts for all of `wells` (at most [`LANES`]), in their order.
pub fn count(level: SimdLevel, geometry: Geometry, wells: &[Well], out: &mut [Features; LANES]) {
    count_open(level, geometry, wells, out, &mut [[0; LANES]; MAX_HEIGHT]);
}

/// The same, and which cells are open: a bit a column, by row and well. A row of a well that has
/// columns less than 16 has no bits for the others.
pub(crate) fn count_open(
    level: SimdLevel,
    geometry: Geometry,
    wells: &[Well],
    out: &mut [Features; LANES],
    open: &mut Rows,
) {
    assert!(wells.len() <= LANES, "at most {LANES} wells at a time");
    let mut rows: Rows = [[0; LANES]; MAX_HEIGHT];
    for (lane, well) in wells.iter().enumerate() {
        for (row, &bits) in rows.iter_mut().zip(well.rows()) {
            row[lane] = bits;
        }
    }
    compiled(level, &rows, geometry, out, open);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn compiled(
    level: SimdLevel,
    rows: &Rows,
    geometry: Geometry,
    out: &mut [Features; LANES],
    open: &mut Rows,
) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx2(rows: &Rows, geometry: Geometry, out: &mut [Features; LANES], open: &mut Rows) {
        count_lanes(rows, geometry, out, open);
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx512(rows: &Rows, geometry: Geometry, out: &mut [Features; LANES], open: &mut Rows) {
        count_lanes(rows, geometry, out, open);
    }
    match level {
        SimdLevel::Portable => count_lanes(rows, geometry, out, open),
        // SAFETY: an emulator has a level only where the processor has its instructions; the caller
        // got it from one, and it is asserted where an evaluator is made.
        SimdLevel::Avx2 => unsafe { avx2(rows, geometry, out, open) },
        // SAFETY: as above.
        SimdLevel::Avx512 | SimdLevel::Avx512Vbmi2 => unsafe { avx512(rows, geometry, out, open) },
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn compiled(
    _: SimdLevel,
    rows: &Rows,
    geometry: Geometry,
    out: &mut [Features; LANES],
    open: &mut Rows,
) {
    count_lanes(rows, geometry, out, open);
}

/// `f` of each lane.
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

/// All cells of `empty`'s runs that `seed`, a part of `empty`, touches.
#[inline(always)]
fn fill(seed: &Lane, empty: &Lane) -> Lane {
    lanes!(seed, empty => {
        // To the left a carry runs through; to the right four doubling steps reach sixteen columns.
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

#[inline(always)]
fn ones(lane: &Lane) -> Lane {
    lanes!(lane => {
        let pairs = lane - ((lane >> 1) & 0x5555);
        let fours = (pairs & 0x3333) + ((pairs >> 2) & 0x3333);
        let bytes = (fours + (fours >> 4)) & 0x0f0f;
        (bytes + (bytes >> 8)) & 0x1f
    })
}

#[inline(always)]
fn count_lanes(rows: &Rows, geometry: Geometry, out: &mut [Features; LANES], open: &mut Rows) {
    let full = geometry.full_row();
    let height = geometry.height();
    let mut empty = [[0u16; LANES]; MAX_HEIGHT];
    let mut above = [full; LANES];
    for y in (0..height).rev() {
        let row = &rows[y];
        empty[y] = lanes!(row => !row & full);
        let here = &empty[y];
        let seed = lanes!(here, above => here & above);
        open[y] = fill(&seed, here);
        above = open[y];
    }
    // Up and down until nothing changes: passages that rise are rare.
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
    let mut cover = [0u16; LANES];
    let mut totals = [[0u16; LANES]; 3];
    let mut surface = [[0u16; LANES]; 3];
    let mut lowest = [height as u16; LANES];
    let (mut bumps, mut high) = ([0u16; LANES], [0u16; LANES]);
    let (mut gaps, mut steps, mut over) = ([0u16; LANES], [0u16; LANES], [0u16; LANES]);
    let inner = full >> 1;
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
            // What is in or above the lowest row with an open cell so far.
            surface[kind] = lanes!(kept, sum, is_open => (kept & !is_open) | (sum & is_open));
            totals[kind] = sum;
        }
        cover = lanes!(cover, row => cover | row);
        // In each row, neighbours of which just one is under the top of its column.
        let bump = lanes!(cover => (cover ^ (cover >> 1)) & inner);
        let bump = ones(&bump);
        bumps = lanes!(bumps, bump => bumps + bump);
        // The left ends of runs of empty cells.
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
