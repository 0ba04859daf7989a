//! Command-line options for games of Nintendo Tetris.

use super::OptionError;
use crate::nes::{GameRules, LearningSettings, Widths};
use clap::ValueEnum;
use hatebeam_tetris::nes::{ARTICLE_GAME_LENGTH, ArticleSets, Cartridge, Transitions};
use hatebeam_tetris::{Piece, Rng};
use std::path::PathBuf;

/// Maximum number of rows that the pieces of a game can fill. The last piece is only a preview and is never placed.
const MOST_LINES: i64 = (ARTICLE_GAME_LENGTH as i64 - 1) * 4 / 10;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GeneratorName {
    Article,
    Cartridge,
}

/// Options for the pieces to print.
#[derive(Debug, clap::Args)]
pub struct NesPiecesOptions {
    #[command(flatten)]
    pieces: Source,
    /// Number of pieces per game; at most 1825 with `article`
    #[arg(long, value_name = "N", default_value_t = ARTICLE_GAME_LENGTH as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    count: u32,
    /// Frames before each piece with `cartridge`, at most 65535 [default: a random number from 20 to 60]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=65_535))]
    frames: Option<u32>,
}

impl NesPiecesOptions {
    /// Returns an iterator over the games, which generates the pieces of each as letters. Returns an error if the
    /// generator has fewer pieces per game or does not accept the seed.
    pub fn lines(&self) -> Result<impl Iterator<Item = String>, OptionError> {
        let count = self.count as usize;
        let is_article = matches!(self.pieces.generator, GeneratorName::Article);
        if is_article && count > ARTICLE_GAME_LENGTH {
            return Err(OptionError::TooManyPieces);
        }
        let sets = self.pieces.sets(count, self.frames)?;
        Ok(sets.map(|pieces| pieces.into_iter().map(Piece::letter).collect()))
    }
}

/// Options for learning the weights of the search `learned`.
#[derive(Debug, clap::Args)]
pub struct NesLearnOptions {
    /// Folder for the results; learning that the folder already contains is resumed
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = LearningSettings::BUILT_IN.games)]
    games: u64,
    /// Seed of the pieces
    #[arg(long, value_name = "N", default_value_t = LearningSettings::BUILT_IN.seed)]
    seed: u64,
}

impl NesLearnOptions {
    /// Returns the extent of learning.
    pub fn settings(&self) -> LearningSettings {
        LearningSettings {
            seed: self.seed,
            games: self.games,
        }
    }
}

/// Options for the rules and pieces of games, and for the size of the search.
#[derive(Debug, clap::Args)]
pub struct NesOptions {
    /// Rows of the board: 20, 22 (two more rows at the top), or 20+2 (cells that lock in these two rows disappear)
    #[arg(long, value_name = "ROWS", default_value = "20", value_parser = ["20", "22", "20+2"])]
    rows: String,
    /// Level at which a game starts
    #[arg(long, value_name = "N", default_value_t = GameRules::ARTICLE.start_level)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=29))]
    level: u32,
    /// Stop a game when this many rows have been cleared; at most 729, because a game has 1825 pieces
    #[arg(long, value_name = "N", default_value_t = GameRules::ARTICLE.stop_lines)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=MOST_LINES))]
    stop_lines: u32,
    /// Let pieces fall at the speed of the level; a key can be pressed in every other frame
    #[arg(long)]
    gravity: bool,
    /// Widths and depth of `branching` (placements of the current piece, placements of the other pieces, unknown pieces)
    /// [default: 3/5/2] or `learned` (pairs of placements of the known pieces, placements of the unknown pieces except
    /// the last one, unknown pieces) [default: 5/2/2]
    #[arg(long, value_name = "N/N/N")]
    pub widths: Option<Widths>,
    #[command(flatten)]
    pieces: Source,
}

impl NesOptions {
    /// Returns the rules of the games.
    pub fn rules(&self) -> Result<GameRules, OptionError> {
        Ok(GameRules {
            rows: self.rows.parse()?,
            start_level: self.level,
            stop_lines: self.stop_lines,
            gravity: self.gravity,
            transitions: match self.pieces.generator {
                GeneratorName::Article => Transitions::ARTICLE,
                GeneratorName::Cartridge => Transitions::CARTRIDGE,
            },
        })
    }

    /// Returns the pieces of each game, or an error if the generator does not accept the seed.
    pub fn sets(&self) -> Result<Vec<Vec<Piece>>, OptionError> {
        Ok(self.pieces.sets(ARTICLE_GAME_LENGTH, None)?.collect())
    }
}

#[derive(Debug, clap::Args)]
struct Source {
    /// Generator of the pieces
    #[arg(long, value_enum, default_value_t = GeneratorName::Article)]
    generator: GeneratorName,
    /// Seed of the generator; at most 4294967295 with `article`
    #[arg(long, value_name = "N", default_value_t = 205)]
    seed: u64,
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 150)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    games: u32,
}

impl Source {
    /// Returns an iterator that generates the pieces of each game, because all games together can exceed the memory.
    fn sets(
        &self,
        count: usize,
        frames: Option<u32>,
    ) -> Result<impl Iterator<Item = Vec<Piece>> + use<>, OptionError> {
        let mut game: Box<dyn FnMut() -> Vec<Piece>> = match self.generator {
            GeneratorName::Article => {
                let seed = u32::try_from(self.seed).map_err(|_| OptionError::ArticleSeed)?;
                let mut sets = ArticleSets::new(seed);
                Box::new(move || sets.game().into_iter().take(count).collect())
            }
            GeneratorName::Cartridge => {
                let mut cartridge = Cartridge::from_seed(self.seed);
                let mut rng = Rng::new(self.seed);
                Box::new(move || cartridge.game(count, frames, &mut rng))
            }
        };
        Ok((0..self.games).map(move |_| game()))
    }
}
