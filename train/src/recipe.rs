//! Everything that can change a network.

use crate::games::PUBLIC_GAMES;
use hatebeam_search::{Network, Quiescence};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How to learn a network. The same recipe gives the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// Selects all random numbers.
    pub seed: u64,
    /// Stages of the training, one after the other. The last one continues as long as the training.
    pub stages: Vec<Stage>,
    /// Maximum number of pieces of a beam.
    pub pieces: usize,
    /// Number of wells that are drawn from each beam.
    pub samples: usize,
    /// Number of generations whose wells are trained on.
    pub buffer: usize,
    /// Number of samples that a generation trains on: all of its own, and some of the buffer.
    pub epoch: usize,
    /// Weight of the generation before in the average that plays. 0 plays with what was learned last.
    pub average: f32,
    /// The generations whose mean is examined and published.
    pub publish: Publish,
    /// Number of wells in a batch.
    pub batch: usize,
    /// Learning rate at the begin and at the end of a generation.
    pub rate: [f32; 2],
    /// Whether half of the wells are mirrored before they are trained on.
    pub mirror: bool,
    /// Public games to learn from. Without them, the network learns from beams alone.
    pub games: Vec<GameRecipe>,
    /// Maximum number of pieces still to come in the labels of the wells of games.
    pub game_pieces: usize,
    /// Beams that show how strong the network is.
    pub exam: ExamRecipe,
}

/// A public game to learn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameRecipe {
    /// Name of the game in the program.
    pub name: String,
    /// Number of wells from the first one that are learned from. All by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
}

/// Generations whose networks are published as their mean. Before the first of them, the network that
/// plays is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Number of the first generation.
    pub from: u32,
    /// Number of generations from one to the next.
    pub every: u32,
}

/// Generations that are made in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Number of generations.
    pub generations: u32,
    /// The beams of a generation.
    pub beams: Vec<BeamRecipe>,
    /// Share of the samples that are replaced by their leaf: the well that gives their score in the
    /// quiescence `first`. Without it, the maximum over many wells picks what is overestimated.
    #[serde(default)]
    pub leaves: f64,
    /// Learning rate at the begin and at the end of a generation, that of the recipe by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<[f32; 2]>,
    /// Number of wells of games that are drawn for a generation, in addition to those of beams.
    #[serde(default)]
    pub game_samples: usize,
}

/// Beams of a generation that differ only in their width and their noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeamRecipe {
    /// The evaluator.
    pub player: Player,
    /// Number of beams.
    #[serde(default = "one")]
    pub count: usize,
    /// Range of the width. Widths are drawn uniformly by their logarithm.
    pub widths: [usize; 2],
    /// Quiescence of the evaluator.
    #[serde(default = "off")]
    pub quiescence: Quiescence,
    /// Factor of the noise.
    pub noise: f64,
    /// Well that the beam begins with.
    #[serde(default)]
    pub start: Start,
    /// Maximum number of pieces, that of the recipe by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
}

/// Well that a beam begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The empty well.
    #[default]
    Empty,
    /// A random well of the games of the recipe.
    Games,
}

fn one() -> usize {
    1
}

fn off() -> Quiescence {
    Quiescence::Off
}

/// An evaluator in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Player {
    /// The evaluator `patterns`.
    Patterns,
    /// The network that learns.
    Own,
}

/// Beams from the empty well without noise. No training sees their wells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExamRecipe {
    /// Number of generations from one examination to the next. 0 for none.
    pub every: u32,
    /// Widths of the beams.
    pub widths: Vec<usize>,
    /// Quiescence of the evaluator.
    pub quiescence: Quiescence,
    /// Maximum number of pieces.
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
            count,
            widths: [2000, 8000],
            quiescence: Quiescence::Off,
            noise,
            start: Start::Empty,
            pieces: None,
        };
        Recipe {
            seed: 1,
            stages: vec![Stage {
                generations: 1,
                beams: vec![beams(Player::Patterns, 1, 0.5), beams(Player::Own, 2, 1.0)],
                leaves: 0.0,
                rate: None,
                game_samples: 0,
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
            games: Vec::new(),
            game_pieces: 1000,
            exam: ExamRecipe::default(),
        }
    }
}

