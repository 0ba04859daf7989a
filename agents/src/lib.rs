#![doc = include_str!("../README.md")]

pub mod drop;
pub mod nes;
mod parallel;
pub mod pc;
mod stats;

pub use parallel::play_numbered;
pub use stats::Statistics;
