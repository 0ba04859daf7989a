//! A necessary condition for clearing a field: whole pieces can cover its empty cells.
//!
//! The rows of a piece need not be adjacent in the field: rows that are cleared before the piece is placed can lie
//! between them. The condition therefore allows a piece to skip rows if the skipped rows can become full before any row
//! of the piece does. It ignores the order and the movement of the pieces, and whether anything supports them.

use super::solver::{KeyHasher, KeyMap};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, MAX_LOW_ROWS, Orientation, WIDTH, cells};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum number of rows, and number of bits per column.
pub(super) const ROWS: usize = MAX_LOW_ROWS;
/// Number of columns of one half of a field.
const HALF: usize = WIDTH / 2;
/// Number of cells of one half.
pub(super) const HALF_CELLS: usize = HALF * ROWS;
pub(super) const FULL_HALF: u64 = (1 << HALF_CELLS) - 1;
/// All cells of a field.
pub(super) const FULL: u64 = (1 << (2 * HALF_CELLS)) - 1;
/// Number of orders in which four rows can become full.
const ORDERS: usize = 24;
/// Set of all these orders, one bit per order.
const ALL_ORDERS: u32 = (1 << ORDERS) - 1;

/// Cells that a piece can cover if its leftmost column is column 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cover {
    pub(super) mask: u64,
    pub(super) piece: Piece,
    /// First of the orientations with this shape.
    pub(super) orientation: Orientation,
    /// Set of the orders of rows that this cover permits: the skipped rows become full before the covered rows.
    pub(super) orders: u32,
}

/// Decides whether whole pieces can cover the empty cells of a field. Cells are numbered column by column.
#[derive(Clone, Debug)]
pub(super) struct Tilings {
    /// Covers, indexed by the row of their first cell.
    covers: [Vec<Cover>; ROWS],
    /// For each set of filled cells of a half, the orders of rows in which pieces within the half can cover its empty
    /// cells.
    closed: Box<[u32]>,
}

/// Number of available pieces of each kind, in four bits per kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stock(u32);

/// Highest bit of each four-bit number in a [`Stock`].
const HIGHEST: u32 = 0x0888_8888;

impl Stock {
    /// Returns the stock with one more piece.
    pub(super) fn with(self, piece: Piece) -> Stock {
        Stock(self.0 + (1 << (4 * piece.index())))
    }

    /// Returns the stock with one piece removed, or `None` if the stock does not contain the piece.
    pub(super) fn without(self, piece: Piece) -> Option<Stock> {
        let count = self.0 >> (4 * piece.index()) & 15;
        (count > 0).then(|| Stock(self.0 - (1 << (4 * piece.index()))))
    }

    /// Returns the set of pieces that the stock contains, one bit per kind.
    pub(super) fn pieces(self) -> usize {
        let any = (self.0 | self.0 >> 1 | self.0 >> 2 | self.0 >> 3) & 0x0111_1111;
        // Move the lowest bits of neighbouring numbers next to each other: of two, of four, and of all numbers.
        let pairs = (any | any >> 3) & 0x0303_0303;
        let fours = (pairs | pairs >> 6) & 0x000f_000f;
        ((fours | fours >> 12) & 127) as usize
    }

    /// Returns whether the stock contains all of `pieces`, which must contain at most seven pieces of each kind.
    pub(super) fn contains(self, pieces: Stock) -> bool {
        // Numbers above seven count as seven, so that the highest bit is free for the borrow of each subtraction.
        let many = self.0 & HIGHEST;
        let upto_seven = self.0 & !HIGHEST | (many - (many >> 3));
        ((upto_seven | HIGHEST) - pieces.0) & HIGHEST == HIGHEST
    }

    /// Returns the stock without `pieces`, all of which it must contain.
    fn minus(self, pieces: Stock) -> Stock {
        Stock(self.0 - pieces.0)
    }

    /// Returns a number of 28 bits that identifies the stock.
    pub(super) fn key(self) -> u64 {
        u64::from(self.0)
    }

    /// Returns the stock in which each piece is replaced by its mirror image.
    fn mirrored(self) -> Stock {
        let swap = |stock: u32, a: Piece, b: Piece| {
            let (a, b) = (4 * a.index(), 4 * b.index());
            let changed = (stock >> a ^ stock >> b) & 15;
            stock ^ (changed << a | changed << b)
        };
        Stock(swap(swap(self.0, Piece::J, Piece::L), Piece::S, Piece::Z))
    }
}

static SHARED: LazyLock<Tilings> = LazyLock::new(Tilings::new);

