//! Kick tables. For each turn of a piece, a kick table lists the shifts that are tried in order until the piece fits.
//! There are built-in tables for SRS, SRS+, and the half turns of Jstris and TETR.IO. Other tables can be parsed from
//! text in the format of the kick files of the program solution-finder.

use super::WIDTH;
use super::shapes::{Orientation, box_corner, cells};
use crate::Piece;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A built-in kick table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kicks {
    /// Quarter turns without shifts, and no half turns.
    None,
    /// The table of guideline Tetris (SRS), which has no half turns.
    Srs,
    /// SRS with the half turns of Jstris.
    SrsJstris180,
    /// SRS with the half turns of TETR.IO.
    SrsTetrio180,
    /// SRS+, the table of TETR.IO. It differs from SRS in the shifts for I, and has half turns.
    SrsPlus,
}

impl Kicks {
    /// All built-in tables.
    pub const ALL: [Kicks; 5] = [
        Kicks::None,
        Kicks::Srs,
        Kicks::SrsJstris180,
        Kicks::SrsTetrio180,
        Kicks::SrsPlus,
    ];

    /// Returns the name: `nokick`, `srs`, `srs+180j`, `srs+180t` or `srsplus`.
    pub const fn name(self) -> &'static str {
        match self {
            Kicks::None => "nokick",
            Kicks::Srs => "srs",
            Kicks::SrsJstris180 => "srs+180j",
            Kicks::SrsTetrio180 => "srs+180t",
            Kicks::SrsPlus => "srsplus",
        }
    }
}

impl fmt::Display for Kicks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kicks {
    type Err = KickError;

    fn from_str(text: &str) -> Result<Kicks, KickError> {
        Kicks::ALL
            .into_iter()
            .find(|kicks| kicks.name() == text)
            .ok_or_else(|| KickError::UnknownTable(text.to_owned()))
    }
}

/// Error for a kick table that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KickError {
    /// The name of a built-in table is unknown.
    #[error("`{0}` is not a kick table: use nokick, srs, srs+180j, srs+180t, srsplus, or a file")]
    UnknownTable(String),
    /// The line with this number, counted from 1, contains no `=`.
    #[error("line {0} of the kick table has no `=`: write a line such as T.NE=(0,0)(-1,0)")]
    NoAssignment(usize),
    /// A key does not name a piece and a turn.
    #[error(
        "line {line} of the kick table: `{key}` is not a turn: write a piece and two of N, E, S and W, such as T.NE"
    )]
    Key {
        /// Line number, counted from 1.
        line: usize,
        /// Text of the key.
        key: String,
    },
    /// A turn occurs twice.
    #[error("line {line} of the kick table: `{key}` occurs twice")]
    Duplicate {
        /// Line number, counted from 1.
        line: usize,
        /// Text of the key.
        key: String,
    },
    /// A value is neither a list of shifts nor a reference.
    #[error(
        "line {line} of the kick table: `{value}` is not a list of shifts such as (0,0)(-1,+1)"
    )]
    Value {
        /// Line number, counted from 1.
        line: usize,
        /// Text of the value.
        value: String,
    },
    /// A reference names a turn that is missing or is itself a reference.
    #[error(
        "line {line} of the kick table: `{to}` has no list of shifts: refer to a turn that has one"
    )]
    Reference {
        /// Line number, counted from 1.
        line: usize,
        /// The turn that the reference names.
        to: String,
    },
    /// A quarter turn of a piece is missing.
    #[error("kick table lacks {piece}.{turn}: all eight quarter turns of every piece are required")]
    Missing {
        /// The piece.
        piece: Piece,
        /// The turn, such as `NE`.
        turn: String,
    },
    /// Some, but not all, half turns are present.
    #[error("kick table lacks {piece}.{turn}: give all half turns of every piece, or none")]
    MissingHalf {
        /// The piece.
        piece: Piece,
        /// The turn, such as `NS`.
        turn: String,
    },
    /// A turn moves a piece that is high above the field down by too many rows.
    #[error(
        "kick table: the first shift of {piece}.{turn} that keeps the piece between the walls moves its lowest cell \
         down by more than {MAX_DESCENT} rows: put a shift by fewer rows before it"
    )]
    TooDeep {
        /// The piece.
        piece: Piece,
        /// The turn, such as `NE`.
        turn: String,
    },
    /// No shift of a turn keeps the piece between the walls, wherever it turns.
    #[error(
        "kick table: no shift of {piece}.{turn} keeps the piece between the walls in any column: add a shift by fewer columns"
    )]
    NeverFits {
        /// The piece.
        piece: Piece,
        /// The turn, such as `NE`.
        turn: String,
    },
}

