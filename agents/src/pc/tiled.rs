//! Search for perfect clears that lists the tilings of a field, and looks for an order in which the pieces of a tiling
//! can be placed. It is fast for queues without a perfect clear, because few tilings use the right pieces.

use super::Solution;
use super::solver::{KeyMap, Queue};
use super::tiling::{Cover, FULL, FULL_HALF, HALF_CELLS, ROWS, Stock, Tilings};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, LowField, LowPlacements, Orientation, SrsPlacement, WIDTH};
use std::ops::Range;
use std::sync::LazyLock;

/// The lowest cell of each column.
const FLOOR: u64 = FULL / 15;
/// Maximum number of pieces of a tiling.
const PARTS: usize = WIDTH * ROWS / 4;
/// Maximum number of pieces within one half.
const HALF_PARTS: usize = PARTS / 2;

/// Number of remembered ways to cover second halves above which all of them are deleted. The 88 halves that occur from
/// the empty field of four rows have 17,279 ways.
const MAX_WAYS: usize = 1 << 18;

/// A piece at a place in the field. Cells are numbered as in [`LowField::column_bits`], and no row has been removed.
#[derive(Clone, Copy, Debug)]
struct Part {
    mask: u64,
    /// Cells above those of the piece.
    above: u64,
    /// Cells of the rows that must be full before the piece can be placed, because they separate its rows.
    skipped: u64,
    piece: Piece,
    orientation: Orientation,
    x: u8,
    /// Lowest row.
    row: u8,
}

impl Part {
    fn new(cover: &Cover, column: usize) -> Part {
        let mask = cover.mask << (ROWS * column);
        let rows = (0..WIDTH).fold(0, |rows, x| rows | mask >> (ROWS * x) & 15);
        let row = rows.trailing_zeros();
        let between = (1 << rows.ilog2()) - (1 << row);
        let above = (1..ROWS).fold(0, |above, by| above | (mask & (FLOOR * (15 >> by))) << by);
        Part {
            mask,
            above: above & !mask,
            skipped: FLOOR * (between & !rows),
            piece: cover.piece,
            orientation: cover.orientation,
            x: column as u8,
            row: row as u8,
        }
    }

    /// Returns whether the piece rests on a filled cell or the floor. `full` contains the cells of full rows, which
    /// have been removed.
    fn is_supported(&self, cells: u64, full: u64) -> bool {
        let mut at = self.mask;
        loop {
            if at & FLOOR != 0 {
                return true;
            }
            at >>= 1;
            if at & cells & !full != 0 {
                return true;
            }
            at &= full;
            if at == 0 {
                return false;
            }
        }
    }

    /// Returns whether the piece can be placed on a field.
    fn can_be_placed(&self, at: &Filled, placements: &LowPlacements) -> bool {
        self.skipped & !at.full == 0
            && self.is_supported(at.cells, at.full)
            && (self.above & at.cells & !at.full == 0
                || placements.mode() == DropMode::Soft
                    && placements
                        .reaches(&LowField::from_column_bits(at.cells), self.placement(at)))
    }

    /// Returns the placement in the field from which full rows have been removed.
    fn placement(&self, at: &Filled) -> SrsPlacement {
        let below = !at.full & ((1 << self.row) - 1);
        SrsPlacement {
            piece: self.piece,
            orientation: self.orientation,
            x: self.x,
            y: below.count_ones() as u8,
        }
    }
}

/// Filled cells, and those of them that are in full rows.
#[derive(Clone, Copy)]
struct Filled {
    cells: u64,
    full: u64,
}

impl Filled {
    fn new(cells: u64) -> Filled {
        let half = cells & cells >> HALF_CELLS;
        let two = half & half >> ROWS;
        let rows = two & two >> (2 * ROWS) & half >> (4 * ROWS) & 15;
        Filled {
            cells,
            full: FLOOR * rows,
        }
    }
}

