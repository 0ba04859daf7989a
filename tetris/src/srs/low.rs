//! Fields of at most four rows, each stored in one word, and the placements of pieces on them. Searches for perfect
//! clears use these fields.
//!
//! A column has six bits, the lowest of which is the floor row. A mask of positions has the same layout. The position
//! of a piece is the lower left corner of the smallest rectangle that contains its cells. The space above the field
//! is unlimited, but six rows of positions are enough to find every placement: above them, no turn of a [`KickTable`] moves
//! a piece down by more than two rows.

use super::kicks::KickTable;
use super::placements::DropMode;
use super::shapes::{Orientation, SrsPlacement, cells, first_equal};
use super::{HEIGHT, WIDTH};
use crate::{Field, Piece};
use thiserror::Error;

/// Maximum number of rows of a [`LowField`].
pub const MAX_LOW_ROWS: usize = 4;

const BITS: usize = 6;
/// Bit 0 of every column.
const FLOOR: u64 = 0x0041_0410_4104_1041;
/// All bits of all columns.
const ALL: u64 = (1 << (BITS * WIDTH)) - 1;
/// The two highest rows of positions, which are above all cells of a field.
const AIR: u64 = FLOOR * 0b11_0000;
const TOP: u64 = FLOOR << (BITS - 1);

/// Cells of the floor row for each row of ten bits. Bit `x` of the row is column `x`.
static SPREAD: [u64; 1 << WIDTH] = {
    let mut all = [0; 1 << WIDTH];
    let mut row = 0;
    while row < all.len() {
        let mut x = 0;
        while x < WIDTH {
            all[row] |= (row as u64 >> x & 1) << (x * BITS);
            x += 1;
        }
        row += 1;
    }
    all
};

/// A field of at most four rows, none of which is full. Cleared rows are removed, and `rows` counts the remaining rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LowField {
    cells: u64,
    rows: u8,
}

/// Error for a field or a number of rows for which a perfect clear is impossible or not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LowFieldError {
    /// The number of rows is out of range.
    #[error("{0} rows are out of range: the number of rows to clear must be 1 to 4")]
    Rows(usize),
    /// The field does not have ten columns.
    #[error("field has {0} columns: perfect clears need a field of {WIDTH} columns")]
    Width(usize),
    /// A filled cell is above the rows to clear.
    #[error(
        "field has filled cells above row {0}: the rows to clear must contain all filled cells"
    )]
    TooHigh(usize),
    /// The number of empty cells is not a multiple of four, so whole pieces cannot fill them.
    #[error("field has {0} empty cells in the rows to clear: the number must be a multiple of 4")]
    Cells(u32),
}

impl LowField {
    /// Returns an empty field of 1 to 4 rows.
    pub fn empty(rows: usize) -> Result<LowField, LowFieldError> {
        if !(1..=MAX_LOW_ROWS).contains(&rows) {
            return Err(LowFieldError::Rows(rows));
        }
        Ok(LowField {
            cells: 0,
            rows: rows as u8,
        })
    }

    /// Returns the lowest `rows` rows of a field, without its full rows.
    pub fn of(field: &Field, rows: usize) -> Result<LowField, LowFieldError> {
        let mut low = LowField::empty(rows)?;
        if field.width() != WIDTH {
            return Err(LowFieldError::Width(field.width()));
        }
        if field.pile_height() > rows {
            return Err(LowFieldError::TooHigh(rows));
        }
        for x in 0..WIDTH {
            low.cells |= field.columns[x] << (x * BITS);
        }
        low = low.without_full_rows();
        let empty = low.empty_cells();
        if !empty.is_multiple_of(4) {
            return Err(LowFieldError::Cells(empty));
        }
        Ok(low)
    }