impl Tilings {
    /// Returns the shared instance, which the first call computes.
    pub(super) fn shared() -> &'static Tilings {
        &SHARED
    }

    fn new() -> Tilings {
        let mut covers: [Vec<Cover>; ROWS] = Default::default();
        for cover in all_covers() {
            let row = cover.mask.trailing_zeros() as usize;
            if !covers[row].iter().any(|known| known.mask == cover.mask) {
                covers[row].push(cover);
            }
        }
        let mut closed = vec![0; 1 << HALF_CELLS].into_boxed_slice();
        closed[FULL_HALF as usize] = ALL_ORDERS;
        for half in (0..FULL_HALF).rev() {
            if half.count_zeros() % 4 != 0 {
                continue;
            }
            let first = half.trailing_ones() as usize;
            let shift = first / ROWS * ROWS;
            let mut orders = 0;
            for cover in &covers[first % ROWS] {
                let mask = cover.mask << shift;
                if mask & (half | !FULL_HALF) == 0 {
                    orders |= cover.orders & closed[(half | mask) as usize];
                }
            }
            closed[half as usize] = orders;
        }
        Tilings { covers, closed }
    }

    /// Returns the covers, indexed by the row of their first cell.
    pub(super) fn covers(&self) -> &[Vec<Cover>; ROWS] {
        &self.covers
    }

    /// Returns the orders of rows in which pieces within a half can cover its empty cells.
    #[inline]
    pub(super) fn closed(&self, half: u64) -> u32 {
        self.closed[half as usize]
    }

    /// Returns whether pieces can cover the empty cells of a field.
    pub(super) fn can_fill(&self, field: &LowField) -> bool {
        self.can_fill_cells(field.column_bits())
    }

    fn can_fill_cells(&self, cells: u64) -> bool {
        let cells = if (cells & FULL_HALF).count_ones() < (cells >> HALF_CELLS).count_ones() {
            mirrored(cells)
        } else {
            cells
        };
        self.search(cells, ALL_ORDERS)
    }

    /// Returns whether pieces can cover the empty cells in one of `orders`. Tries all covers of the first half, and
    /// looks up the second half in `closed`.
    fn search(&self, cells: u64, orders: u32) -> bool {
        let first = cells.trailing_ones() as usize;
        if first >= HALF_CELLS {
            return self.closed[(cells >> HALF_CELLS) as usize] & orders != 0;
        }
        let shift = first / ROWS * ROWS;
        let near = cells >> shift;
        self.covers[first % ROWS].iter().any(|cover| {
            near & cover.mask == 0
                && orders & cover.orders != 0
                && self.search(cells | cover.mask << shift, orders & cover.orders)
        })
    }
}

/// Maximum number of empty cells of a half for which ways to cover it are listed. Lists for more cells are long and
/// rarely reused.
const LISTED_CELLS: u32 = 12;
/// Number of the first field, counted from 1, for which ways to cover halves are listed. Lists save time only if many
/// fields use them.
const FIRST_FIELDS: u32 = 500;

/// A way to cover the empty cells of one half of a field with pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// Cells of the other half that the pieces also cover.
    spill: u32,
    pieces: Stock,
    /// Set of the orders of rows that this way permits.
    orders: u32,
    /// Index in [`Ways::all`] after the last way of the same list with the same `spill`.
    next_spill: u32,
}

/// Lists of all ways to cover the empty cells of one half. The list for a half is created when it is first used.
#[derive(Clone, Debug)]
struct Ways {
    /// All pieces that are available.
    stock: Stock,
    /// Whether pieces may also cover cells of the other half.
    can_spill: bool,
    /// Start and end in `all` of the list for each half.
    lists: KeyMap<u64, (usize, usize)>,
    all: Vec<Way>,
}

impl Ways {
    fn new(stock: Stock, can_spill: bool) -> Ways {
        Ways {
            stock,
            can_spill,
            lists: KeyMap::default(),
            all: Vec::new(),
        }
    }

    /// Returns the start and the end in `all` of the list for a half.
    fn list(&mut self, half: u64) -> (usize, usize) {
        if let Some(&list) = self.lists.get(&half) {
            return list;
        }
        let mut found = Vec::new();
        if half == FULL_HALF {
            found.push(Way {
                spill: 0,
                pieces: Stock::default(),
                orders: ALL_ORDERS,
                next_spill: 0,
            });
        } else {
            self.add_ways(half, &mut found);
        }
        found.sort_unstable();
        found.dedup_by(|same, way| {
            let is_same = (same.spill, same.pieces) == (way.spill, way.pieces);
            if is_same {
                way.orders |= same.orders;
            }
            is_same
        });
        let list = (self.all.len(), self.all.len() + found.len());
        let mut end = self.all.len();
        for same in found.chunk_by_mut(|a, b| a.spill == b.spill) {
            end += same.len();
            same.iter_mut().for_each(|way| way.next_spill = end as u32);
        }
        self.all.append(&mut found);
        self.lists.insert(half, list);
        list
    }

