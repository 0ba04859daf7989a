//! The best game of a run that has ended.

use serde::{Deserialize, Serialize};

/// The best game of a run that has ended. It is stored in a manifest or in a run folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameResult {
    /// Number of rows cleared.
    #[serde(alias = "score")]
    pub lines: u32,
    /// Number of pieces.
    pub pieces: u32,
    /// The game, encoded in Base2048.
    pub replay: String,
    /// Number of lookups needed to read the game back.
    pub lookups: u64,
    /// Time spent reading the game back, in seconds.
    pub seconds: f64,
    /// Depth whose best well the game passes through, or 0 if an old version of the program wrote the result.
    #[serde(default)]
    pub depth: u32,
    /// Time at which the game was read back, in milliseconds since 1970, or 0 if an old version of the program
    /// wrote the result.
    #[serde(default)]
    pub ended_ms: u64,
    /// Files of the game, relative to the run's prefix or folder. The first file is the replay.
    #[serde(default)]
    pub files: Vec<String>,
    /// If the search found a better game that HATETRIS does not allow: the number, counted from 1, of the piece that HATETRIS
    /// replaces in that game because a well is repeated.
    #[serde(default)]
    pub parted_at: Option<usize>,
}
