//! Requests and answers in JSON, one object per line. The JSON keys are the same as in the test vectors.

mod drop;
mod follow;
mod nes;
mod pc;

pub use drop::drop_placements;
pub use follow::PcFollower;
pub use nes::nes_placements;
pub use pc::{Finders, best_answer, chance_answer, pc_chance, pc_placements, pc_position};

use crate::pc::PcError;
use hatebeam_tetris::drop::{DropError, SetError};
use hatebeam_tetris::nes::BoardError;
use hatebeam_tetris::srs::{BagError, KickError, LowFieldError};
use hatebeam_tetris::{FieldError, PieceError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Error for a request that is invalid or cannot be answered.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The line is not a JSON object with the required fields.
    #[error("invalid request")]
    Json(#[from] serde_json::Error),
    /// The field is invalid.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The Nintendo Tetris board is invalid.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The field is not suitable for a perfect clear.
    #[error(transparent)]
    LowField(#[from] LowFieldError),
    /// The piece is unknown.
    #[error(transparent)]
    Piece(#[from] PieceError),
    /// The set contains no piece with this name.
    #[error("`{name}` is not a piece of the set: use one of {known}")]
    PieceOfSet {
        /// The unknown name.
        name: String,
        /// Names of the pieces in the set.
        known: String,
    },
    /// The piece set is invalid.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The game of dropped pieces cannot be created.
    #[error(transparent)]
    Drop(#[from] DropError),
    /// The kick table is invalid.
    #[error(transparent)]
    Kicks(#[from] KickError),
    /// The pieces contradict the rules of the bag.
    #[error(transparent)]
    Bag(#[from] BagError),
    /// There are not enough pieces, a piece is impossible, or too many pieces are unknown.
    #[error(transparent)]
    Pieces(#[from] PcError),
    /// No game has been started.
    #[error("no game has started: start one with `seen`")]
    NotStarted,
    /// The request has the cells of a placement, but not its piece.
    #[error("`cells` needs `piece`: name the piece that was placed")]
    CellsOfNoPiece,
    /// The drop mode is unknown.
    #[error("{0}")]
    DropMode(String),
}

fn request<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, RequestError> {
    Ok(serde_json::from_str(line)?)
}

/// Returns an answer as one line of JSON, without a line break.
fn answer(value: &impl Serialize) -> Result<String, RequestError> {
    Ok(serde_json::to_string(value)?)
}
