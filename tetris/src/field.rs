//! Fields of up to 16 × 56 cells, stored as one bit mask per column.

use std::fmt;
use thiserror::Error;

/// Maximum number of columns in a [`Field`].
pub const MAX_WIDTH: usize = 16;
/// Maximum number of rows in a [`Field`]. The other eight bits of a column's 64-bit mask are for a piece that extends
/// above the field.
pub const MAX_HEIGHT: usize = 56;

/// A field of filled and empty cells. Columns are numbered from the left and rows from the floor, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub(crate) width: u8,
    pub(crate) height: u8,
    pub(crate) columns: [u64; MAX_WIDTH],
}

/// Error for a field whose size or text is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// The width is out of range.
    #[error("width {0} is out of range: a field has 1 to {MAX_WIDTH} columns")]
    Width(usize),
    /// The height is out of range.
    #[error("height {0} is out of range: a field has 1 to {MAX_HEIGHT} rows")]
    Height(usize),
    /// The text has more rows than the field.
    #[error("field has {given} rows: at most {height} are possible")]
    TooManyRows {
        /// Number of rows in the text.
        given: usize,
        /// Number of rows in the field.
        height: usize,
    },
    /// A row of the text is invalid.
    #[error(transparent)]
    Row(#[from] RowError),
}

/// Error for a row of text that does not represent cells.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// The row has the wrong length.
    #[error("row {row} has {given} cells: {width} are needed")]
    Length {
        /// Row number in the text, counted from 1.
        row: usize,
        /// Number of cells in the row.
        given: usize,
        /// Number of columns in the field.
        width: usize,
    },
    /// A character represents neither a filled nor an empty cell.
    #[error(
        "`{found}` in row {row} is not a cell: use X or # for a filled cell, and _ or . or a space for an empty one"
    )]
    Cell {
        /// Row number in the text, counted from 1.
        row: usize,
        /// The invalid character.
        found: char,
    },
}

/// Parses rows of text with `width` cells each. Calls `fill` with the column and the index of the row of each filled
/// cell.
pub(crate) fn parse_rows<S: AsRef<str>>(
    rows: &[S],
    width: usize,
    mut fill: impl FnMut(usize, usize),
) -> Result<(), RowError> {
    for (index, row) in rows.iter().enumerate() {
        let (text, row) = (row.as_ref(), index + 1);
        let given = text.chars().count();
        if given != width {
            return Err(RowError::Length { row, given, width });
        }
        for (x, cell) in text.chars().enumerate() {
            match cell {
                'X' | 'x' | '#' => fill(x, index),
                '_' | '.' | ' ' => {}
                found => return Err(RowError::Cell { row, found }),
            }
        }
    }
    Ok(())
}

impl Field {
    /// Creates an empty field with 1 to 16 columns and 1 to 56 rows.
    pub const fn new(width: usize, height: usize) -> Result<Field, FieldError> {
        if width < 1 || width > MAX_WIDTH {
            return Err(FieldError::Width(width));
        }
        if height < 1 || height > MAX_HEIGHT {
            return Err(FieldError::Height(height));
        }
        Ok(Field {
            width: width as u8,
            height: height as u8,
            columns: [0; MAX_WIDTH],
        })
    }

    /// Parses a field from rows of text. The last row of text is the floor row. If there are fewer rows than
    /// `height`, the rows above them are empty.
    pub fn parse<S: AsRef<str>>(
        width: usize,
        height: usize,
        rows: &[S],
    ) -> Result<Field, FieldError> {
        let mut field = Field::new(width, height)?;
        if rows.len() > height {
            return Err(FieldError::TooManyRows {
                given: rows.len(),
                height,
            });
        }
        parse_rows(rows, width, |x, index| {
            field.columns[x] |= 1 << (rows.len() - 1 - index);
        })?;
        Ok(field)
    }

    /// Returns the number of columns.
    pub const fn width(&self) -> usize {
        self.width as usize
    }

    /// Returns the number of rows.
    pub const fn height(&self) -> usize {
        self.height as usize
    }

    /// Returns whether the cell in column `x` and row `y` is filled.
    pub const fn is_filled(&self, x: usize, y: usize) -> bool {
        self.columns[x] >> y & 1 == 1
    }

    /// Returns the height of a column: the index of the row above its highest filled cell.
    pub const fn column_height(&self, x: usize) -> usize {
        (64 - self.columns[x].leading_zeros()) as usize
    }

    /// Returns the height of the highest column.
    pub fn pile_height(&self) -> usize {
        let all = self.columns.iter().fold(0, |all, column| all | column);
        (64 - all.leading_zeros()) as usize
    }

    /// Returns a mask of the full rows, which have no empty cell.
    pub fn full_rows(&self) -> u64 {
        let full = self.columns[..self.width()]
            .iter()
            .fold(u64::MAX, |full, column| full & column);
        full & self.mask()
    }

    /// Removes the rows whose bits are set in a mask, and moves the rows above them down.
    pub fn remove_rows(&mut self, mut rows: u64) {
        while rows != 0 {
            let highest = 63 - rows.leading_zeros();
            let below = (1u64 << highest) - 1;
            for column in &mut self.columns {
                *column = (*column & below) | (*column >> 1 & !below);
            }
            rows &= below;
        }
    }

    /// Returns a mask of all rows of the field.
    pub(crate) const fn mask(&self) -> u64 {
        (1 << self.height) - 1
    }

    /// Returns the rows as text, from the highest row with a filled cell down to the floor.
    pub fn rows(&self) -> Vec<String> {
        (0..self.pile_height())
            .rev()
            .map(|y| {
                (0..self.width())
                    .map(|x| if self.is_filled(x, y) { 'X' } else { '_' })
                    .collect()
            })
            .collect()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows() {
            writeln!(f, "{row}")?;
        }
        Ok(())
    }
}
