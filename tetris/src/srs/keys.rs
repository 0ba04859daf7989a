//! A search for the shortest list of keys that moves a piece from its spawn position to a placement.

use super::kicks::KickTable;
use super::placements::DropMode;
use super::shapes::{Orientation, SrsPlacement, cells};
use super::{HEIGHT, SPAWN_ROW, WIDTH};
use crate::{Field, Piece};
use std::collections::VecDeque;
use std::fmt;

/// A key of guideline Tetris.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SrsKey {
    /// Moves the piece one column to the left.
    Left,
    /// Moves the piece one column to the right.
    Right,
    /// Moves the piece one row down.
    Down,
    /// Moves the piece down until it lands, without locking it.
    SoftDrop,
    /// Turns the piece by a quarter turn clockwise.
    Clockwise,
    /// Turns the piece by a quarter turn anticlockwise.
    Anticlockwise,
    /// Turns the piece by a half turn.
    HalfTurn,
    /// Moves the piece down until it lands, and locks it.
    HardDrop,
}

impl SrsKey {
    const ALL_MOVES: [SrsKey; 7] = [
        SrsKey::Left,
        SrsKey::Right,
        SrsKey::Clockwise,
        SrsKey::Anticlockwise,
        SrsKey::HalfTurn,
        SrsKey::SoftDrop,
        SrsKey::Down,
    ];

    /// Returns the name, such as `left` or `hard-drop`.
    pub const fn name(self) -> &'static str {
        match self {
            SrsKey::Left => "left",
            SrsKey::Right => "right",
            SrsKey::Down => "down",
            SrsKey::SoftDrop => "soft-drop",
            SrsKey::Clockwise => "cw",
            SrsKey::Anticlockwise => "ccw",
            SrsKey::HalfTurn => "180",
            SrsKey::HardDrop => "hard-drop",
        }
    }
}

impl fmt::Display for SrsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A falling piece: its orientation, and the position of the lower left corner of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Falling {
    orientation: Orientation,
    x: i8,
    y: i8,
}

impl Falling {
    fn fits(self, field: &Field, piece: Piece) -> bool {
        cells(piece, self.orientation).iter().all(|&(dx, dy)| {
            let (x, y) = (self.x + dx as i8, self.y + dy as i8);
            (0..WIDTH as i8).contains(&x)
                && (0..HEIGHT as i8).contains(&y)
                && !field.is_filled(x as usize, y as usize)
        })
    }

    fn lands(mut self, field: &Field, piece: Piece) -> Falling {
        let below = |at: Falling| Falling { y: at.y - 1, ..at };
        while below(self).fits(field, piece) {
            self = below(self);
        }
        self
    }

    fn index(self) -> usize {
        (self.orientation.index() * WIDTH + self.x as usize) * HEIGHT + self.y as usize
    }

    fn sorted_cells(self, piece: Piece) -> [(i8, i8); 4] {
        let mut all =
            cells(piece, self.orientation).map(|(x, y)| (self.x + x as i8, self.y + y as i8));
        all.sort_unstable();
        all
    }
}

/// Returns a shortest list of keys that leads to a placement. The list ends with a hard drop. Returns `None` if the
/// placement cannot be reached.
pub fn keys_to(
    field: &Field,
    placement: SrsPlacement,
    table: &KickTable,
    mode: DropMode,
) -> Option<Vec<SrsKey>> {
    let piece = placement.piece;
    let mut target = placement.cells().map(|(x, y)| (x as i8, y as i8));
    target.sort_unstable();
    let start = Falling {
        orientation: Orientation::Spawn,
        x: if piece == Piece::O { 4 } else { 3 },
        y: SPAWN_ROW as i8,
    };
    if !start.fits(field, piece) {
        return None;
    }
    // For each position, the key that led to it and the previous position.
    let mut before: Vec<Option<(SrsKey, Falling)>> = vec![None; 4 * WIDTH * HEIGHT];
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        if at.lands(field, piece).sorted_cells(piece) == target {
            let mut keys = vec![SrsKey::HardDrop];
            let mut at = at;
            while at != start {
                let (key, previous) = before[at.index()]?;
                keys.push(key);
                at = previous;
            }
            keys.reverse();
            return Some(keys);
        }
        for key in SrsKey::ALL_MOVES {
            let Some(next) = pressed(field, piece, at, key, table, mode) else {
                continue;
            };
            if next != start && before[next.index()].is_none() {
                before[next.index()] = Some((key, at));
                queue.push_back(next);
            }
        }
    }
    None
}

/// Returns the position after a key, or `None` if the key does not move the piece.
fn pressed(
    field: &Field,
    piece: Piece,
    at: Falling,
    key: SrsKey,
    table: &KickTable,
    mode: DropMode,
) -> Option<Falling> {
    let turn = |by: usize| {
        let to = Orientation::ALL[(at.orientation.index() + by) % 4];
        let turned = table
            .shifts(piece, at.orientation, to)
            .iter()
            .map(|&(dx, dy)| Falling {
                orientation: to,
                x: at.x + dx,
                y: at.y + dy,
            });
        turned.into_iter().find(|next| next.fits(field, piece))
    };
    let is_soft = mode == DropMode::Soft;
    let next = match key {
        SrsKey::Left => Some(Falling { x: at.x - 1, ..at }),
        SrsKey::Right => Some(Falling { x: at.x + 1, ..at }),
        SrsKey::Down if is_soft => Some(Falling { y: at.y - 1, ..at }),
        SrsKey::SoftDrop if is_soft => Some(at.lands(field, piece)),
        SrsKey::Clockwise => turn(1),
        SrsKey::HalfTurn => turn(2),
        SrsKey::Anticlockwise => turn(3),
        _ => None,
    };
    next.filter(|next| *next != at && next.fits(field, piece))
}
