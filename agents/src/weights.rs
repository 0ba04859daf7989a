//! Weights files, which contain the weights of an agent or a search.

use crate::drop::{Registered, UnknownAgent, find_agent};
use crate::nes::{PATTERNS_MAGIC, RegisteredSearch, UnknownSearch, find_search, read_patterns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum size of a weights file, a kick file or a piece set in bytes. It is greater than the size of a file of
/// `hatebeam nes learn`.
pub(crate) const MAX_FILE_BYTES: u64 = 128 << 10;

/// Contents of a weights file in TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsFile {
    /// Name of the agent or search.
    pub player: String,
    /// Weights by name.
    pub weights: BTreeMap<String, f64>,
}

/// Error for a weights file that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be read.
    #[error("{}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file is too large.
    #[error("{} is too large: the limit is {} KiB", .0.display(), MAX_FILE_BYTES >> 10)]
    TooLarge(PathBuf),
    /// The file begins like a file of `hatebeam nes learn`, but it is incomplete or has another version.
    #[error("{} is damaged or was written by another version: learn again with `hatebeam nes learn`", .0.display())]
    DamagedPatterns(PathBuf),
    /// The file is not valid TOML, or its fields are not those of a [`WeightsFile`].
    #[error("{}", .0.display())]
    Parse(PathBuf, #[source] toml::de::Error),
    /// A weight of the player is missing or is not finite.
    #[error("{} has no finite number for the weight {missing} of {player}: add numbers for {names}", path.display())]
    Missing {
        /// Path of the file.
        path: PathBuf,
        /// Name of the weight.
        missing: String,
        /// Name of the player.
        player: String,
        /// Names of the player's weights.
        names: String,
    },
    /// The agent does not exist.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// The file is for an agent that does not exist.
    #[error("{}", .0.display())]
    Agent(PathBuf, #[source] UnknownAgent),
    /// The search does not exist.
    #[error(transparent)]
    UnknownSearch(#[from] UnknownSearch),
    /// The file is for a search that does not exist.
    #[error("{}", .0.display())]
    Search(PathBuf, #[source] UnknownSearch),
    /// The file contains a weight that the player does not have.
    #[error("{}: {player} has no weight {name}: use {names}", path.display())]
    Unknown {
        /// Path of the file.
        path: PathBuf,
        /// Name of the weight in the file.
        name: String,
        /// Name of the player.
        player: String,
        /// Names of the player's weights.
        names: String,
    },
}

impl WeightsFile {
    /// Creates the contents of a file from weights in the order of their names.
    pub(crate) fn new(player: &str, names: &[&str], weights: &[f64]) -> WeightsFile {
        let names = names.iter().map(|name| (*name).to_owned());
        WeightsFile {
            player: player.to_owned(),
            weights: names.zip(weights.iter().copied()).collect(),
        }
    }

    /// Returns the contents as TOML.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("strings and numbers can be written as TOML")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if the file cannot be read or parsed, or is too large.
    pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
        Self::parse(&read(path)?, path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<WeightsFile, WeightsError> {
        toml::from_slice(bytes).map_err(|error| WeightsError::Parse(path.to_owned(), error))
    }

    /// Returns the weights in the order of `names`.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if a weight is missing or not finite, or if the file contains a weight that is not in
    /// `names`. The error contains `path`.
    pub fn in_order(&self, names: &[&str], path: &Path) -> Result<Vec<f64>, WeightsError> {
        if let Some(name) = self
            .weights
            .keys()
            .find(|name| !names.contains(&name.as_str()))
        {
            return Err(WeightsError::Unknown {
                path: path.to_owned(),
                name: name.clone(),
                player: self.player.clone(),
                names: names.join(", "),
            });
        }
        let weight = |&name: &&str| {
            let weight = self.weights.get(name).copied();
            let weight = weight.filter(|weight| weight.is_finite());
            weight.ok_or_else(|| WeightsError::Missing {
                path: path.to_owned(),
                missing: name.to_owned(),
                player: self.player.clone(),
                names: names.join(", "),
            })
        };
        names.iter().map(weight).collect()
    }
}

/// An agent for dropped pieces with its weights.
#[derive(Clone)]
pub struct DropPlayer {
    /// The agent.
    pub agent: &'static Registered,
    /// Its weights.
    pub weights: Vec<f64>,
}

impl DropPlayer {
    /// Finds an agent by its name, with its published weights.
    ///
    /// # Errors
    /// Returns an error if there is no such agent.
    pub fn find(name: &str) -> Result<DropPlayer, UnknownAgent> {
        let agent = find_agent(name)?;
        let weights = agent.weights.to_vec();
        Ok(DropPlayer { agent, weights })
    }

    /// Reads a weights file, or finds an agent by its name if there is no file.
    ///
    /// # Errors
    /// Returns the errors of [`DropPlayer::read`] and [`DropPlayer::find`].
    pub fn open(file: Option<&Path>, name: &str) -> Result<DropPlayer, WeightsError> {
        match file {
            Some(path) => DropPlayer::read(path),
            None => Ok(DropPlayer::find(name)?),
        }
    }

    /// Reads a weights file.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if the file cannot be read or parsed, is too large, or is not for an agent.
    pub fn read(path: &Path) -> Result<DropPlayer, WeightsError> {
        let file = WeightsFile::read(path)?;
        let agent = find_agent(&file.player)
            .map_err(|error| WeightsError::Agent(path.to_owned(), error))?;
        let weights = file.in_order(agent.weight_names, path)?;
        Ok(DropPlayer { agent, weights })
    }

    /// Returns the same agent with other weights.
    pub fn with_weights(&self, weights: &[f64]) -> DropPlayer {
        DropPlayer {
            agent: self.agent,
            weights: weights.to_vec(),
        }
    }

    /// Returns the contents of a weights file for this player.
    pub fn file(&self) -> WeightsFile {
        WeightsFile::new(self.agent.name, self.agent.weight_names, &self.weights)
    }
}

/// A search for Nintendo Tetris with its weights.
#[derive(Clone, Debug)]
pub struct NesPlayer {
    /// The search.
    pub search: &'static RegisteredSearch,
    /// Its weights.
    pub weights: Vec<f64>,
}

impl NesPlayer {
    /// Finds a search by its name, with its own weights.
    ///
    /// # Errors
    /// Returns an error if there is no such search.
    pub fn find(name: &str) -> Result<NesPlayer, UnknownSearch> {
        let search = find_search(name)?;
        let weights = search.weights.to_vec();
        Ok(NesPlayer { search, weights })
    }

    /// Reads a file, or finds a search by its name if there is no file.
    ///
    /// # Errors
    /// Returns the errors of [`NesPlayer::read`] and [`NesPlayer::find`].
    pub fn open(file: Option<&Path>, name: &str) -> Result<NesPlayer, WeightsError> {
        match file {
            Some(path) => NesPlayer::read(path),
            None => Ok(NesPlayer::find(name)?),
        }
    }

    /// Reads a weights file, or a file with weights of the search `learned`.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if the file cannot be read or parsed, is too large, or is not for a search.
    pub fn read(path: &Path) -> Result<NesPlayer, WeightsError> {
        let bytes = read(path)?;
        let find = |name: &str| {
            find_search(name).map_err(|error| WeightsError::Search(path.to_owned(), error))
        };
        if let Some(weights) = read_patterns(&bytes) {
            return Ok(NesPlayer {
                search: find("learned")?,
                weights: weights.into_iter().map(f64::from).collect(),
            });
        }
        if bytes.starts_with(&PATTERNS_MAGIC) {
            return Err(WeightsError::DamagedPatterns(path.to_owned()));
        }
        let file = WeightsFile::parse(&bytes, path)?;
        let search = find(&file.player)?;
        let weights = file.in_order(search.weight_names, path)?;
        Ok(NesPlayer { search, weights })
    }
}

/// Returns the contents of a weights file.
fn read(path: &Path) -> Result<Vec<u8>, WeightsError> {
    let bytes = read_limited(path).map_err(|error| WeightsError::Read(path.to_owned(), error))?;
    bytes.ok_or_else(|| WeightsError::TooLarge(path.to_owned()))
}

/// Returns the contents of a file, or `None` if it has more than [`MAX_FILE_BYTES`].
pub(crate) fn read_limited(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // Check the size after reading, because a device or a pipe reports no size.
    let mut limited = File::open(path)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_in_order_and_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            WeightsFile::read(file.path())
                .and_then(|weights| weights.in_order(&["b", "a"], file.path()))
        };
        let right = "player = \"bcts\"\n[weights]\na = 1\nb = -2.5\n";
        assert_eq!(read(right).unwrap(), [-2.5, 1.0]);
        assert!(matches!(read("player = 1"), Err(WeightsError::Parse(..))));
        let missing = read("player = \"x\"\n[weights]\na = 1.0\n");
        assert!(matches!(missing, Err(WeightsError::Missing { missing, .. }) if missing == "b"));
        let endless = read("player = \"x\"\n[weights]\na = 1.0\nb = inf\n");
        assert!(matches!(endless, Err(WeightsError::Missing { missing, .. }) if missing == "b"));
        let unknown = read("player = \"x\"\n[weights]\na = 1.0\nb = 1.0\nc = 0.0\n");
        assert!(matches!(unknown, Err(WeightsError::Unknown { name, .. }) if name == "c"));
        let large = " ".repeat(MAX_FILE_BYTES as usize + 1);
        assert!(matches!(read(&large), Err(WeightsError::TooLarge(_))));
    }
}
