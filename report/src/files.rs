//! The file formats for a game, and the names of its files.

use crate::facts::Facts;
use crate::film::Film;
use crate::page::page;
use crate::picture::picture;
use std::str::FromStr;
use thiserror::Error;

/// A file format for a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The keys in Base2048, the text format of the original game.
    Base2048,
    /// The keys, one letter per key.
    Raw,
    /// The JSON of a [`Film`], which contains every well and piece.
    Json,
    /// A picture of the game.
    Svg,
    /// An HTML page about the run, with its specification, plots and the game.
    Html,
}

/// Error for an unknown format name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown format {0:?}: choose base2048, raw, json, svg or html")]
pub struct UnknownFormat(pub String);

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [
        Format::Base2048,
        Format::Raw,
        Format::Json,
        Format::Svg,
        Format::Html,
    ];

    /// Returns the name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Base2048 => "base2048",
            Format::Raw => "raw",
            Format::Json => "json",
            Format::Svg => "svg",
            Format::Html => "html",
        }
    }

    /// Returns the extension of the format's files, without the leading dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Base2048 => "txt",
            Format::Raw => "raw.txt",
            _ => self.name(),
        }
    }

    /// Returns the contents of the file. The same input always gives the same bytes.
    pub fn render(self, film: &Film, facts: &Facts) -> String {
        match self {
            Format::Base2048 => film.base2048.clone() + "\n",
            Format::Raw => {
                let keys = film.turns.iter().map(|turn| turn.keys.as_str());
                keys.chain(["\n"]).collect()
            }
            // Serialization cannot fail, because a film contains only numbers, text and lists.
            Format::Json => serde_json::to_string(film).unwrap_or_default() + "\n",
            Format::Svg => picture(film, &facts.about()),
            Format::Html => page(facts, Ok(film)),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let named = |format: &Format| format.name() == name;
        let found = Format::ALL.into_iter().find(named);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Returns the file stem without the date.
fn undated(film: &Film, width: u64) -> String {
    format!(
        "{:05}-lines-{:04}-pieces-{width}-wide-",
        film.score, film.pieces
    )
}

/// Returns the stem of a game's files, which is their name without the extension, such as
/// `00148-lines-0412-pieces-25000000-wide-2026-11-21`. Sorting files by name sorts them by the number of rows cleared.
pub fn stem(film: &Film, width: u64, date: &str) -> String {
    undated(film, width) + date
}

/// Returns the stem of this game's replay file, if `files` contains one. A caller that writes the files again on another
/// day can use this stem to keep the old date in the names.
pub fn known_stem<'a>(
    film: &Film,
    width: u64,
    mut files: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let undated = undated(film, width);
    files.find_map(|file| {
        let stem = file.strip_suffix(".txt")?;
        let date = stem.strip_prefix(&undated)?;
        let is_date = date.len() == 10 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        is_date.then(|| stem.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{facts, film};
    use hatebeam_game::decode;

    #[test]
    fn stem_contains_score_pieces_width_and_date() {
        let film = film();
        let stem = stem(&film, 25_000_000, "2026-11-21");
        let expected = format!(
            "00148-lines-{:04}-pieces-25000000-wide-2026-11-21",
            film.pieces
        );
        assert_eq!(stem, expected);
    }

    #[test]
    fn known_stem_keeps_date_of_existing_replay() {
        let film = film();
        let known = |names: &[&str]| known_stem(&film, 10, names.iter().copied());
        let existing = stem(&film, 10, "2026-01-31");
        let other = stem(&film, 100, "2026-01-31");
        let (text, raw) = (format!("{existing}.txt"), format!("{existing}.raw.txt"));
        assert_eq!(
            known(&[&format!("{other}.txt"), &raw, "x", &text]),
            Some(existing)
        );
        assert_eq!(known(&[&format!("{other}.txt"), &raw, ""]), None);
    }

    #[test]
    fn all_formats_are_deterministic_and_contain_the_same_game() {
        let (film, facts) = (film(), facts(25_000_000));
        let render = |format: Format| {
            let text = format.render(&film, &facts);
            assert_eq!(text, format.render(&film, &facts));
            assert_eq!(format.name().parse(), Ok(format));
            text
        };
        let (keys, _) = decode(&render(Format::Base2048)).unwrap();
        assert_eq!(
            decode(&render(Format::Raw)).unwrap().0[..],
            keys[..film.keys]
        );
        let json: serde_json::Value = serde_json::from_str(&render(Format::Json)).unwrap();
        assert_eq!(json["score"], 148);
        assert_eq!(json["turns"].as_array().unwrap().len(), film.pieces);
        assert!(render(Format::Svg).starts_with("<svg "));
        assert!(render(Format::Html).contains(&film.base2048));
        assert_eq!(
            "pdf".parse::<Format>(),
            Err(UnknownFormat("pdf".to_owned()))
        );
    }
}
