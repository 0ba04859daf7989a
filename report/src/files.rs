//! The files of a game, and what they are called.

use crate::facts::Facts;
use crate::film::Film;
use crate::picture::picture;
use crate::report::report;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A form in which a game is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Its keys in Base2048, as the game prints them.
    Base2048,
    /// Its keys as letters.
    Raw,
    /// Every well and piece, as a [`Film`].
    Json,
    /// A picture.
    Svg,
    /// The whole run: what was searched, its plots, and the game.
    Html,
}

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no format is called {0:?}: there are base2048, raw, json, svg and html")]
pub struct UnknownFormat(pub String);

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] = [
        Format::Base2048,
        Format::Raw,
        Format::Json,
        Format::Svg,
        Format::Html,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Base2048 => "base2048",
            Format::Raw => "raw",
            Format::Json => "json",
            Format::Svg => "svg",
            Format::Html => "html",
        }
    }

    /// How names of such files end, after the stem and a dot.
    pub const fn ending(self) -> &'static str {
        match self {
            Format::Base2048 => "txt",
            Format::Raw => "raw.txt",
            _ => self.name(),
        }
    }

    /// What is in the file. The same run gives the same bytes.
    pub fn render(self, film: &Film, facts: &Facts) -> String {
        match self {
            Format::Base2048 => film.base2048.clone() + "\n",
            Format::Raw => {
                let keys = film.turns.iter().map(|turn| turn.keys.as_str());
                keys.chain(["\n"]).collect()
            }
            // Numbers, letters and lists of them can always be written.
            Format::Json => serde_json::to_string(film).unwrap_or_default() + "\n",
            Format::Svg => picture(film, &facts.about()),
            Format::Html => report(facts, Ok(film)),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

/// All of a stem but the date.
fn undated(film: &Film, width: u64) -> String {
    format!(
        "{:05}-lines-{:04}-pieces-{width}-wide-",
        film.score, film.pieces
    )
}

/// What the files of a game are called, but for their endings: `00148-lines-0412-pieces-25000000-wide-2026-11-21`.
/// So they stand in the order of their scores wherever they are listed.
pub fn stem(film: &Film, width: u64, date: &str) -> String {
    undated(film, width) + date
}

/// The stem that files of this game have already, if such a file is among these: written again on another
/// day, they keep their date.
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
    use crate::facts::End;
    use hatebeam_game::{Enemy, Geometry, decode};

    const RECORD: &str = include_str!("../../examples/david-and-felipe-148.txt");

    fn film() -> Film {
        Film::of(RECORD, Enemy::Hatetris, Geometry::STANDARD).unwrap()
    }

    fn facts() -> Facts {
        Facts {
            run: "r".to_owned(),
            width: 25_000_000,
            evaluator: "patterns",
            quiescence: "off",
            spec: "{}".to_owned(),
            geometry: Geometry::STANDARD,
            end: End::Over,
            depths: Vec::new(),
            digest: String::new(),
            stored_bytes: 0,
            scores: None,
        }
    }

    #[test]
    fn names_say_score_pieces_width_and_date() {
        let film = film();
        let stem = stem(&film, 25_000_000, "2026-11-21");
        let expected = format!(
            "00148-lines-{:04}-pieces-25000000-wide-2026-11-21",
            film.pieces
        );
        assert_eq!(stem, expected);
    }

    #[test]
    fn a_game_that_is_there_keeps_its_date() {
        let film = film();
        let known = |names: &[&str]| known_stem(&film, 10, names.iter().copied());
        let there = stem(&film, 10, "2026-01-31");
        let other = stem(&film, 100, "2026-01-31");
        let (text, raw) = (format!("{there}.txt"), format!("{there}.raw.txt"));
        assert_eq!(
            known(&[&format!("{other}.txt"), &raw, "x", &text]),
            Some(there)
        );
        assert_eq!(known(&[&format!("{other}.txt"), &raw, ""]), None);
    }

    #[test]
    fn every_format_is_the_same_game_and_the_same_bytes_each_time() {
        let (film, facts) = (film(), facts());
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