    /// Returns the number of remaining rows.
    pub const fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns whether all rows have been cleared.
    pub const fn is_clear(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of empty cells in the remaining rows.
    pub const fn empty_cells(&self) -> u32 {
        self.rows as u32 * WIDTH as u32 - self.cells.count_ones()
    }

    /// Returns the number of pieces that fill the remaining rows.
    pub const fn pieces_left(&self) -> usize {
        self.empty_cells() as usize / 4
    }

    /// Returns a number that identifies the field. In the third and all later columns, bits 4 and 5 are 0, so callers
    /// can store other values there.
    pub const fn key(&self) -> u64 {
        self.cells | (self.rows as u64 & 3) << 4 | (self.rows as u64 >> 2) << 10
    }

    /// Returns the field whose [`LowField::key`] is `key`.
    pub const fn from_key(key: u64) -> LowField {
        let rows = key >> 4 & 3 | (key >> 10 & 1) << 2;
        LowField {
            cells: key & (FLOOR * 0b1111),
            rows: rows as u8,
        }
    }

    /// Returns the cells row by row: bit `10 * y + x` is column `x` of row `y`.
    pub fn row_bits(&self) -> u64 {
        let mut bits = 0;
        for x in 0..WIDTH {
            let column = self.cells >> (x * BITS) & 0b1111;
            // Bit y moves to bit 10 * y.
            let spread = column & 1 | (column & 2) << 9 | (column & 4) << 18 | (column & 8) << 27;
            bits |= spread << x;
        }
        bits
    }

    /// Returns the cells column by column: bit `4 * x + y` is column `x` of row `y`. Cleared rows appear as full rows
    /// at the top.
    #[inline]
    pub const fn column_bits(&self) -> u64 {
        let cleared = FLOOR * (0b1111 & !((1 << self.rows) - 1));
        let cells = self.cells | cleared;
        let mut bits = 0;
        let mut x = 0;
        while x < WIDTH {
            bits |= (cells >> (2 * x)) & (0b1111 << (MAX_LOW_ROWS * x));
            x += 1;
        }
        bits
    }

    /// Returns the field whose [`LowField::column_bits`] are `bits`, without its full rows.
    pub fn from_column_bits(bits: u64) -> LowField {
        let mut cells = 0;
        for x in 0..WIDTH {
            cells |= (bits >> (MAX_LOW_ROWS * x) & 0b1111) << (x * BITS);
        }
        let rows = MAX_LOW_ROWS as u8;
        LowField { cells, rows }.without_full_rows()
    }

    /// Returns the field with `rows` rows whose [`LowField::row_bits`] are `bits`. No row may be full.
    pub fn from_row_bits(bits: u64, rows: usize) -> LowField {
        let row = |y| SPREAD[(bits >> (WIDTH * y)) as usize % SPREAD.len()] << y;
        LowField {
            cells: (0..rows).fold(0, |cells, y| cells | row(y)),
            rows: rows as u8,
        }
    }

    /// Converts the field to a [`Field`] of full height.
    pub fn to_field(&self) -> Field {
        let mut field = Field::new(WIDTH, HEIGHT).expect("WIDTH and HEIGHT are valid");
        for x in 0..WIDTH {
            field.columns[x] = self.cells >> (x * BITS) & 0b1111;
        }
        field
    }

    /// Returns the field after a piece has been placed and full rows have been removed.
    #[inline]
    pub fn put(&self, placement: SrsPlacement) -> LowField {
        let shape = SHAPES[placement.piece.index()][placement.orientation.index()].mask;
        let shift = usize::from(placement.x) * BITS + usize::from(placement.y);
        let mut after = *self;
        after.cells |= shape << shift;
        after.without_full_rows()
    }

    #[inline]
    fn without_full_rows(mut self) -> LowField {
        let half = self.cells & self.cells >> (5 * BITS);
        let mut full = half
            & half >> BITS
            & half >> (2 * BITS)
            & half >> (3 * BITS)
            & half >> (4 * BITS)
            & 0b1111;
        while full != 0 {
            let row = 63 - full.leading_zeros();
            let below = FLOOR * ((1 << row) - 1);
            let above = FLOOR * (0b1111 & !((2 << row) - 1));
            self.cells = (self.cells & below) | (self.cells & above) >> 1;
            self.rows -= 1;
            full ^= 1 << row;
        }
        self
    }

    /// Returns the number of sides at which an empty cell does not border on another empty cell in the remaining rows.
    #[inline]
    pub fn open_sides(&self) -> u32 {
        let empty = !self.cells & (FLOOR * ((1 << self.rows) - 1));
        let right = empty & empty >> BITS;
        let up = empty & empty >> 1;
        // Every empty cell has four sides. If two empty cells are neighbours, one side of each cell does not count.
        4 * empty.count_ones() - 2 * (right.count_ones() + up.count_ones())
    }

    /// Returns whether a border between two columns splits the empty cells into parts that whole pieces cannot fill.
    /// A piece can cross a border only in a row in which both cells at the border are empty. If there is no such row,
    /// none appears later, because placing a piece only fills cells and removes rows.
    #[inline]
    pub fn is_split(&self) -> bool {
        let empty = !self.cells & (FLOOR * ((1 << self.rows) - 1));
        let joined = empty & empty >> BITS;
        let mut joined_columns = joined | joined >> 1;
        joined_columns = (joined_columns | joined_columns >> 2) & FLOOR;
        let mut cuts = FLOOR & !joined_columns & (ALL >> BITS);
        while cuts != 0 {
            let cut = cuts.trailing_zeros();
            let left = empty & ((1 << (cut + BITS as u32)) - 1);
            if !left.count_ones().is_multiple_of(4) {
                return true;
            }
            cuts &= cuts - 1;
        }
        false
    }
}

/// Shape of a piece in one orientation.
#[derive(Clone, Copy)]
struct LowShape {
    /// Cells of a piece that is in the lower left corner of the field.
    mask: u64,
    cells: [(u8, u8); 4],
    height: u8,
}

static SHAPES: [[LowShape; 4]; 7] = {
    let mut all = [[LowShape {
        mask: 0,
        cells: [(0, 0); 4],
        height: 0,
    }; 4]; 7];
    let mut piece = 0;
    while piece < 7 {
        let mut orientation = 0;
        while orientation < 4 {
            let cells = cells(Piece::ALL[piece], Orientation::ALL[orientation]);
            let shape = &mut all[piece][orientation];
            shape.cells = cells;
            let mut cell = 0;
            while cell < 4 {
                let (x, y) = cells[cell];
                shape.mask |= 1 << (x as usize * BITS + y as usize);
                if y + 1 > shape.height {
                    shape.height = y + 1;
                }
                cell += 1;
            }
            orientation += 1;
        }
        piece += 1;
    }
    all
};

/// Number of distinct shapes of each piece. Orientation `at` has the same shape as orientation `at % distinct`.
const DISTINCT: [usize; 7] = {
    let mut all = [0; 7];
    let mut piece = 0;
    while piece < 7 {
        let mut at = 0;
        while at < 4 {
            let first = first_equal(Piece::ALL[piece], Orientation::ALL[at]).index();
            if first == at {
                all[piece] += 1;
            }
            at += 1;
        }
        let mut at = 0;
        while at < 4 {
            let first = first_equal(Piece::ALL[piece], Orientation::ALL[at]).index();
            assert!(first == at % all[piece]);
            at += 1;
        }
        piece += 1;
    }
    all
};

/// A shift that a piece tries when it turns.
#[derive(Clone, Copy, Debug)]
struct LowKick {
    /// Index of the orientation after the turn.
    to: usize,
    /// Number of bits by which a position moves. Negative numbers move it towards the lowest bit.
    shift: i32,
    /// Positions whose target is within the six rows.
    inside: u64,
    /// Positions whose target is above the six rows, where every position is free.
    above: u64,
    /// Whether this is the first shift that the piece tries for a turn.
    first: bool,
}

/// Finds placements of pieces on a [`LowField`] with a kick table and a drop mode.
#[derive(Clone, Debug)]
pub struct LowPlacements {
    /// Shifts for each piece and each orientation before the turn.
    kicks: Vec<Vec<LowKick>>,
    mode: DropMode,
}

impl LowPlacements {
    /// Creates a finder for a kick table and a drop mode.
    pub fn new(table: &KickTable, mode: DropMode) -> LowPlacements {
        let mut kicks = Vec::new();
        for piece in Piece::ALL {
            for from in Orientation::ALL {
                kicks.push(turns_from(table, piece, from));
            }
        }
        LowPlacements { kicks, mode }
    }

