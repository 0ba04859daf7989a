//! Sets of pieces: the standard set, a small set, and sets parsed from text.

use super::ROTATIONS;
use thiserror::Error;

/// Maximum width and height of a piece.
pub const MAX_PIECE_SIZE: usize = 8;

/// One rotation of a piece, stored as one mask for each column that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    columns: [u8; MAX_PIECE_SIZE],
    bottoms: [u8; MAX_PIECE_SIZE],
    width: u8,
    height: u8,
}

/// A piece with its four rotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropPiece {
    name: String,
    rotations: [Turned; ROTATIONS],
}

/// A set of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceSet {
    pieces: Vec<DropPiece>,
}

/// Error for a set that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetError {
    /// The text contains no piece.
    #[error(
        "piece set is empty: write each piece as rows of # and ., with an empty line between pieces"
    )]
    Empty,
    /// A piece is too large.
    #[error(
        "piece `{name}` has {width} columns and {height} rows: at most {MAX_PIECE_SIZE} of each are possible"
    )]
    TooLarge {
        /// Name of the piece.
        name: String,
        /// Number of columns.
        width: usize,
        /// Number of rows.
        height: usize,
    },
    /// A piece has no filled cell.
    #[error("piece `{0}` has no filled cell")]
    NoCell(String),
    /// A column of a piece between its leftmost and rightmost cells is empty.
    #[error("piece `{0}` has an empty column between its cells: such a piece is not supported")]
    EmptyColumn(String),
    /// A row of a piece between its lowest and highest cells is empty.
    #[error("piece `{0}` has an empty row between its cells: such a piece is not supported")]
    EmptyRow(String),
    /// A character represents neither a filled nor an empty cell.
    #[error(
        "`{found}` in line {line} is not a cell: use # or X for a filled cell, and . or _ for an empty one; write a name as `NAME:` above the rows"
    )]
    Cell {
        /// Line number, counted from 1.
        line: usize,
        /// The invalid character.
        found: char,
    },
    /// The first line of a piece is ambiguous: it may be a name or a row of cells.
    #[error(
        "`{text}` in line {line} may be a name or a row: write the name as `{text}:`, or the rows with # and ."
    )]
    AmbiguousName {
        /// Line number, counted from 1.
        line: usize,
        /// The first line of the piece.
        text: String,
    },
    /// Two pieces have the same name.
    #[error("two pieces are named `{0}`: give each piece a different name")]
    DuplicateName(String),
}

impl Turned {
    fn new(cells: &[(usize, usize)]) -> Turned {
        let left = cells.iter().map(|cell| cell.0).min().unwrap_or(0);
        let low = cells.iter().map(|cell| cell.1).min().unwrap_or(0);
        let mut turned = Turned {
            columns: [0; MAX_PIECE_SIZE],
            bottoms: [0; MAX_PIECE_SIZE],
            width: 0,
            height: 0,
        };
        for &(x, y) in cells {
            turned.columns[x - left] |= 1 << (y - low);
            turned.width = turned.width.max((x - left + 1) as u8);
            turned.height = turned.height.max((y - low + 1) as u8);
        }
        for x in 0..turned.width() {
            turned.bottoms[x] = turned.columns[x].trailing_zeros() as u8;
        }
        turned
    }

    /// Returns the number of columns that the piece covers.
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Returns the number of rows that the piece covers.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }

    /// Returns the masks of the columns. The lowest bit of a mask is the piece's lowest row.
    pub fn columns(&self) -> &[u8] {
        &self.columns[..self.width()]
    }

    /// Returns, for each column, the row of the lowest cell.
    pub fn bottoms(&self) -> &[u8] {
        &self.bottoms[..self.width()]
    }
}

impl DropPiece {
    /// Creates a piece from its cells, given as (column, row) with row 0 at the bottom.
    fn new(name: &str, cells: &[(usize, usize)]) -> Result<DropPiece, SetError> {
        if cells.is_empty() {
            return Err(SetError::NoCell(name.to_owned()));
        }
        let clockwise = |cells: &[(usize, usize)]| -> Vec<(usize, usize)> {
            let right = cells.iter().map(|cell| cell.0).max().unwrap_or(0);
            cells.iter().map(|&(x, y)| (y, right - x)).collect()
        };
        let once = clockwise(cells);
        let twice = clockwise(&once);
        let thrice = clockwise(&twice);
        let rotations =
            [cells, &once, &thrice, &twice].map(|cells: &[(usize, usize)]| Turned::new(cells));
        // The columns of the clockwise rotation are the rows of the original piece.
        if rotations[0].columns().contains(&0) {
            return Err(SetError::EmptyColumn(name.to_owned()));
        }
        if rotations[1].columns().contains(&0) {
            return Err(SetError::EmptyRow(name.to_owned()));
        }
        Ok(DropPiece {
            name: name.to_owned(),
            rotations,
        })
    }

    /// Returns the name of the piece.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the four rotations: none, clockwise, anticlockwise, half turn.
    pub fn rotations(&self) -> &[Turned; ROTATIONS] {
        &self.rotations
    }

