//! Command-line options, and their conversion to rules, fields and pieces.

mod drop;
mod nes;
mod pc;

pub use drop::DropOptions;
pub use nes::{NesLearnOptions, NesOptions, NesPiecesOptions};
pub use pc::{FieldOptions, RulesOptions, StreakGames, StreakOptions, TableOption};

use crate::pc::{PcError, TableError};
use hatebeam_tetris::FieldError;
use hatebeam_tetris::drop::{DropError, SetError};
use hatebeam_tetris::nes::{ARTICLE_GAME_LENGTH, BoardError};
use hatebeam_tetris::srs::{KickError, LowFieldError};
use std::io;
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

#[cfg(test)]
mod tests {
    use super::{NesPiecesOptions, StreakOptions};
    use clap::Parser;

    #[derive(Parser)]
    enum Options {
        Pieces(NesPiecesOptions),
        Streak(StreakOptions),
    }

    #[test]
    fn numbers_that_exhaust_memory_are_refused() {
        for (command, option, most) in [
            ("pieces", "--count", "1000000"),
            ("streak", "--previews", "100"),
        ] {
            let parse = |number: &str| Options::try_parse_from(["", command, option, number]);
            assert!(parse(most).is_ok());
            for number in [&format!("{most}1"), "18446744073709551615"] {
                let error = parse(number).err().unwrap().to_string();
                assert!(error.contains(option), "{error}");
            }
        }
    }
}
