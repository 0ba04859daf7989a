//! The files of a game, and functions that save them in a folder or an object store.

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

/// A game and the facts about its run. The files in all formats are made from them.
#[derive(Clone, Debug)]
pub struct GameFiles {
    /// The game.
    pub film: Film,
    /// Facts about the run.
    pub facts: Facts,
    /// Name of the files without the extension.
    pub stem: String,
}

impl GameFiles {
    /// Creates the files of a game. If `existing` contains the name of this game's replay file, all names get the stem of
    /// that name. Otherwise, all names contain `date`.
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

/// A destination for files, such as a folder or an object store.
pub trait FileSink: Send {
    /// Error returned if a file cannot be saved.
    type Error: Send;

    /// Saves a file.
    fn save(&mut self, file: &GameFile) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Reports a file that could not be saved and is skipped.
    fn skip(&mut self, file: &GameFile, error: Self::Error);
}

/// Saves files in the given order, and returns the names of the saved files. Skips a file that cannot be saved, unless it
/// is the replay.
///
/// # Errors
/// Returns the sink's error if the replay ([`Format::Base2048`]) cannot be saved.
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

/// Saves files like [`save_files`] to a blocking sink, whose `save` returns futures that are never pending.
///
/// # Errors
/// Returns the same errors as [`save_files`].
///
/// # Panics
/// Panics if a future of the sink is pending.
pub fn save_files_blocking<S: FileSink>(
    files: &[GameFile],
    sink: &mut S,
) -> Result<Vec<String>, S::Error> {
    let saving = pin!(save_files(files, sink));
    match saving.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(saved) => saved,
        Poll::Pending => unreachable!("the futures of a blocking sink are never pending"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{facts, film};

    fn files(existing: &[&str]) -> GameFiles {
        GameFiles::new(film(), facts(10), existing.iter().copied(), "2026-11-21")
    }

    #[test]
    fn new_files_keep_the_date_of_existing_files() {
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

    /// A sink that returns an error for files in one format.
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
    fn save_fails_only_if_replay_cannot_be_saved() {
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
