//! Perfect clears: the search with a known queue of pieces, and the chances of first moves.

mod chance;
mod expand;
mod solution;
mod solver;
mod streak;
mod table;
mod text;
mod tiled;
mod tiling;

pub use chance::{
    BestMove, Chance, MAX_UNSEEN, MoveChance, PcFinder, PcPosition, best_move, chances,
};
pub use solution::{HoldSlot, PcGame, Step};
pub use solver::{PcError, Solution, Solver};
pub use streak::{PcStreak, StreakRules};
pub use table::{BoardTable, TableError, TableHeader};
pub(crate) use text::cell_numbers;
pub use text::{best_text, chance_text, counts_text, field_rows};
