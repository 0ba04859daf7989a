//! A necessary condition for clearing a field: whole pieces can cover its empty cells.
//!
//! A piece covers each of its rows in one run of cells, but rows that are cleared before the piece is placed can lie
//! between its rows. The condition therefore lets a piece skip rows, if the skipped rows can be full before all rows of
//! the piece. It ignores the order of the pieces, how they move, and what carries them.

use super::solver::KeyHasher;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{LowField, MAX_LOW_ROWS, Orientation, WIDTH, cells};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

/// Number of rows, and of bits per column.
const ROWS: usize = MAX_LOW_ROWS;
/// Number of columns of one half of a field.
const HALF: usize = WIDTH / 2;
/// Number of cells of one half.
const HALF_CELLS: usize = HALF * ROWS;
const FULL_HALF: u64 = (1 << HALF_CELLS) - 1;
/// All cells of a field.
const FULL: u64 = (1 << (2 * HALF_CELLS)) - 1;
/// Number of orders in which four rows can become full.
const ORDERS: usize = 24;
/// Set of all orders of rows.
const ALL_ORDERS: u32 = (1 << ORDERS) - 1;

/// Cells that a piece covers, relative to the column of its first cell.
#[derive(Clone, Copy, Debug)]
struct Cover {
    mask: u64,
    piece: Piece,
    /// Orders of the rows in which the skipped rows are full before the covered ones.
    orders: u32,
}

/// Decides whether whole pieces can cover the empty cells of a field. Cells are numbered column by column.
#[derive(Clone, Debug)]
pub(super) struct Tilings {
    /// Covers whose first cell is in each row.
    covers: [Vec<Cover>; ROWS],
    /// For each half of a field, the orders of rows in which pieces within the half can cover its empty cells.
    closed: Box<[u32]>,
}

/// Numbers of pieces that are available, in four bits for each piece.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stock(u32);

impl Stock {
    /// Returns the stock with one piece more.
    pub(super) fn with(self, piece: Piece) -> Stock {
        Stock(self.0 + (1 << (4 * piece.index())))
    }

    /// Returns the stock without one piece, or `None` if there is no such piece.
    pub(super) fn without(self, piece: Piece) -> Option<Stock> {
        let count = self.0 >> (4 * piece.index()) & 15;
        (count > 0).then(|| Stock(self.0 - (1 << (4 * piece.index()))))
    }
}

static SHARED: LazyLock<Tilings> = LazyLock::new(Tilings::new);

impl Tilings {
    /// Returns the tilings, which are computed at the first call.
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

    /// Covers the first half cell by cell, and looks the second half up.
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

/// Decides whether a stock of pieces can cover the empty cells of fields, and remembers second halves that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct StockTilings {
    /// Cells of second halves with the stock, and orders of the rows.
    failed: HashSet<(u64, u32), BuildHasherDefault<KeyHasher>>,
}

impl StockTilings {
    /// Forgets the second halves.
    pub(super) fn clear(&mut self) {
        self.failed.clear();
    }

    /// Returns whether pieces of a stock can cover the empty cells of a field.
    pub(super) fn can_fill(&mut self, field: &LowField, stock: Stock) -> bool {
        self.can_fill_cells(field.column_bits(), stock)
    }

    fn can_fill_cells(&mut self, cells: u64, stock: Stock) -> bool {
        let tilings = Tilings::shared();
        tilings.can_fill_cells(cells) && self.search(tilings, cells | !FULL, ALL_ORDERS, stock)
    }

    fn search(&mut self, tilings: &Tilings, cells: u64, orders: u32, stock: Stock) -> bool {
        let first = cells.trailing_ones() as usize;
        if first == u64::BITS as usize {
            return true;
        }
        let second = cells >> HALF_CELLS & FULL_HALF;
        let is_second = first >= HALF_CELLS;
        if is_second && tilings.closed[second as usize] & orders == 0 {
            return false;
        }
        let key = (second | u64::from(stock.0) << HALF_CELLS, orders);
        if is_second && self.failed.contains(&key) {
            return false;
        }
        let shift = first / ROWS * ROWS;
        let found = tilings.covers[first % ROWS].iter().any(|cover| {
            let mask = cover.mask << shift;
            let orders = orders & cover.orders;
            cells & mask == 0
                && orders != 0
                && stock
                    .without(cover.piece)
                    .is_some_and(|stock| self.search(tilings, cells | mask, orders, stock))
        });
        if is_second && !found {
            self.failed.insert(key);
        }
        found
    }
}

/// Returns the covers of all pieces in all orientations, with all rows that they can skip.
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
                    orders: orders_of(&rows),
                });
            }
        }
    }
    covers
}

/// Returns the orders in which the rows between `rows` are full before all of `rows`.
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

/// Returns the orders of the rows: for each row, its place in the order.
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

/// Returns the mirror image of cells.
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

    /// Removes random covers from a full field, and in half of all cases moves an empty cell.
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
    fn filled_fields_equal_those_of_slow_search() {
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

    /// Returns whether pieces of a stock can fill a whole field, for one order of the rows.
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
    fn stocks_that_fill_fields_equal_those_of_slow_search() {
        let covers = all_covers();
        let mut tilings = StockTilings::default();
        let mut rng = Rng::new(11);
        let mut both = [0; 2];
        for _ in 0..1000 {
            let left = 1 + rng.below(4);
            let cells = random_cells(left, &covers, &mut rng);
            let pieces = (0..left + 1).map(|_| Piece::ALL[rng.below(7)]);
            let stock = pieces.fold(Stock::default(), Stock::with);
            let slow = (0..ORDERS).any(|order| can_fill_slowly(cells, order, &covers, stock));
            let fast = tilings.can_fill_cells(cells, stock);
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