/// Maximum number of rows by which a turn may move a piece down when only the walls stop the piece. Searches for perfect
/// clears need this limit, because they follow pieces only within two rows above the field.
const MAX_DESCENT: i8 = 2;

/// Shifts of one turn.
type Shifts = Vec<(i8, i8)>;

/// The shifts of every turn of every piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KickTable {
    /// Shifts by piece, orientation before the turn, and orientation after it. A shift moves the lower left corner of
    /// the piece's cells, not of its box, which is the square in which the piece turns.
    shifts: Vec<Shifts>,
}

const N: Orientation = Orientation::Spawn;
const E: Orientation = Orientation::Right;
const S: Orientation = Orientation::Half;
const W: Orientation = Orientation::Left;

const QUARTER_TURNS: [(Orientation, Orientation); 8] = [
    (N, E),
    (E, N),
    (E, S),
    (S, E),
    (S, W),
    (W, S),
    (W, N),
    (N, W),
];
const HALF_TURNS: [(Orientation, Orientation); 4] = [(N, S), (E, W), (S, N), (W, E)];

type Row = [(i8, i8); 5];

/// Shifts of the quarter turns of J, L, S, T and Z, in the order of `QUARTER_TURNS`.
const JLSTZ: [Row; 8] = [
    [(0, 0), (-1, 0), (-1, 1), (0, -2), (-1, -2)],
    [(0, 0), (1, 0), (1, -1), (0, 2), (1, 2)],
    [(0, 0), (1, 0), (1, -1), (0, 2), (1, 2)],
    [(0, 0), (-1, 0), (-1, 1), (0, -2), (-1, -2)],
    [(0, 0), (1, 0), (1, 1), (0, -2), (1, -2)],
    [(0, 0), (-1, 0), (-1, -1), (0, 2), (-1, 2)],
    [(0, 0), (-1, 0), (-1, -1), (0, 2), (-1, 2)],
    [(0, 0), (1, 0), (1, 1), (0, -2), (1, -2)],
];
const I_SRS: [Row; 8] = [
    [(0, 0), (-2, 0), (1, 0), (-2, -1), (1, 2)],
    [(0, 0), (2, 0), (-1, 0), (2, 1), (-1, -2)],
    [(0, 0), (-1, 0), (2, 0), (-1, 2), (2, -1)],
    [(0, 0), (1, 0), (-2, 0), (1, -2), (-2, 1)],
    [(0, 0), (2, 0), (-1, 0), (2, 1), (-1, -2)],
    [(0, 0), (-2, 0), (1, 0), (-2, -1), (1, 2)],
    [(0, 0), (1, 0), (-2, 0), (1, -2), (-2, 1)],
    [(0, 0), (-1, 0), (2, 0), (-1, 2), (2, -1)],
];
const I_SRS_PLUS: [Row; 8] = [
    [(0, 0), (1, 0), (-2, 0), (-2, -1), (1, 2)],
    [(0, 0), (-1, 0), (2, 0), (-1, -2), (2, 1)],
    [(0, 0), (-1, 0), (2, 0), (-1, 2), (2, -1)],
    [(0, 0), (-2, 0), (1, 0), (-2, 1), (1, -2)],
    [(0, 0), (2, 0), (-1, 0), (2, 1), (-1, -2)],
    [(0, 0), (1, 0), (-2, 0), (1, 2), (-2, -1)],
    [(0, 0), (1, 0), (-2, 0), (1, -2), (-2, 1)],
    [(0, 0), (-1, 0), (2, 0), (2, -1), (-1, 2)],
];
/// Shifts of the half turns of Jstris, in the order of `HALF_TURNS`.
const JSTRIS_180: [&[(i8, i8)]; 4] = [
    &[(0, 0), (0, 1)],
    &[(0, 0), (1, 0)],
    &[(0, 0), (0, -1)],
    &[(0, 0), (-1, 0)],
];
/// Shifts of the half turns of TETR.IO, in the order of `HALF_TURNS`.
const TETRIO_180: [&[(i8, i8)]; 4] = [
    &[(0, 0), (0, 1), (1, 1), (-1, 1), (1, 0), (-1, 0)],
    &[(0, 0), (1, 0), (1, 2), (1, 1), (0, 2), (0, 1)],
    &[(0, 0), (0, -1), (-1, -1), (1, -1), (-1, 0), (1, 0)],
    &[(0, 0), (-1, 0), (-1, 2), (-1, 1), (0, 2), (0, 1)],
];

