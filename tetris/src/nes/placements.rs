//! Placements that a piece can reach without gravity. A flood fill over all orientations finds these placements. It
//! processes all positions in a column at once.

use super::board::{Board, Rows, WIDTH};
use super::shapes::{Shape, orientations};
use crate::Piece;
use std::collections::VecDeque;

/// Column of the centre of a piece at its spawn position. The row is 0.
const SPAWN_X: usize = 5;

/// Orientation and centre of a resting piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placement {
    /// Orientation: the number of clockwise turns from the spawn orientation.
    pub orientation: u8,
    /// Column of the centre.
    pub x: i8,
    /// Row of the centre, which is negative above the visible rows.
    pub y: i8,
}

/// A reusable buffer of placements.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    list: Vec<Placement>,
}

/// A set of positions: for each orientation and each column of the centre, a mask of the rows of the centre.
type Positions = [[u32; WIDTH]; 4];

impl Placements {
    /// Creates an empty buffer.
    pub fn new() -> Placements {
        Placements::default()
    }

    /// Finds every resting position that a piece can reach from its spawn position. The piece can step left, right and
    /// down, and turn in both directions. After each move, all four cells must be inside the board and empty.
    ///
    /// Returns the placements sorted by orientation, column and row, or an empty slice if the piece cannot spawn.
    pub fn find(&mut self, board: &Board, piece: Piece) -> &[Placement] {
        self.find_inline(board, piece);
        &self.list
    }

    /// Returns the placements that the last search found.
    pub fn list(&self) -> &[Placement] {
        &self.list
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn find_inline(&mut self, board: &Board, piece: Piece) {
        self.list.clear();
        let shapes = orientations(piece);
        let free = free_positions(board, shapes);
        let above = board.rows.above();
        if free[0][SPAWN_X] >> above & 1 == 0 {
            return;
        }
        let reached = flood(&free, shapes.len(), 1 << above);
        for orientation in 0..shapes.len() {
            for x in 0..WIDTH {
                // A piece rests if the row below, which is the next higher bit, is not free.
                let mut rests = reached[orientation][x] & !(free[orientation][x] >> 1);
                while rests != 0 {
                    self.list.push(Placement {
                        orientation: orientation as u8,
                        x: x as i8,
                        y: (rests.trailing_zeros() as usize - above) as i8,
                    });
                    rests &= rests - 1;
                }
            }
        }
    }
}

/// Returns the positions at which all four cells are inside the board and empty.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn free_positions(board: &Board, shapes: &[Shape]) -> Positions {
    // On each side, two columns without empty cells represent the wall.
    let mut empty = [0u32; WIDTH + 4];
    for (padded, column) in empty[2..].iter_mut().zip(&board.columns) {
        *padded = !column & board.mask();
    }
    let mut free = [[0; WIDTH]; 4];
    for (free, cells) in free.iter_mut().zip(shapes) {
        *free = [u32::MAX; WIDTH];
        for &(dx, dy) in cells {
            let shifted = &empty[(2 + dx) as usize..][..WIDTH];
            for (free, &empty) in free.iter_mut().zip(shifted) {
                *free &= if dy >= 0 { empty >> dy } else { empty << -dy };
            }
        }
    }
    free
}

/// Returns the positions that can be reached from the spawn position.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn flood(free: &Positions, orientations: usize, spawn: u32) -> Positions {
    let mut reached = [[0; WIDTH]; 4];
    reached[0][SPAWN_X] = fall(spawn, free[0][SPAWN_X]);
    let mut changed = 1u32; // one bit per orientation
    while changed != 0 {
        let at = changed.trailing_zeros() as usize;
        changed &= changed - 1;
        shift(&mut reached[at], &free[at]);
        // Turn in both directions. If there are two orientations, both turns lead to the same one.
        let turns = [
            (at + 1) % orientations,
            (at + orientations - 1) % orientations,
        ];
        for to in turns {
            if to == at {
                continue;
            }
            let mut gained = 0;
            for x in 0..WIDTH {
                let new = reached[at][x] & free[to][x] & !reached[to][x];
                if new != 0 {
                    reached[to][x] = fall(reached[to][x] | new, free[to][x]);
                    gained |= new;
                }
            }
            changed |= u32::from(gained != 0) << to;
        }
    }
    reached
}

