//! Training in generations. Each generation runs beam searches, labels their wells, and trains the network on samples
//! of these wells. At the end of some generations, an examination measures the network.

use crate::average::Average;
use crate::beam::{Beam, BeamSettings, Noise, run_beam};
use crate::exact::is_exact;
use crate::exam::{ExamResult, examine};
use crate::folder::Models;
use crate::games::{GameStart, Games};
use crate::labels::{Sample, label_beam};
use crate::lookahead::{draw_wells, label_wells};
use crate::model::{Batch, Model, TrainStats, approach, quantise};
use crate::random::Random;
use crate::recipe::{BeamRecipe, Player, Recipe, RecipeError, Start};
use crate::threats::has_threat;
use crate::workers::run_in_threads;
use hatebeam_files::FolderLockError;
use hatebeam_game::{Emulator, Geometry, MAX_HEIGHT, Rules, Well};
use hatebeam_search::{
    CLEARS_FEATURES, Evaluator, EvaluatorKind, EvaluatorSpec, FeatureLister, Network,
    NetworkWeights, NodeWell, Quiescence, SCALE, VALUE_ONE,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use thiserror::Error;

pub(crate) const GEOMETRY: Geometry = Geometry::STANDARD;
/// Number of batches between updates of the network of the [`LeafFinder`].
const REFRESH: usize = 500;
/// One in this many samples is held out to test the network. The test ignores samples whose wells are also trained on.
const HELD_OUT: usize = 64;
/// Score of the evaluator `patterns` that corresponds to a network value of 1.
const PATTERNS_ONE: f64 = 512.0;
/// Score of the evaluator `knewjade` that corresponds to a network value of 1, for noise. Tuned weights of a cleared line are
/// 3 to 8 times as large.
const KNEWJADE_ONE: f64 = 100.0 * SCALE;
/// Standard deviation of a beam's noise, before scaling: the maximum of the part that decays with the depth, followed
/// by the constant part.
const NOISE: [f64; 2] = [0.15, 0.03];

/// Number of beams for each thread after which the samples of these beams are drawn. With fewer, threads wait more often for
/// the longest beam.
const WINDOW: usize = 4;
/// Stream of the random numbers that draw samples. Each purpose has its own stream.
const FOR_SAMPLES: u32 = 1;
/// Stream of the random numbers that order samples, mirror wells and choose leaves.
const FOR_ORDER: u32 = 2;
/// Stream of the random numbers for the first beam. Each further beam uses the next stream.
const FOR_BEAMS: u32 = 3;
/// Stream of the random numbers that draw wells from games.
const FOR_GAMES: u32 = 1 << 20;
/// Stream of the random numbers that draw the wells for short searches.
const FOR_LOOKAHEAD: u32 = FOR_GAMES + 1;

/// Training error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The recipe is not valid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file of the training run cannot be read or written.
    #[error("cannot use {}", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    /// The folder is used by another process or cannot be locked.
    #[error(transparent)]
    Lock(#[from] FolderLockError),
    /// A file of the training run is damaged or has another version.
    #[error("{0} is damaged or was written by another version: choose another folder")]
    Damaged(PathBuf),
}

/// Summary of one beam of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeamRecord {
    /// The evaluator that scored wells.
    pub player: Player,
    /// Width of the beam.
    pub width: usize,
    /// Number of lines cleared in the best game.
    pub lines: u32,
    /// Number of pieces in the longest game.
    pub pieces: usize,
}

/// Summary of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerationRecord {
    /// Number of the generation, counted from 1.
    pub generation: u32,
    /// The beams.
    pub beams: Vec<BeamRecord>,
    /// Number of samples drawn from beams and games, including the held-out samples.
    pub samples: usize,
    /// Mean loss, before this generation's training, of the held-out samples whose wells are not also trained on, or `None` if
    /// there are none.
    pub fresh_loss: Option<f64>,
    /// Mean of prediction minus target on the same samples, before this generation's training.
    pub fresh_bias: Option<f64>,
    /// Mean loss of the training samples, each measured just before the step that uses it.
    pub train_loss: f64,
    /// Mean loss of the same samples after this generation's training.
    pub held_out_loss: Option<f64>,
    /// SHA-256 of the previous generation's `data_digest` and this generation's samples, in hex.
    pub data_digest: String,
    /// Durations of the beams, the training and the examination, in seconds.
    pub seconds: [f64; 3],
    /// Results of the examination; empty if this generation was not examined.
    pub exam: Vec<ExamResult>,
    /// Number of pieces of each own game, longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_games: Vec<usize>,
}