    /// Returns the drop mode.
    pub fn mode(&self) -> DropMode {
        self.mode
    }

    /// Returns whether the piece of a placement can reach it. The cells of the placement must be empty.
    pub fn reaches(&self, field: &LowField, placement: SrsPlacement) -> bool {
        let free = free_positions(field, placement.piece);
        let position = usize::from(placement.x) * BITS + usize::from(placement.y);
        let mut wanted = [0; 4];
        wanted[placement.orientation.index()] = 1 << position;
        self.keep_reached(placement.piece, &free, &mut wanted);
        wanted[placement.orientation.index()] != 0
    }

    /// Calls `visit` with every distinct placement at which a piece comes to rest within the remaining rows.
    #[inline]
    pub fn for_each(&self, field: &LowField, piece: Piece, mut visit: impl FnMut(SrsPlacement)) {
        self.for_each_reached(Rests::new(field, piece), |placement, _| visit(placement));
    }

    /// Calls `visit` with each position in `rests` that the piece can reach, and the field after the placement.
    #[inline]
    pub fn for_each_reached(
        &self,
        mut rests: Rests<'_>,
        mut visit: impl FnMut(SrsPlacement, LowField),
    ) {
        self.keep_reached(rests.piece, &rests.free, &mut rests.positions);
        for orientation in Orientation::ALL {
            let mut positions = rests.positions[orientation.index()];
            while positions != 0 {
                let placement = placement_at(rests.piece, orientation, positions.trailing_zeros());
                visit(placement, rests.field.put(placement));
                positions &= positions - 1;
            }
        }
    }

