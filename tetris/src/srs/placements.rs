//! Placements that a piece can reach. A flood fill over all orientations finds these placements. It processes all
//! positions in a column at once.

use super::kicks::KickTable;
use super::shapes::{Orientation, SrsPlacement, cells, first_equal};
use super::{HEIGHT, SPAWN_ROW, WIDTH};
use crate::{Field, Piece};
use std::fmt;
use std::str::FromStr;

/// Movement rule for pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropMode {
    /// A piece can move sideways and down, and turn, in any order.
    Soft,
    /// A piece can move sideways and turn only above the pile, and then falls straight down.
    Hard,
}

impl DropMode {
    /// Returns the name: `soft` or `hard`.
    pub const fn name(self) -> &'static str {
        match self {
            DropMode::Soft => "soft",
            DropMode::Hard => "hard",
        }
    }
}

impl fmt::Display for DropMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DropMode {
    type Err = String;

    fn from_str(text: &str) -> Result<DropMode, String> {
        match text {
            "soft" => Ok(DropMode::Soft),
            "hard" => Ok(DropMode::Hard),
            _ => Err(format!("`{text}` is not a drop mode: use soft or hard")),
        }
    }
}

/// Finds the placements of pieces for a kick table and a drop mode.
#[derive(Clone, Debug)]
pub struct Placements {
    kicks: KickTable,
    mode: DropMode,
}

/// The positions of a piece in one orientation: for each column of the leftmost cell, a mask of the rows of the lowest
/// cell.
type Positions = [u64; WIDTH];

/// Distinct placements of a piece. Placements in orientations with the same shape are stored with the first of these
/// orientations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementSet {
    piece: Piece,
    rests: [Positions; 4],
}

const ROWS: u64 = (1 << HEIGHT) - 1;

impl Placements {
    /// Creates a finder for a kick table and a drop mode.
    pub fn new(kicks: KickTable, mode: DropMode) -> Placements {
        Placements { kicks, mode }
    }

    /// Finds every distinct placement that a piece can reach. With [`DropMode::Soft`], the piece starts at its spawn
    /// position, and there are no placements if it cannot spawn. With [`DropMode::Hard`], it falls from near the top
    /// of the field in every column and orientation.
    pub fn find(&self, field: &Field, piece: Piece) -> PlacementSet {
        let free = Orientation::ALL.map(|orientation| free_positions(field, piece, orientation));
        let mut rests = [[0; WIDTH]; 4];
        let reached = match self.mode {
            DropMode::Soft => self.flood(piece, &free),
            DropMode::Hard => {
                free.map(|free| free.map(|column| fall(column & 1 << (HEIGHT - 4), column)))
            }
        };
        for orientation in Orientation::ALL {
            let at = orientation.index();
            let first = first_equal(piece, orientation).index();
            for x in 0..WIDTH {
                rests[first][x] |= reached[at][x] & !(free[at][x] << 1);
            }
        }
        PlacementSet { piece, rests }
    }

    fn flood(&self, piece: Piece, free: &[Positions; 4]) -> [Positions; 4] {
        let mut reached = [[0; WIDTH]; 4];
        let spawn_x = if piece == Piece::O { 4 } else { 3 };
        let spawn = 1 << SPAWN_ROW & free[0][spawn_x];
        reached[0][spawn_x] = fall(spawn, free[0][spawn_x]);
        let mut changed = u32::from(spawn != 0); // one bit per orientation
        while changed != 0 {
            let at = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            move_sideways(&mut reached[at], &free[at]);
            for to in Orientation::ALL {
                let shifts = self.kicks.shifts(piece, Orientation::ALL[at], to);
                if shifts.is_empty() {
                    continue;
                }
                let from = reached[at];
                let (free, reached) = (&free[to.index()], &mut reached[to.index()]);
                changed |= u32::from(turn(&from, shifts, free, reached)) << to.index();
            }
        }
        reached
    }
}

/// Returns the positions at which all four cells are inside the field and empty.
fn free_positions(field: &Field, piece: Piece, orientation: Orientation) -> Positions {
    let mut free = [ROWS; WIDTH];
    for (dx, dy) in cells(piece, orientation) {
        for (x, free) in free.iter_mut().enumerate() {
            let column = x + usize::from(dx);
            let empty = if column < WIDTH {
                !field.columns[column] & ROWS
            } else {
                0
            };
            *free &= empty >> dy;
        }
    }
    free
}

/// Turns the piece at all positions in `from`, each with the first shift that leads to a free position. Returns
/// `true` if the piece reaches a new position.
fn turn(from: &Positions, shifts: &[(i8, i8)], free: &Positions, reached: &mut Positions) -> bool {
    let mut left = *from;
    let mut gained = 0;
    for &(dx, dy) in shifts {
        for (x, left) in left.iter_mut().enumerate() {
            let to = x as i32 + i32::from(dx);
            if *left == 0 || !(0..WIDTH as i32).contains(&to) {
                continue;
            }
            let to = to as usize;
            let fits = shift_rows(*left, dy) & free[to];
            *left &= !shift_rows(fits, -dy);
            let new = fits & !reached[to];
            if new != 0 {
                gained |= new;
                reached[to] = fall(reached[to] | new, free[to]);
            }
        }
    }
    gained != 0
}

fn shift_rows(rows: u64, by: i8) -> u64 {
    if by >= 0 { rows << by } else { rows >> -by }
}

/// Extends positions sideways and downwards until nothing changes.
fn move_sideways(reached: &mut Positions, free: &Positions) {
    loop {
        let mut gained = 0;
        let mut step = |from: usize, to: usize| {
            let new = reached[from] & free[to] & !reached[to];
            if new != 0 {
                reached[to] = fall(reached[to] | new, free[to]);
                gained |= new;
            }
        };
        (1..WIDTH).for_each(|x| step(x - 1, x));
        (0..WIDTH - 1).rev().for_each(|x| step(x + 1, x));
        if gained == 0 {
            return;
        }
    }
}

/// Extends positions downwards along free positions, in steps of 1, 2, 4, … rows.
fn fall(mut seeds: u64, mut free: u64) -> u64 {
    for step in [1, 2, 4, 8, 16, 32] {
        seeds |= seeds >> step & free;
        free &= free >> step;
    }
    seeds
}

impl PlacementSet {
    /// Returns the placements, sorted by orientation, column and row.
    pub fn iter(&self) -> impl Iterator<Item = SrsPlacement> + '_ {
        Orientation::ALL.into_iter().flat_map(move |orientation| {
            (0..WIDTH).flat_map(move |x| {
                let mut column = self.rests[orientation.index()][x];
                std::iter::from_fn(move || {
                    let y = column.trailing_zeros() as u8;
                    let placement = SrsPlacement {
                        piece: self.piece,
                        orientation,
                        x: x as u8,
                        y,
                    };
                    let found = (column != 0).then_some(placement);
                    column &= column.wrapping_sub(1);
                    found
                })
            })
        })
    }
}