/// A cover with the index of its part for column 0. The parts for the following columns follow.
#[derive(Clone, Copy, Debug)]
struct PartCover {
    mask: u64,
    orders: u32,
    piece: Piece,
    part: u16,
}

/// All parts, and the covers by the row of their first cell.
struct Parts {
    all: Vec<Part>,
    covers: [Vec<PartCover>; ROWS],
    /// For each row and each set of filled cells of two columns, the covers in that row that these cells permit: first
    /// for the first and second column, then for the third and fourth column.
    near: Box<[[[u64; 256]; 2]; ROWS]>,
    /// For each row and each set of pieces, the covers in that row with these pieces.
    with: Box<[[u64; 128]; ROWS]>,
}

impl Parts {
    /// Returns the covers of a row, as a set of indices, that do not overlap filled cells. `cells` begins with the
    /// column of the cover's first cell.
    #[inline]
    fn fitting(&self, row: usize, cells: u64) -> u64 {
        let [near, far] = &self.near[row];
        near[(cells & 255) as usize] & far[(cells >> 8 & 255) as usize]
    }
}

static PARTS_OF_COVERS: LazyLock<Parts> = LazyLock::new(|| {
    let mut all = Vec::new();
    let covers: [Vec<PartCover>; ROWS] = Tilings::shared().covers().each_ref().map(|covers| {
        let with_part = |cover: &Cover| {
            let part = all.len() as u16;
            all.extend((0..WIDTH).map(|column| Part::new(cover, column)));
            PartCover {
                mask: cover.mask,
                orders: cover.orders,
                piece: cover.piece,
                part,
            }
        };
        covers.iter().map(with_part).collect()
    });
    let mut near = Box::new([[[0; 256]; 2]; ROWS]);
    let mut with = Box::new([[0; 128]; ROWS]);
    for (row, covers) in covers.iter().enumerate() {
        for (index, at) in covers.iter().enumerate() {
            for (pieces, with) in with[row].iter_mut().enumerate() {
                *with |= (pieces as u64 >> at.piece.index() & 1) << index;
            }
            for cells in 0..256 {
                near[row][0][cells as usize] |= u64::from(at.mask & cells == 0) << index;
                near[row][1][cells as usize] |= u64::from(at.mask & cells << 8 == 0) << index;
            }
        }
    }
    Parts {
        all,
        covers,
        near,
        with,
    }
});

/// A way to cover the empty cells of the second half.
#[derive(Clone, Copy, Debug)]
struct SecondWay {
    pieces: Stock,
    orders: u32,
    parts: [u16; HALF_PARTS],
}

/// Ways to cover the empty cells of second halves. They do not depend on the queue, so several searches can use them.
#[derive(Clone, Debug, Default)]
pub(super) struct SecondHalves {
    /// For each half, the range in `all` of the ways to cover it.
    lists: KeyMap<u64, Range<usize>>,
    all: Vec<SecondWay>,
}

impl SecondHalves {
    /// Returns the ways to cover a half. Computes them at the first call.
    fn list(&mut self, half: u64) -> &[SecondWay] {
        if let Some(list) = self.lists.get(&half) {
            return &self.all[list.clone()];
        }
        if self.all.len() > MAX_WAYS {
            *self = SecondHalves::default();
        }
        let start = self.all.len();
        let way = SecondWay {
            pieces: Stock::default(),
            orders: u32::MAX,
            parts: [0; HALF_PARTS],
        };
        self.add_ways(half, way, 0);
        self.lists.insert(half, start..self.all.len());
        &self.all[start..]
    }