    /// Removes the positions of `rests` that the piece cannot reach.
    fn keep_reached(&self, piece: Piece, free: &[u64; 4], rests: &mut [u64; 4]) {
        let distinct = DISTINCT[piece.index()];
        let mut reached = [0; 4];
        let mut missed = 0;
        for at in 0..distinct {
            if rests[at] == 0 {
                continue;
            }
            reached[at] = fall(free[at]);
            if self.mode == DropMode::Soft && rests[at] & !reached[at] != 0 {
                reached[at] = spread(reached[at], free[at]);
            }
            missed |= rests[at] & !reached[at];
        }
        // Turns are needed only if the piece cannot reach some resting position without turning.
        if missed != 0 && self.mode == DropMode::Soft {
            for at in 0..4 {
                reached[at] = if at < distinct {
                    spread(free[at] & AIR, free[at])
                } else {
                    reached[at % distinct]
                };
            }
            self.flood(piece, free, rests, &mut reached);
            for at in distinct..4 {
                reached[at % distinct] |= reached[at];
            }
        }
        for at in 0..distinct {
            rests[at] &= reached[at];
        }
    }

    /// Adds the positions that a piece reaches with turns to `reached`, which initially contains the positions that it
    /// reaches without turns. Stops when nothing changes or all positions in `wanted` are reached.
    fn flood(&self, piece: Piece, free: &[u64; 4], wanted: &[u64; 4], reached: &mut [u64; 4]) {
        let distinct = DISTINCT[piece.index()];
        let mut changed = 0b1111u32;
        while changed != 0 {
            let at = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            reached[at] = spread(reached[at], free[at]);
            let missed = |shape: usize| {
                let same = (shape..4).step_by(distinct);
                wanted[shape] & !same.fold(0, |all, at| all | reached[at])
            };
            if (0..distinct).all(|shape| missed(shape) == 0) {
                return;
            }
            let mut left = 0;
            for kick in &self.kicks[piece.index() * 4 + at] {
                if kick.first {
                    left = reached[at];
                }
                let moved = shifted(left & kick.inside, kick.shift) & free[kick.to];
                left &= !(shifted(moved, -kick.shift) | kick.above);
                if moved & !reached[kick.to] != 0 {
                    reached[kick.to] |= moved;
                    changed |= 1 << kick.to;
                }
            }
        }
    }
}

/// Returns the shifts of all turns of a piece from one orientation, in the order in which the piece tries them.
fn turns_from(table: &KickTable, piece: Piece, from: Orientation) -> Vec<LowKick> {
    let mut kicks = Vec::new();
    for to in Orientation::ALL {
        let target = &SHAPES[piece.index()][to.index()].cells;
        let width = target
            .iter()
            .map(|cell| i32::from(cell.0))
            .max()
            .unwrap_or(0)
            + 1;
        for (index, &(dx, dy)) in table.shifts(piece, from, to).iter().enumerate() {
            let (mut inside, mut above) = (0, 0);
            for x in 0..WIDTH as i32 {
                for y in 0..BITS as i32 {
                    let (to_x, to_y) = (x + i32::from(dx), y + i32::from(dy));
                    let position = 1u64 << (x as usize * BITS + y as usize);
                    if to_x < 0 || to_x + width > WIDTH as i32 || to_y < 0 {
                        continue;
                    }
                    if to_y < BITS as i32 {
                        inside |= position;
                    } else {
                        above |= position;
                    }
                }
            }
            kicks.push(LowKick {
                to: to.index(),
                shift: i32::from(dx) * BITS as i32 + i32::from(dy),
                inside,
                above,
                first: index == 0,
            });
        }
    }
    kicks
}

#[inline(always)]
fn shifted(positions: u64, by: i32) -> u64 {
    if by.unsigned_abs() >= 64 {
        return 0;
    }
    if by >= 0 {
        positions << by
    } else {
        positions >> -by
    }
}

/// Returns the positions at which all four cells of a piece are empty, for each orientation.
#[inline(always)]
fn free_positions(field: &LowField, piece: Piece) -> [u64; 4] {
    let empty = !field.cells & ALL;
    // The rows above the field are empty, so the bits that are shifted in from above are set.
    let mut lifted = [empty; 4];
    for (dy, lifted) in lifted.iter_mut().enumerate().skip(1) {
        let low = (1 << (BITS - dy)) - 1;
        *lifted = ((empty >> dy) & (FLOOR * low)) | (FLOOR * (0b11_1111 & !low));
    }
    let shapes = &SHAPES[piece.index()];
    let mut free = [ALL; 4];
    for (free, shape) in free.iter_mut().zip(shapes) {
        for &(dx, dy) in &shape.cells {
            *free &= lifted[usize::from(dy)] >> (usize::from(dx) * BITS);
        }
    }
    free
}

/// Extends `reached` by the free positions to its left, to its right and below, until nothing changes.
#[inline(always)]
fn spread(mut reached: u64, free: u64) -> u64 {
    loop {
        let next = reached | (reached << BITS | reached >> BITS | (reached & !FLOOR) >> 1) & free;
        if next == reached {
            return reached;
        }
        reached = next;
    }
}

/// Returns the positions that a piece reaches by falling straight down from above the field.
#[inline(always)]
fn fall(free: u64) -> u64 {
    let blocked = !free & ALL & !AIR;
    let blocked = blocked | (blocked & !FLOOR) >> 1;
    free & !(blocked | (blocked & !(FLOOR * 0b11)) >> 2)
}

/// The positions within the remaining rows at which a piece rests on a filled cell or the floor. The piece may be
/// unable to reach some of them. Finding these positions takes less time than checking whether the piece can reach
/// them.
#[derive(Clone, Debug)]
pub struct Rests<'a> {
    field: &'a LowField,
    piece: Piece,
    free: [u64; 4],
    /// Resting positions for each distinct shape.
    positions: [u64; 4],
}

