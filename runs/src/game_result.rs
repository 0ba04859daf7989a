//! The best game of a run that has ended.

use serde::{Deserialize, Serialize};

/// The best game of a run that has ended. A manifest and a run folder keep it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameResult {
    /// Number of lines.
    #[serde(alias = "score")]
    pub lines: u32,
    /// Number of pieces.
    pub pieces: u32,
    /// The game in Base2048.
    pub replay: String,
    /// Number of look-ups that reading it back took.
    pub lookups: u64,
    /// Seconds that reading it back took.
    pub seconds: f64,
    /// Depth whose best well the game leads through; 0 if an old version wrote the result.
    #[serde(default)]
    pub depth: u32,
    /// When it was read back, in milliseconds since 1970; 0 if an old version wrote the result.
    #[serde(default)]
    pub ended_ms: u64,
    /// Files of the game, relative to the run's prefix or folder; the replay is the first one.
    #[serde(default)]
    pub files: Vec<String>,
    /// Number of the piece, from 1, that HATETRIS changes in a better game because a well was repeated.
    #[serde(default)]
    pub parted_at: Option<usize>,
}