    /// Appends the ways to cover a half with at least one empty cell. Ways with the same pieces can occur repeatedly.
    fn add_ways(&mut self, half: u64, found: &mut Vec<Way>) {
        let first = half.trailing_ones() as usize;
        for cover in &Tilings::shared().covers[first % ROWS] {
            let mask = cover.mask << (first / ROWS * ROWS);
            let spill = (mask >> HALF_CELLS) as u32;
            if half & mask != 0 || spill != 0 && !self.can_spill {
                continue;
            }
            let (start, end) = self.list(half | mask & FULL_HALF);
            for way in &self.all[start..end] {
                let orders = way.orders & cover.orders;
                let pieces = way.pieces.with(cover.piece);
                if way.spill & spill == 0 && orders != 0 && self.stock.contains(pieces) {
                    found.push(Way {
                        spill: way.spill | spill,
                        pieces,
                        orders,
                        next_spill: 0,
                    });
                }
            }
        }
    }
}

/// Decides whether pieces from a stock can cover the empty cells of fields, and remembers ways to cover halves.
#[derive(Clone, Debug)]
pub(super) struct StockTilings {
    /// Tilings of fields whose right half is not fuller than the left half.
    left: HalfTilings,
    /// Tilings of the mirror images of the other fields.
    right: HalfTilings,
    /// Number of fields examined so far.
    fields: u32,
}

/// Ways to cover the first and the second half of fields.
#[derive(Clone, Debug)]
struct HalfTilings {
    first: Ways,
    second: Ways,
    /// Second halves that could not be covered. The first number contains the filled cells and the stock, and the
    /// second number contains the orders of the rows. Only halves without a list are remembered here.
    failed: HashSet<(u64, u32), BuildHasherDefault<KeyHasher>>,
    /// Maximum number of empty cells of a half for which ways to cover it are listed.
    listed: u32,
}

impl StockTilings {
    /// Creates an instance for all stocks that `stock` contains.
    pub(super) fn new(stock: Stock) -> StockTilings {
        let halves = |stock| HalfTilings {
            first: Ways::new(stock, true),
            second: Ways::new(stock, false),
            failed: HashSet::default(),
            listed: 0,
        };
        StockTilings {
            left: halves(stock),
            right: halves(stock.mirrored()),
            fields: 0,
        }
    }

    /// Returns whether pieces from a stock can cover the empty cells of a field.
    pub(super) fn can_fill(&mut self, field: &LowField, stock: Stock) -> bool {
        self.can_fill_cells(field.column_bits(), stock)
    }

    fn can_fill_cells(&mut self, cells: u64, stock: Stock) -> bool {
        self.fields += 1;
        if self.fields == FIRST_FIELDS {
            self.left.listed = LISTED_CELLS;
            self.right.listed = LISTED_CELLS;
        }
        if (cells & FULL_HALF).count_ones() < (cells >> HALF_CELLS).count_ones() {
            let (cells, stock) = (mirrored(cells), stock.mirrored());
            self.right.search_first(cells, ALL_ORDERS, stock)
        } else {
            self.left.search_first(cells, ALL_ORDERS, stock)
        }
    }
}

impl HalfTilings {
    /// Returns whether pieces can cover the first half and then the second half.
    fn search_first(&mut self, cells: u64, orders: u32, stock: Stock) -> bool {
        let (half, second) = (cells & FULL_HALF, cells >> HALF_CELLS);
        if (half ^ FULL_HALF).count_ones() > self.listed {
            return fitting_covers(cells, orders, stock).any(|after| {
                after.cells <= FULL && self.search_first(after.cells, after.orders, after.stock)
            });
        }
        let (mut start, end) = self.first.list(half);
        while start < end {
            let way = self.first.all[start];
            let next = way.next_spill as usize;
            let spill = u64::from(way.spill);
            let is_free = second & spill == 0;
            if is_free && self.search_ways(start..next, second | spill, orders, stock) {
                return true;
            }
            start = next;
        }
        false
    }

