#![doc = include_str!("../README.md")]

mod contest;
pub mod drop;
pub mod json;
pub mod nes;
// Web pages do not need command-line options.
#[cfg(not(target_family = "wasm"))]
pub mod options;
mod parallel;
pub mod pc;
mod plot;
#[cfg(not(target_family = "wasm"))]
mod selection;
mod stats;
#[cfg(not(target_family = "wasm"))]
pub mod tuning;
#[cfg(not(target_family = "wasm"))]
mod weights;

pub use contest::{Contest, GameRecord, Series, SeriesSummary};
#[cfg(not(target_family = "wasm"))]
pub use selection::{SelectionRound, TooFewGames, select_weights};
pub use stats::Statistics;
#[cfg(not(target_family = "wasm"))]
pub use weights::{DropPlayer, NesPlayer, WeightsError, WeightsFile};
