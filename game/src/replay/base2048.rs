//! Base2048, the encoding that the game uses for replays today: eleven bits per character.
//!
//! The bits of each byte are encoded starting with the most significant bit. The bits that remain
//! at the end are padded with ones and form the last character. The last character is one of eight
//! special characters (*endings*) if at most three bits remain, and otherwise one of the 2,048 normal
//! characters.
//!
//! The characters are the same as in version 3.0.0 of the npm package `base2048`, which the game uses.
//! This module exists because the Rust crate `base2048` uses different characters.

use super::{Encoding, ReplayError};

const RANGES: usize = 221;

/// The 2,048 normal characters in ascending order of their values, as the first and the last code point
/// of each range.
#[rustfmt::skip] // keeps both ends of a range on one line
const REPERTOIRE: [u16; 2 * RANGES] = [
    0x0038, 0x0039, 0x0041, 0x005a, 0x0061, 0x007a, 0x00c6, 0x00c6, 0x00d0, 0x00d0, 0x00d8, 0x00d8,
    0x00de, 0x00df, 0x00e6, 0x00e6, 0x00f0, 0x00f0, 0x00f8, 0x00f8, 0x00fe, 0x00fe, 0x0110, 0x0111,
    0x0126, 0x0127, 0x0131, 0x0131, 0x0138, 0x0138, 0x0141, 0x0142, 0x014a, 0x014b, 0x0152, 0x0153,
    0x0166, 0x0167, 0x0180, 0x019f, 0x01a2, 0x01ae, 0x01b1, 0x01c3, 0x01dd, 0x01dd, 0x01e4, 0x01e5,
    0x01f6, 0x01f7, 0x021c, 0x021d, 0x0220, 0x0225, 0x0234, 0x02af, 0x0370, 0x0373, 0x0376, 0x0377,
    0x037b, 0x037d, 0x037f, 0x037f, 0x0391, 0x03a1, 0x03a3, 0x03a9, 0x03b1, 0x03c9, 0x03cf, 0x03cf,
    0x03d7, 0x03ef, 0x03f3, 0x03f3, 0x03f7, 0x03f8, 0x03fa, 0x03ff, 0x0402, 0x0402, 0x0404, 0x0406,
    0x0408, 0x040b, 0x040f, 0x0418, 0x041a, 0x0438, 0x043a, 0x044f, 0x0452, 0x0452, 0x0454, 0x0456,
    0x0458, 0x045b, 0x045f, 0x0475, 0x0478, 0x0481, 0x048a, 0x04c0, 0x04c3, 0x04cf, 0x04d4, 0x04d5,
    0x04d8, 0x04d9, 0x04e0, 0x04e1, 0x04e8, 0x04e9, 0x04f6, 0x04f7, 0x04fa, 0x052f, 0x0531, 0x0556,
    0x0561, 0x0586, 0x05d0, 0x05ea, 0x05f0, 0x05f2, 0x0620, 0x0621, 0x0627, 0x063f, 0x0641, 0x064a,
    0x0660, 0x0669, 0x066e, 0x066f, 0x0671, 0x0674, 0x0679, 0x06bf, 0x06c1, 0x06c1, 0x06c3, 0x06d2,
    0x06d5, 0x06d5, 0x06ee, 0x06fc, 0x06ff, 0x06ff, 0x0710, 0x0710, 0x0712, 0x072f, 0x074d, 0x07a5,
    0x07b1, 0x07b1, 0x07c0, 0x07ea, 0x0800, 0x0815, 0x0840, 0x0858, 0x0860, 0x086a, 0x08a0, 0x08b4,
    0x08b6, 0x08bd, 0x0904, 0x0928, 0x092a, 0x0930, 0x0932, 0x0933, 0x0935, 0x0939, 0x093d, 0x093d,
    0x0950, 0x0950, 0x0960, 0x0961, 0x0966, 0x096f, 0x0972, 0x0980, 0x0985, 0x098c, 0x098f, 0x0990,
    0x0993, 0x09a8, 0x09aa, 0x09b0, 0x09b2, 0x09b2, 0x09b6, 0x09b9, 0x09bd, 0x09bd, 0x09ce, 0x09ce,
    0x09e0, 0x09e1, 0x09e6, 0x09f1, 0x09f4, 0x09f9, 0x09fc, 0x09fc, 0x0a05, 0x0a0a, 0x0a0f, 0x0a10,
    0x0a13, 0x0a28, 0x0a2a, 0x0a30, 0x0a32, 0x0a32, 0x0a35, 0x0a35, 0x0a38, 0x0a39, 0x0a5c, 0x0a5c,
    0x0a66, 0x0a6f, 0x0a72, 0x0a74, 0x0a85, 0x0a8d, 0x0a8f, 0x0a91, 0x0a93, 0x0aa8, 0x0aaa, 0x0ab0,
    0x0ab2, 0x0ab3, 0x0ab5, 0x0ab9, 0x0abd, 0x0abd, 0x0ad0, 0x0ad0, 0x0ae0, 0x0ae1, 0x0ae6, 0x0aef,
    0x0af9, 0x0af9, 0x0b05, 0x0b0c, 0x0b0f, 0x0b10, 0x0b13, 0x0b28, 0x0b2a, 0x0b30, 0x0b32, 0x0b33,
    0x0b35, 0x0b39, 0x0b3d, 0x0b3d, 0x0b5f, 0x0b61, 0x0b66, 0x0b6f, 0x0b71, 0x0b77, 0x0b83, 0x0b83,
    0x0b85, 0x0b8a, 0x0b8e, 0x0b90, 0x0b92, 0x0b93, 0x0b95, 0x0b95, 0x0b99, 0x0b9a, 0x0b9c, 0x0b9c,
    0x0b9e, 0x0b9f, 0x0ba3, 0x0ba4, 0x0ba8, 0x0baa, 0x0bae, 0x0bb9, 0x0bd0, 0x0bd0, 0x0be6, 0x0bf2,
    0x0c05, 0x0c0c, 0x0c0e, 0x0c10, 0x0c12, 0x0c28, 0x0c2a, 0x0c39, 0x0c3d, 0x0c3d, 0x0c58, 0x0c5a,
    0x0c60, 0x0c61, 0x0c66, 0x0c6f, 0x0c78, 0x0c7e, 0x0c80, 0x0c80, 0x0c85, 0x0c8c, 0x0c8e, 0x0c90,
    0x0c92, 0x0ca8, 0x0caa, 0x0cb3, 0x0cb5, 0x0cb9, 0x0cbd, 0x0cbd, 0x0cde, 0x0cde, 0x0ce0, 0x0ce1,
    0x0ce6, 0x0cef, 0x0cf1, 0x0cf2, 0x0d05, 0x0d0c, 0x0d0e, 0x0d10, 0x0d12, 0x0d3a, 0x0d3d, 0x0d3d,
    0x0d4e, 0x0d4e, 0x0d54, 0x0d56, 0x0d58, 0x0d61, 0x0d66, 0x0d78, 0x0d7a, 0x0d7f, 0x0d85, 0x0d96,
    0x0d9a, 0x0db1, 0x0db3, 0x0dbb, 0x0dbd, 0x0dbd, 0x0dc0, 0x0dc6, 0x0de6, 0x0def, 0x0e01, 0x0e30,
    0x0e32, 0x0e32, 0x0e40, 0x0e45, 0x0e50, 0x0e59, 0x0e81, 0x0e82, 0x0e84, 0x0e84, 0x0e87, 0x0e88,
    0x0e8a, 0x0e8a, 0x0e8d, 0x0e8d, 0x0e94, 0x0e97, 0x0e99, 0x0e9f, 0x0ea1, 0x0ea3, 0x0ea5, 0x0ea5,
    0x0ea7, 0x0ea7, 0x0eaa, 0x0eab, 0x0ead, 0x0eb0, 0x0eb2, 0x0eb2, 0x0ebd, 0x0ebd, 0x0ec0, 0x0ec4,
    0x0ed0, 0x0ed9, 0x0ede, 0x0edf, 0x0f00, 0x0f00, 0x0f20, 0x0f33, 0x0f40, 0x0f42, 0x0f44, 0x0f47,
    0x0f49, 0x0f4c, 0x0f4e, 0x0f51, 0x0f53, 0x0f56, 0x0f58, 0x0f5b, 0x0f5d, 0x0f68, 0x0f6a, 0x0f6c,
    0x0f88, 0x0f8c, 0x1000, 0x1025, 0x1027, 0x102a, 0x103f, 0x1049, 0x1050, 0x1055,
];

