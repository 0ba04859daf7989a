//! The recipe of a network: all settings of its training. The training consists of generations. Each of them runs beam
//! searches and then trains the network on samples of their wells.

use crate::games::{built_in_games, wells_of_game};
use hatebeam_search::{
    EvaluatorError, EvaluatorKind, EvaluatorSpec, MAX_HEADER_BYTES, Network, NetworkError,
    Quiescence, Weights,
};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use thiserror::Error;

/// Maximum size of a recipe as JSON. The rest of a network's header takes less than 1024 bytes: the version, the generation and
/// a digest.
const MAX_RECIPE_BYTES: usize = MAX_HEADER_BYTES - 1024;
/// Maximum number of beams of a generation.
const MAX_BEAMS: usize = 1 << 16;

/// The settings of a training run. The recipe and the number of generations determine the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Name of the built-in network whose weights are the initial weights. The default is random weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// Stages of the training, in order. The last stage continues until the training ends.
    pub stages: Vec<Stage>,
    /// Maximum number of pieces that a beam places.
    pub pieces: usize,
    /// Maximum number of samples drawn from each beam.
    pub samples: usize,
    /// Number of generations, including the current one, whose samples are kept for training.
    pub buffer: usize,
    /// Number of samples that a generation trains on. If it has fewer new samples, random samples of older generations
    /// are added. If it has more, it trains on all of its new samples.
    pub epoch: usize,
    /// Weight of the previous playing network in the next playing network, from 0 to 1. The playing network scores the
    /// wells of beams. The trained network has the remaining weight.
    pub average: f32,
    /// The generations whose networks are averaged. The mean is examined and published.
    pub publish: Publish,
    /// Number of samples in a batch.
    pub batch: usize,
    /// Learning rates at the beginning and at the end of a generation. Between them, the rate changes linearly.
    pub rate: [f32; 2],
    /// Whether each training well is mirrored with a probability of one half.
    pub mirror: bool,
    /// Whether the network sees which pieces can clear lines. A network that does not see them gains more from the
    /// quiescence search [`Quiescence::First`], which finds them.
    #[serde(skip_serializing_if = "is_true")]
    pub clears: bool,
    /// Whether the beams of generations may contain wells with a [threat](crate::has_threat). Own games tend to keep a threat
    /// for ever, which loses two rows.
    #[serde(skip_serializing_if = "is_true")]
    pub threats: bool,
    /// Games to learn from. If the list is empty and there are no own games, the network learns only from beams.
    pub games: Vec<GameRecipe>,
    /// Own games to learn from. The default is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_games: Option<OwnGamesRecipe>,
    /// Maximum target of a well from a game, in pieces.
    pub game_pieces: usize,
    /// Beams that measure the strength of the network.
    pub exam: ExamRecipe,
}

/// Own games to learn from: the longest games of the beams of all generations so far. If a beam starts inside a game, its
/// game includes the part before the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnGamesRecipe {
    /// Maximum number of games.
    pub keep: usize,
    /// The first own games, each as the name of a built-in game or as a replay of a finished game.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
}

/// A game to learn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameRecipe {
    /// Name of a game that the program contains, or a replay of a finished game.
    pub name: String,
    /// Number of wells to learn from, counted from the start of the game. The default is all wells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
}

/// The generations whose networks are averaged for publication. Before the first of them, the playing network is
/// published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// First generation whose network is part of the mean, counted from 1.
    pub from: u32,
    /// Interval, in generations, between networks that are part of the mean.
    pub every: u32,
}

/// Consecutive generations with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Number of generations.
    pub generations: u32,
    /// Interval, in generations, at which the network gets its initial weights again and older samples are dropped,
    /// beginning with the first generation of the stage; 0 disables this. Own games are kept. A new network combines games
    /// that were found one after another, which the old one does not do after some fifteen generations. The published mean
    /// does not begin again. Beams of the [previous](Player::Previous) network show the new one wells that its own beams do not
    /// find.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reset: u32,
    /// The beams of a generation.
    pub beams: Vec<BeamRecipe>,
    /// Probability that a training well is replaced with its leaf. The leaf is the well whose value the quiescence
    /// search [`Quiescence::First`] returns for the training well. This search takes the maximum over many wells, so it
    /// favours wells that the network overestimates. Training on leaves corrects these values.
    #[serde(default)]
    pub leaves: f64,
    /// Learning rates at the beginning and at the end of a generation. The default is the recipe's `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<[f32; 2]>,
    /// Number of samples drawn from games in each generation, in addition to the samples from beams. No samples are drawn
    /// while there are no games.
    #[serde(default)]
    pub game_samples: usize,
    /// Samples whose targets come from short beam searches, in addition to the samples from beams. The default is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookahead: Option<Lookahead>,
}

