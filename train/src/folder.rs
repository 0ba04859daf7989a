//! Storage of a training run in a folder. A training run consists of generations. Each of them runs beam searches and
//! then trains the network on samples of their wells.
//!
//! | file | contents |
//! |---|---|
//! | `checkpoint` | recipe, records, weights and optimizer moments after the last finished generation |
//! | `samples-N` | the training samples of generation N, if later generations may still train on them |
//! | `network` | the published network after the last finished generation |
//! | `own-games.txt` | replays of the own games in Base2048, one per line, the longest first, if the recipe keeps own games |
//! | `lock` | empty; locked while a process uses the folder |
//!
//! Each of the first three files ends with the SHA-256 digest of the bytes before it. Every file but `lock` is replaced
//! atomically. The samples of a generation are written before the checkpoint that needs them. So a training run that is
//! killed at any moment can resume after the last saved generation.

use crate::average::Average;
use crate::exact::exact_game;
use crate::labels::Sample;
use crate::model::{LANES, Model, ROWS, Row};
use crate::recipe::Recipe;
use crate::trainer::{GEOMETRY, GenerationRecord, TrainError, Trainer};
use hatebeam_files::{FolderLock, sealed, unsealed, write_whole};
use hatebeam_game::Well;
use hatebeam_search::{NodeWell, WELL_BYTES};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const CHECKPOINT_MAGIC: [u8; 8] = *b"hatechk\n";
const SAMPLES_MAGIC: [u8; 8] = *b"hatesmp\n";
/// Version of the checkpoint format and the sample format.
const VERSION: u32 = 1;
const CHECKPOINT: &str = "checkpoint";
/// Name of the file that contains replays of the own games.
const OWN_GAMES: &str = "own-games.txt";
/// Maximum length of a record's digest of samples, in hexadecimal digits.
const DIGEST_DIGITS: usize = 64;
/// Name of the file that contains the published network.
pub const NETWORK: &str = "network";

/// The part of a checkpoint that is stored as JSON.
#[derive(Serialize, Deserialize)]
struct Text {
    recipe: Recipe,
    steps: u32,
    records: Vec<GenerationRecord>,
    /// Own games, each as the well before each piece in hex.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_games: Vec<Vec<String>>,
}

impl Text {
    /// Returns the own games, or `None` if one of them is empty or contains an invalid well.
    fn own_games(&self) -> Option<Vec<Vec<Well>>> {
        let well = |text: &String| Well::from_hex(GEOMETRY, text).ok();
        let game = |game: &Vec<String>| {
            let wells: Vec<Well> = game.iter().map(well).collect::<Option<_>>()?;
            (!wells.is_empty()).then_some(wells)
        };
        self.own_games.iter().map(game).collect()
    }
}

/// A folder that stores a training run, locked for this process.
pub struct TrainingFolder {
    path: PathBuf,
    /// Holds the lock until it is dropped.
    _lock: FolderLock,
}

impl TrainingFolder {
    /// Opens and locks the folder at `path`, or creates it if it does not exist. Without the lock, two processes would
    /// overwrite and delete each other's samples.
    ///
    /// # Errors
    /// Returns [`TrainError::File`] if the folder cannot be created, or [`TrainError::Lock`] if another process uses it or it
    /// cannot be locked.
    pub fn open(path: &Path) -> Result<TrainingFolder, TrainError> {
        let create = fs::create_dir_all(path);
        create.map_err(|error| TrainError::File(path.to_path_buf(), error))?;
        Ok(TrainingFolder {
            path: path.to_path_buf(),
            _lock: FolderLock::take(path)?,
        })
    }

