//! The seven one-sided tetrominoes.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// One of the seven one-sided tetrominoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "each variant is the letter of its piece")]
pub enum Piece {
    I,
    J,
    L,
    O,
    S,
    T,
    Z,
}

/// Error for text that is not the letter of a piece.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a piece: use one of the letters I, J, L, O, S, T, Z")]
pub struct PieceError(pub String);

impl Piece {
    /// All pieces in alphabetical order.
    pub const ALL: [Piece; 7] = [
        Piece::I,
        Piece::J,
        Piece::L,
        Piece::O,
        Piece::S,
        Piece::T,
        Piece::Z,
    ];

    /// Returns the index of the piece in [`Piece::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the letter of the piece.
    pub const fn letter(self) -> char {
        match self {
            Piece::I => 'I',
            Piece::J => 'J',
            Piece::L => 'L',
            Piece::O => 'O',
            Piece::S => 'S',
            Piece::T => 'T',
            Piece::Z => 'Z',
        }
    }

    /// Returns the piece with the given letter, which may be upper case or lower case.
    pub fn from_letter(letter: char) -> Result<Piece, PieceError> {
        Piece::ALL
            .into_iter()
            .find(|piece| piece.letter() == letter.to_ascii_uppercase())
            .ok_or_else(|| PieceError(letter.to_string()))
    }

    /// Parses a sequence of letters, such as `SOLTZJI`.
    pub fn parse_sequence(text: &str) -> Result<Vec<Piece>, PieceError> {
        text.chars().map(Piece::from_letter).collect()
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

impl FromStr for Piece {
    type Err = PieceError;

    fn from_str(text: &str) -> Result<Piece, PieceError> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Piece::from_letter(letter),
            _ => Err(PieceError(text.to_owned())),
        }
    }
}