/// Extends positions sideways and downwards within one orientation until nothing changes.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn shift(reached: &mut [u32; WIDTH], free: &[u32; WIDTH]) {
    loop {
        let mut gained = 0;
        for x in 1..WIDTH {
            gained |= step(reached, free, x - 1, x);
        }
        for x in (0..WIDTH - 1).rev() {
            gained |= step(reached, free, x + 1, x);
        }
        if gained == 0 {
            return;
        }
    }
}

/// Extends the positions in column `from` to column `to`, and downwards there. Returns a mask that is 0 if there are no
/// new positions.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn step(reached: &mut [u32; WIDTH], free: &[u32; WIDTH], from: usize, to: usize) -> u32 {
    let new = reached[from] & free[to] & !reached[to];
    if new != 0 {
        reached[to] = fall(reached[to] | new, free[to]);
    }
    new
}

/// Extends the positions in `seeds` downwards, which is towards higher bits, along runs of free positions.
///
/// In each run, the addition carries from the lowest seed to the end of the run. The carry clears all bits that it
/// passes except seeds, so the cleared bits and the seeds together are the result.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn fall(seeds: u32, free: u32) -> u32 {
    (free & !((free + seeds) ^ seeds)) | seeds
}

/// The index that the search of the [article](super) assigns to each position of a piece. It breaks ties between
/// placements with equal values.
///
/// A breadth-first search on the empty board assigns the indices. It tries moves in this order: clockwise turn,
/// anticlockwise turn, down, left, right.
#[derive(Clone, Debug)]
pub struct Numbering {
    numbers: Vec<u16>,
    rows: Rows,
}

impl Numbering {
    /// Computes the indices for all pieces with a rule set.
    pub fn new(rows: Rows) -> Numbering {
        let mut numbers = vec![u16::MAX; 7 * 4 * WIDTH * 32];
        for piece in Piece::ALL {
            number_piece(rows, piece, &mut numbers);
        }
        Numbering { numbers, rows }
    }

    /// Returns the index of a placement of a piece.
    pub fn number(&self, piece: Piece, placement: Placement) -> u16 {
        let bit = (i32::from(placement.y) + self.rows.above() as i32) as usize;
        self.numbers[index(
            piece,
            placement.orientation as usize,
            placement.x as usize,
            bit,
        )]
    }
}

fn index(piece: Piece, orientation: usize, x: usize, bit: usize) -> usize {
    ((piece.index() * 4 + orientation) * WIDTH + x) * 32 + bit
}

fn number_piece(rows: Rows, piece: Piece, numbers: &mut [u16]) {
    let shapes = orientations(piece);
    let turns = shapes.len();
    let free = free_positions(&Board::empty(rows), shapes);
    let start = (0, SPAWN_X, rows.above());
    let mut next = 0;
    let mut queue = VecDeque::from([start]);
    numbers[index(piece, start.0, start.1, start.2)] = next;
    while let Some((orientation, x, bit)) = queue.pop_front() {
        let moves = [
            ((orientation + 1) % turns, x, bit),
            ((orientation + turns - 1) % turns, x, bit),
            (orientation, x, bit + 1),
            (orientation, x.wrapping_sub(1), bit),
            (orientation, x + 1, bit),
        ];
        for (orientation, x, bit) in moves {
            if x >= WIDTH || free[orientation][x] >> bit & 1 == 0 {
                continue;
            }
            let number = &mut numbers[index(piece, orientation, x, bit)];
            if *number == u16::MAX {
                next += 1;
                *number = next;
                queue.push_back((orientation, x, bit));
            }
        }
    }
}