    /// Loads the last saved state of the training run, or returns `None` if the folder contains no checkpoint.
    ///
    /// # Errors
    /// Returns [`TrainError`] if a file cannot be read or is damaged, or if the stored recipe is not valid.
    pub fn load(&self) -> Result<Option<Trainer>, TrainError> {
        let path = self.path.join(CHECKPOINT);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| TrainError::File(path.clone(), error))?,
        };
        let damaged = || TrainError::Damaged(path.clone());
        let (text, models) = read_checkpoint(&bytes).ok_or_else(damaged)?;
        let own_games = text.own_games().ok_or_else(damaged)?;
        // A longer digest may not fit into the header of a network.
        let mut digests = text.records.iter().map(|record| &record.data_digest);
        if digests.any(|digest| digest.len() > DIGEST_DIGITS) {
            return Err(damaged());
        }
        text.recipe.check()?;
        let buffered = text.recipe.buffered(text.records.len() as u32);
        let buffer = buffered
            .map(|generation| self.load_samples(generation as usize))
            .collect::<Result<_, _>>()?;
        let mut trainer = Trainer::of(text.recipe, models, buffer, text.records)?;
        if !trainer.records.is_empty() {
            trainer.games.set_own(own_games);
        }
        Ok(Some(trainer))
    }

    fn samples(&self, generation: usize) -> PathBuf {
        self.path.join(format!("samples-{generation}"))
    }

    fn load_samples(&self, generation: usize) -> Result<Vec<Sample>, TrainError> {
        let path = self.samples(generation);
        let bytes = fs::read(&path).map_err(|error| TrainError::File(path.clone(), error))?;
        read_samples(&bytes).ok_or(TrainError::Damaged(path))
    }

    /// Saves the state of a training run. Must be called after every generation, because it writes only the samples of
    /// the last generation.
    ///
    /// # Errors
    /// Returns [`TrainError::File`] if a file cannot be written.
    pub fn save(&self, trainer: &Trainer) -> Result<(), TrainError> {
        let write = |path: PathBuf, bytes: Vec<u8>| {
            write_whole(&path, &bytes).map_err(|error| TrainError::File(path, error))
        };
        let generation = trainer.records().len();
        if let Some(samples) = trainer.buffer.last() {
            write(self.samples(generation), sealed(samples_of(samples)))?;
        }
        write(self.path.join(CHECKPOINT), sealed(checkpoint_of(trainer)))?;
        write(self.path.join(NETWORK), trainer.network().encode())?;
        if trainer.recipe().own_games.is_some() {
            write(self.path.join(OWN_GAMES), replays_of(trainer.games.own()))?;
        }
        if let Some(old) = generation.checked_sub(trainer.recipe().buffer) {
            // The buffer no longer contains this generation. Its file may already have been removed.
            let _ = fs::remove_file(self.samples(old));
        }
        Ok(())
    }
}

/// Returns the bytes between the version and the digest, or `None` if the magic bytes, the version or the digest is
/// invalid.
fn opened(bytes: &[u8], magic: [u8; 8]) -> Option<&[u8]> {
    let rest = unsealed(bytes)?.strip_prefix(&magic)?;
    rest.strip_prefix(&VERSION.to_le_bytes())
}

