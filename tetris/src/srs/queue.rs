//! The queue of known pieces: the held piece, the current piece and the previews. A player with a hold slot places
//! either the oldest unplaced piece or the piece after it.

use crate::Piece;
use thiserror::Error;

/// Queue of the pieces that the player knows: the oldest unplaced piece (held or current) and the pieces after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    pieces: Vec<Piece>,
    hold: bool,
}

/// The distinct pieces that can be placed next (at most two), with their positions in the queue.
pub type FirstChoices = Vec<(usize, Piece)>;

/// Error for a choice that the queue does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HoldError {
    /// The position is not one of the choices.
    #[error(
        "the piece at index {0} of the queue cannot be placed now: choose the first piece, or with hold the second piece"
    )]
    Position(usize),
}

impl Hold {
    /// Creates a queue. The first piece is the held piece if there is one, and the current piece otherwise. The choices
    /// are the same in both cases. If `hold` is false, only the first piece can be placed.
    pub fn new(pieces: Vec<Piece>, hold: bool) -> Hold {
        Hold { pieces, hold }
    }

    /// Returns the known pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the pieces that can be placed next. If the first two pieces are equal, returns only the first.
    pub fn choices(&self) -> FirstChoices {
        let first = self.pieces.first().map(|&piece| (0, piece));
        let second = self.pieces.get(1).map(|&piece| (1, piece));
        let second =
            second.filter(|second| self.hold && first.map(|first| first.1) != Some(second.1));
        first.into_iter().chain(second).collect()
    }

    /// Removes the piece at a position from the queue and returns it.
    pub fn place(&mut self, position: usize) -> Result<Piece, HoldError> {
        if position > usize::from(self.hold) || position >= self.pieces.len() {
            return Err(HoldError::Position(position));
        }
        Ok(self.pieces.remove(position))
    }

    /// Appends a piece that has become visible in the preview.
    pub fn push(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    /// Returns every distinct order in which `count` pieces can be placed.
    pub fn orders(&self, count: usize) -> Vec<Vec<Piece>> {
        let mut orders = Vec::new();
        collect_orders(self, count, &mut Vec::new(), &mut orders);
        orders.sort_unstable();
        orders.dedup();
        orders
    }
}

fn collect_orders(
    queue: &Hold,
    count: usize,
    placed: &mut Vec<Piece>,
    orders: &mut Vec<Vec<Piece>>,
) {
    if placed.len() == count {
        orders.push(placed.clone());
        return;
    }
    for (position, piece) in queue.choices() {
        let mut rest = queue.clone();
        rest.pieces.remove(position);
        placed.push(piece);
        collect_orders(&rest, count, placed, orders);
        placed.pop();
    }
}
