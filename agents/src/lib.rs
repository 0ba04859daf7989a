#![doc = include_str!("../README.md")]

mod contest;
pub mod drop;
pub mod json;
pub mod nes;
pub mod options;
mod parallel;
pub mod pc;
mod stats;
pub mod text;

pub use contest::{Contest, GameRecord, PairSummary, Series, SeriesSummary};
pub use parallel::play_numbered;
pub use stats::Statistics;