/// A training run in progress.
pub struct Trainer {
    pub(crate) recipe: Recipe,
    pub(crate) models: Models,
    /// Training samples of recent generations, oldest first.
    pub(crate) buffer: Vec<Vec<Sample>>,
    pub(crate) records: Vec<GenerationRecord>,
    emulator: Emulator,
    /// The games to learn from.
    pub(crate) games: Games,
    /// The network that scores wells in beams.
    player: Arc<Network>,
    /// The network that scored wells in beams before the last reset.
    previous: Option<Arc<Network>>,
    /// The published network.
    network: Arc<Network>,
}

/// Returns the model before the first generation of a valid recipe.
fn initial_model(recipe: &Recipe) -> Model {
    let mut model = match &recipe.initial {
        Some(name) => {
            let network = Network::shipped(name).expect("the recipe was checked");
            Model::from_weights(&network.weights())
        }
        None => Model::new(recipe.seed),
    };
    if !recipe.clears {
        model.clear(CLEARS_FEATURES);
    }
    model
}

/// Returns the value that the network should predict for a number of pieces.
fn target(pieces: f32) -> f32 {
    (1.0 + pieces / 8.0).ln()
}

fn unpacked(sample: &Sample) -> Well {
    let well = sample.well.unpack(GEOMETRY);
    well.expect("all samples contain valid wells")
}

fn mirrored(well: &Well) -> Well {
    let mut rows = [0; MAX_HEIGHT];
    for (to, from) in rows.iter_mut().zip(well.rows()) {
        *to = from.reverse_bits() >> (16 - GEOMETRY.width());
    }
    Well::from_rows(rows)
}

/// A beam's summary, its labelled wells and its longest game.
struct Played {
    record: BeamRecord,
    samples: Vec<Sample>,
    /// The longest game, including the part before the start, or `None` if the beam has no finished game.
    game: Option<Vec<Well>>,
}

impl Trainer {
    /// Creates a training run that starts with the weights of the recipe's initial network, or with random weights if
    /// the recipe names no network.
    ///
    /// # Errors
    /// Returns [`TrainError::Recipe`] if the recipe is not valid.
    pub fn new(recipe: Recipe) -> Result<Trainer, TrainError> {
        recipe.check()?;
        let learning = initial_model(&recipe);
        let models = Models {
            playing: learning.weights.clone(),
            learning,
            previous: None,
            published: Average::new(),
        };
        Trainer::of(recipe, models, Vec::new(), Vec::new())
    }

    /// Creates a training run with a valid recipe from its parts.
    pub(crate) fn of(
        recipe: Recipe,
        models: Models,
        buffer: Vec<Vec<Sample>>,
        records: Vec<GenerationRecord>,
    ) -> Result<Trainer, TrainError> {
        let games = Games::new(&recipe)?;
        let player = quantise(&models.playing);
        let generation = records.len() as u32;
        let mean = models
            .published
            .network(generation, &recipe.publish, &player);
        let player = network(&recipe, &player, &records);
        let previous = models.previous.as_ref();
        let previous = previous.map(|rows| network(&recipe, &quantise(rows), &records));
        let network = network(&recipe, &mean, &records);
        Ok(Trainer {
            recipe,
            models,
            player,
            previous,
            buffer,
            records,
            emulator: Emulator::new(GEOMETRY, Rules::default()),
            games,
            network,
        })
    }

    /// Returns the recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the records of the finished generations.
    pub fn records(&self) -> &[GenerationRecord] {
        &self.records
    }