/// Samples whose targets come from short beam searches with the playing network, one search for each sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookahead {
    /// Number of samples in each generation.
    pub samples: usize,
    /// Maximum number of random pieces between a well of a beam and the labelled well.
    #[serde(default)]
    pub moves: usize,
    /// Width of a search.
    pub width: usize,
    /// Number of pieces that a search places.
    pub pieces: usize,
    /// Number of wells at the end of a search whose mean estimate is used.
    #[serde(default = "one")]
    pub best: usize,
    /// Factor of the mean estimate, from 0 to 1.
    pub discount: f64,
}

/// Beams of a generation with common settings. The width and the noise of each beam are random. If `start` is `games`,
/// the start of each beam is random too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeamRecipe {
    /// The evaluator that scores wells.
    pub player: Player,
    /// Weights of the player `knewjade`. The default is the published weights. Other players have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// Number of beams. A generation has at most 65,536 beams.
    #[serde(default = "one")]
    pub count: usize,
    /// Minimum and maximum width. The logarithm of the width is drawn uniformly.
    pub widths: [usize; 2],
    /// Quiescence search of the evaluator.
    #[serde(default)]
    pub quiescence: Quiescence,
    /// Factor by which the noise added to the scores is multiplied.
    pub noise: f64,
    /// The well with which a beam starts.
    #[serde(default)]
    pub start: Start,
    /// Minimum and maximum number of pieces between a start and the end of its game. The logarithm of the number is drawn
    /// uniformly. The default is a random well after which its game goes on for at least 150 pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<[usize; 2]>,
    /// Number of own games, the longest first, to which the start belongs. It is only used with `back`. The default is all
    /// games.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<usize>,
    /// Whether the beam applies the loop rule of HATETRIS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub loops: bool,
    /// Maximum number of pieces. The default is the recipe's `pieces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
    /// Whether the beam may return to the game in which it starts. If it reaches a later well of this game with more pieces,
    /// the rest of this game can continue the game of the beam, if HATETRIS allows that. So a beam can make a long game longer
    /// without playing it to its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rejoin: bool,
}

/// The well with which a beam starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The empty well.
    #[default]
    Empty,
    /// A random well from the recipe's games and the own games. Only beams with this start may have the settings `back`,
    /// `longest` and `rejoin`.
    Games,
}

fn one() -> usize {
    1
}

/// Recipes without the setting `reset` are written as before it existed.
fn is_zero(setting: &u32) -> bool {
    *setting == 0
}

/// Recipes without the settings `loops` and `rejoin` are written as before they existed.
fn is_false(setting: &bool) -> bool {
    !*setting
}

/// Recipes without the setting `clears` are written as before it existed.
fn is_true(setting: &bool) -> bool {
    *setting
}

/// An evaluator for the beams of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Player {
    /// The evaluator `patterns`.
    Patterns,
    /// The evaluator `knewjade`, with the weights of the beam.
    Knewjade,
    /// The playing network, which is a moving average of the trained weights.
    Own,
    /// The playing network before the last [reset](Stage::reset). Before the first reset, this is [`Player::Own`].
    Previous,
    /// The built-in network `network`.
    Network,
    /// The built-in network `chains`.
    Chains,
}

/// Settings of an examination: beams without noise that start with the empty well and measure a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExamRecipe {
    /// Interval between examinations, in generations; 0 disables examinations.
    pub every: u32,
    /// Widths of the beams.
    pub widths: Vec<usize>,
    /// Quiescence search of the evaluator.
    pub quiescence: Quiescence,
    /// Maximum number of pieces that a beam places.
    pub pieces: usize,
}

impl Default for ExamRecipe {
    fn default() -> ExamRecipe {
        ExamRecipe {
            every: 1,
            widths: vec![500, 700, 1000, 1400, 2000, 2800, 4000],
            quiescence: Quiescence::Off,
            pieces: 10_000,
        }
    }
}

