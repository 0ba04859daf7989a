//! Forms of a perfect clear for display: a picture, a list of moves with keys, and a Fumen code, which an online
//! editor for Tetris fields can open.

use super::{PcError, Solution, Solver};
use fumen::{CellColor, Fumen, PieceType, RotationState};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{
    DropMode, KickTable, LowField, Orientation, SrsKey, SrsPlacement, WIDTH, keys_to,
};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

/// State of the hold slot at the start of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldSlot {
    /// Pieces cannot be held.
    Disabled,
    /// The slot is empty, so the first piece of the queue is the current piece.
    Empty,
    /// The slot contains the first piece of the queue. The second one is the current piece.
    Full,
}

/// A field to clear, the pieces in order, and the rules of movement.
#[derive(Clone, Debug)]
pub struct PcGame {
    /// Field to clear.
    pub field: LowField,
    /// Held piece if there is one, current piece, and the following pieces.
    pub queue: Vec<Piece>,
    /// State of the hold slot.
    pub hold: HoldSlot,
    /// Kick table.
    pub kicks: KickTable,
    /// Drop mode.
    pub drop: DropMode,
}

/// One move of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The placement.
    pub placement: SrsPlacement,
    /// Whether the player presses the hold key before the keys that move the piece.
    pub hold: bool,
    /// Keys that move the piece.
    pub keys: Vec<SrsKey>,
    /// Number of rows cleared.
    pub lines: u32,
}

impl PcGame {
    fn can_hold(&self) -> bool {
        self.hold != HoldSlot::Disabled
    }

    /// Finds at most `limit` perfect clears that have different pictures. If the field is already clear, the only
    /// solution is empty.
    pub fn solutions(&self, limit: NonZeroUsize) -> Result<Vec<Solution>, PcError> {
        let mut solver = Solver::new(&self.kicks, self.drop);
        if limit.get() == 1 || self.field.is_clear() {
            let solution = solver.solve(&self.field, &self.queue, self.can_hold())?;
            return Ok(solution.into_iter().collect());
        }
        let (mut pictures, mut solutions) = (BTreeSet::new(), Vec::new());
        solver.solve_each(&self.field, &self.queue, self.can_hold(), |solution| {
            if pictures.insert(self.picture(solution).ok()) {
                solutions.push(solution.to_vec());
            }
            solutions.len() < limit.get()
        })?;
        Ok(solutions)
    }

    /// Returns the moves of a solution. Returns an error if the solution cannot be played in this game.
    pub fn steps(&self, solution: &[SrsPlacement]) -> Result<Vec<Step>, PcError> {
        let mut field = self.field.to_field();
        let mut queue = self.queue.clone();
        let choices = 1 + usize::from(self.can_hold());
        let mut is_held = self.hold == HoldSlot::Full;
        let mut steps = Vec::with_capacity(solution.len());
        for &placement in solution {
            let mut next = queue.iter().take(choices);
            let position = next.position(|&piece| piece == placement.piece);
            let position = position.ok_or(PcError::NotPlayable)?;
            queue.remove(position);
            let keys = keys_to(&field, placement, &self.kicks, self.drop);
            let hold = (position == 0) == is_held;
            is_held |= hold;
            let (after, lines) = placement.put(&field);
            field = after;
            steps.push(Step {
                placement,
                hold,
                keys: keys.ok_or(PcError::NotPlayable)?,
                lines,
            });
        }
        Ok(steps)
    }

    /// Returns the rows of the field as text, starting with the highest row. A cell is the letter of the piece that
    /// fills it, `X` if it was filled before, or `_` if it is empty. Returns an error if a placement is outside the
    /// field.
    pub fn picture(&self, solution: &[SrsPlacement]) -> Result<Vec<String>, PcError> {
        let field = self.field.to_field();
        let mut rows: Vec<[char; WIDTH]> = (0..self.field.rows())
            .map(|y| std::array::from_fn(|x| if field.is_filled(x, y) { 'X' } else { '_' }))
            .collect();
        // Indices of the rows that have not been cleared.
        let mut left: Vec<usize> = (0..rows.len()).collect();
        for placement in solution {
            for (x, y) in placement.cells() {
                let row = left.get(usize::from(y)).ok_or(PcError::NotPlayable)?;
                let cell = rows[*row].get_mut(usize::from(x));
                *cell.ok_or(PcError::NotPlayable)? = placement.piece.letter();
            }
            left.retain(|&row| rows[row].contains(&'_'));
        }
        let rows = rows.iter().rev();
        Ok(rows.map(|row| row.iter().collect()).collect())
    }

    /// Returns a Fumen code with one page for each move.
    pub fn fumen(&self, solution: &[SrsPlacement]) -> String {
        let field = self.field.to_field();
        let mut fumen = Fumen::default();
        for (number, placement) in solution.iter().enumerate() {
            let page = fumen.add_page();
            if number == 0 {
                for (y, row) in page.field.iter_mut().enumerate() {
                    for (x, cell) in row.iter_mut().enumerate() {
                        if field.is_filled(x, y) {
                            *cell = CellColor::Grey;
                        }
                    }
                }
            }
            page.piece = Some(fumen_piece(placement));
        }
        fumen.encode()
    }
}

/// Converts a placement to Fumen's form, in which the position is the piece's centre of rotation.
fn fumen_piece(placement: &SrsPlacement) -> fumen::Piece {
    let (kind, cells) = match placement.piece {
        Piece::I => (PieceType::I, [(-1, 0), (0, 0), (1, 0), (2, 0)]),
        Piece::J => (PieceType::J, [(-1, 0), (0, 0), (1, 0), (-1, 1)]),
        Piece::L => (PieceType::L, [(-1, 0), (0, 0), (1, 0), (1, 1)]),
        Piece::O => (PieceType::O, [(0, 0), (1, 0), (0, 1), (1, 1)]),
        Piece::S => (PieceType::S, [(-1, 0), (0, 0), (0, 1), (1, 1)]),
        Piece::T => (PieceType::T, [(-1, 0), (0, 0), (1, 0), (0, 1)]),
        Piece::Z => (PieceType::Z, [(1, 0), (0, 0), (0, 1), (-1, 1)]),
    };
    let (rotation, turned) = match placement.orientation {
        Orientation::Spawn => (RotationState::North, cells),
        Orientation::Right => (RotationState::East, cells.map(|(x, y)| (y, -x))),
        Orientation::Half => (RotationState::South, cells.map(|(x, y)| (-x, -y))),
        Orientation::Left => (RotationState::West, cells.map(|(x, y)| (-y, x))),
    };
    let left = turned.iter().map(|cell| cell.0).min().unwrap_or(0);
    let low = turned.iter().map(|cell| cell.1).min().unwrap_or(0);
    fumen::Piece {
        kind,
        rotation,
        x: (i32::from(placement.x) - left) as u32,
        y: (i32::from(placement.y) - low) as u32,
    }
}
