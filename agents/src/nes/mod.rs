//! Searches for Nintendo Tetris without gravity.

mod bfs;
mod branching;
mod game;

pub use bfs::Bfs;
pub use branching::{Branching, Widths};
pub use game::{GameResult, GameRules, Move, Summary, article_games, play, play_traced};

use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{Board, Placement};

/// What a player sees before a move.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The board.
    pub board: Board,
    /// The piece to place. It can spawn.
    pub current: Piece,
    /// The piece after it.
    pub next: Piece,
}

/// A search that chooses placements.
pub trait Search {
    /// Chooses a reachable placement of the current piece.
    fn choose(&mut self, view: &View) -> Placement;
}