    /// Returns the network that is published after the last finished generation.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Runs the next generation. Returns `None` if `cancel` becomes `true`. The trainer is then unusable, and the
    /// training run must be loaded again.
    pub fn advance(&mut self, threads: usize, cancel: &AtomicBool) -> Option<&GenerationRecord> {
        let generation = self.records.len() as u32 + 1;
        let start = Instant::now();
        if self.recipe.resets(generation) {
            self.reset();
        }
        let mut for_samples = Random::new(self.recipe.seed, generation, FOR_SAMPLES);
        let played = self.play(generation, &mut for_samples, threads, cancel);
        if cancel.load(Ordering::Relaxed) {
            return None;
        }
        let beams: Vec<BeamRecord> = played.iter().map(|played| played.record).collect();
        self.keep_games(&played);
        let samples = self.draw(generation, played, for_samples, threads, cancel);
        let beams_seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let data_digest = self.data_digest(&samples);
        let count = samples.len();
        let (held_out, samples) = {
            let mut samples = samples;
            let held_out = samples.split_off(count - count / HELD_OUT);
            (self.without_trained(held_out, &samples), samples)
        };
        let fresh = self.test(&held_out);
        self.buffer.push(samples);
        if self.buffer.len() > self.recipe.buffer {
            self.buffer.remove(0);
        }
        let trained = self.train(generation, cancel);
        let Models {
            learning,
            playing,
            published,
            ..
        } = &mut self.models;
        approach(playing, &learning.weights, self.recipe.average);
        let player = quantise(playing);
        published.add(generation, &self.recipe.publish, &player);
        let mean = published.network(generation, &self.recipe.publish, &player);
        let held_out = self.test(&held_out);
        let training = start.elapsed().as_secs_f64();
        self.records.push(GenerationRecord {
            generation,
            beams,
            samples: count,
            fresh_loss: fresh.mean_loss(),
            fresh_bias: fresh.mean_bias(),
            train_loss: trained.mean_loss().unwrap_or_default(),
            held_out_loss: held_out.mean_loss(),
            data_digest,
            seconds: [beams_seconds, training, 0.0],
            exam: Vec::new(),
            own_games: self.games.own().iter().map(|game| game.len() - 1).collect(),
        });
        self.player = network(&self.recipe, &player, &self.records);
        self.network = network(&self.recipe, &mean, &self.records);
        let start = Instant::now();
        let every = self.recipe.exam.every;
        let record = self
            .records
            .last_mut()
            .expect("this generation's record was added");
        if every > 0 && generation.is_multiple_of(every) {
            let exam = &self.recipe.exam;
            record.exam = examine(&self.emulator, &self.network, exam, threads, cancel);
        }
        record.seconds[2] = start.elapsed().as_secs_f64();
        (!cancel.load(Ordering::Relaxed)).then_some(record)
    }

    /// Returns the SHA-256 of the previous generation's digest and of samples, in hex.
    fn data_digest(&self, samples: &[Sample]) -> String {
        let mut digest = Sha256::new();
        if let Some(last) = self.records.last() {
            digest.update(&last.data_digest);
        }
        for sample in samples {
            digest.update(sample.well.0);
            digest.update(sample.pieces.to_le_bytes());
        }
        format!("{:x}", digest.finalize())
    }

    /// Removes the samples whose wells are also in `fresh`, this generation's training samples, or in the buffer. Wells of
    /// games are drawn again and again, and beams of several generations reach the same wells.
    fn without_trained(&self, mut held_out: Vec<Sample>, fresh: &[Sample]) -> Vec<Sample> {
        // The wells whose training trains on the sample's well.
        let wells = |sample: &Sample| {
            let mirror = || NodeWell::pack(GEOMETRY, &mirrored(&unpacked(sample)));
            let mirror = self.recipe.mirror.then(mirror);
            iter::once(sample.well).chain(mirror)
        };
        let held: HashSet<NodeWell> = held_out.iter().flat_map(wells).collect();
        let training = self.buffer.iter().flatten().chain(fresh);
        let trained: HashSet<NodeWell> = training
            .map(|sample| sample.well)
            .filter(|well| held.contains(well))
            .collect();
        held_out.retain(|sample| !wells(sample).any(|well| trained.contains(&well)));
        held_out
    }