/// Value of the first character of each range.
const FIRST_VALUES: [u16; RANGES] = {
    let mut values = [0; RANGES];
    let mut range = 1;
    while range < RANGES {
        let size = REPERTOIRE[2 * range - 1] - REPERTOIRE[2 * range - 2] + 1;
        values[range] = values[range - 1] + size;
        range += 1;
    }
    values
};

/// Number of bits that a normal character encodes.
const BITS: u32 = 11;
/// Number of bits that an ending encodes.
const ENDING_BITS: u32 = 3;

/// Returns the character for a value below 2,048.
fn character(value: u16) -> char {
    let range = FIRST_VALUES.partition_point(|&first| first <= value) - 1;
    let code = REPERTOIRE[2 * range] + (value - FIRST_VALUES[range]);
    char::from_u32(u32::from(code)).expect("the ranges contain no surrogates")
}

/// Returns the value of a normal character, or `None` for any other character.
fn value(character: char) -> Option<u16> {
    let code = u16::try_from(u32::from(character)).ok()?;
    let (ranges, _) = REPERTOIRE.as_chunks::<2>();
    let range = ranges
        .partition_point(|&[first, _]| first <= code)
        .checked_sub(1)?;
    let [first, last] = ranges[range];
    (code <= last).then(|| FIRST_VALUES[range] + (code - first))
}

