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
mod tuning;

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
pub use tuning::{BeamObjective, TunedWeight, TuningError};

/// The recipe of the network `network`, which is part of the program, as TOML.
pub const SHIPPED_RECIPE: &str = include_str!("../recipes/shipped.toml");

/// Help of `hatebeam train`.
pub const TRAIN_HELP: &str = "\
Each generation searches some beams with the network so far and with the evaluator `patterns`, labels every well with the
number of pieces that its descendants stayed in the beam, and trains the network on these wells. Nothing else is learned
from. After every generation the folder contains

  checkpoint    what is needed to resume, also after a crash
  samples-N     wells of the last generations
  network       the network, for `hatebeam run --evaluator FOLDER/network`
  report.html   curves of the training

The same recipe gives the same network with any number of threads. `--recipe` also accepts a network: its header contains
its recipe. To make that network again, train as many generations as its header says.

Columns: `own` and `patterns` are the most lines of a beam in this generation, `new loss` is the loss on wells that the
network has not seen, `bias` is the mean of prediction minus target for them, `held out` is the loss after the training on
wells that it never sees. `exam` is the median number of lines over the widths of the examination.

Examples:
  hatebeam train my-network
  hatebeam train my-network --generations 50
  hatebeam train again --recipe my-network/network --generations 50
  hatebeam run --width 10k --evaluator my-network/network --quiescence first";