    /// Gives the network its initial weights, and drops all samples. The playing network becomes the previous one.
    fn reset(&mut self) {
        let learning = initial_model(&self.recipe);
        let playing = std::mem::replace(&mut self.models.playing, learning.weights.clone());
        self.models.previous = Some(playing);
        let player = network(&self.recipe, &quantise(&learning.weights), &self.records);
        self.previous = Some(std::mem::replace(&mut self.player, player));
        self.models.learning = learning;
        self.buffer.clear();
    }

    /// Runs the beams of a generation, and draws the samples of each. Windows of beams bound the number of wells in memory.
    fn play(
        &self,
        generation: u32,
        random: &mut Random,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Vec<Played> {
        let all: Vec<&BeamRecipe> = self
            .recipe
            .stage(generation)
            .beams
            .iter()
            .flat_map(|beam| iter::repeat_n(beam, beam.count))
            .collect();
        let all: Vec<(u32, &BeamRecipe)> = (0..).zip(all).collect();
        let mut played = Vec::new();
        for window in all.chunks(WINDOW * threads.max(1)) {
            let mut beams = run_in_threads(threads, window, |&(index, beam)| {
                self.play_one(generation, index, beam, cancel)
            });
            for beam in &mut beams {
                random.shuffle(&mut beam.samples);
                beam.samples.truncate(self.recipe.samples);
                beam.samples.shrink_to_fit();
            }
            played.append(&mut beams);
        }
        played
    }

    fn play_one(
        &self,
        generation: u32,
        index: u32,
        beam: &BeamRecipe,
        cancel: &AtomicBool,
    ) -> Played {
        let mut random = Random::new(self.recipe.seed, generation, FOR_BEAMS + index);
        let width = random.between(beam.widths);
        let first = random.unit();
        let (mut evaluator, one) = self.evaluator(beam);
        let start = match beam.start {
            Start::Empty => GameStart::EMPTY,
            Start::Games => self.games.draw_start(beam, &mut random),
        };
        let settings = BeamSettings {
            start: start.well,
            width,
            pieces: beam.pieces.unwrap_or(self.recipe.pieces),
            noise: Noise {
                seed: random.bits(),
                first: NOISE[0] * first * beam.noise * one,
                rest: NOISE[1] * beam.noise * one,
            },
            before: beam.loops.then(|| start.before.to_vec()),
            allows: (!self.recipe.threats).then_some(|well| !has_threat(well)),
            keeps: true,
        };
        let played = run_beam(&self.emulator, &mut evaluator, &settings, cancel);
        Played {
            record: BeamRecord {
                player: beam.player,
                width,
                lines: u32::from(played.lines()),
                pieces: played.pieces(),
            },
            samples: label_beam(&played),
            game: self.longest_game(beam, start, &played),
        }
    }

    /// Returns the longest game of a beam, including the part before its start, or `None` if the beam has no finished game. If
    /// the beam may return to the game in which it started, this can be a valid game that does so.
    fn longest_game(
        &self,
        beam: &BeamRecipe,
        start: GameStart<'_>,
        played: &Beam,
    ) -> Option<Vec<Well>> {
        let whole = |after: Vec<Well>| [start.before, &after].concat();
        let returned = beam.rejoin.then(|| {
            let games = played.games_that_return(GEOMETRY, start.rest);
            let mut games = games.into_iter().map(whole);
            games.find(|game| is_exact(&self.emulator, game))
        });
        let own = played.died.then(|| whole(played.longest_game(GEOMETRY)));
        own.into_iter()
            .chain(returned.flatten())
            .max_by_key(Vec::len)
    }

    /// Returns the evaluator of a beam's player, and the score that corresponds to a network value of 1.
    fn evaluator(&self, beam: &BeamRecipe) -> (Evaluator, f64) {
        let with = |spec: &EvaluatorSpec| {
            Evaluator::new(&self.emulator, spec).expect("the recipe was checked")
        };
        let network = match beam.player {
            Player::Patterns => {
                let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, beam.quiescence);
                return (with(&spec), PATTERNS_ONE);
            }
            Player::Knewjade => return (with(&beam.knewjade()), KNEWJADE_ONE),
            Player::Own => Some(&self.player),
            Player::Previous => Some(self.previous.as_ref().unwrap_or(&self.player)),
            Player::Network => Network::shipped("network"),
            Player::Chains => Network::shipped("chains"),
        };
        let network = Arc::clone(network.expect("the program contains this network"));
        let evaluator = Evaluator::with_network(&self.emulator, network, beam.quiescence);
        (evaluator, f64::from(VALUE_ONE))
    }

