//! The record that is stored for each depth of a search.

use hatebeam_game::{Geometry, Piece, Well};
use serde::{Deserialize, Serialize};

/// A well in which HATETRIS gives another piece than HATETRIS Mild, because a well of the game would occur
/// again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedPiece {
    /// The well, in the format of [`Well::to_hex`].
    pub well: String,
    /// Letter of the piece that HATETRIS gives.
    pub piece: char,
}

impl ChangedPiece {
    /// Creates the text form of a well and the piece that HATETRIS gives there.
    pub fn new(geometry: Geometry, well: &Well, piece: Piece) -> ChangedPiece {
        ChangedPiece {
            well: well.to_hex(geometry),
            piece: piece.letter(),
        }
    }

    /// Returns the well and the piece, or `None` if the text is invalid.
    pub fn parse(&self, geometry: Geometry) -> Option<(Well, Piece)> {
        let well = Well::from_hex(geometry, &self.well).ok()?;
        Some((well, Piece::from_letter(self.piece)?))
    }
}

/// Statistics of a committed depth (a depth that is stored so that no failure can lose it).
/// The `*_eval` fields are evaluator scores. The `best_lines` field is a game score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthRecord {
    /// Number of pieces placed.
    pub depth: u32,
    /// Number of wells kept.
    pub count: u64,
    /// [`Digest`](crate::Digest) of the kept wells' nodes, in hex.
    pub digest: String,
    /// Highest score of the kept wells.
    #[serde(alias = "best_score")]
    pub best_eval: i32,
    /// Median score of the kept wells.
    #[serde(alias = "median_score")]
    pub median_eval: i32,
    /// Lowest score of the kept wells.
    #[serde(alias = "worst_score")]
    pub worst_eval: i32,
    /// Maximum number of lines cleared by a game that leads to a kept well.
    #[serde(alias = "best_game_score")]
    pub best_lines: u16,
    /// A kept well that is reached with `best_lines` lines, in the format of
    /// [`Well::to_hex`](hatebeam_game::Well::to_hex).
    pub best_well: String,
    /// Total number of children of all parents. Equal children of the same parent count once.
    pub children: u64,
    /// Time taken to search the depth, in seconds.
    pub seconds: f64,
    /// Size in bytes of the tables in which the wells are stored. The store sets this field.
    pub bytes: u64,
    /// Whether these tables still exist. The store sets this field.
    pub kept: bool,
    /// Wells of the previous depth in which the loop rule changes the piece, in ascending order of their text.
    /// Empty if the run ignores the loop rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedPiece>,
}
