//! Searches for Nintendo Tetris without gravity.

mod bfs;
mod branching;
mod game;
mod registry;
mod stacking;

pub use bfs::Bfs;
pub use branching::{Branching, Widths, WidthsError};
pub use game::{
    GameResult, GameRules, Move, Play, Summary, article_games, play, play_sets, play_traced,
};
pub use registry::{RegisteredSearch, SEARCHES, UnknownSearch, find_search};
pub use stacking::Stacking;

use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{Board, Placement};

/// Information on which a search bases a move.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Current board.
    pub board: Board,
    /// Current piece, which must be able to spawn on the board.
    pub current: Piece,
    /// Next piece.
    pub next: Piece,
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