    /// Returns whether pieces can cover the second half (`half`) after one of `ways` has covered the first half. All of
    /// `ways` have the same spill, which is already filled in `half`.
    fn search_ways(&mut self, ways: Range<usize>, half: u64, orders: u32, stock: Stock) -> bool {
        if Tilings::shared().closed[half as usize] & orders == 0 {
            return false;
        }
        ways.into_iter().any(|index| {
            let way = self.first.all[index];
            way.orders & orders != 0
                && stock.contains(way.pieces)
                && self.search_second(half, orders & way.orders, stock.minus(way.pieces))
        })
    }

    fn search_second(&mut self, half: u64, orders: u32, stock: Stock) -> bool {
        if (half ^ FULL_HALF).count_ones() > self.listed {
            let key = (half | stock.key() << HALF_CELLS, orders);
            if Tilings::shared().closed[half as usize] & orders == 0 || self.failed.contains(&key) {
                return false;
            }
            let found = fitting_covers(half, orders, stock).any(|after| {
                after.cells <= FULL_HALF
                    && self.search_second(after.cells, after.orders, after.stock)
            });
            if !found {
                self.failed.insert(key);
            }
            return found;
        }
        let (start, end) = self.second.list(half);
        let mut ways = self.second.all[start..end].iter();
        ways.any(|way| way.orders & orders != 0 && stock.contains(way.pieces))
    }
}

/// Cells that are filled after a piece has covered the first empty cell, and the orders and pieces that remain.
struct Covered {
    cells: u64,
    orders: u32,
    stock: Stock,
}

/// Returns the results of all possible covers of the first empty cell.
fn fitting_covers(cells: u64, orders: u32, stock: Stock) -> impl Iterator<Item = Covered> {
    let first = cells.trailing_ones() as usize;
    let covers = &Tilings::shared().covers[first % ROWS];
    covers.iter().filter_map(move |cover| {
        let mask = cover.mask << (first / ROWS * ROWS);
        let orders = orders & cover.orders;
        let fits = cells & mask == 0 && orders != 0;
        let stock = stock.without(cover.piece).filter(|_| fits)?;
        Some(Covered {
            cells: cells | mask,
            orders,
            stock,
        })
    })
}

/// Returns the covers of each piece in each orientation, for each choice of skipped rows.
fn all_covers() -> Vec<Cover> {
    let mut covers = Vec::new();
    for piece in Piece::ALL {
        for orientation in Orientation::ALL {
            let cells = cells(piece, orientation);
            let height = cells.iter().map(|cell| cell.1 + 1).max().unwrap_or(0);
            for rows in 0..1u32 << ROWS {
                if rows.count_ones() != u32::from(height) {
                    continue;
                }
                let rows: Vec<usize> = (0..ROWS).filter(|row| rows >> row & 1 == 1).collect();
                let mask = cells.iter().fold(0, |mask, &(x, y)| {
                    mask | 1 << (usize::from(x) * ROWS + rows[usize::from(y)])
                });
                covers.push(Cover {
                    mask,
                    piece,
                    orientation,
                    orders: orders_of(&rows),
                });
            }
        }
    }
    covers
}

/// Returns the orders in which all skipped rows between `rows` become full before any of `rows`.
fn orders_of(rows: &[usize]) -> u32 {
    let skipped: Vec<usize> = (rows[0]..rows[rows.len() - 1])
        .filter(|row| !rows.contains(row))
        .collect();
    let fits = |order: &[usize; ROWS]| {
        skipped
            .iter()
            .all(|&skipped| rows.iter().all(|&row| order[skipped] < order[row]))
    };
    row_orders()
        .iter()
        .enumerate()
        .filter(|(_, order)| fits(order))
        .fold(0, |orders, (index, _)| orders | 1 << index)
}

/// Returns all orders in which the rows can become full. An order contains the position of each row.
fn row_orders() -> Vec<[usize; ROWS]> {
    let mut all = Vec::new();
    for code in 0..ROWS.pow(ROWS as u32) {
        let order = std::array::from_fn(|row| code / ROWS.pow(row as u32) % ROWS);
        if (0..ROWS).all(|place| order.contains(&place)) {
            all.push(order);
        }
    }
    all
}