/// Returns the value of an ending, or `None` for any other character.
fn ending(character: char) -> Option<u16> {
    character.to_digit(8).map(|value| value as u16)
}

/// Returns whether this character is a normal character or an ending.
pub(super) fn has(character: char) -> bool {
    value(character).is_some() || ending(character).is_some()
}

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 3); // at most three bytes per character
    let (mut pending, mut count) = (0u32, 0);
    for &byte in bytes {
        pending = pending << 8 | u32::from(byte);
        count += 8;
        if count >= BITS {
            count -= BITS;
            text.push(character((pending >> count) as u16));
            pending &= (1 << count) - 1;
        }
    }
    if count > 0 {
        let bits = if count <= ENDING_BITS {
            ENDING_BITS
        } else {
            BITS
        };
        let padding = bits - count;
        let value = pending << padding | ((1 << padding) - 1);
        if bits == BITS {
            text.push(character(value as u16));
        } else {
            text.push(char::from_digit(value, 8).expect("the value has three bits"));
        }
    }
    text
}

/// Decodes a text. `first` is the position of the text's first character, for errors.
pub(super) fn decode(text: &str, first: usize) -> Result<Vec<u8>, ReplayError> {
    let encoding = Encoding::Base2048;
    let mut bytes = Vec::with_capacity(text.len());
    let (mut pending, mut count) = (0u32, 0);
    let mut characters = text.chars().zip(first..).peekable();
    let mut last = None;
    while let Some((character, position)) = characters.next() {
        let (value, bits) = match (value(character), ending(character)) {
            (Some(value), _) => (value, BITS),
            (None, Some(value)) if characters.peek().is_none() => (value, ENDING_BITS),
            (None, Some(_)) => {
                return Err(ReplayError::AfterEnding {
                    encoding,
                    position,
                    character,
                });
            }
            (None, None) => {
                return Err(ReplayError::Character {
                    encoding,
                    position,
                    character,
                });
            }
        };
        pending = pending << bits | u32::from(value);
        count += bits;
        while count >= 8 {
            count -= 8;
            bytes.push((pending >> count) as u8);
            pending &= (1 << count) - 1;
        }
        last = Some((position, character));
    }
    match last {
        Some((position, character)) if pending != (1 << count) - 1 => Err(ReplayError::Padding {
            position,
            character,
        }),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repertoire_has_2048_ascending_characters_and_no_endings() {
        let all: Vec<char> = (0..2048).map(character).collect();
        assert!(all.is_sorted_by(|a, b| a < b));
        for (expected, &character) in all.iter().enumerate() {
            assert_eq!(value(character), Some(expected as u16));
            assert_eq!(ending(character), None);
        }
        let members = ('\0'..=char::MAX).filter(|&c| value(c).is_some()).count();
        assert_eq!(members, 2048);
    }

    #[test]
    fn every_length_round_trips() {
        for length in 0..50u8 {
            let bytes: Vec<u8> = (0..length).map(|i| i.wrapping_mul(89) ^ 0x5a).collect();
            let text = encode(&bytes);
            assert_eq!(text.chars().count(), (bytes.len() * 8).div_ceil(11));
            assert_eq!(decode(&text, 1), Ok(bytes));
        }
    }
}
