//! Wells, their geometry, and their representations as rows, packed bytes and text.
//!
//! A well is the set of filled cells below the *bar*, a line four rows below the top. A game is over
//! when a locked piece fills a cell above the bar.

use std::fmt;
use thiserror::Error;

/// Number of rows above the bar. These rows are empty unless the game is over.
pub const ROWS_ABOVE_BAR: usize = 4;
/// Maximum number of rows below the bar.
pub const MAX_HEIGHT: usize = 16;
/// Maximum number of rows, including those above the bar.
pub(crate) const MAX_DEPTH: usize = MAX_HEIGHT + ROWS_ABOVE_BAR;
/// Maximum number of columns.
pub const MAX_WIDTH: usize = 16;

/// The size of a well: the number of columns, and the number of rows below the bar. The original
/// game has 10 × 16 (20 rows, of which four are above the bar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    width: u8,
    height: u8,
}

/// Error for a size outside the supported range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// The width is not in the range 4 to 16.
    #[error("width {0} is out of range: a well has 4 to 16 columns")]
    Width(usize),
    /// The height is not in the range 1 to 16.
    #[error("height {0} is out of range: a well has 1 to 16 rows below the bar")]
    Height(usize),
}

impl Geometry {
    /// The geometry of the standard game: 10 columns, and 16 rows below the bar.
    pub const STANDARD: Geometry = Geometry {
        width: 10,
        height: 16,
    };

    /// Creates a geometry with `width` columns (4 to 16) and `height` rows below the bar (1 to 16).
    pub const fn new(width: usize, height: usize) -> Result<Geometry, GeometryError> {
        if width < 4 || width > MAX_WIDTH {
            return Err(GeometryError::Width(width));
        }
        if height < 1 || height > MAX_HEIGHT {
            return Err(GeometryError::Height(height));
        }
        Ok(Geometry {
            width: width as u8,
            height: height as u8,
        })
    }

    /// Returns the number of columns.
    pub const fn width(self) -> usize {
        self.width as usize
    }

    /// Returns the number of rows below the bar.
    pub const fn height(self) -> usize {
        self.height as usize
    }

    /// Returns the total number of rows, including the four above the bar.
    pub const fn depth(self) -> usize {
        self.height() + ROWS_ABOVE_BAR
    }

    /// Returns a full row, in which each column has a set bit.
    pub const fn full_row(self) -> u16 {
        (u16::MAX as u32 >> (16 - self.width as u32)) as u16
    }

    /// Returns the number of bytes in a packed well, which has one bit per cell: 20 bytes for the
    /// standard geometry.
    pub const fn packed_len(self) -> usize {
        (self.width() * self.height()).div_ceil(8)
    }

    /// Returns the number of hex digits per row in the text form: one for every four columns, rounded up.
    pub const fn digits_per_row(self) -> usize {
        self.width().div_ceil(4)
    }

