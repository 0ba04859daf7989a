//! Replays: texts that contain the key sequence of a game in one of four encodings.
//!
//! | encoding | description |
//! |---|---|
//! | raw | one letter per key: `U`, `L`, `D` or `R` |
//! | hex | two keys per digit (first × 4 + second; `L R D U` are 0 to 3), in groups of four digits |
//! | Base65536 | run-length code, two bytes per character |
//! | Base2048 | run-length code, eleven bits per character; the current game prints this encoding |
//!
//! The run-length code stores each run of at most four equal keys as a nibble. The upper two bits
//! contain the key, and the lower two contain the length minus one. The upper nibble of a byte
//! comes first.
//!
//! **Padding.** Hex stores pairs of keys, and the run-length code stores pairs of nibbles. If the
//! number of keys is odd, hex adds a `D`. If the number of nibbles is odd, the run-length code adds
//! nibble 0, which means one `L`. So a decoded replay may have one more key than the original. A
//! game that is over ignores this key.
//!
//! **Detection** works as in the game, with one exception. White space around the text (but not
//! inside it) is ignored. The encodings are tried in the order of the table, and the first one that
//! can decode the text is used. The exception is that this module rejects raw and hex replays in
//! lower case. The game decodes most of them as Base2048, which contains all ASCII letters, and plays
//! meaningless keys. Some short texts of ASCII letters remain ambiguous. For example, `URUR` in hex is
//! `DD`, which is also valid raw text, and `L` in Base2048 is `F`, which is also valid hex. No replay
//! of a whole game is ambiguous. If the encoding is known, use [`Encoding::decode`].

mod base2048;

use crate::rules::Key;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The text encoding of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// One letter per key.
    Raw,
    /// One hex digit per two keys.
    Hex,
    /// One character per two bytes of run-length code.
    Base65536,
    /// One character per eleven bits of run-length code.
    Base2048,
}

/// Error for an unknown encoding name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown encoding {0:?}: use raw, hex, base65536 or base2048")]
pub struct UnknownEncoding(pub String);

/// Error in the text of a replay. Positions are 1-based and count all characters of the text,
/// including white space.
///
/// A truncated replay is usually a valid, shorter replay. Decoding it returns an error only if its last
/// character cannot be the last character of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The text contains no keys.
    #[error("the replay is empty: it contains no keys")]
    Empty,
    /// The text contains a character that is not in the encoding's alphabet.
    #[error(
        "character {position}, {character:?}, is not valid in a replay: the text looks like {encoding}, \
         which contains {}", encoding.alphabet()
    )]
    Character {
        /// The encoding passed to [`Encoding::decode`]. If [`decode`] detects the encoding, this is the
        /// encoding that accepts the longest initial part of the text.
        encoding: Encoding,
        /// Position of the character.
        position: usize,
        /// The character.
        character: char,
    },
    /// A character that is valid only at the end of a text is followed by other characters.
    #[error(
        "character {position}, {character:?}, ends a replay in {encoding}, but more text follows: \
         is this two replays, or parts of one in the wrong order?"
    )]
    AfterEnding {
        /// The encoding, which is Base65536 or Base2048.
        encoding: Encoding,
        /// Position of the character that is valid only at the end.
        position: usize,
        /// The character that is valid only at the end.
        character: char,
    },
    /// The unused bits in the last character of a Base2048 text are not all ones.
    #[error(
        "character {position}, {character:?}, cannot be the last character of a replay in base2048 \
         (its unused bits are not all ones): the text is truncated or damaged"
    )]
    Padding {
        /// Position of the last character.
        position: usize,
        /// The last character.
        character: char,
    },
}

