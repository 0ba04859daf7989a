//! Perfect clears: the search for a known queue.

mod solver;

pub use solver::{PcError, Solution, Solver};
