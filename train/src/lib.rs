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

/// Additional help text for `hatebeam train`.
pub const TRAIN_HELP: &str = "\
Each generation runs beam searches with the current network and with the other evaluators of the recipe. It labels every
well with a target that depends on how long the well's descendants stay in the beam, and trains the network on samples of
these wells. The network also learns from games and from short beam searches if the recipe names them. After every generation,
the folder contains these files:

  checkpoint    state from which the training can resume
  samples-N     labelled wells of generation N, for recent generations
  network       the network, for `hatebeam run --evaluator FOLDER/network`
  own-games.txt replays of the own games, if the recipe keeps own games
  report.html   report with the curves of the training
  lock          locked while a training runs, so that a second one cannot change the folder

The same recipe gives the same network with any number of threads. `--recipe` also accepts a network file, because its
header contains the recipe. To reproduce that network, train the number of generations in the header.

Columns: `own` and `others` are the maximum numbers of lines cleared by beams with the network and with other evaluators.
`new loss` and `bias` are the mean loss and the mean of prediction minus target on held-out wells, before the training
of the generation. `held out` is the mean loss on these wells after the training. Held-out wells are not used for
training. If a generation has none, the columns contain `-`, and the JSON object contains null. `exam` is the median number
of lines cleared over the widths of the examination. `longest` is the number of pieces in the longest own game, if the recipe
keeps own games.

Examples:
  hatebeam train my-network
  hatebeam train my-network --generations 50
  hatebeam train again --recipe my-network/network --generations 50
  hatebeam run --width 10k --evaluator my-network/network --quiescence first";