    /// Returns the number of hex digits in the text form of a well: 48 for the standard geometry.
    pub const fn text_len(self) -> usize {
        self.digits_per_row() * self.height()
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The filled cells of a live well (one in which the game is not over). A well of any geometry is
/// stored as 16 rows of 16 bits, 256 bits in total.
///
/// Row 0 is the **bottom** row, so removing full rows is a compression towards index 0. Bit `x` of
/// a row is column `x`, and bit 0 is the leftmost column. Rows at or above the geometry's height,
/// and bits at or beyond its width, are zero. A well does not store its geometry, so the caller
/// must keep track of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(C, align(32))]
pub struct Well {
    rows: [u16; MAX_HEIGHT],
}

/// Error in the rows, bytes or text of a well.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WellError {
    /// The text or bytes have the wrong length.
    #[error("a {geometry} well has {expected} {unit}, not {found}")]
    Length {
        /// The geometry of the expected well.
        geometry: Geometry,
        /// The expected length.
        expected: usize,
        /// The actual length.
        found: usize,
        /// The unit of both lengths.
        unit: &'static str,
    },
    /// The text of a well contains a character that is not allowed.
    #[error("unexpected character {character:?} at position {position}: expected {expected}")]
    Character {
        /// The character.
        character: char,
        /// The 1-based position of the character.
        position: usize,
        /// The characters that are allowed at this position.
        expected: &'static str,
    },
    /// A row has cells outside the columns of the geometry.
    #[error("row {row} has cells outside the {width} columns")]
    OutsideWidth {
        /// The 1-based index of the row, counted from the bar down.
        row: usize,
        /// Number of columns.
        width: usize,
    },
    /// A row above the bar has filled cells.
    #[error("row {row} is above the bar and not empty: the game is over in such a well")]
    AboveBar {
        /// The 1-based index of the row, counted from the top of the board.
        row: usize,
    },
    /// A row is full. The game would have removed it.
    #[error("row {row} is full: the game removes full rows")]
    FullRow {
        /// The 1-based index of the row, counted from the bar down.
        row: usize,
    },
    /// Bits after the last cell of a packed well are not zero.
    #[error("the bits after the last cell are not zero")]
    Padding,
}

impl Well {
    /// The empty well, in which a game starts.
    pub const EMPTY: Well = Well {
        rows: [0; MAX_HEIGHT],
    };

    /// Creates a well from its rows, bottom row first, without checking them. See [`Well::check`].
    pub const fn from_rows(rows: [u16; MAX_HEIGHT]) -> Well {
        Well { rows }
    }

    /// Returns the rows, bottom row first.
    pub const fn rows(&self) -> &[u16; MAX_HEIGHT] {
        &self.rows
    }

    /// Returns the height of the stack: the number of rows from the bottom to the topmost filled cell.
    pub fn stack_height(&self) -> usize {
        self.rows
            .iter()
            .rposition(|&row| row != 0)
            .map_or(0, |top| top + 1)
    }

    /// Returns the number of filled cells.
    pub fn filled(&self) -> u32 {
        self.rows.iter().map(|row| row.count_ones()).sum()
    }

    /// Returns whether a row below the top of the stack is empty. No well of a game has such a row, because
    /// every piece rests on something and cleared rows are removed.
    pub fn has_gap(&self) -> bool {
        self.rows[..self.stack_height()].contains(&0)
    }

    /// Checks that this is a live well of `geometry`: it has no cell outside the geometry and no
    /// full row.
    pub fn check(&self, geometry: Geometry) -> Result<(), WellError> {
        let height = geometry.height();
        if let Some(index) = self.rows[height..].iter().rposition(|&row| row != 0) {
            // The first row of the board is the fourth row above the bar. For cells that are even
            // higher, the error also reports this row.
            let above = (index + 1).min(ROWS_ABOVE_BAR);
            return Err(WellError::AboveBar {
                row: ROWS_ABOVE_BAR + 1 - above,
            });
        }
        for (row, &bits) in self.rows[..height].iter().rev().enumerate() {
            if bits & !geometry.full_row() != 0 {
                return Err(WellError::OutsideWidth {
                    row: row + 1,
                    width: geometry.width(),
                });
            }
            if bits == geometry.full_row() {
                return Err(WellError::FullRow { row: row + 1 });
            }
        }
        Ok(())
    }

    /// Returns the packed form in [`Geometry::packed_len`] bytes: the rows from the bottom up, with
    /// `width` bits each and the lowest bit first.
    pub fn pack(&self, geometry: Geometry) -> PackedWell {
        let mut packed = PackedWell {
            len: geometry.packed_len() as u8,
            bytes: [0; 32],
        };
        if geometry == Geometry::STANDARD {
            // Eight rows take ten bytes.
            for half in 0..2 {
                let mut bits = 0u128;
                for row in 0..8 {
                    bits |= u128::from(self.rows[half * 8 + row]) << (row * 10);
                }
                packed.bytes[half * 10..][..10].copy_from_slice(&bits.to_le_bytes()[..10]);
            }
            return packed;
        }
        let (mut pending, mut pending_bits, mut at) = (0u32, 0, 0);
        for &row in &self.rows[..geometry.height()] {
            pending |= u32::from(row) << pending_bits;
            pending_bits += geometry.width();
            while pending_bits >= 8 {
                packed.bytes[at] = pending as u8;
                at += 1;
                pending >>= 8;
                pending_bits -= 8;
            }
        }
        if pending_bits > 0 {
            packed.bytes[at] = pending as u8;
        }
        packed
    }

