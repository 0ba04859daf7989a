#![doc = include_str!("../README.md")]

mod average;
mod beam;
mod exact;
mod exam;
mod folder;
mod games;
mod labels;
mod lookahead;
mod model;
mod random;
mod recipe;
mod report;
mod threats;
mod trainer;
mod tuning;
mod workers;

pub use beam::{Beam, BeamSettings, Depth, Noise, Scorer, run_beam};
pub use exact::{ExactGame, exact_game};
pub use exam::{ExamResult, examine};
pub use folder::{NETWORK, TrainingFolder};
pub use games::{BuiltInGame, OWN_GAMES, PUBLIC_GAMES};
pub use labels::{Sample, label_beam, lifetimes};
pub use lookahead::estimated_pieces;
pub use recipe::{
    BeamRecipe, ExamRecipe, GameRecipe, Lookahead, OwnGamesRecipe, Player, Publish, Recipe,
    RecipeError, Stage, Start,
};
pub use report::TABLE_HEADER;
pub use threats::has_threat;
pub use trainer::{BeamRecord, GenerationRecord, TrainError, Trainer};
pub use tuning::{BeamObjective, TuningError};

/// Recipe of the built-in network `network`, as TOML.
pub const SHIPPED_RECIPE: &str = include_str!("../recipes/shipped.toml");
