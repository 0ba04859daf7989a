//! Wells: the filled cells below the bar, their geometry, and their three forms (rows, packed
//! bytes, text).

use std::fmt;
use thiserror::Error;

/// Rows above the bar; they are empty in every well that a game can go on from.
pub const ROWS_ABOVE_BAR: usize = 4;
/// The greatest number of rows below the bar.
pub const MAX_HEIGHT: usize = 16;
/// The greatest number of columns.
pub const MAX_WIDTH: usize = 16;

/// The size of a well: columns, and rows below the bar. The original game's is 10 × 16 (its 20
/// rows less the four above the bar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    width: u8,
    height: u8,
}

/// A size that is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// The width is not 4 to 16.
    #[error("width {0} is out of range: a well has 4 to 16 columns")]
    Width(usize),
    /// The height is not 1 to 16.
    #[error("height {0} is out of range: a well has 1 to 16 rows below the bar")]
    Height(usize),
}

impl Geometry {
    /// 10 columns by 16 rows below the bar: the game as everybody plays it.
    pub const STANDARD: Geometry = Geometry {
        width: 10,
        height: 16,
    };

    /// A geometry of `width` columns (4 to 16) and `height` rows below the bar (1 to 16).
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

    /// Columns.
    pub const fn width(self) -> usize {
        self.width as usize
    }

    /// Rows below the bar.
    pub const fn height(self) -> usize {
        self.height as usize
    }

    /// All rows, the four above the bar included (`D` in the original).
    pub const fn depth(self) -> usize {
        self.height() + ROWS_ABOVE_BAR
    }

    /// A full row: one bit a column.
    pub const fn full_row(self) -> u16 {
        (u16::MAX as u32 >> (16 - self.width as u32)) as u16
    }

    /// Bytes of a packed well: `width × height` bits, rounded up. 20 at 10 × 16.
    pub const fn packed_len(self) -> usize {
        (self.width() * self.height()).div_ceil(8)
    }

    /// Hex digits a row takes in text: one for each four columns begun.
    pub const fn digits_per_row(self) -> usize {
        self.width().div_ceil(4)
    }

    /// Hex digits of a whole well in text. 48 at 10 × 16.
    pub const fn text_len(self) -> usize {
        self.digits_per_row() * self.height()
    }
}

