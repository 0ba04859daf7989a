//! Command-line options for games of dropped pieces.

use super::{OptionError, read_text};
use crate::drop::DropRun;
use hatebeam_tetris::drop::{DropGame, GeneratorKind, PieceSet};

/// Options for the number of games, the field, the pieces and the end of a game.
#[derive(Debug, clap::Args)]
pub struct DropOptions {
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    games: u32,
    /// Seed of the pieces and of the agents
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of columns, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 10)]
    width: usize,
    /// Number of rows, 1 to 56
    #[arg(long, value_name = "N", default_value_t = 20)]
    height: usize,
    /// Set of pieces: standard, small (one to four cells), or a file in which # is a cell of a piece and . is empty space
    #[arg(long, value_name = "SET", default_value = "standard")]
    pieces: String,
    /// Draw pieces from bags that contain each piece once, instead of independently
    #[arg(long)]
    bag: bool,
    /// Number of pieces after the current one that an agent knows; only the agent beam uses more than one
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=20))]
    previews: u8,
    /// Stop a game after this many pieces [default: no limit]
    #[arg(long, value_name = "N")]
    max_pieces: Option<u64>,
}

impl DropOptions {
    /// Returns the number of games.
    pub fn games(&self) -> usize {
        self.games as usize
    }

    /// Returns the rules and the seed of the games.
    pub fn rules(&self) -> Result<DropRun, OptionError> {
        Ok(DropRun {
            game: DropGame::new(self.width, self.height, self.piece_set()?)?,
            generator: if self.bag {
                GeneratorKind::Bag
            } else {
                GeneratorKind::Uniform
            },
            seed: self.seed,
            previews: self.previews.into(),
            most_pieces: self.max_pieces.unwrap_or(u64::MAX),
        })
    }

    fn piece_set(&self) -> Result<PieceSet, OptionError> {
        let file = &self.pieces;
        if let Some(set) = PieceSet::built_in(file) {
            return Ok(set);
        }
        let text = read_text(file).map_err(|error| OptionError::ReadPieces {
            file: file.clone(),
            error,
        })?;
        PieceSet::parse(&text).map_err(|error| OptionError::Pieces {
            file: file.clone(),
            error,
        })
    }
}