impl Default for Recipe {
    fn default() -> Recipe {
        let beams = |player, count, noise| BeamRecipe {
            player,
            weights: None,
            count,
            widths: [2000, 8000],
            quiescence: Quiescence::Off,
            noise,
            start: Start::Empty,
            back: None,
            longest: None,
            loops: false,
            pieces: None,
            rejoin: false,
        };
        Recipe {
            seed: 1,
            initial: None,
            stages: vec![Stage {
                generations: 1,
                reset: 0,
                beams: vec![beams(Player::Patterns, 1, 0.5), beams(Player::Own, 2, 1.0)],
                leaves: 0.0,
                rate: None,
                game_samples: 0,
                lookahead: None,
            }],
            pieces: 10_000,
            samples: 150_000,
            buffer: 5,
            epoch: 2_250_000,
            average: 0.7,
            publish: Publish { from: 20, every: 4 },
            batch: 256,
            rate: [1e-3, 2e-4],
            mirror: true,
            clears: true,
            threats: true,
            games: Vec::new(),
            own_games: None,
            game_pieces: 1000,
            exam: ExamRecipe::default(),
        }
    }
}

/// Error in a recipe.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The text is not a valid recipe in TOML.
    // The error is a source, so the message does not contain it.
    #[error(
        "the recipe is not valid TOML with the settings of a recipe, which docs/recipes.md lists"
    )]
    Toml(#[from] toml::de::Error),
    /// The bytes are a network that cannot be read.
    #[error(transparent)]
    NetworkFile(#[from] NetworkError),
    /// The header of a network contains no recipe that this version can read.
    #[error("the recipe in the network's header is not valid: {0}")]
    Header(String),
    /// No built-in game has this name, and this is no replay of a finished game.
    #[error("the recipe names the unknown game {0:?}: give a replay of a finished game, or one of {known}", known = game_names())]
    Game(String),
    /// The program contains no network with this name.
    #[error("the recipe names the unknown network {0:?}: use one of {known}", known = Network::SHIPPED.join(", "))]
    Network(String),
    /// A weight of the player `knewjade` is out of range.
    #[error(transparent)]
    Weights(#[from] EvaluatorError),
    /// The recipe does not fit into the header of a network.
    #[error(
        "the recipe has {0} bytes as JSON, but at most {MAX_RECIPE_BYTES} fit into the header of a network: name fewer games"
    )]
    TooLong(usize),
    /// The recipe uses games but names none.
    #[error("the recipe uses games but names none: add [[games]] or [own_games]")]
    NoGames,
    /// A setting is out of range.
    #[error("`{name}` in the recipe is out of range: {expected}")]
    Range {
        /// Name of the setting.
        name: &'static str,
        /// Remedy that names the allowed range, for example "give 0 to 1".
        expected: &'static str,
    },
}

fn game_names() -> String {
    let names: Vec<&str> = built_in_games().map(|game| game.name).collect();
    names.join(", ")
}

impl From<serde_json::Error> for RecipeError {
    fn from(error: serde_json::Error) -> RecipeError {
        RecipeError::Header(error.to_string())
    }
}