impl Default for Geometry {
    fn default() -> Self {
        Geometry::STANDARD
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The filled cells of a live well: sixteen rows of sixteen bits, 256 bits in all, whatever the
/// geometry.
///
/// Row 0 is the **bottom** row, so that removing full rows is a compression towards index 0. Bit
/// `x` of a row is column `x`; bit 0 is the leftmost. Rows at or above the geometry's height, and
/// bits at or beyond its width, are zero. A well knows no geometry: whoever made it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(C, align(32))]
pub struct Well {
    rows: [u16; MAX_HEIGHT],
}

/// What is wrong with a well given as rows, bytes or text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WellError {
    /// Text or bytes of the wrong length.
    #[error("a {geometry} well takes {expected} {unit}, not {found}")]
    Length {
        /// The geometry it was read for.
        geometry: Geometry,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// A character that is no part of a well's text.
    #[error("unexpected character {character:?} at position {position}: expected {expected}")]
    Character {
        /// The character.
        character: char,
        /// Its place, counted from 1.
        position: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// A row with cells beyond the width.
    #[error("row {row} has cells outside the {width} columns")]
    OutsideWidth {
        /// The row from the top of the text, from 1.
        row: usize,
        /// Columns there are.
        width: usize,
    },
    /// A row with cells above the bar.
    #[error("row {row} is above the bar and not empty: the game is over in such a well")]
    AboveBar {
        /// The row from the top of the well, from 1.
        row: usize,
    },
    /// A full row: the game would have removed it.
    #[error("row {row} is full: the game removes such a row")]
    FullRow {
        /// The row from the top of the text, from 1.
        row: usize,
    },
    /// Bits after the last cell of a packed well are not zero.
    #[error("the bits after the last cell are not zero")]
    Padding,
}

impl Well {
    /// The well a game starts with.
    pub const EMPTY: Well = Well {
        rows: [0; MAX_HEIGHT],
    };

    /// A well of these rows, bottom first, without a check: see [`Well::check`].
    pub const fn from_rows(rows: [u16; MAX_HEIGHT]) -> Well {
        Well { rows }
    }

    /// The rows, bottom first.
    pub const fn rows(&self) -> &[u16; MAX_HEIGHT] {
        &self.rows
    }

    /// How high the stack is: the number of rows up to the topmost non-empty one.
    pub fn stack_height(&self) -> usize {
        self.rows
            .iter()
            .rposition(|&row| row != 0)
            .map_or(0, |top| top + 1)
    }

    /// How many cells are filled.
    pub fn filled(&self) -> u32 {
        self.rows.iter().map(|row| row.count_ones()).sum()
    }

    /// Whether a row is empty below the top of the stack. No well of a game has one: a piece rests
    /// on something, and a cleared row leaves nothing behind.
    pub fn has_gap(&self) -> bool {
        self.rows[..self.stack_height()].contains(&0)
    }

    /// Checks that this is a live well of `geometry`: no cell outside it and no full row.
    pub fn check(&self, geometry: Geometry) -> Result<(), WellError> {
        let height = geometry.height();
        if let Some(index) = self.rows[height..].iter().rposition(|&row| row != 0) {
            // Rows above the geometry count as above the bar; those further up count as its top.
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

    /// The packed form: rows from the bottom up, `width` bits each, the lowest bit first, in
    /// [`Geometry::packed_len`] bytes.
    pub fn pack(&self, geometry: Geometry) -> PackedWell {
        let mut packed = PackedWell {
            len: geometry.packed_len() as u8,
            bytes: [0; 32],
        };
        if geometry == Geometry::STANDARD {
            // Eight rows are ten bytes.
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

    /// Reads the packed form and checks it as [`Well::check`] does.
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
                pending |= u32::from(*bytes.next().expect("length was checked")) << pending_bits;
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

    /// A 64-bit hash of the rows, the same on every machine and in every version, whatever the
    /// geometry: shards are named by it and ties broken by it.
    ///
    /// With `w0..w3` the rows as four 64-bit words (four rows each, the lowest row in the lowest
    /// bits) and `fold(a, b)` the two halves of the 128-bit product exclusive-ored, it is
    /// `fold(fold(w0 ^ k0, w1 ^ k1) ^ k4, fold(w2 ^ k2, w3 ^ k3) ^ k1)`: two independent products
    /// and one that joins them.
    pub fn hash(&self) -> u64 {
        // The binary digits of the square roots of 2, 3, 5 and 7 after the point, made odd; and
        // 2^64 over the golden ratio.
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

    /// The well as text: rows from the top down, [`Geometry::digits_per_row`] hex digits each (48
    /// digits at 10 × 16), bit 0 the leftmost column.
    pub fn to_hex(&self, geometry: Geometry) -> String {
        use fmt::Write;
        let mut text = String::with_capacity(geometry.text_len());
        for row in self.rows[..geometry.height()].iter().rev() {
            write!(text, "{row:0digits$x}", digits = geometry.digits_per_row())
                .expect("writing to a string cannot fail");
        }
        text
    }

    /// Reads the text form and checks it as [`Well::check`] does. The four rows above the bar may be
    /// there too (60 digits at 10 × 16); they must be empty.
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

    /// The well drawn: a line a row from the top down, `#` for a filled cell and `.` for an empty
    /// one, each line ended.
    pub fn picture(&self, geometry: Geometry) -> String {
        let mut text = String::with_capacity((geometry.width() + 1) * geometry.height());
        for row in self.rows[..geometry.height()].iter().rev() {
            text.extend((0..geometry.width()).map(|x| if row >> x & 1 == 1 { '#' } else { '.' }));
            text.push('\n');
        }
        text
    }

    /// Reads a picture. Empty rows at the top may be left out, and the four rows above the bar may
    /// be there (they must be empty); blank lines and white space around a line are passed over.
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
                    unit: "characters a row",
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

    /// A checked well of at most `depth` rows, top first, the last of them the bottom row.
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

/// A well in [`Geometry::packed_len`] bytes: the form for storage and wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedWell {
    len: u8,
    bytes: [u8; 32],
}

impl PackedWell {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl AsRef<[u8]> for PackedWell {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Ord for PackedWell {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for PackedWell {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for PackedWell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedWell({:02x?})", self.as_bytes())
    }
}
