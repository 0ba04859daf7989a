//! Command-line options for perfect clears.

use super::{OptionError, read_text};
use crate::GameRecord;
use crate::pc::{BoardTable, PcFinder, StreakRules};
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField, parse_field};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Options for the field and the movement of pieces.
#[derive(Debug, clap::Args)]
pub struct FieldOptions {
    /// Rows of the field from top to bottom, such as XXXX______/XXXXXX____ [default: empty]
    #[arg(
        long,
        value_name = "ROWS",
        default_value = "",
        hide_default_value = true
    )]
    field: String,
    /// Number of rows and movement of pieces.
    #[command(flatten)]
    pub rules: RulesOptions,
}

/// Options for the number of rows to clear and the movement of pieces.
#[derive(Debug, clap::Args)]
pub struct RulesOptions {
    /// Number of rows to clear, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub lines: usize,
    /// Kick table: nokick, srs, srs+180j (Jstris), srs+180t, srsplus (TETR.IO), or a kick file of solution-finder
    #[arg(long, value_name = "TABLE", default_value = "srs")]
    pub kicks: String,
    /// Move and turn pieces only above the pile, and then let them fall straight down
    #[arg(long)]
    hard_drop: bool,
}

impl FieldOptions {
    /// Returns the field.
    pub fn field(&self) -> Result<LowField, OptionError> {
        let rows = self.field.split('/').filter(|row| !row.is_empty());
        let field = parse_field(&rows.collect::<Vec<_>>()).map_err(OptionError::Rows)?;
        LowField::of(&field, self.rules.lines).map_err(OptionError::Field)
    }
}

impl RulesOptions {
    /// Returns the built-in kick table with the name in `--kicks`, or else reads the kick file with this path.
    pub fn kicks(&self) -> Result<KickTable, OptionError> {
        let error = match self.kicks.parse::<Kicks>() {
            Ok(kicks) => return Ok(KickTable::built_in(kicks)),
            Err(error) => error,
        };
        match read_text(&self.kicks) {
            Ok(text) => KickTable::parse(&text).map_err(|error| OptionError::KickFile {
                file: self.kicks.clone(),
                error,
            }),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Err(error.into()),
            Err(error) => Err(OptionError::ReadKicks {
                file: self.kicks.clone(),
                error,
            }),
        }
    }

    /// Returns the drop mode.
    pub fn drop_mode(&self) -> DropMode {
        if self.hard_drop {
            DropMode::Hard
        } else {
            DropMode::Soft
        }
    }
}

/// Option for the table of reachable boards.
#[derive(Debug, clap::Args)]
pub struct TableOption {
    /// Table made by `hatebeam pc table`, which makes the computation faster
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

impl TableOption {
    /// Reads the table.
    pub fn read(&self) -> Result<Option<BoardTable>, OptionError> {
        let Some(path) = &self.table else {
            return Ok(None);
        };
        let error = |error| OptionError::Table {
            file: path.display().to_string(),
            error,
        };
        let file = File::open(path).map_err(|cause| error(cause.into()))?;
        BoardTable::read(file).map(Some).map_err(error)
    }

    /// Creates a finder with these rules, and with the table if one is given.
    pub fn finder(&self, rules: &RulesOptions) -> Result<PcFinder, OptionError> {
        let mode = rules.drop_mode();
        let finder = PcFinder::new(&rules.kicks()?, mode);
        let Some(table) = self.read()? else {
            return Ok(finder);
        };
        table.check_rules(&rules.kicks, mode)?;
        Ok(finder.with_table(table))
    }
}

/// Options for games of consecutive perfect clears.
#[derive(Debug, clap::Args)]
pub struct StreakOptions {
    /// End a game after this number of perfect clears
    #[arg(long, value_name = "N", default_value = "10")]
    clears: NonZeroUsize,
    /// Number of pieces that the player sees after the current piece; at least 4 with four rows
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    previews: u8,
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    games: u32,
    /// Seed of the bags
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    rules: RulesOptions,
    #[command(flatten)]
    table: TableOption,
}

/// Games of consecutive perfect clears that are ready to be played.
#[derive(Debug)]
pub struct StreakGames {
    rules: StreakRules,
    finder: PcFinder,
    seed: u64,
    /// Number of games.
    pub games: usize,
    /// Number of perfect clears after which a game ends.
    pub clears: usize,
}

impl StreakOptions {
    /// Checks the options, and reads the table.
    pub fn games(&self) -> Result<StreakGames, OptionError> {
        let clears = self.clears.get();
        Ok(StreakGames {
            rules: StreakRules::new(self.rules.lines, self.previews.into(), clears)?,
            finder: self.table.finder(&self.rules)?,
            seed: self.seed,
            games: self.games as usize,
            clears,
        })
    }
}

impl StreakGames {
    /// Plays the games on `threads` threads, and calls `on_game` after each game. If it returns `false`, no other game
    /// begins.
    pub fn play(&self, threads: usize, on_game: impl Fn() -> bool + Sync) -> Vec<GameRecord> {
        let games = self
            .rules
            .play_games(&self.finder, self.seed, self.games, threads, on_game);
        games.expect("the rules give enough pieces")
    }
}