impl<'a> Rests<'a> {
    /// Finds the resting positions of a piece on a field.
    #[inline]
    pub fn new(field: &'a LowField, piece: Piece) -> Rests<'a> {
        let free = free_positions(field, piece);
        let mut positions = [0; 4];
        let shapes = &SHAPES[piece.index()];
        for at in 0..DISTINCT[piece.index()] {
            let height = shapes[at].height;
            if height <= field.rows {
                let within = FLOOR * ((2 << (field.rows - height)) - 1);
                positions[at] = free[at] & !((free[at] & !TOP) << 1) & within;
            }
        }
        Rests {
            field,
            piece,
            free,
            positions,
        }
    }

    /// Keeps only the positions for which `accepts` returns `true` when called with the field after the placement.
    #[inline]
    pub fn filter(mut self, mut accepts: impl FnMut(&LowField) -> bool) -> Rests<'a> {
        for orientation in Orientation::ALL {
            let mut positions = self.positions[orientation.index()];
            let mut kept = 0;
            while positions != 0 {
                let position = positions.trailing_zeros();
                positions &= positions - 1;
                let child = self
                    .field
                    .put(placement_at(self.piece, orientation, position));
                // Without a branch here, the processor can overlap the memory accesses for several fields.
                kept |= u64::from(accepts(&child)) << position;
            }
            self.positions[orientation.index()] = kept;
        }
        self
    }
}

#[inline(always)]
fn placement_at(piece: Piece, orientation: Orientation, position: u32) -> SrsPlacement {
    SrsPlacement {
        piece,
        orientation,
        x: (position / BITS as u32) as u8,
        y: (position % BITS as u32) as u8,
    }
}
