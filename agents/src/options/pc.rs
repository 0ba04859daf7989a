//! Command-line options for perfect clears.

use super::OptionError;
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField, parse_field};
use std::fs;

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
        match fs::read_to_string(&self.kicks) {
            Ok(text) => KickTable::parse(&text).map_err(|error| OptionError::KickFile {
                file: self.kicks.clone(),
                error,
            }),
            Err(_) => Err(error.into()),
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