    /// Appends the ways to cover a half. `way` contains the `placed` parts that have been chosen.
    fn add_ways(&mut self, half: u64, way: SecondWay, placed: usize) {
        if Tilings::shared().closed(half) & way.orders == 0 {
            return;
        }
        if half == FULL_HALF {
            self.all.push(way);
            return;
        }
        let first = half.trailing_ones() as usize;
        let column = first / ROWS;
        let table = &*PARTS_OF_COVERS;
        let mut fitting = table.fitting(first % ROWS, half >> (ROWS * column));
        while fitting != 0 {
            let at = &table.covers[first % ROWS][fitting.trailing_zeros() as usize];
            fitting &= fitting - 1;
            let mask = at.mask << (ROWS * column);
            if mask & !FULL_HALF == 0 {
                let mut way = way;
                way.pieces = way.pieces.with(at.piece);
                way.orders &= at.orders;
                way.parts[placed] = at.part + (column + WIDTH / 2) as u16;
                self.add_ways(half | mask, way, placed + 1);
            }
        }
    }
}

/// Searches for a tiling whose pieces can be placed in the order of a queue. It combines each way to cover the first
/// half, whose pieces may also cover cells of the second half, with the ways to cover the rest of the second half.
pub(super) struct TiledSearch<'a> {
    placements: &'a LowPlacements,
    queue: Queue<'a>,
    oldest: Piece,
    /// All pieces of the queue.
    stock: Stock,
    /// Filled cells of the field.
    start: u64,
    second: &'a mut SecondHalves,
    /// For each second half, the range in `ways` of the ways that the stock permits.
    lists: KeyMap<u64, Range<usize>>,
    ways: Vec<SecondWay>,
    /// For each second half and each remaining stock, the range in `fitting` of the ways that this stock permits.
    fitting_lists: KeyMap<u64, Range<usize>>,
    /// Indices in `ways`.
    fitting: Vec<u32>,
    /// Parts of the current tiling.
    parts: [u16; PARTS],
    /// Number of pieces of a tiling.
    len: usize,
    solution: Solution,
}