    /// Returns the index of the first rotation with the same shape as `rotation`.
    pub fn first_equal(&self, rotation: u8) -> u8 {
        let shape = &self.rotations[usize::from(rotation)];
        let first = self.rotations.iter().position(|other| other == shape);
        first.map_or(rotation, |first| first as u8)
    }
}

impl PieceSet {
    /// Returns the seven tetrominoes O, J, L, I, S, Z, T.
    pub fn standard() -> PieceSet {
        PieceSet::parse(
            "O\n##\n##\n\nJ\n#..\n###\n\nL\n..#\n###\n\nI\n####\n\nS\n.##\n##.\n\nZ\n##.\n.##\n\nT\n.#.\n###\n",
        )
        .expect("the standard set is valid")
    }

    /// Returns the five pieces of Melax's benchmark, which have one to four cells: square, diagonal, corner, domino,
    /// dot.
    pub fn small() -> PieceSet {
        PieceSet::parse(
            "square\n##\n##\n\ndiagonal\n#.\n.#\n\ncorner\n.#\n##\n\ndomino\n#\n#\n\ndot\n#\n",
        )
        .expect("the small set is valid")
    }

    /// Returns the built-in set with the given name: `standard` or `small`.
    pub fn built_in(name: &str) -> Option<PieceSet> {
        match name {
            "standard" => Some(PieceSet::standard()),
            "small" => Some(PieceSet::small()),
            _ => None,
        }
    }

    /// Parses a set from text. Each piece consists of rows of `#` or `X` (filled) and `.` or `_` (empty), with an empty
    /// line between pieces. A line that begins with `//` is a comment.
    ///
    /// The first line of a piece is its name if it ends with a colon, which is not part of the name. It is also the
    /// name if it contains no `#` and contains a letter or digit other than `X`. A piece without a name is named
    /// after its index, counted from 1.
    pub fn parse(text: &str) -> Result<PieceSet, SetError> {
        let mut pieces: Vec<DropPiece> = Vec::new();
        let mut block: Vec<(usize, &str)> = Vec::new();
        for (number, line) in text.lines().chain(std::iter::once("")).enumerate() {
            let line = line.trim_end();
            if line.trim_start().starts_with("//") {
                continue;
            }
            if !line.is_empty() {
                block.push((number + 1, line));
                continue;
            }
            if let Some(piece) = parse_piece(&block, pieces.len() + 1)? {
                if pieces.iter().any(|other| other.name == piece.name) {
                    return Err(SetError::DuplicateName(piece.name));
                }
                pieces.push(piece);
            }
            block.clear();
        }
        if pieces.is_empty() {
            return Err(SetError::Empty);
        }
        Ok(PieceSet { pieces })
    }

    /// Returns the number of pieces, which is at least one.
    #[expect(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns all pieces.
    pub fn pieces(&self) -> &[DropPiece] {
        &self.pieces
    }

    /// Returns the piece with the given index.
    pub fn piece(&self, index: usize) -> &DropPiece {
        &self.pieces[index]
    }

    /// Returns the index of the piece with the given name, or `None` if there is no such piece.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.name == name)
    }
}

/// Returns the name in the first line of a piece, or `None` if the first line is a row of cells.
fn piece_name(block: &[(usize, &str)]) -> Result<Option<String>, SetError> {
    let (line, first) = block[0];
    let text = first.trim();
    if let Some(name) = text.strip_suffix(':') {
        return Ok(Some(name.trim_end().to_owned()));
    }
    if text.chars().all(|c| matches!(c, 'X' | '_')) {
        // If no line contains # or . and all lines have the same length, the first line is a row.
        let is_row = |row: &str| row.len() == first.len() && !row.contains(['#', '.']);
        if block.iter().all(|(_, row)| is_row(row)) {
            return Ok(None);
        }
        let text = text.to_owned();
        return Err(SetError::AmbiguousName { line, text });
    }
    let is_name = !text.contains('#') && text.contains(|c: char| c.is_alphanumeric() && c != 'X');
    Ok(is_name.then(|| text.to_owned()))
}

/// Parses the lines of one piece. Returns `None` if there are no lines.
fn parse_piece(block: &[(usize, &str)], number: usize) -> Result<Option<DropPiece>, SetError> {
    if block.is_empty() {
        return Ok(None);
    }
    let (name, rows) = match piece_name(block)? {
        Some(name) => (name, &block[1..]),
        None => (number.to_string(), block),
    };
    let width = rows.iter().map(|(_, row)| row.chars().count()).max();
    let width = width.unwrap_or(0);
    if width > MAX_PIECE_SIZE || rows.len() > MAX_PIECE_SIZE {
        return Err(SetError::TooLarge {
            name,
            width,
            height: rows.len(),
        });
    }
    let mut cells = Vec::new();
    for (from_top, &(line, row)) in rows.iter().enumerate() {
        for (x, found) in row.chars().enumerate() {
            match found {
                '#' | 'X' => cells.push((x, rows.len() - 1 - from_top)),
                '.' | '_' => {}
                found => return Err(SetError::Cell { line, found }),
            }
        }
    }
    DropPiece::new(&name, &cells).map(Some)
}
