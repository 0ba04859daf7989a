//! Command-line options, and their conversion to rules, fields and pieces.

mod drop;
mod nes;
mod pc;

pub use drop::DropOptions;
pub use nes::{NesLearnOptions, NesOptions, NesPiecesOptions};
pub use pc::{FieldOptions, RulesOptions, StreakGames, StreakOptions, TableOption};

use crate::pc::{PcError, TableError};
use crate::weights::{MAX_FILE_BYTES, read_limited};
use hatebeam_tetris::FieldError;
use hatebeam_tetris::drop::{DropError, SetError};
use hatebeam_tetris::nes::{ARTICLE_GAME_LENGTH, BoardError};
use hatebeam_tetris::srs::{KickError, LowFieldError};
use std::io;
use std::path::Path;
use thiserror::Error;

/// Error for an invalid option.
#[derive(Debug, Error)]
pub enum OptionError {
    /// The file of a piece set cannot be read.
    #[error("cannot read the piece set {file}: use standard, small or a file")]
    ReadPieces {
        /// Name of the file.
        file: String,
        /// Error from the operating system.
        #[source]
        error: io::Error,
    },
    /// The file of a piece set is invalid.
    #[error("{file}")]
    Pieces {
        /// Name of the file.
        file: String,
        /// Error in the file.
        #[source]
        error: SetError,
    },
    /// The game of dropped pieces cannot be created.
    #[error(transparent)]
    Drop(#[from] DropError),
    /// The rule set for the rows of a board is unknown.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The generator of the article has fewer pieces per game.
    #[error("--count is at most {ARTICLE_GAME_LENGTH} with --generator article")]
    TooManyPieces,
    /// The generator of the article has no such seed.
    #[error("--seed is at most {} with --generator article", u32::MAX)]
    ArticleSeed,
    /// The rows of a field are invalid.
    #[error("invalid --field")]
    Rows(#[source] FieldError),
    /// The field cannot be cleared in the given number of rows.
    #[error("invalid --field")]
    Field(#[source] LowFieldError),
    /// The number of rows or of previews is out of range.
    #[error(transparent)]
    Streak(#[from] PcError),
    /// The table of perfect clears cannot be read.
    #[error("{file}")]
    Table {
        /// Name of the file.
        file: String,
        /// Error from the operating system, or in the file.
        #[source]
        error: TableError,
    },
    /// The table of perfect clears is for other rules.
    #[error(transparent)]
    TableRules(#[from] TableError),
    /// The kick table is unknown.
    #[error(transparent)]
    Kicks(#[from] KickError),
    /// The file of a kick table cannot be read.
    #[error("cannot read the kick file {file}")]
    ReadKicks {
        /// Name of the file.
        file: String,
        /// Error from the operating system.
        #[source]
        error: io::Error,
    },
    /// The file of a kick table is invalid.
    #[error("{file}")]
    KickFile {
        /// Name of the file.
        file: String,
        /// Error in the file.
        #[source]
        error: KickError,
    },
}

/// Returns the text of a file with at most [`MAX_FILE_BYTES`].
fn read_text(file: &str) -> io::Result<String> {
    let bytes = read_limited(Path::new(file))?.ok_or_else(|| {
        let limit = MAX_FILE_BYTES >> 10;
        let text = format!("the file is too large: the limit is {limit} KiB");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    })?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::{NesOptions, NesPiecesOptions, OptionError, StreakOptions};
    use clap::Parser;
    use std::io::ErrorKind;

    #[derive(Parser)]
    enum Options {
        Games(NesOptions),
        Pieces(NesPiecesOptions),
        Streak(StreakOptions),
    }

    #[test]
    fn numbers_that_exhaust_memory_are_refused() {
        for (command, option, most) in [
            ("pieces", "--count", "1000000"),
            ("pieces", "--frames", "65535"),
            ("streak", "--previews", "100"),
            ("streak", "--games", "1000000"),
        ] {
            let parse = |number: &str| Options::try_parse_from(["", command, option, number]);
            assert!(parse(most).is_ok());
            for number in [&format!("{most}1"), "18446744073709551615"] {
                let error = parse(number).err().unwrap().to_string();
                assert!(error.contains(option), "{error}");
            }
        }
    }

    #[test]
    fn games_cannot_stop_at_more_rows_than_their_pieces_fill() {
        let parse = |lines: &str| Options::try_parse_from(["", "games", "--stop-lines", lines]);
        let Ok(Options::Games(games)) = parse("729") else {
            panic!("1824 pieces fill 729 rows");
        };
        assert_eq!(games.rules().unwrap().stop_lines, 729);
        let error = parse("730").err().unwrap().to_string();
        assert!(error.contains("730 is not in 0..=729"), "{error}");
    }

    #[test]
    fn pieces_are_generated_game_by_game() {
        let most = "pieces --generator cartridge --games 1000000 --count 1000000 --frames 1";
        let most = Options::try_parse_from([""].into_iter().chain(most.split(' ')));
        let Ok(Options::Pieces(most)) = most else {
            panic!("the numbers are not too large");
        };
        let first = most.lines().unwrap().next();
        assert_eq!(first.unwrap().len(), 1_000_000);
    }

    #[test]
    fn article_refuses_seeds_that_it_would_truncate() {
        let lines = |generator: &str, seed: &str| {
            let args = ["", "pieces", "--generator", generator, "--seed", seed];
            match Options::try_parse_from(args) {
                Ok(Options::Pieces(pieces)) => pieces.lines().map(Iterator::count),
                _ => panic!("every seed is a number"),
            }
        };
        assert_eq!(lines("article", "4294967295").unwrap(), 150);
        assert_eq!(lines("cartridge", "4294967296").unwrap(), 150);
        let refused = lines("article", "4294967296");
        assert!(matches!(refused, Err(OptionError::ArticleSeed)));
    }

    #[test]
    fn kick_file_that_cannot_be_read_is_reported() {
        let kicks = |name: &str| {
            let args = ["", "streak", "--kicks", name];
            let Ok(Options::Streak(streak)) = Options::try_parse_from(args) else {
                panic!("every name can be a file");
            };
            streak.games().map(|_| ()).unwrap_err()
        };
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        assert!(matches!(
            kicks(missing.to_str().unwrap()),
            OptionError::Kicks(_)
        ));
        let large = folder.path().join("large");
        std::fs::write(&large, " ".repeat(1 << 20)).unwrap();
        for (path, kind) in [
            (folder.path(), ErrorKind::IsADirectory),
            (&large, ErrorKind::FileTooLarge),
        ] {
            let error = kicks(path.to_str().unwrap());
            let OptionError::ReadKicks { error, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(error.kind(), kind);
        }
    }
}
