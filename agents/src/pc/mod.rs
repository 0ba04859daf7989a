//! The search for perfect clears with a known queue of pieces.

mod solver;

pub use solver::{PcError, Solution, Solver};
