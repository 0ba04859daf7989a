//! The files of a game, and saving them anywhere.

use crate::facts::Facts;
use crate::files::{Format, known_stem, stem};
use crate::film::Film;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A file of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameFile {
    /// Format of the file.
    pub format: Format,
    /// Name of the file.
    pub name: String,
    /// Contents of the file.
    pub text: String,
}

/// A game and the facts of its run, from which all files are made.
#[derive(Clone, Debug)]
pub struct GameFiles {
    /// The game.
    pub film: Film,
    /// Facts of the run.
    pub facts: Facts,
    /// Name of the files without extension.
    pub stem: String,
}

impl GameFiles {
    /// Returns the files of a game. If `existing` has files of this game, their names are used again; otherwise the names
    /// contain `date`.
    pub fn new<'a>(
        film: Film,
        facts: Facts,
        existing: impl Iterator<Item = &'a str>,
        date: &str,
    ) -> GameFiles {
        let known = known_stem(&film, facts.width, existing);
        let stem = known.unwrap_or_else(|| stem(&film, facts.width, date));
        GameFiles { film, facts, stem }
    }

    /// Returns the file in this format.
    pub fn file(&self, format: Format) -> GameFile {
        GameFile {
            format,
            name: format!("{}.{}", self.stem, format.extension()),
            text: format.render(&self.film, &self.facts),
        }
    }

    /// Returns the files in all formats, the replay first.
    pub fn all(&self) -> Vec<GameFile> {
        Format::ALL.map(|format| self.file(format)).into()
    }
}

/// Where files are saved: a folder, an object store.
pub trait FileSink: Send {
    /// Error of saving a file.
    type Error: Send;

    /// Saves a file.
    fn save(&mut self, file: &GameFile) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Reports a file that was skipped because it could not be saved.
    fn skip(&mut self, file: &GameFile, error: Self::Error);
}

/// Saves files in their order, and returns the names of the saved ones. The replay must be saved; other files that cannot
/// be saved are skipped.
///
/// # Errors
/// The error of saving the replay.
pub async fn save_files<S: FileSink>(
    files: &[GameFile],
    sink: &mut S,
) -> Result<Vec<String>, S::Error> {
    let mut names = Vec::new();
    for file in files {
        match sink.save(file).await {
            Ok(()) => names.push(file.name.clone()),
            Err(error) if file.format != Format::Base2048 => sink.skip(file, error),
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// Does the same as [`save_files`] with a sink that blocks: the futures of its `save` never wait.
///
/// # Errors
/// As for [`save_files`].
pub fn save_files_blocking<S: FileSink>(
    files: &[GameFile],
    sink: &mut S,
) -> Result<Vec<String>, S::Error> {
    let saving = pin!(save_files(files, sink));
    match saving.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(saved) => saved,
        Poll::Pending => unreachable!("a sink that blocks does not wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Enemy, Geometry};

    const RECORD: &str = include_str!("../../examples/david-and-felipe-148.txt");

    fn files(existing: &[&str]) -> GameFiles {
        let film = Film::of(RECORD, Enemy::Hatetris, Geometry::STANDARD).unwrap();
        let facts = Facts {
            run: "r".to_owned(),
            width: 10,
            evaluator: "patterns",
            quiescence: "off",
            spec: "{}".to_owned(),
            geometry: Geometry::STANDARD,
            end: "searched to the end",
            depths: Vec::new(),
            scores: None,
        };
        GameFiles::new(film, facts, existing.iter().copied(), "2026-11-21")
    }

    #[test]
    fn names_of_existing_files_are_used_again() {
        let new = files(&[]);
        assert!(new.stem.ends_with("-10-wide-2026-11-21"), "{}", new.stem);
        let existing = new.stem.replace("2026-11-21", "2026-01-31");
        let again = files(&[&format!("{existing}.txt")]);
        assert_eq!(again.stem, existing);
        let names: Vec<String> = again.all().into_iter().map(|file| file.name).collect();
        let extensions = ["txt", "raw.txt", "json", "svg", "html"];
        assert_eq!(
            names,
            extensions.map(|extension| format!("{existing}.{extension}"))
        );
    }

    /// Refuses one format.
    struct Refusing {
        refused: Format,
        skipped: Vec<Format>,
    }

    impl FileSink for Refusing {
        type Error = &'static str;

        async fn save(&mut self, file: &GameFile) -> Result<(), &'static str> {
            if file.format == self.refused {
                return Err("disk full");
            }
            Ok(())
        }

        fn skip(&mut self, file: &GameFile, _: &'static str) {
            self.skipped.push(file.format);
        }
    }

    #[test]
    fn only_the_replay_must_be_saved() {
        let files = files(&[]).all();
        let save_except = |refused: Format| {
            let skipped = Vec::new();
            let mut sink = Refusing { refused, skipped };
            let saved = save_files_blocking(&files, &mut sink);
            (saved, sink.skipped)
        };
        let (saved, skipped) = save_except(Format::Svg);
        assert_eq!(
            (saved.unwrap().len(), skipped),
            (files.len() - 1, vec![Format::Svg])
        );
        let (saved, skipped) = save_except(Format::Base2048);
        assert_eq!((saved, skipped), (Err("disk full"), Vec::new()));
    }
}