impl Recipe {
    /// Reads a recipe from TOML.
    ///
    /// # Errors
    /// Returns [`RecipeError`] if the text is not a valid recipe.
    pub fn from_toml(text: &str) -> Result<Recipe, RecipeError> {
        let recipe: Recipe = toml::from_str(text)?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Reads a recipe from the bytes of a TOML file, or from the header of a trained network's file.
    ///
    /// # Errors
    /// Returns [`RecipeError`] if the bytes contain no valid recipe.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recipe, RecipeError> {
        match Network::decode(bytes) {
            Ok(network) => Recipe::of_network(&network),
            Err(NetworkError::Magic) => Recipe::from_toml(&String::from_utf8_lossy(bytes)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the recipe in the header of a trained network.
    ///
    /// # Errors
    /// Returns [`RecipeError`] if the header contains no valid recipe.
    pub fn of_network(network: &Network) -> Result<Recipe, RecipeError> {
        #[derive(Deserialize)]
        struct Header {
            recipe: Recipe,
        }
        let header: Header = serde_json::from_str(network.header())?;
        header.recipe.check()?;
        Ok(header.recipe)
    }

    /// Returns the stage that contains a generation. Generations are counted from 1.
    pub fn stage(&self, generation: u32) -> &Stage {
        self.find_stage(generation).0
    }

    /// Returns the stage that contains a generation, and the number of generations before this stage.
    fn find_stage(&self, generation: u32) -> (&Stage, u32) {
        let mut before: u32 = 0;
        let (last, others) = self
            .stages
            .split_last()
            .expect("a valid recipe has a stage");
        for stage in others {
            if generation <= before.saturating_add(stage.generations) {
                return (stage, before);
            }
            before = before.saturating_add(stage.generations);
        }
        (last, before)
    }

    /// Returns whether the network gets its initial weights again before a generation.
    pub(crate) fn resets(&self, generation: u32) -> bool {
        let (stage, before) = self.find_stage(generation);
        generation > 1 && stage.reset > 0 && (generation - before - 1).is_multiple_of(stage.reset)
    }

    /// Returns the generations whose samples are kept after a generation.
    pub(crate) fn buffered(&self, generation: u32) -> RangeInclusive<u32> {
        let first = generation.saturating_sub(self.buffer as u32) + 1;
        let reset = (first..=generation).rfind(|&generation| self.resets(generation));
        reset.unwrap_or(first)..=generation
    }

    fn uses_games(&self) -> bool {
        let starts = |beam: &BeamRecipe| beam.start == Start::Games;
        let uses = |stage: &Stage| stage.game_samples > 0 || stage.beams.iter().any(starts);
        self.stages.iter().any(uses)
    }

    /// Checks the settings and the names of games and of the initial network.
    ///
    /// # Errors
    /// Returns [`RecipeError`] if a setting or a weight is out of range, a game or the initial network is unknown, or games
    /// are used but none is listed.
    pub fn check(&self) -> Result<(), RecipeError> {
        self.check_numbers()?;
        self.check_stages()?;
        let bytes = serde_json::to_string(self)?.len();
        if bytes > MAX_RECIPE_BYTES {
            return Err(RecipeError::TooLong(bytes));
        }
        if let Some(name) = &self.initial
            && Network::shipped(name).is_none()
        {
            return Err(RecipeError::Network(name.clone()));
        }
        let beams = self.stages.iter().flat_map(|stage| &stage.beams);
        for beam in beams.filter(|beam| beam.player == Player::Knewjade) {
            beam.knewjade().check()?;
        }
        let own = self.own_games.iter().flat_map(|own| &own.first);
        for game in self.games.iter().map(|game| &game.name).chain(own) {
            wells_of_game(game)?;
        }
        if self.uses_games() && self.games.is_empty() && self.own_games.is_none() {
            return Err(RecipeError::NoGames);
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), RecipeError> {
        let publish = self.publish.from >= 1 && self.publish.every >= 1;
        let many = |count: usize| (1..=1 << 28).contains(&count);
        let buffer = (1..=1000).contains(&self.buffer);
        let rate = self.rate.into_iter().all(is_share);
        let mut widths = self.exam.widths.iter();
        let exam = widths.all(|width| (1..=1 << 24).contains(width));
        let games = self.games.iter().all(|game| game.pieces != Some(0));
        let mut keep = self.own_games.iter().map(|own| own.keep);
        let keep = keep.all(|keep| (1..=1000).contains(&keep));
        require(is_few(self.pieces), "pieces", "give 1 to 1048576")?;
        require(many(self.samples), "samples", "give 1 to 268435456")?;
        require(many(self.epoch), "epoch", "give 1 to 268435456")?;
        require(publish, "publish", "give at least 1")?;
        require(is_share(self.average), "average", "give 0 to 1")?;
        require(buffer, "buffer", "give 1 to 1000")?;
        require(is_few(self.batch), "batch", "give 1 to 1048576")?;
        require(rate, "rate", "give 0 to 1")?;
        require(exam, "exam.widths", "give 1 to 16777216")?;
        require(is_few(self.exam.pieces), "exam.pieces", "give 1 to 1048576")?;
        require(games, "pieces of a game", "give at least 1")?;
        require(self.game_pieces >= 1, "game_pieces", "give at least 1")?;
        require(keep, "keep", "give 1 to 1000")
    }

    fn check_stages(&self) -> Result<(), RecipeError> {
        let all = |good: &dyn Fn(&Stage) -> bool| self.stages.iter().all(good);
        let beams = |good: &dyn Fn(&BeamRecipe) -> bool| all(&|stage| stage.beams.iter().all(good));
        let full = all(&|stage| !stage.beams.is_empty());
        let count = all(&|stage| stage.count() <= MAX_BEAMS);
        let leaves = all(&|stage| is_share(stage.leaves as f32));
        let widths = beams(&|beam| {
            let [least, most] = beam.widths;
            1 <= least && least <= most && most <= 1 << 24
        });
        let noise = beams(&|beam| (0.0..=1000.0).contains(&beam.noise));
        let back = beams(&|beam| {
            let [least, most] = beam.back.unwrap_or([1, 1]);
            1 <= least && least <= most && most <= 1 << 20
        });
        let longest = beams(&|beam| beam.longest != Some(0));
        let starts = beams(&|beam| beam.start == Start::Games || !beam.uses_start());
        let pieces = beams(&|beam| beam.pieces.is_none_or(is_few));
        let weights = beams(&|beam| beam.weights.is_none() || beam.player == Player::Knewjade);
        let rates = all(&|stage| stage.rate.into_iter().flatten().all(is_share));
        let samples = all(&|stage| stage.game_samples <= 1 << 28);
        let lookahead = all(&|stage| stage.lookahead.as_ref().is_none_or(Lookahead::is_valid));
        require(!self.stages.is_empty(), "stages", "give at least one")?;
        require(full, "beams", "give each stage at least one")?;
        require(count, "count", "give each stage at most 65536 beams")?;
        require(leaves, "leaves", "give 0 to 1")?;
        require(widths, "widths", "give 1 to 16777216, the smaller first")?;
        require(noise, "noise", "give 0 to 1000")?;
        require(back, "back", "give 1 to 1048576, the smaller first")?;
        require(longest, "longest", "give at least 1")?;
        require(
            starts,
            "back, longest or rejoin",
            "give them only to beams with `start = \"games\"`",
        )?;
        require(pieces, "pieces of a beam", "give 1 to 1048576")?;
        require(
            weights,
            "weights",
            "give none to players other than `knewjade`",
        )?;
        require(rates, "rate", "give 0 to 1")?;
        require(samples, "game_samples", "give at most 268435456")?;
        require(
            lookahead,
            "lookahead",
            "give `width`, `pieces` and `best` 1 to 65536, `moves` at most 65536, `samples` at most 268435456, and \
             `discount` 0 to 1",
        )
    }
}

/// Returns an error that names a setting and a remedy, unless the setting is good.
fn require(good: bool, name: &'static str, expected: &'static str) -> Result<(), RecipeError> {
    if good {
        Ok(())
    } else {
        Err(RecipeError::Range { name, expected })
    }
}

impl Stage {
    /// Returns the number of beams of a generation.
    fn count(&self) -> usize {
        let counts = self.beams.iter().map(|beam| beam.count);
        counts.fold(0, usize::saturating_add)
    }
}

impl BeamRecipe {
    /// Returns whether the beam has a setting that only matters if it starts in a game.
    fn uses_start(&self) -> bool {
        self.back.is_some() || self.longest.is_some() || self.rejoin
    }

    /// Returns the evaluator `knewjade` with the weights of this beam.
    pub(crate) fn knewjade(&self) -> EvaluatorSpec {
        EvaluatorSpec {
            weights: self.weights.unwrap_or_default(),
            ..EvaluatorSpec::new(EvaluatorKind::Knewjade, self.quiescence)
        }
    }
}

impl Lookahead {
    fn is_valid(&self) -> bool {
        let counts = [self.width, self.pieces, self.best];
        counts.iter().all(|count| (1..=1 << 16).contains(count))
            && self.moves <= 1 << 16
            && self.samples <= 1 << 28
            && (0.0..=1.0).contains(&self.discount)
    }
}

/// Returns whether a number of pieces or samples is in the range that recipes permit.
fn is_few(count: usize) -> bool {
    (1..=1 << 20).contains(&count)
}

fn is_share(number: f32) -> bool {
    (0.0..=1.0).contains(&number)
}