impl Encoding {
    /// All encodings, in the order in which detection tries them.
    pub const ALL: [Encoding; 4] = [
        Encoding::Raw,
        Encoding::Hex,
        Encoding::Base65536,
        Encoding::Base2048,
    ];

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Raw => "raw",
            Encoding::Hex => "hex",
            Encoding::Base65536 => "base65536",
            Encoding::Base2048 => "base2048",
        }
    }

    /// Decodes a text in this encoding. White space around the text is ignored.
    ///
    /// # Errors
    /// Returns a [`ReplayError`] if the text is not valid in this encoding.
    pub fn decode(self, text: &str) -> Result<Vec<Key>, ReplayError> {
        let (text, first) = trim(text);
        self.decode_trimmed(text, first)
    }

    /// Returns a description of the alphabet for error messages.
    const fn alphabet(self) -> &'static str {
        match self {
            Encoding::Raw => "only the capital letters U, L, D and R",
            Encoding::Hex => "only the digits 0-9 and A-F (capitals), # and spaces",
            Encoding::Base65536 | Encoding::Base2048 => "only characters of its own alphabet",
        }
    }

    /// Decodes a trimmed text whose first character has position `first` in the original text.
    fn decode_trimmed(self, text: &str, first: usize) -> Result<Vec<Key>, ReplayError> {
        let keys = match self {
            Encoding::Raw => decode_raw(text, first)?,
            Encoding::Hex => decode_hex(text, first)?,
            Encoding::Base65536 => from_runs(&decode_base65536(text, first)?),
            Encoding::Base2048 => from_runs(&base2048::decode(text, first)?),
        };
        if keys.is_empty() {
            Err(ReplayError::Empty)
        } else {
            Ok(keys)
        }
    }

    /// Returns the length in bytes of the longest initial part of the text that contains only characters
    /// of this encoding. For raw and hex, lower-case letters also count: they are invalid, but they
    /// indicate the intended encoding.
    fn fitting_bytes(self, text: &str) -> usize {
        let fits = |fit: fn(char) -> bool| text.find(|c| !fit(c)).unwrap_or(text.len());
        match self {
            Encoding::Raw => fits(|c| Key::from_letter(c.to_ascii_uppercase()).is_some()),
            Encoding::Hex => fits(|c| c.is_ascii_hexdigit() || matches!(c, '#' | ' ')),
            Encoding::Base65536 => match base65536::decode(text, false) {
                Err(base65536::Error::InvalidCodePoint(offset, _)) => offset,
                Ok(_) | Err(base65536::Error::InvalidLength) => text.len(),
            },
            Encoding::Base2048 => fits(base2048::has),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    /// Parses the name of an encoding, ignoring case.
    fn from_str(name: &str) -> Result<Encoding, UnknownEncoding> {
        Encoding::ALL
            .into_iter()
            .find(|encoding| encoding.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}

/// Detects the encoding of a replay and decodes the replay. Returns the keys and the encoding.
///
/// # Errors
/// If no encoding can decode the text, returns the [`ReplayError`] of the encoding that accepts the
/// longest initial part of the text.
pub fn decode(text: &str) -> Result<(Vec<Key>, Encoding), ReplayError> {
    let (text, first) = trim(text);
    if text.is_empty() {
        return Err(ReplayError::Empty);
    }
    let likely = likely(text);
    for &encoding in likely {
        if let Ok(keys) = encoding.decode_trimmed(text, first) {
            return Ok((keys, encoding));
        }
    }
    let closest = closest(text, likely);
    closest
        .decode_trimmed(text, first)
        .map(|keys| (keys, closest))
}

/// Encodes keys as text. Returns an empty text if there are no keys.
pub fn encode(keys: &[Key], encoding: Encoding) -> String {
    match encoding {
        Encoding::Raw => keys.iter().map(|key| key.letter()).collect(),
        Encoding::Hex => encode_hex(keys),
        Encoding::Base65536 => base65536::encode(&to_runs(keys), None),
        Encoding::Base2048 => base2048::encode(&to_runs(keys)),
    }
}

/// Trims the white space around a text. Returns the trimmed text and the 1-based position of its
/// first character in `text`.
///
/// White space is defined as in JavaScript's `trim`: it includes the byte order mark, but not
/// U+0085.
fn trim(text: &str) -> (&str, usize) {
    let is_space = |c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}');
    let tail = text.trim_start_matches(is_space);
    let dropped = text[..text.len() - tail.len()].chars().count();
    (tail.trim_end_matches(is_space), dropped + 1)
}

/// Returns the encodings to try: only raw and hex if all characters fit one of these encodings in upper
/// or lower case, and otherwise all encodings.
fn likely(text: &str) -> &'static [Encoding] {
    let (ascii, all) = (&Encoding::ALL[..2], &Encoding::ALL[..]);
    if ascii.iter().any(|e| e.fitting_bytes(text) == text.len()) {
        ascii
    } else {
        all
    }
}

/// Returns the likely encoding that accepts the longest initial part of an invalid text. If several
/// accept the same length, returns the first.
fn closest(text: &str, likely: &[Encoding]) -> Encoding {
    // Base2048 contains all ASCII letters, so a damaged raw replay looks like Base2048. But no
    // Base2048 replay of a game consists of ASCII characters only.
    let likely = if text.is_ascii() {
        &likely[..2]
    } else {
        likely
    };
    let closest = likely
        .iter()
        .rev()
        .max_by_key(|encoding| encoding.fitting_bytes(text));
    // `max_by_key` returns the last of several maxima. The iterator is reversed, so this is the
    // first encoding.
    closest.copied().expect("at least two encodings are likely")
}

fn decode_raw(text: &str, first: usize) -> Result<Vec<Key>, ReplayError> {
    let key = |(at, character)| {
        let position = first + at;
        let unknown = ReplayError::Character {
            encoding: Encoding::Raw,
            position,
            character,
        };
        Key::from_letter(character).ok_or(unknown)
    };
    text.chars().enumerate().map(key).collect()
}

fn decode_hex(text: &str, first: usize) -> Result<Vec<Key>, ReplayError> {
    let mut keys = Vec::new();
    for (at, character) in text.chars().enumerate() {
        match character {
            '0'..='9' | 'A'..='F' => {
                let digit = character
                    .to_digit(16)
                    .expect("the character is a hex digit") as u8;
                keys.extend([key(digit >> 2), key(digit)]);
            }
            '#' | ' ' => {}
            _ => {
                let position = first + at;
                return Err(ReplayError::Character {
                    encoding: Encoding::Hex,
                    position,
                    character,
                });
            }
        }
    }
    Ok(keys)
}

fn encode_hex(keys: &[Key]) -> String {
    let mut text = String::with_capacity(keys.len() * 5 / 8 + 2);
    for (index, pair) in keys.chunks(2).enumerate() {
        if index > 0 && index % 4 == 0 {
            text.push(' ');
        }
        let second = pair.get(1).copied().unwrap_or(Key::Down);
        let digit = (pair[0] as u32) << 2 | second as u32;
        let digit = char::from_digit(digit, 16).expect("the digit is below 16");
        text.push(digit.to_ascii_uppercase());
    }
    text
}

fn decode_base65536(text: &str, first: usize) -> Result<Vec<u8>, ReplayError> {
    let encoding = Encoding::Base65536;
    base65536::decode(text, false).map_err(|error| match error {
        base65536::Error::InvalidCodePoint(offset, character) => {
            let position = first + text[..offset].chars().count();
            ReplayError::Character {
                encoding,
                position,
                character,
            }
        }
        base65536::Error::InvalidLength => {
            // The error does not contain the position. Characters in this range encode a single
            // byte and are valid only at the end.
            let ending = |c: &char| ('\u{1500}'..='\u{15ff}').contains(c);
            let found = text.chars().enumerate().find(|(_, c)| ending(c));
            let (at, character) = found.expect("an invalid length is caused by an ending");
            ReplayError::AfterEnding {
                encoding,
                position: first + at,
                character,
            }
        }
    })
}

/// Encodes keys with the run-length code.
fn to_runs(keys: &[Key]) -> Vec<u8> {
    let equal = keys.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(4));
    let nibbles: Vec<u8> = equal
        .map(|run| (run[0] as u8) << 2 | (run.len() - 1) as u8)
        .collect();
    let byte = |pair: &[u8]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    nibbles.chunks(2).map(byte).collect()
}

