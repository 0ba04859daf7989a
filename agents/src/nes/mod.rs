//! Searches for Nintendo Tetris.

mod bfs;
mod branching;
mod game;
mod learned;
// Web pages have no files.
#[cfg(not(target_family = "wasm"))]
mod learning;
mod registry;

pub use bfs::Bfs;
pub use branching::{Branching, Widths, WidthsError};
pub use game::{GameResult, GameRules, Play, play, play_sets};
#[cfg(not(target_family = "wasm"))]
pub(crate) use learned::MAGIC as PATTERNS_MAGIC;
pub use learned::{Learned, built_in_patterns, read_patterns, write_patterns};
#[cfg(not(target_family = "wasm"))]
pub use learning::{LEARNED_FILE, LearningError, LearningProgress, LearningSettings, learn};
pub use registry::{RegisteredSearch, SEARCHES, UnknownSearch, find_search};

use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{Board, Placement, Transitions};

/// Information on which a search bases a move.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Current board.
    pub board: Board,
    /// Current piece, which must be able to spawn on the board.
    pub current: Piece,
    /// Next piece.
    pub next: Piece,
    /// Probabilities of the pieces after the next one.
    pub transitions: &'static Transitions,
}

/// A player of Nintendo Tetris.
pub trait Search {
    /// Chooses a reachable placement of the current piece.
    fn choose(&mut self, view: &View) -> Placement;
}

impl<S: Search + ?Sized> Search for Box<S> {
    fn choose(&mut self, view: &View) -> Placement {
        (**self).choose(view)
    }
}