impl KickTable {
    /// Returns a built-in table.
    pub fn built_in(kicks: Kicks) -> KickTable {
        let half: Option<[&[(i8, i8)]; 4]> = match kicks {
            Kicks::None | Kicks::Srs => None,
            Kicks::SrsJstris180 => Some(JSTRIS_180),
            Kicks::SrsTetrio180 | Kicks::SrsPlus => Some(TETRIO_180),
        };
        let mut table = KickTable::empty();
        for piece in Piece::ALL {
            for (turn, &(from, to)) in QUARTER_TURNS.iter().enumerate() {
                let row: &[(i8, i8)] = match (piece, kicks) {
                    (Piece::O, _) | (_, Kicks::None) => &[(0, 0)],
                    (Piece::I, Kicks::SrsPlus) => &I_SRS_PLUS[turn],
                    (Piece::I, _) => &I_SRS[turn],
                    _ => &JLSTZ[turn],
                };
                table.set(piece, from, to, row);
            }
            if let Some(half) = half {
                for (turn, &(from, to)) in HALF_TURNS.iter().enumerate() {
                    let row = if piece == Piece::O {
                        &[(0, 0)]
                    } else {
                        half[turn]
                    };
                    table.set(piece, from, to, row);
                }
            }
        }
        table
    }

    /// Parses a table in the format of solution-finder's kick files. It consists of lines such as
    /// `T.NE=(0,0)(-1,0)(-1,+1)`, in which N, E, S and W are the orientations, and references such as `J.NE=&T.NE`.
    /// The shifts apply to the piece's pivot. An `@` at the beginning of a shift is ignored. The table must contain
    /// half turns for all pieces or for none. If only the walls stop a piece, each turn must be possible in some column, and may
    /// not move the piece down by more than two rows. Searches for perfect clears need this, because they assume that a
    /// piece can have any orientation above the stack.
    pub fn parse(text: &str) -> Result<KickTable, KickError> {
        let entries = read_entries(text)?;
        let has_half_turns = entries.iter().any(|entry| HALF_TURNS.contains(&entry.turn));
        let mut table = KickTable::empty();
        for piece in Piece::ALL {
            let half: &[_] = if has_half_turns { &HALF_TURNS } else { &[] };
            for &(from, to) in QUARTER_TURNS.iter().chain(half) {
                let shifts = find_shifts(&entries, piece, (from, to))?;
                let (before, after) = (pivot(piece, from), pivot(piece, to));
                let row: Shifts = shifts
                    .iter()
                    .map(|&(dx, dy)| (dx - (after.0 - before.0), dy - (after.1 - before.1)))
                    .collect();
                table.set(piece, from, to, &row);
                table.check(piece, from, to)?;
            }
        }
        Ok(table)
    }

    /// Checks a turn of a piece that only the walls stop. A later shift may move it further down than [`MAX_DESCENT`] rows:
    /// there, the piece uses an earlier one.
    fn check(&self, piece: Piece, from: Orientation, to: Orientation) -> Result<(), KickError> {
        let turn = turn_name((from, to));
        let last_column = |orientation| {
            let columns = cells(piece, orientation).map(|cell| cell.0);
            WIDTH as i8 - 1 - columns.into_iter().max().unwrap_or(0) as i8
        };
        let inside = 0..=last_column(to);
        let descents = (0..=last_column(from)).filter_map(|x| {
            let mut shifts = self.shifts(piece, from, to).iter();
            let first = shifts.find(|(dx, _)| inside.contains(&(x + dx)));
            first.map(|&(_, dy)| -dy)
        });
        match descents.max() {
            None => Err(KickError::NeverFits { piece, turn }),
            Some(descent) if descent > MAX_DESCENT => Err(KickError::TooDeep { piece, turn }),
            Some(_) => Ok(()),
        }
    }

    fn empty() -> KickTable {
        KickTable {
            shifts: vec![Vec::new(); 7 * 16],
        }
    }

    /// Returns the shifts of a turn, which apply to the lower left corner of the piece's cells. The slice is empty if
    /// the table does not contain the turn.
    pub(crate) fn shifts(&self, piece: Piece, from: Orientation, to: Orientation) -> &[(i8, i8)] {
        &self.shifts[turn_index(piece, from, to)]
    }

    /// Sets the shifts of a turn. `row` contains shifts of the piece's box.
    fn set(&mut self, piece: Piece, from: Orientation, to: Orientation, row: &[(i8, i8)]) {
        let (before, after) = (box_corner(piece, from), box_corner(piece, to));
        let shifts = row
            .iter()
            .map(|&(dx, dy)| (dx + after.0 - before.0, dy + after.1 - before.1))
            .collect();
        self.shifts[turn_index(piece, from, to)] = shifts;
    }
}

