//! Placements that a piece can reach. Without gravity, a flood fill over all orientations finds these placements. It
//! processes all positions in a column at once. With gravity, a simulation finds them frame by frame. It processes all
//! positions in a row at once.

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

/// Number of pairs of neighbouring columns.
const PAIRS: usize = WIDTH / 2;

/// A set of positions: for each pair of columns of the centre and each orientation, two masks of the rows of the centre. The
/// lower half of a word is the mask for the column on the left. If a piece has fewer than four orientations, they are
/// repeated.
type Positions = [[u64; 4]; PAIRS];

/// Number of empty rows at the top of a board with which a piece can reach every column and orientation in the third row.
const OPEN_ROWS: usize = 5;

/// With gravity, a key can be pressed in one of this many frames, because it must be released in between.
const FRAMES_PER_KEY: u32 = 2;

impl Placements {
    /// Creates an empty buffer.
    pub fn new() -> Placements {
        Placements::default()
    }

    /// Finds every resting position that a piece can reach from its spawn position. The piece can step left, right and
    /// down, and turn in both directions. After each move, all four cells must be inside the board and empty.
    ///
    /// With [gravity](Board::with_gravity), the piece can only step left or right or turn in every other frame, from the
    /// first frame on, and falls by itself. It locks when it cannot fall.
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
        let rests = Rests::of(board, piece);
        let above = board.rows.above();
        for orientation in 0..orientations(piece).len() {
            for x in 0..WIDTH {
                let mut rests = rests.rows(orientation, x);
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

/// The resting positions that a piece can reach.
pub(super) struct Rests(Positions);

impl Rests {
    /// Finds the positions.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn of(board: &Board, piece: Piece) -> Rests {
        if board.frames > 0 {
            return Rests::of_falling_piece(board, piece);
        }
        let free = free_positions(board, orientations(piece));
        let above = board.rows.above();
        let mut reached = [[0; 4]; PAIRS];
        if board.columns.iter().fold(0, |all, column| all | column) % (1 << (above + OPEN_ROWS))
            == 0
        {
            for pair in 0..PAIRS {
                for to in 0..4 {
                    reached[pair][to] =
                        fall(free[pair][to] & 0x4_0000_0004 << above, free[pair][to]);
                }
            }
        } else {
            let (pair, column) = (SPAWN_X / 2, SPAWN_X % 2 * 32);
            reached[pair][0] = fall(free[pair][0] & 1 << (above + column), free[pair][0]);
        }
        flood(&mut reached, &free);
        for pair in 0..PAIRS {
            for to in 0..4 {
                // A piece rests if the row below, which is the next higher bit, is not free.
                reached[pair][to] &= !(free[pair][to] >> 1);
            }
        }
        Rests(reached)
    }

    /// Finds the positions with gravity. All positions that the piece can have in a frame are in the same row.
    #[cold]
    #[inline(never)]
    fn of_falling_piece(board: &Board, piece: Piece) -> Rests {
        let shapes = orientations(piece);
        let (free, turns) = (free_positions(board, shapes), shapes.len());
        // For each orientation, the columns in which the centre may be in a row.
        let open_in = |row: usize| {
            [0, 1, 2, 3].map(|orientation| {
                (0..WIDTH).fold(0u16, |open, x| {
                    let bit = free[x / 2][orientation] >> (x % 2 * 32 + row) & 1;
                    open | (bit as u16) << x
                })
            })
        };
        let mut row = board.rows.above();
        let mut open = open_in(row);
        let mut reached = [open[0] & 1 << SPAWN_X, 0, 0, 0];
        let mut rests = [[0; 4]; PAIRS];
        for frame in 0.. {
            if frame % FRAMES_PER_KEY == 0 {
                let old = reached;
                for to in 0..turns {
                    let turned = old[(to + 1) % turns] | old[(to + turns - 1) % turns];
                    reached[to] |= (old[to] << 1 | old[to] >> 1 | turned) & open[to];
                }
            }
            if (frame + 1) % u32::from(board.frames) > 0 {
                continue;
            }
            open = open_in(row + 1);
            for to in 0..turns {
                for x in 0..WIDTH {
                    let rest = reached[to] & !open[to] & 1 << x;
                    rests[x / 2][to] |= u64::from(rest >> x) << (x % 2 * 32 + row);
                }
                reached[to] &= open[to];
            }
            if reached == [0; 4] {
                break;
            }
            row += 1;
        }
        Rests(rests)
    }

    /// Returns a mask of the rows of the centre in one orientation and column.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(super) fn rows(&self, orientation: usize, x: usize) -> u32 {
        (self.0[x / 2][orientation] >> (x % 2 * 32)) as u32
    }
}

/// Returns the positions at which all four cells are inside the board and empty.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn free_positions(board: &Board, shapes: &[Shape]) -> Positions {
    // On each side, columns without empty cells represent the wall.
    const LANES: usize = if cfg!(target_arch = "wasm32") {
        WIDTH
    } else {
        16
    };
    let mut empty = [0u32; LANES + 4];
    for x in 0..WIDTH {
        empty[x + 2] = !board.columns[x] & board.mask();
    }
    let mut all = [[0; LANES]; 4];
    for (free, cells) in all.iter_mut().zip(shapes) {
        *free = [u32::MAX; LANES];
        for &(dx, dy) in cells {
            let shifted = &empty[(2 + dx) as usize..][..LANES];
            for x in 0..LANES {
                free[x] &= if dy >= 0 {
                    shifted[x] >> dy
                } else {
                    shifted[x] << -dy
                };
            }
        }
    }
    let repeated = match shapes.len() {
        1 => [0, 0, 0, 0],
        2 => [0, 1, 0, 1],
        _ => [0, 1, 2, 3],
    };
    let mut free = [[0; 4]; PAIRS];
    for (pair, free) in free.iter_mut().enumerate() {
        for (free, orientation) in free.iter_mut().zip(repeated) {
            let columns: &[u32; LANES] = &all[orientation];
            *free = u64::from(columns[2 * pair]) | u64::from(columns[2 * pair + 1]) << 32;
        }
    }
    free
}

/// Extends positions by all moves until nothing changes.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn flood(reached: &mut Positions, free: &Positions) {
    // Each iteration moves the piece by one column to both sides and turns it in both directions, and then lets it fall.
    loop {
        let old = *reached;
        let mut gained = [0; 4];
        for pair in 0..PAIRS {
            for to in 0..4 {
                let mut from = old[pair][to].rotate_left(32);
                from |= old[pair][(to + 1) % 4] | old[pair][(to + 3) % 4];
                if pair > 0 {
                    from |= old[pair - 1][to] >> 32;
                }
                if pair + 1 < PAIRS {
                    from |= old[pair + 1][to] << 32;
                }
                let new = from & free[pair][to] & !old[pair][to];
                reached[pair][to] = fall(old[pair][to] | new, free[pair][to]);
                gained[to] |= new;
            }
        }
        if gained.iter().fold(0, |all, &gained| all | gained) == 0 {
            return;
        }
    }
}

/// Extends the positions in `seeds` downwards, which is towards higher bits, along runs of free positions.
///
/// In each run, the addition carries from the lowest seed to the end of the run. The carry clears all bits that it
/// passes except seeds, so the cleared bits and the seeds together are the result.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn fall(seeds: u64, free: u64) -> u64 {
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
            if x >= WIDTH || free[x / 2][orientation] >> (x % 2 * 32 + bit) & 1 == 0 {
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