/// Returns the mirror image of a field's cells.
fn mirrored(cells: u64) -> u64 {
    let bytes = cells.swap_bytes() >> 24;
    const EVEN: u64 = 0x000f_0f0f_0f0f;
    (bytes & EVEN) << 4 | bytes >> 4 & EVEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pc::Solver;
    use hatebeam_tetris::Rng;
    use hatebeam_tetris::srs::{DropMode, KickTable, Kicks};

    #[test]
    fn set_of_pieces_has_the_kinds_of_the_stock() {
        for set in 0..128usize {
            let mut stock = Stock::default();
            for piece in Piece::ALL {
                for _ in 0..(set >> piece.index() & 1) * (1 + 2 * piece.index()) {
                    stock = stock.with(piece);
                }
            }
            assert_eq!(stock.pieces(), set);
        }
    }

    /// Returns a full field from which `left` random covers have been removed. In half of all cases, one empty cell
    /// is moved as well.
    fn random_cells(left: usize, covers: &[Cover], rng: &mut Rng) -> u64 {
        let mut empty = 0u64;
        while (empty.count_ones() as usize) < 4 * left {
            let mask = covers[rng.below(covers.len())].mask << (ROWS * rng.below(WIDTH));
            if mask & (empty | !FULL) == 0 {
                empty |= mask;
            }
        }
        if rng.below(2) == 0 {
            let mut cell = |is_empty: bool| loop {
                let cell = 1 << rng.below(WIDTH * ROWS);
                if (empty & cell != 0) == is_empty {
                    return cell;
                }
            };
            empty ^= cell(true) | cell(false);
        }
        FULL & !empty
    }

    #[test]
    fn tilings_agree_with_slow_search() {
        let tilings = Tilings::shared();
        let covers = all_covers();
        let mut rng = Rng::new(7);
        let any = Stock(0x0fff_ffff);
        let mut both = [0; 2];
        for _ in 0..1000 {
            let cells = random_cells(1 + rng.below(6), &covers, &mut rng);
            let slow = (0..ORDERS).any(|order| can_fill_slowly(cells, order, &covers, any));
            let fast = tilings.can_fill_cells(cells);
            assert_eq!(fast, slow, "{cells:x}");
            both[usize::from(fast)] += 1;
        }
        assert!(both.iter().all(|&count| count > 40), "{both:?}");
    }

    /// Returns whether pieces from a stock can cover all empty cells of a field, for one order of the rows.
    fn can_fill_slowly(cells: u64, order: usize, covers: &[Cover], stock: Stock) -> bool {
        let first = cells.trailing_ones() as usize;
        if first == WIDTH * ROWS {
            return true;
        }
        let shift = first / ROWS * ROWS;
        covers.iter().any(|cover| {
            let mask = cover.mask << shift;
            cover.orders >> order & 1 == 1
                && mask >> (WIDTH * ROWS) == 0
                && mask & cells == 0
                && mask >> first & 1 == 1
                && stock
                    .without(cover.piece)
                    .is_some_and(|stock| can_fill_slowly(cells | mask, order, covers, stock))
        })
    }

    #[test]
    fn stock_tilings_agree_with_slow_search() {
        let covers = all_covers();
        let mut tilings = StockTilings::new(Stock(0x0555_5555));
        let mut rng = Rng::new(11);
        let mut both = [0; 2];
        for _ in 0..1000 {
            let left = 1 + rng.below(4);
            let cells = random_cells(left, &covers, &mut rng);
            let pieces = (0..left + 1).map(|_| Piece::ALL[rng.below(7)]);
            let stock = pieces.fold(Stock::default(), Stock::with);
            let slow = (0..ORDERS).any(|order| can_fill_slowly(cells, order, &covers, stock));
            let fast = StockTilings::new(stock).can_fill_cells(cells, stock);
            assert_eq!(
                tilings.can_fill_cells(cells, stock),
                fast,
                "{cells:x} {stock:?}"
            );
            assert_eq!(fast, slow, "{cells:x} {stock:?}");
            both[usize::from(fast)] += 1;
        }
        assert!(both.iter().all(|&count| count > 40), "{both:?}");
    }

    #[test]
    fn every_field_of_a_perfect_clear_can_be_filled() {
        let tilings = Tilings::shared();
        let mut solver = Solver::new(&KickTable::built_in(Kicks::SrsPlus), DropMode::Soft);
        let mut rng = Rng::new(3);
        let mut fields = 0;
        for rows in 1..=4 {
            for _ in 0..20 {
                let mut field = LowField::empty(rows).unwrap();
                let queue: Vec<Piece> = (0..11).map(|_| Piece::ALL[rng.below(7)]).collect();
                if field.pieces_left() * 4 != rows * WIDTH {
                    continue;
                }
                let found = solver.solve(&field, &queue, true).unwrap();
                for placement in found.into_iter().flatten() {
                    assert!(tilings.can_fill(&field), "{field:?}");
                    field = field.put(placement);
                    fields += 1;
                }
            }
        }
        assert!(fields > 100, "{fields}");
    }
}