impl<'a> TiledSearch<'a> {
    /// Prepares a search from a field with the oldest unplaced piece and the pieces after it.
    pub(super) fn new(
        placements: &'a LowPlacements,
        second: &'a mut SecondHalves,
        field: &LowField,
        oldest: Piece,
        queue: Queue<'a>,
    ) -> TiledSearch<'a> {
        TiledSearch {
            placements,
            queue,
            oldest,
            stock: queue.stock(oldest),
            start: field.column_bits(),
            second,
            lists: KeyMap::default(),
            ways: Vec::new(),
            fitting_lists: KeyMap::default(),
            fitting: Vec::new(),
            parts: [0; PARTS],
            len: field.pieces_left(),
            solution: Solution::new(),
        }
    }

    /// Returns a perfect clear, or `None` if none exists.
    pub(super) fn solve(mut self) -> Option<Solution> {
        let found = self.cover_first(self.start, u32::MAX, self.stock, 0);
        self.solution.reverse();
        found.then_some(self.solution)
    }

    /// Covers the empty cells of the first half in every way, and completes each of these ways. `placed` parts have
    /// been chosen. Returns whether it found a perfect clear.
    fn cover_first(&mut self, cells: u64, orders: u32, stock: Stock, placed: usize) -> bool {
        let first = cells.trailing_ones() as usize;
        if first >= HALF_CELLS {
            return self.cover_second(cells >> HALF_CELLS, orders, stock, placed);
        }
        let (column, row) = (first / ROWS, first % ROWS);
        let table = &*PARTS_OF_COVERS;
        let mut fitting =
            table.fitting(row, cells >> (ROWS * column)) & table.with[row][stock.pieces()];
        while fitting != 0 {
            let at = &table.covers[row][fitting.trailing_zeros() as usize];
            fitting &= fitting - 1;
            let orders = orders & at.orders;
            let Some(stock) = stock.without(at.piece).filter(|_| orders != 0) else {
                continue;
            };
            self.parts[placed] = at.part + column as u16;
            let cells = cells | at.mask << (ROWS * column);
            if self.cover_first(cells, orders, stock, placed + 1) {
                return true;
            }
        }
        false
    }

    /// Covers the empty cells of the second half in every way, and looks for an order for each of these tilings.
    fn cover_second(&mut self, half: u64, orders: u32, stock: Stock, placed: usize) -> bool {
        if Tilings::shared().closed(half) & orders == 0 {
            return false;
        }
        for index in self.fitting_list(half, stock) {
            let way = &self.ways[self.fitting[index] as usize];
            if way.orders & orders != 0 {
                let count = self.len - placed;
                self.parts[placed..self.len].copy_from_slice(&way.parts[..count]);
                let parts = &self.parts[..self.len];
                let mut search = OrderSearch::new(self.placements, self.queue, parts);
                if search.place_rest(self.start, 0, self.oldest, 0, &mut self.solution) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the range in `fitting` of the ways to cover a second half with pieces from a stock.
    fn fitting_list(&mut self, half: u64, stock: Stock) -> Range<usize> {
        let key = stock.key() << HALF_CELLS | half;
        if let Some(list) = self.fitting_lists.get(&key) {
            return list.clone();
        }
        let start = self.fitting.len();
        for index in self.list(half) {
            if stock.contains(self.ways[index].pieces) {
                self.fitting.push(index as u32);
            }
        }
        let list = start..self.fitting.len();
        self.fitting_lists.insert(key, list.clone());
        list
    }

    /// Returns the range in `ways` of the ways to cover a second half with pieces of the queue.
    fn list(&mut self, half: u64) -> Range<usize> {
        if let Some(list) = self.lists.get(&half) {
            return list.clone();
        }
        let start = self.ways.len();
        let ways = self.second.list(half).iter();
        let ways = ways.filter(|way| self.stock.contains(way.pieces));
        self.ways.extend(ways);
        let list = start..self.ways.len();
        self.lists.insert(half, list.clone());
        list
    }
}

/// Searches for an order in which the parts of a tiling can be placed.
struct OrderSearch<'a> {
    placements: &'a LowPlacements,
    queue: Queue<'a>,
    parts: [&'static Part; PARTS],
    len: usize,
    /// For each piece, the set of its parts.
    parts_of: [u16; 7],
    /// Sets of placed parts that have been searched, one bit per set.
    visited: [u64; (1 << PARTS) / 64],
}

impl<'a> OrderSearch<'a> {
    fn new(placements: &'a LowPlacements, queue: Queue<'a>, parts: &[u16]) -> OrderSearch<'a> {
        let table = &PARTS_OF_COVERS.all;
        let mut search = OrderSearch {
            placements,
            queue,
            parts: [&table[0]; PARTS],
            len: parts.len(),
            parts_of: [0; 7],
            visited: [0; (1 << PARTS) / 64],
        };
        for (index, &part) in parts.iter().enumerate() {
            let part = &table[usize::from(part)];
            search.parts[index] = part;
            search.parts_of[part.piece.index()] |= 1 << index;
        }
        search
    }

    /// Places the remaining parts. `placed` is the set of parts that have been placed, and `next` the index in the
    /// queue of the piece after `oldest`. Returns whether it found an order. If it did, `solution` contains the
    /// placements in reverse order.
    fn place_rest(
        &mut self,
        cells: u64,
        placed: u16,
        oldest: Piece,
        next: usize,
        solution: &mut Solution,
    ) -> bool {
        if placed.count_ones() as usize == self.len {
            return true;
        }
        let at = Filled::new(cells);
        let following = self.queue.pieces.get(next).copied();
        let is_last = placed.count_ones() as usize + 1 == self.len;
        let after_oldest = following.or(is_last.then_some(oldest));
        let swapped = following.filter(|&piece| self.queue.hold && piece != oldest);
        let choices = [
            after_oldest.map(|after| (oldest, after)),
            swapped.map(|piece| (piece, oldest)),
        ];
        for (piece, oldest) in choices.into_iter().flatten() {
            let mut left = self.parts_of[piece.index()] & !placed;
            while left != 0 {
                let index = left.trailing_zeros();
                left &= left - 1;
                let placed = placed | 1 << index;
                let (word, bit) = (usize::from(placed >> 6), 1 << (placed & 63));
                let part = self.parts[index as usize];
                if self.visited[word] & bit != 0 || !part.can_be_placed(&at, self.placements) {
                    continue;
                }
                self.visited[word] |= bit;
                if self.place_rest(cells | part.mask, placed, oldest, next + 1, solution) {
                    solution.push(part.placement(&at));
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_tetris::Rng;
    use hatebeam_tetris::srs::{KickTable, Kicks};

    /// Returns whether a field can be cleared, by trying all placements of all pieces. `choices` is the number of pieces
    /// at the front of the queue that can be placed next.
    fn can_clear(
        placements: &LowPlacements,
        field: &LowField,
        queue: &[Piece],
        choices: usize,
    ) -> bool {
        if field.is_clear() {
            return true;
        }
        (0..choices.min(queue.len())).any(|position| {
            let mut rest = queue.to_vec();
            let piece = rest.remove(position);
            let mut found = false;
            placements.for_each(field, piece, |placement| {
                found |= can_clear(placements, &field.put(placement), &rest, choices);
            });
            found
        })
    }

    /// Plays a solution. Returns the field after it, or `None` if a placement cannot be reached.
    fn played(
        placements: &LowPlacements,
        field: &LowField,
        queue: &[Piece],
        choices: usize,
        solution: &Solution,
    ) -> Option<LowField> {
        let (mut field, mut queue) = (*field, queue.to_vec());
        for &placement in solution {
            let mut next = queue.iter().take(choices);
            let position = next.position(|&piece| piece == placement.piece)?;
            queue.remove(position);
            let mut is_reachable = false;
            placements.for_each(&field, placement.piece, |at| {
                is_reachable |= at == placement
            });
            field = is_reachable.then(|| field.put(placement))?;
        }
        Some(field)
    }

    /// Returns a random field that `left` pieces can fill.
    fn random_field(left: usize, rng: &mut Rng) -> LowField {
        let mut empty = 0u64;
        while empty == 0 || empty.count_ones() < 4 * left as u32 {
            let part = &PARTS_OF_COVERS.all[rng.below(PARTS_OF_COVERS.all.len())];
            // Only neighbouring pieces make fields that can often be cleared.
            let is_near = empty == 0 || (empty << ROWS | empty >> ROWS) & part.mask != 0;
            if is_near && part.mask & (empty | !FULL) == 0 {
                empty |= part.mask;
            }
        }
        LowField::from_column_bits(FULL & !empty)
    }

    #[test]
    fn tiled_search_agrees_with_all_placements() {
        let mut rng = Rng::new(5);
        let mut results = [0; 2];
        for round in 0..1500 {
            let (kicks, mode) = [
                (Kicks::Srs, DropMode::Soft),
                (Kicks::SrsPlus, DropMode::Soft),
                (Kicks::Srs, DropMode::Hard),
            ][round % 3];
            let placements = LowPlacements::new(&KickTable::built_in(kicks), mode);
            let field = random_field(1 + rng.below(4), &mut rng);
            let hold = rng.below(2) == 0;
            let count = field.pieces_left() + usize::from(hold);
            let pieces: Vec<Piece> = (0..count).map(|_| Piece::ALL[rng.below(7)]).collect();
            let choices = 1 + usize::from(hold);
            let queue = Queue {
                pieces: &pieces[1..],
                hold,
            };
            let mut second = SecondHalves::default();
            let search = TiledSearch::new(&placements, &mut second, &field, pieces[0], queue);
            let found = search.solve();
            let expected = can_clear(&placements, &field, &pieces, choices);
            assert_eq!(found.is_some(), expected, "{field:?} {pieces:?} {hold}");
            if let Some(solution) = found {
                let after = played(&placements, &field, &pieces, choices, &solution);
                assert!(after.is_some_and(|after| after.is_clear()), "{solution:?}");
            }
            results[usize::from(expected)] += 1;
        }
        assert!(results.iter().all(|&count| count > 40), "{results:?}");
    }
}