fn turn_index(piece: Piece, from: Orientation, to: Orientation) -> usize {
    (piece.index() * 4 + from.index()) * 4 + to.index()
}

/// Returns the cell of the box that kick files use as the pivot. It is a cell of the piece for I and O, and the middle
/// of the 3 × 3 box for the other pieces.
fn pivot(piece: Piece, orientation: Orientation) -> (i8, i8) {
    match (piece, orientation) {
        (Piece::I, N) => (1, 2),
        (Piece::I, E) => (2, 2),
        (Piece::I, S) => (2, 1),
        (Piece::O, N) => (0, 0),
        (Piece::O, E) => (0, 1),
        (Piece::O, W) => (1, 0),
        _ => (1, 1),
    }
}

/// One line of a kick file.
struct Entry {
    line: usize,
    piece: Piece,
    turn: (Orientation, Orientation),
    value: Value,
}

enum Value {
    Shifts(Shifts),
    Reference(Piece, (Orientation, Orientation)),
}

fn read_entries(text: &str) -> Result<Vec<Entry>, KickError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with('!') {
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .ok_or(KickError::NoAssignment(number))?;
        let (piece, turn) = parse_key(key.trim()).ok_or_else(|| KickError::Key {
            line: number,
            key: key.trim().to_owned(),
        })?;
        if entries
            .iter()
            .any(|entry| entry.piece == piece && entry.turn == turn)
        {
            return Err(KickError::Duplicate {
                line: number,
                key: key.trim().to_owned(),
            });
        }
        let value = value.trim();
        let parsed = match parse_key(value.trim_start_matches('&')) {
            Some((piece, turn)) => Some(Value::Reference(piece, turn)),
            None => parse_shifts(value).map(Value::Shifts),
        };
        let value = parsed.ok_or_else(|| KickError::Value {
            line: number,
            value: value.to_owned(),
        })?;
        entries.push(Entry {
            line: number,
            piece,
            turn,
            value,
        });
    }
    Ok(entries)
}

fn find_shifts(
    entries: &[Entry],
    piece: Piece,
    turn: (Orientation, Orientation),
) -> Result<&Shifts, KickError> {
    let find = |piece, turn| entries.iter().find(|e| e.piece == piece && e.turn == turn);
    let entry = find(piece, turn).ok_or_else(|| {
        let name = turn_name(turn);
        if HALF_TURNS.contains(&turn) {
            return KickError::MissingHalf { piece, turn: name };
        }
        KickError::Missing { piece, turn: name }
    })?;
    match &entry.value {
        Value::Shifts(shifts) => Ok(shifts),
        Value::Reference(piece, turn) => match find(*piece, *turn).map(|entry| &entry.value) {
            Some(Value::Shifts(shifts)) => Ok(shifts),
            _ => Err(KickError::Reference {
                line: entry.line,
                to: format!("{piece}.{}", turn_name(*turn)),
            }),
        },
    }
}

fn turn_name(turn: (Orientation, Orientation)) -> String {
    let letter = |orientation: Orientation| ['N', 'E', 'S', 'W'][orientation.index()];
    format!("{}{}", letter(turn.0), letter(turn.1))
}

fn parse_key(key: &str) -> Option<(Piece, (Orientation, Orientation))> {
    let (piece, turn) = key.split_once('.')?;
    let piece = piece.trim().parse().ok()?;
    let all = QUARTER_TURNS.iter().chain(&HALF_TURNS);
    let turn = *all
        .into_iter()
        .find(|&&known| turn_name(known) == turn.trim())?;
    Some((piece, turn))
}

fn parse_shifts(value: &str) -> Option<Shifts> {
    let inner = value.strip_prefix('(')?.strip_suffix(')')?;
    inner
        .split(")(")
        .map(|pair| {
            let (dx, dy) = pair.split_once(',')?;
            let dx: i8 = dx.trim().trim_start_matches('@').trim().parse().ok()?;
            let dy: i8 = dy.trim().parse().ok()?;
            // Reject shifts longer than the field, because they would overflow later.
            (dx.unsigned_abs() <= 10 && dy.unsigned_abs() <= 40).then_some((dx, dy))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_turns_of_built_in_tables_are_valid() {
        for kicks in Kicks::ALL {
            let table = KickTable::built_in(kicks);
            for piece in Piece::ALL {
                for (from, to) in QUARTER_TURNS.into_iter().chain(HALF_TURNS) {
                    if !table.shifts(piece, from, to).is_empty() {
                        assert_eq!(table.check(piece, from, to), Ok(()), "{kicks}");
                    }
                }
            }
        }
    }
}