/// Decodes the run-length code.
fn from_runs(bytes: &[u8]) -> Vec<Key> {
    let nibbles = bytes.iter().flat_map(|&byte| [byte >> 4, byte & 15]);
    let run = |nibble: u8| std::iter::repeat_n(key(nibble >> 2), usize::from(nibble & 3) + 1);
    nibbles.flat_map(run).collect()
}

/// Returns the key with this code. Bits above the lower two are ignored.
fn key(code: u8) -> Key {
    Key::ALL[usize::from(code & 3)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(letters: &str) -> Vec<Key> {
        letters
            .chars()
            .map(|c| Key::from_letter(c).unwrap())
            .collect()
    }

    fn message(text: &str) -> String {
        decode(text).unwrap_err().to_string()
    }

    #[test]
    fn decode_returns_same_keys_for_every_encoding() {
        for (text, encoding) in [
            ("DDDRUD", Encoding::Raw),
            ("A9E", Encoding::Hex),
            ("𤺤", Encoding::Base65536),
            ("ਹԇ", Encoding::Base2048),
        ] {
            assert_eq!(encode(&keys("DDDRUD"), encoding), text);
            for spaced in [text.to_owned(), format!("\u{feff} \n{text}\t\r\n")] {
                assert_eq!(decode(&spaced), Ok((keys("DDDRUD"), encoding)));
                assert_eq!(encoding.decode(&spaced), Ok(keys("DDDRUD")));
            }
        }
    }

    #[test]
    fn padding_adds_at_most_one_key() {
        assert_eq!(encode(&keys("RDL"), Encoding::Hex), "62");
        assert_eq!(decode("62"), Ok((keys("RDLD"), Encoding::Hex)));
        for encoding in [Encoding::Base65536, Encoding::Base2048] {
            let text = encode(&keys("UDDU"), encoding);
            assert_eq!(decode(&text), Ok((keys("UDDUL"), encoding)));
        }
    }

    #[test]
    fn hex_is_written_in_groups_of_four_and_read_in_any_grouping() {
        let text = encode(&keys("LLLRLDLURLRRRDRUDL"), Encoding::Hex);
        assert_eq!(text, "0123 4567 8");
        assert_eq!(
            decode(" #01  23456#78").unwrap().0,
            decode(&text).unwrap().0
        );
    }

    #[test]
    fn ambiguous_text_is_detected_as_in_the_game() {
        assert_eq!(decode("DD"), Ok((keys("DD"), Encoding::Raw)));
        assert_eq!(Encoding::Hex.decode("DD"), Ok(keys("URUR")));
        assert_eq!(decode("DD DD").unwrap().1, Encoding::Hex);
        let text = encode(&keys("L"), Encoding::Base2048);
        assert_eq!(
            (text.as_str(), decode(&text).unwrap().1),
            ("F", Encoding::Hex)
        );
        assert_eq!(Encoding::Base2048.decode(&text), Ok(keys("LL")));
    }

    #[test]
    fn text_without_keys_is_rejected() {
        for text in ["", " \n\t", "\u{feff}", "#", "# #"] {
            assert_eq!(decode(text), Err(ReplayError::Empty), "{text:?}");
        }
        for encoding in Encoding::ALL {
            assert_eq!(encode(&[], encoding), "");
            assert_eq!(encoding.decode(""), Err(ReplayError::Empty));
        }
    }

    #[test]
    fn error_names_invalid_character_and_its_position() {
        for (text, encoding, position, character) in [
            ("ULLDx", Encoding::Raw, 5, 'x'),
            ("  UL DR", Encoding::Raw, 5, ' '),
            ("ulldddd", Encoding::Raw, 1, 'u'),
            ("ULLdddd", Encoding::Raw, 4, 'd'),
            ("8888aaaa", Encoding::Hex, 5, 'a'),
            ("DDDD\nDDDD", Encoding::Raw, 5, '\n'),
            ("ULLD…", Encoding::Raw, 5, '…'),
            ("AAAA 01?", Encoding::Hex, 8, '?'),
            ("AAAA\n01", Encoding::Hex, 5, '\n'),
            ("aaaa 8b", Encoding::Hex, 1, 'a'),
            ("𤆻𤆻?𤆻", Encoding::Base65536, 3, '?'),
            ("𤆻௨", Encoding::Base65536, 2, '௨'),
            ("\n௨ටໃ-ݹ", Encoding::Base2048, 5, '-'),
        ] {
            let error = ReplayError::Character {
                encoding,
                position,
                character,
            };
            assert_eq!(decode(text), Err(error), "{text:?}");
        }
        assert_eq!(
            message("ulldddd"),
            "character 1, 'u', is not valid in a replay: the text looks like raw, which contains \
             only the capital letters U, L, D and R"
        );
    }

    #[test]
    fn text_after_an_ending_is_rejected() {
        let (encoding, position) = (Encoding::Base65536, 2);
        let error = ReplayError::AfterEnding {
            encoding,
            position,
            character: 'ᔻ',
        };
        assert_eq!(decode("𤆻ᔻ𤆻"), Err(error));
        let (encoding, position) = (Encoding::Base2048, 3);
        let error = ReplayError::AfterEnding {
            encoding,
            position,
            character: '7',
        };
        assert_eq!(decode("௨ට7ໃ"), Err(error));
    }

    #[test]
    fn unused_bits_must_be_ones() {
        let keys = keys("DDDRUDDDLLDRRRDDUDDDDDDD");
        let text = encode(&keys, Encoding::Base2048);
        let cut: String = text.chars().take(2).collect();
        let character = cut.chars().last().unwrap();
        assert_eq!(
            decode(&cut),
            Err(ReplayError::Padding {
                position: 2,
                character
            })
        );
    }

    #[test]
    fn names_are_parsed_ignoring_case() {
        for encoding in Encoding::ALL {
            assert_eq!(encoding.to_string().parse(), Ok(encoding));
            assert_eq!(encoding.name().to_uppercase().parse(), Ok(encoding));
        }
        let error = "base64".parse::<Encoding>().unwrap_err();
        assert!(error.to_string().contains("\"base64\""));
    }

    fn any_keys() -> impl Strategy<Value = Vec<Key>> {
        // Games contain both short and long runs.
        let run = (0u8..4, prop_oneof![1usize..4, 1usize..20]);
        prop::collection::vec(run, 1..60).prop_map(|runs| {
            runs.into_iter()
                .flat_map(|(code, n)| std::iter::repeat_n(key(code), n))
                .collect()
        })
    }

    /// Generates texts of characters that are valid in some encoding. Such characters are rare in
    /// arbitrary texts.
    fn plausible_text() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            prop::char::range('\u{38}', '\u{1060}'),
            prop::char::range('\u{1400}', '\u{3500}'),
            prop::char::range('\u{20000}', '\u{28600}'),
            prop::sample::select("01234567ULDRAF# \n8a".chars().collect::<Vec<_>>()),
        ];
        prop::collection::vec(character, 0..30).prop_map(|text| text.into_iter().collect())
    }

    proptest! {
        #[test]
        fn keys_round_trip(keys in any_keys()) {
            for encoding in Encoding::ALL {
                let text = encode(&keys, encoding);
                let decoded = encoding.decode(&text).unwrap();
                prop_assert_eq!(&decoded[..keys.len()], &keys[..]);
                let padding = match encoding {
                    Encoding::Raw => None,
                    Encoding::Hex => Some(Key::Down),
                    Encoding::Base65536 | Encoding::Base2048 => Some(Key::Left),
                };
                let more = &decoded[keys.len()..];
                prop_assert!(more.is_empty() || more == padding.as_slice());
                if !text.is_ascii() {
                    prop_assert_eq!(decode(&text), Ok((decoded, encoding)));
                }
            }
        }

        #[test]
        fn decoding_any_text_does_not_panic(text in any::<String>()) {
            let _ = decode(&text);
        }

        #[test]
        fn decoded_keys_round_trip(text in plausible_text()) {
            for encoding in Encoding::ALL {
                if let Ok(keys) = encoding.decode(&text) {
                    // `encode` may combine keys into longer runs and therefore need padding.
                    let again = encoding.decode(&encode(&keys, encoding)).unwrap();
                    prop_assert_eq!(&again[..keys.len()], &keys[..]);
                }
            }
            if let Err(error) = decode(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
