//! The game of dropped pieces, in which an action is a rotation and a column, and the piece then falls straight down.
//!
//! The game is lost when a cell comes to rest above the top row. This is the *simplified* game of the literature: pieces
//! do not have to be moved through the field.

mod features;
mod generator;
mod set;

pub use features::{BCTS_NAMES, ControllerFeatures, FieldCounts, PAPER_NAMES, PaperFeatures};
pub use generator::{Generator, GeneratorKind};
pub use set::{DropPiece, MAX_PIECE_SIZE, PieceSet, SetError, Turned};

use crate::{Field, FieldError};
use thiserror::Error;

/// Number of rotations of a piece: none, clockwise, anticlockwise, half turn. Rotations with equal shapes count
/// separately.
pub const ROTATIONS: usize = 4;

/// An action of the game: a rotation, and the column of the piece's leftmost cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    /// Rotation: 0 none, 1 clockwise, 2 anticlockwise, 3 half turn.
    pub rotation: u8,
    /// Column of the leftmost cell.
    pub column: u8,
}

/// Result of dropping a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// Field after full rows have been removed.
    pub field: Field,
    /// Number of rows cleared.
    pub lines: u8,
    /// Whether a cell came to rest above the top row, which ends the game.
    pub lost: bool,
    /// Row of the piece's lowest cell before rows were cleared.
    pub landing_row: u8,
    /// Number of the piece's own cells in the cleared rows.
    pub eroded_cells: u8,
}

/// Error for a game that cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DropError {
    /// The size of the field is out of range.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A piece of the set is wider than the field.
    #[error("piece `{name}` needs {needed} columns: the field has {width}")]
    PieceTooWide {
        /// Name of the piece.
        name: String,
        /// Number of columns in the piece's widest rotation.
        needed: usize,
        /// Number of columns in the field.
        width: usize,
    },
}

/// A game: the size of its field and its set of pieces.
#[derive(Clone, Debug)]
pub struct DropGame {
    empty: Field,
    set: PieceSet,
    distinct: Vec<Vec<Action>>,
}

impl DropGame {
    /// Creates a game on a field of the given size.
    pub fn new(width: usize, height: usize, set: PieceSet) -> Result<DropGame, DropError> {
        let empty = Field::new(width, height)?;
        for piece in set.pieces() {
            let needed = piece
                .rotations()
                .iter()
                .map(Turned::width)
                .max()
                .unwrap_or(0);
            if needed > width {
                return Err(DropError::PieceTooWide {
                    name: piece.name().to_owned(),
                    needed,
                    width,
                });
            }
        }
        let distinct = set
            .pieces()
            .iter()
            .map(|piece| {
                (0..ROTATIONS as u8)
                    .filter(|&rotation| piece.first_equal(rotation) == rotation)
                    .flat_map(|rotation| columns(piece, rotation, width))
                    .collect()
            })
            .collect();
        Ok(DropGame {
            empty,
            set,
            distinct,
        })
    }

    /// Creates the usual game: a field of 10 × 20 cells and the seven tetrominoes.
    pub fn standard() -> DropGame {
        DropGame::new(10, 20, PieceSet::standard()).expect("the standard set fits in 10 columns")
    }

    /// Returns the empty field.
    pub fn empty(&self) -> Field {
        self.empty
    }

    /// Returns the pieces of the game.
    pub fn set(&self) -> &PieceSet {
        &self.set
    }

    /// Returns all actions for a piece, sorted by rotation and column. Rotations with equal shapes are included.
    pub fn actions(&self, piece: usize) -> impl Iterator<Item = Action> + '_ {
        let piece = self.set.piece(piece);
        let width = self.empty.width();
        (0..ROTATIONS as u8).flat_map(move |rotation| columns(piece, rotation, width))
    }

    /// Returns the distinct actions for a piece, sorted by rotation and column. Of rotations with equal shapes, only
    /// the first is included.
    pub fn distinct_actions(&self, piece: usize) -> &[Action] {
        &self.distinct[piece]
    }

    /// Returns the number of actions that have the same result as `action`, including `action` itself. `action` must be
    /// one of [`DropGame::distinct_actions`]. An agent that breaks ties uniformly over all actions uses this number as
    /// the weight of a distinct action.
    pub fn multiplicity(&self, piece: usize, action: Action) -> usize {
        let piece = self.set.piece(piece);
        (0..ROTATIONS as u8)
            .filter(|&rotation| piece.first_equal(rotation) == action.rotation)
            .count()
    }

    /// Drops a piece.
    ///
    /// # Panics
    /// Panics if the action is not one of [`DropGame::actions`].
    pub fn drop(&self, field: &Field, piece: usize, action: Action) -> Drop {
        let turned = &self.set.piece(piece).rotations()[usize::from(action.rotation)];
        drop_turned(field, turned, usize::from(action.column))
    }
}

fn columns(piece: &DropPiece, rotation: u8, width: usize) -> impl Iterator<Item = Action> + use<> {
    let last = width - piece.rotations()[usize::from(rotation)].width();
    (0..=last as u8).map(move |column| Action { rotation, column })
}

fn drop_turned(field: &Field, turned: &Turned, column: usize) -> Drop {
    let mut row = 0;
    for (dx, &bottom) in turned.bottoms().iter().enumerate() {
        row = row.max(
            field
                .column_height(column + dx)
                .saturating_sub(usize::from(bottom)),
        );
    }
    let mut after = *field;
    let mut above = 0;
    for (dx, &cells) in turned.columns().iter().enumerate() {
        let cells = u64::from(cells) << row;
        above |= cells & !field.mask();
        after.columns[column + dx] |= cells & field.mask();
    }
    let full = after.full_rows();
    let mut eroded_cells = 0;
    if full != 0 {
        for &cells in turned.columns() {
            eroded_cells += (u64::from(cells) << row & full).count_ones() as u8;
        }
        after.remove_rows(full);
    }
    Drop {
        field: after,
        lines: full.count_ones() as u8,
        lost: above != 0,
        landing_row: row as u8,
        eroded_cells,
    }
}
