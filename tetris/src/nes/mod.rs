//! Nintendo Tetris: rules, piece generators, scoring, reachable placements, and the 17 features of a published
//! evaluator.
//!
//! Names with `article` refer to the article that published this evaluator, its searches and their results.
//!
//! Rows are numbered from the top: row 0 is the highest visible row. A placement consists of the orientation and the
//! centre of a resting piece.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod best;
mod board;
mod estimate;
mod features;
mod generator;
mod patterns;
mod placements;
mod profile;
mod scoring;
mod shapes;

pub use best::{BestPlacements, Valued};
pub use board::{Board, BoardError, Locked, Rows};
pub use features::{FEATURE_NAMES, FEATURES, Features, TETRIS, WEIGHTS_BFS, Weights};
pub use generator::{
    ARTICLE_GAME_LENGTH, ARTICLE_ORDER, ArticleSets, CARTRIDGE_ORDER, Cartridge, Transitions,
};
pub use patterns::{
    PATTERN_WEIGHTS, PATTERNS, Patterns, board_value, discounted, evaluate_patterns, patterns,
};
pub use placements::{Numbering, Placement, Placements};
pub use scoring::{MAXOUT, Score, first_transition, frames_per_row, level_at, points};
pub use shapes::{Shape, orientations, shape};
