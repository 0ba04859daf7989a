//! The record of a depth.

use serde::{Deserialize, Serialize};

/// Facts about a committed depth. The fields `*_eval` are scores of the evaluator; lines are those
/// of the game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthRecord {
    /// Number of pieces placed.
    pub depth: u32,
    /// Number of wells.
    pub count: u64,
    /// [`Digest`](crate::Digest) of the nodes, in hex.
    pub digest: String,
    /// Highest score.
    #[serde(alias = "best_score")]
    pub best_eval: i32,
    /// Median of the scores.
    #[serde(alias = "median_score")]
    pub median_eval: i32,
    /// Lowest score: the cut.
    #[serde(alias = "worst_score")]
    pub worst_eval: i32,
    /// Most lines cleared by any game of this depth.
    #[serde(alias = "best_game_score")]
    pub best_lines: u16,
    /// A well with the most lines, as [`Well::to_hex`](hatebeam_game::Well::to_hex) writes it.
    pub best_well: String,
    /// Number of distinct children, summed over the parents.
    pub children: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Size of the stored tables; the store fills it in.
    pub bytes: u64,
    /// Whether the tables are stored; the store fills it in.
    pub kept: bool,
}
