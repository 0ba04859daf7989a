//! The search: what a well is worth, one step of a beam on one machine, and searches that leave
//! nothing out.
//!
//! Nothing here knows where frontiers are kept or who asked for them: no files but a complete search's
//! own scratch, no network, no RocksDB.

pub mod complete;
pub mod endgame;
mod evaluator;
mod features;
mod node;
mod patterns;
mod step;

pub use evaluator::{Evaluator, EvaluatorSpec, Kind, Quiescence, SCALE, WeightError, Weights};
pub use features::{Features, LANES, count as count_features};
pub use node::{Digest, Node, NodeWell, WELL_BYTES};
pub use step::{
    Cancelled, Candidates, Cut, CutSearch, DIGIT_VALUES, DIGITS, Division, Exchange, Frontier,
    MAX_SHARDS, Outlet, Owner, Question, SIGMAS, Sorted, Step, StepStats, Ties, more_sigmas,
};