    /// Parses the packed form and checks the well like [`Well::check`].
    pub fn unpack(geometry: Geometry, bytes: &[u8]) -> Result<Well, WellError> {
        if bytes.len() != geometry.packed_len() {
            return Err(WellError::Length {
                geometry,
                expected: geometry.packed_len(),
                found: bytes.len(),
                unit: "bytes",
            });
        }
        let mut rows = [0; MAX_HEIGHT];
        let (mut pending, mut pending_bits) = (0u32, 0);
        let mut bytes = bytes.iter();
        for row in &mut rows[..geometry.height()] {
            while pending_bits < geometry.width() {
                pending |=
                    u32::from(*bytes.next().expect("the length was checked")) << pending_bits;
                pending_bits += 8;
            }
            *row = pending as u16 & geometry.full_row();
            pending >>= geometry.width();
            pending_bits -= geometry.width();
        }
        if pending != 0 {
            return Err(WellError::Padding);
        }
        let well = Well { rows };
        well.check(geometry)?;
        Ok(well)
    }

    /// Returns a 64-bit hash of the rows. The hash is the same on every machine, in every version
    /// of this crate and for every geometry. It must never change, because a stored well contains
    /// the lowest byte of its parent's hash.
    ///
    /// Let `w0` to `w3` be the rows as four 64-bit words (four rows each, the lowest row in the
    /// lowest bits). Let `fold(a, b)` be the exclusive or of the two halves of the 128-bit product
    /// `a × b`. The hash is `fold(fold(w0 ^ k0, w1 ^ k1) ^ k4, fold(w2 ^ k2, w3 ^ k3) ^ k1)`: two
    /// independent products, and a third that combines them.
    pub fn hash(&self) -> u64 {
        // The fractional bits of the square roots of 2, 3, 5 and 7, made odd, and 2^64 divided by
        // the golden ratio.
        const KEYS: [u64; 5] = [
            0x6a09_e667_f3bc_c909,
            0xbb67_ae85_84ca_a73b,
            0x3c6e_f372_fe94_f82b,
            0xa54f_f53a_5f1d_36f1,
            0x9e37_79b9_7f4a_7c15,
        ];
        fn fold(a: u64, b: u64) -> u64 {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        }
        let word = |i: usize| {
            self.rows[i * 4..i * 4 + 4]
                .iter()
                .rev()
                .fold(0, |w, &row| w << 16 | u64::from(row))
        };
        let low = fold(word(0) ^ KEYS[0], word(1) ^ KEYS[1]);
        let high = fold(word(2) ^ KEYS[2], word(3) ^ KEYS[3]);
        fold(low ^ KEYS[4], high ^ KEYS[1])
    }

    /// Returns the text form: the rows from the top down, with [`Geometry::digits_per_row`] hex
    /// digits each (48 digits at 10 × 16). The lowest bit of a row is its leftmost column.
    pub fn to_hex(&self, geometry: Geometry) -> String {
        use fmt::Write;
        let mut text = String::with_capacity(geometry.text_len());
        for row in self.rows[..geometry.height()].iter().rev() {
            write!(text, "{row:0digits$x}", digits = geometry.digits_per_row())
                .expect("writing to a string cannot fail");
        }
        text
    }

