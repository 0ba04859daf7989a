#![doc = include_str!("../README.md")]

mod average;
mod beam;
mod exam;
mod folder;
mod games;
mod labels;
mod model;
mod random;
mod recipe;
mod report;
mod trainer;

pub use beam::{Beam, BeamSettings, Depth, Noise, run_beam};
pub use exam::{ExamResult, examine};
pub use folder::{NETWORK, TrainingFolder};
pub use games::{PUBLIC_GAMES, PublicGame};
pub use labels::{Sample, label_beam, lifetimes};
pub use model::{Batch, Model, TrainStats};
pub use recipe::{
    BeamRecipe, ExamRecipe, GameRecipe, Player, Publish, Recipe, RecipeError, Stage, Start,
};
pub use report::TABLE_HEADER;
pub use trainer::{BeamRecord, GenerationRecord, TrainError, Trainer};

/// The recipe of the network `network`, which is part of the program, as TOML.
pub const SHIPPED_RECIPE: &str = include_str!("../recipes/shipped.toml");