/// Error in a recipe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The text is no recipe.
    #[error("the recipe: {0}")]
    Toml(#[from] toml::de::Error),
    /// The header of a network contains no recipe of this version.
    #[error("the recipe of the network: {0}")]
    Header(String),
    /// The program does not contain a game of this name.
    #[error("the recipe names the unknown game {0:?}: use one of {known}", known = game_names())]
    Game(String),
    /// The recipe uses games without naming any.
    #[error("the recipe uses games but names none: add [[games]]")]
    NoGames,
    /// A number is out of range.
    #[error("{name} of the recipe is out of range: {expected}")]
    Range {
        /// Name of the field.
        name: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
}

fn game_names() -> String {
    PUBLIC_GAMES.map(|game| game.name).join(", ")
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
    /// [`RecipeError`] if the text is no recipe, or a number is out of range.
    pub fn from_toml(text: &str) -> Result<Recipe, RecipeError> {
        let recipe: Recipe = toml::from_str(text)?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Reads a recipe from the bytes of a TOML file, or of a network that it made.
    ///
    /// # Errors
    /// [`RecipeError`] if there is no recipe in the bytes, or a number is out of range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recipe, RecipeError> {
        #[derive(Deserialize)]
        struct Header {
            recipe: Recipe,
        }
        if let Ok(network) = Network::decode(bytes) {
            let header: Header = serde_json::from_str(network.header())?;
            header.recipe.check()?;
            return Ok(header.recipe);
        }
        Recipe::from_toml(&String::from_utf8_lossy(bytes))
    }

    /// The stage of a generation, counted from 1.
    pub fn stage(&self, generation: u32) -> &Stage {
        let mut last = 0;
        let stage = self.stages.iter().find(|stage| {
            last += stage.generations;
            generation <= last
        });
        stage.unwrap_or_else(|| self.stages.last().expect("a recipe has stages"))
    }

    fn uses_games(&self) -> bool {
        let starts = |beam: &BeamRecipe| beam.start == Start::Games;
        let uses = |stage: &Stage| stage.game_samples > 0 || stage.beams.iter().any(starts);
        self.stages.iter().any(uses)
    }

    /// Checks all numbers and names.
    ///
    /// # Errors
    /// [`RecipeError`] for the first number that is out of range, and for an unknown game.
    pub fn check(&self) -> Result<(), RecipeError> {
        let numbers = self
            .checked_numbers()
            .into_iter()
            .chain(self.checked_stages());
        if let Some(bad) = numbers.into_iter().find(|number| !number.good) {
            let Number { name, expected, .. } = bad;
            return Err(RecipeError::Range { name, expected });
        }
        let known = |name: &String| PUBLIC_GAMES.iter().any(|game| game.name == name);
        let mut names = self.games.iter().map(|game| &game.name);
        if let Some(unknown) = names.find(|name| !known(name)) {
            return Err(RecipeError::Game(unknown.clone()));
        }
        if self.uses_games() && self.games.is_empty() {
            return Err(RecipeError::NoGames);
        }
        Ok(())
    }

    fn checked_numbers(&self) -> [Number; 10] {
        let number = |name, good, expected| Number {
            name,
            good,
            expected,
        };
        let publish = self.publish.from >= 1 && self.publish.every >= 1;
        let few = |count: usize| (1..=1 << 20).contains(&count);
        let many = |count: usize| (1..=1 << 28).contains(&count);
        let mut widths = self.exam.widths.iter();
        let exam = widths.all(|width| (1..=1 << 24).contains(width));
        let games = self.games.iter().all(|game| game.pieces != Some(0));
        [
            number("pieces", few(self.pieces), "give 1 to 1048576"),
            number("samples", many(self.samples), "give 1 to 268435456"),
            number("epoch", many(self.epoch), "give 1 to 268435456"),
            number("publish", publish, "give at least 1"),
            number("average", is_share(self.average), "give 0 to 1"),
            number(
                "buffer",
                (1..=1000).contains(&self.buffer),
                "give 1 to 1000",
            ),
            number("batch", few(self.batch), "give 1 to 1048576"),
            number("rate", self.rate.into_iter().all(is_share), "give 0 to 1"),
            number("exam.widths", exam, "give 1 to 16777216"),
            number("pieces of a game", games, "give at least 1"),
        ]
    }

    fn checked_stages(&self) -> [Number; 7] {
        let all = |good: &dyn Fn(&Stage) -> bool| self.stages.iter().all(good);
        let beams = |good: &dyn Fn(&BeamRecipe) -> bool| all(&|stage| stage.beams.iter().all(good));
        let number = |name, good, expected| Number {
            name,
            good,
            expected,
        };
        let widths = beams(&|beam| {
            let [least, most] = beam.widths;
            1 <= least && least <= most && most <= 1 << 24
        });
        let noise = beams(&|beam| (0.0..=1000.0).contains(&beam.noise));
        let rates = all(&|stage| stage.rate.into_iter().flatten().all(is_share));
        let leaves = all(&|stage| is_share(stage.leaves as f32));
        let samples = all(&|stage| stage.game_samples <= 1 << 28);
        let full = all(&|stage| !stage.beams.is_empty());
        [
            number("stages", !self.stages.is_empty(), "give at least one"),
            number("beams", full, "give each stage at least one"),
            number("leaves", leaves, "give 0 to 1"),
            number("widths", widths, "give 1 to 16777216, the lesser first"),
            number("noise", noise, "give 0 to 1000"),
            number("rate", rates, "give 0 to 1"),
            number("game_samples", samples, "give at most 268435456"),
        ]
    }
}

/// A number of a recipe that was checked.
struct Number {
    name: &'static str,
    good: bool,
    expected: &'static str,
}

fn is_share(number: f32) -> bool {
    (0.0..=1.0).contains(&number)
}