    /// Parses the text form and checks the well like [`Well::check`]. The text may include the four
    /// rows above the bar (60 digits at 10 × 16), which must be empty.
    pub fn from_hex(geometry: Geometry, text: &str) -> Result<Well, WellError> {
        let text = text.trim();
        let digits = geometry.digits_per_row();
        let mut values = Vec::with_capacity(geometry.depth() * digits);
        for (at, character) in text.chars().enumerate() {
            let value = character.to_digit(16).ok_or(WellError::Character {
                character,
                position: at + 1,
                expected: "a hex digit",
            })?;
            if values.len() < geometry.depth() * digits {
                values.push(value);
            }
        }
        let found = text.chars().count();
        if found != geometry.text_len() && found != geometry.depth() * digits {
            return Err(WellError::Length {
                geometry,
                expected: geometry.text_len(),
                found,
                unit: "hex digits",
            });
        }
        let rows = values
            .chunks(digits)
            .map(|row| row.iter().fold(0, |bits, v| bits << 4 | v));
        Well::from_top_rows(geometry, rows.collect())
    }

    /// Returns a picture of the well: one line of text per row from the top down, with `#` for a filled
    /// cell and `.` for an empty cell. Every line ends with a newline.
    pub fn picture(&self, geometry: Geometry) -> String {
        let mut text = String::with_capacity((geometry.width() + 1) * geometry.height());
        for row in self.rows[..geometry.height()].iter().rev() {
            text.extend((0..geometry.width()).map(|x| if row >> x & 1 == 1 { '#' } else { '.' }));
            text.push('\n');
        }
        text
    }

    /// Parses a picture (see [`Well::picture`]) and checks the well like [`Well::check`]. The picture
    /// may omit empty rows at the top. It may include the four rows above the bar, which must be empty.
    /// Blank lines and white space around a line are ignored.
    pub fn from_picture(geometry: Geometry, text: &str) -> Result<Well, WellError> {
        let mut rows = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut bits = 0u32;
            let mut width = 0;
            for (x, character) in line.chars().enumerate() {
                match character {
                    '#' if x < 32 => bits |= 1 << x,
                    '.' | '#' => {}
                    _ => {
                        return Err(WellError::Character {
                            character,
                            position: x + 1,
                            expected: "`#` or `.`",
                        });
                    }
                }
                width += 1;
            }
            if width != geometry.width() {
                return Err(WellError::Length {
                    geometry,
                    expected: geometry.width(),
                    found: width,
                    unit: "characters per row",
                });
            }
            rows.push(bits);
        }
        if rows.len() > geometry.depth() {
            return Err(WellError::Length {
                geometry,
                expected: geometry.height(),
                found: rows.len(),
                unit: "rows",
            });
        }
        Well::from_top_rows(geometry, rows)
    }

    /// Builds a well from at most [`Geometry::depth`] rows, top row first, and checks it. The last
    /// element is the bottom row.
    fn from_top_rows(geometry: Geometry, top: Vec<u32>) -> Result<Well, WellError> {
        let above = top.len().saturating_sub(geometry.height());
        if let Some(row) = top[..above].iter().position(|&bits| bits != 0) {
            return Err(WellError::AboveBar { row: row + 1 });
        }
        let mut rows = [0; MAX_HEIGHT];
        for (index, (row, &bits)) in rows.iter_mut().zip(top[above..].iter().rev()).enumerate() {
            *row = u16::try_from(bits).map_err(|_| WellError::OutsideWidth {
                row: top.len() - above - index,
                width: geometry.width(),
            })?;
        }
        let well = Well { rows };
        well.check(geometry)?;
        Ok(well)
    }
}

impl fmt::Debug for Well {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Well(")?;
        for row in self.rows[..self.stack_height()].iter().rev() {
            write!(f, " {row:x}")?;
        }
        write!(f, " )")
    }
}

/// A well packed into [`Geometry::packed_len`] bytes for storage and transfer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedWell {
    len: u8,
    bytes: [u8; 32],
}

impl PackedWell {
    /// Returns the packed bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl fmt::Debug for PackedWell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedWell({:02x?})", self.as_bytes())
    }
}