    /// Adds the games of a generation to the own games, if the recipe has them.
    fn keep_games(&mut self, played: &[Played]) {
        if let Some(own) = &self.recipe.own_games {
            let games = played.iter().filter_map(|played| played.game.clone());
            self.games.add_own(games.collect(), own.keep);
        }
    }

    /// Collects the samples of a generation: those of its beams, of short searches and of games. `random` is the stream that
    /// drew those of the beams.
    fn draw(
        &self,
        generation: u32,
        played: Vec<Played>,
        mut random: Random,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Vec<Sample> {
        let mut all: Vec<Sample> = played.into_iter().flat_map(|beam| beam.samples).collect();
        if let Some(lookahead) = &self.recipe.stage(generation).lookahead {
            let mut random = Random::new(self.recipe.seed, generation, FOR_LOOKAHEAD);
            let wells = draw_wells(&self.emulator, &all, lookahead, &mut random);
            let emulator = &self.emulator;
            all.extend(label_wells(
                emulator,
                &self.player,
                &wells,
                lookahead,
                threads,
                cancel,
            ));
        }
        let mut from_games = Random::new(self.recipe.seed, generation, FOR_GAMES);
        // There are no games before the first finished game if all games are own games.
        let drawn = (0..self.recipe.stage(generation).game_samples).map_while(|_| {
            let drawn = self.games.draw(&mut from_games)?;
            Some(Sample {
                well: NodeWell::pack(GEOMETRY, &drawn.well),
                pieces: drawn.pieces.min(self.recipe.game_pieces) as f32,
            })
        });
        all.extend(drawn);
        random.shuffle(&mut all);
        all
    }

    /// Trains on this generation's samples and on random older samples, in random order. Uses each sample once.
    fn train(&mut self, generation: u32, cancel: &AtomicBool) -> TrainStats {
        let mut random = Random::new(self.recipe.seed, generation, FOR_ORDER);
        let Some((fresh, older)) = self.buffer.split_last() else {
            return TrainStats::default();
        };
        let mut order: Vec<&Sample> = older.iter().flatten().collect();
        random.shuffle(&mut order);
        order.truncate(self.recipe.epoch.saturating_sub(fresh.len()));
        order.extend(fresh);
        random.shuffle(&mut order);
        let batches = order.len().div_ceil(self.recipe.batch);
        let [first, last] = self
            .recipe
            .stage(generation)
            .rate
            .unwrap_or(self.recipe.rate);
        let mut stats = TrainStats::default();
        let mut lister = FeatureLister::new(&self.emulator, self.recipe.clears);
        let (mut wells, mut batch) = (Vec::new(), Batch::default());
        let leaves = self.recipe.stage(generation).leaves;
        let mut finder = LeafFinder::new(&self.emulator, &self.player);
        for (index, samples) in order.chunks(self.recipe.batch).enumerate() {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            if leaves > 0.0 && index > 0 && index.is_multiple_of(REFRESH) {
                let network = network(
                    &self.recipe,
                    &quantise(&self.models.learning.weights),
                    &self.records,
                );
                finder = LeafFinder::new(&self.emulator, &network);
            }
            wells.clear();
            wells.extend(samples.iter().map(|sample| unpacked(sample)));
            if leaves > 0.0 {
                finder.replace(&mut wells, leaves, &mut random);
            }
            if self.recipe.mirror {
                let chosen = wells.iter_mut().filter(|_| random.bits() & 1 == 1);
                chosen.for_each(|well| *well = mirrored(well));
            }
            fill(&mut lister, &wells, samples, &mut batch);
            let rate = first + (last - first) * index as f32 / batches as f32;
            self.models
                .learning
                .train(self.emulator.level(), &batch, rate, &mut stats);
        }
        stats
    }

    /// Returns the totals of loss and prediction error for samples, without training on them.
    fn test(&self, samples: &[Sample]) -> TrainStats {
        let mut stats = TrainStats::default();
        let mut lister = FeatureLister::new(&self.emulator, self.recipe.clears);
        let mut batch = Batch::default();
        for samples in samples.chunks(self.recipe.batch) {
            let wells: Vec<Well> = samples.iter().map(unpacked).collect();
            let samples: Vec<&Sample> = samples.iter().collect();
            fill(&mut lister, &wells, &samples, &mut batch);
            self.models.learning.test(&batch, &mut stats);
        }
        stats
    }
}

/// Replaces wells with their leaves. The leaf of a well is the well whose value the quiescence search returns.
struct LeafFinder {
    evaluator: Evaluator,
    lines: Vec<u16>,
    scores: Vec<i32>,
}

impl LeafFinder {
    fn new(emulator: &Emulator, network: &Arc<Network>) -> LeafFinder {
        let network = Arc::clone(network);
        LeafFinder {
            evaluator: Evaluator::with_network(emulator, network, Quiescence::First),
            lines: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Replaces each well with its leaf, with probability `share`.
    fn replace(&mut self, wells: &mut [Well], share: f64, random: &mut Random) {
        self.lines.resize(wells.len(), 0);
        self.evaluator.score(wells, &self.lines, &mut self.scores);
        for (well, leaf) in wells.iter_mut().zip(self.evaluator.leaves()) {
            if random.unit() < share {
                *well = *leaf;
            }
        }
    }
}

/// Fills a batch with the active features of wells and the targets of their samples.
fn fill(lister: &mut FeatureLister, wells: &[Well], samples: &[&Sample], batch: &mut Batch) {
    batch.clear();
    let mut samples = samples.iter();
    lister.list(wells, |features| {
        let sample = samples.next().expect("each well has a sample");
        batch.push(features, target(sample.pieces));
    });
}

/// The JSON in a network's header.
#[derive(Serialize)]
struct Header<'a> {
    program: &'static str,
    version: &'static str,
    generation: usize,
    data_digest: Option<&'a str>,
    recipe: &'a Recipe,
}

fn network(
    recipe: &Recipe,
    weights: &NetworkWeights,
    records: &[GenerationRecord],
) -> Arc<Network> {
    let header = Header {
        program: "hatebeam",
        version: env!("CARGO_PKG_VERSION"),
        generation: records.len(),
        data_digest: records.last().map(|record| record.data_digest.as_str()),
        recipe,
    };
    let header = serde_json::to_string(&header).expect("plain data can be written as JSON");
    let network = Network::new(&header, weights);
    Arc::new(network.expect("the lists of weights have the right lengths"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_out_wells_are_not_trained_on() {
        let recipe = |mirror| Recipe {
            mirror,
            ..Recipe::default()
        };
        let sample = |row: u16| Sample {
            well: NodeWell::pack(GEOMETRY, &Well::from_rows([row; MAX_HEIGHT])),
            pieces: 1.0,
        };
        // Wells in the buffer, in the training part, mirrored in the training part, and in neither.
        let held_out = [0b11, 0b101, 0b111, 0b1_0001].map(sample).to_vec();
        let fresh = [0b101, 0b11_1000_0000].map(sample);
        let kept = |mirror| {
            let mut trainer = Trainer::new(recipe(mirror)).unwrap();
            trainer.buffer = vec![vec![sample(0b11)]];
            trainer.without_trained(held_out.clone(), &fresh)
        };
        assert_eq!(kept(false), [0b111, 0b1_0001].map(sample));
        assert_eq!(kept(true), [sample(0b1_0001)]);
    }
}