fn begin(magic: [u8; 8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes
}

fn samples_of(samples: &[Sample]) -> Vec<u8> {
    let mut bytes = begin(SAMPLES_MAGIC);
    for sample in samples {
        bytes.extend_from_slice(&sample.well.0);
        bytes.extend_from_slice(&sample.pieces.to_le_bytes());
    }
    bytes
}

/// Returns the samples of a file, or `None` if the file is damaged or contains an invalid well or target.
fn read_samples(bytes: &[u8]) -> Option<Vec<Sample>> {
    let (samples, rest) = opened(bytes, SAMPLES_MAGIC)?.as_chunks::<{ WELL_BYTES + 4 }>();
    let sample = |bytes: &[u8; WELL_BYTES + 4]| {
        let sample = Sample {
            well: NodeWell(std::array::from_fn(|at| bytes[at])),
            pieces: f32::from_le_bytes(std::array::from_fn(|at| bytes[WELL_BYTES + at])),
        };
        let is_valid = sample.well.unpack(GEOMETRY).is_ok()
            && sample.pieces.is_finite()
            && sample.pieces >= 0.0;
        is_valid.then_some(sample)
    };
    if !rest.is_empty() {
        return None;
    }
    samples.iter().map(sample).collect()
}

/// Returns the replays of games, one per line. A game that HATETRIS does not allow is cut before the piece that differs.
fn replays_of(games: &[Vec<Well>]) -> Vec<u8> {
    let replay = |wells: &Vec<Well>| {
        let game = exact_game(wells).expect("own games begin with a live well");
        game.replay + "\n"
    };
    games.iter().map(replay).collect::<String>().into_bytes()
}

/// The weights of a training run.
pub(crate) struct Models {
    /// The network that is being trained.
    pub(crate) learning: Model,
    /// The weights of the network that scores wells in beams.
    pub(crate) playing: Vec<Row>,
    /// The playing weights before the last reset, or `None` before the first reset.
    pub(crate) previous: Option<Vec<Row>>,
    /// The networks whose mean is published.
    pub(crate) published: Average,
}

fn checkpoint_of(trainer: &Trainer) -> Vec<u8> {
    let text = Text {
        recipe: trainer.recipe.clone(),
        steps: trainer.models.learning.steps,
        records: trainer.records.clone(),
        own_games: trainer
            .games
            .own()
            .iter()
            .map(|game| game.iter().map(|well| well.to_hex(GEOMETRY)).collect())
            .collect(),
    };
    let text = serde_json::to_vec(&text).expect("plain data can be written as JSON");
    let mut bytes = begin(CHECKPOINT_MAGIC);
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&text);
    let Models {
        learning,
        playing,
        previous,
        published,
    } = &trainer.models;
    let moments = learning.moments.iter().flatten();
    let rows = learning.weights.iter().chain(moments).chain(playing);
    for number in rows.flatten() {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in &published.sums {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in previous.iter().flatten().flatten() {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Returns floating-point numbers, or `None` if one of them is infinite or not a number.
fn floats_of(numbers: &[[u8; 4]]) -> Option<Vec<f32>> {
    let floats = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes));
    floats
        .map(|float| float.is_finite().then_some(float))
        .collect()
}

/// Returns the parts of a checkpoint, or `None` if it is damaged.
fn read_checkpoint(bytes: &[u8]) -> Option<(Text, Models)> {
    let (length, rest) = opened(bytes, CHECKPOINT_MAGIC)?.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text: Text = serde_json::from_slice(text).ok()?;
    let (numbers, rest) = rest.as_chunks::<4>();
    // The previous weights exist only after a reset.
    if !rest.is_empty() || ![5 * ROWS * LANES, 6 * ROWS * LANES].contains(&numbers.len()) {
        return None;
    }
    let (floats, integers) = numbers.split_at(4 * ROWS * LANES);
    let (integers, previous) = integers.split_at(ROWS * LANES);
    let (floats, previous) = (floats_of(floats)?, floats_of(previous)?);
    let integers = integers.iter().map(|&bytes| i32::from_le_bytes(bytes));
    let (rows, _) = floats.as_chunks::<LANES>();
    let (previous, _) = previous.as_chunks::<LANES>();
    let (weights, rows) = rows.split_at(ROWS);
    let (moments, playing) = rows.split_at(2 * ROWS);
    let (moments, _) = moments.as_chunks::<2>();
    let models = Models {
        learning: Model::of(weights.to_vec(), moments.to_vec(), text.steps),
        playing: playing.to_vec(),
        previous: (!previous.is_empty()).then(|| previous.to_vec()),
        published: Average {
            sums: integers.collect(),
        },
    };
    Some((text, models))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pieces: f32) -> Sample {
        Sample {
            well: NodeWell::pack(GEOMETRY, &Well::EMPTY),
            pieces,
        }
    }

    #[test]
    fn samples_with_invalid_well_or_target_are_refused() {
        let read = |samples: &[Sample]| read_samples(&sealed(samples_of(samples)));
        let good = [sample(0.0), sample(12.5)];
        assert_eq!(read(&good), Some(good.to_vec()));
        for pieces in [-1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(read(&[good[0], sample(pieces)]), None, "{pieces}");
        }
        // Every row of this well is full.
        let full = Sample {
            well: NodeWell([0xff; WELL_BYTES]),
            ..good[0]
        };
        assert_eq!(read(&[good[0], full]), None);
    }

    #[test]
    fn checkpoint_with_number_that_is_not_finite_is_refused() {
        let mut trainer = Trainer::new(Recipe::default()).unwrap();
        trainer.models.previous = Some(trainer.models.playing.clone());
        let is_read =
            |trainer: &Trainer| read_checkpoint(&sealed(checkpoint_of(trainer))).is_some();
        assert!(is_read(&trainer));
        let places: [fn(&mut Models) -> &mut f32; 4] = [
            |models| &mut models.learning.weights[0][0],
            |models| &mut models.learning.moments[9][1][2],
            |models| &mut models.playing[0][15],
            |models| &mut models.previous.as_mut().unwrap()[7][7],
        ];
        let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        for (place, number) in places.into_iter().zip(numbers) {
            let good = std::mem::replace(place(&mut trainer.models), number);
            assert!(!is_read(&trainer), "{number}");
            *place(&mut trainer.models) = good;
        }
    }

    #[test]
    fn own_games_without_wells_are_refused() {
        let of = |own_games: &[&[&str]]| {
            let game = |game: &&[&str]| game.iter().map(|&well| well.to_owned()).collect();
            let text = Text {
                recipe: Recipe::default(),
                steps: 0,
                records: Vec::new(),
                own_games: own_games.iter().map(game).collect(),
            };
            text.own_games()
        };
        let empty = Well::EMPTY.to_hex(GEOMETRY);
        assert_eq!(of(&[]), Some(Vec::new()));
        assert_eq!(of(&[&[&empty]]), Some(vec![vec![Well::EMPTY]]));
        assert_eq!(of(&[&[&empty], &[]]), None);
        assert_eq!(of(&[&[&empty, "0"]]), None);
    }
}
