//! Weights of an evaluator, set by name in a file or on a command line.

use hatebeam_search::{EvaluatorKind, Quiescence, Weights};
use serde::Deserialize;
use serde_json::{Number, Value};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use thiserror::Error;

/// Maximum size of a weights file, about fifty times the size of a file with every weight.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Weights that can be set by their names. Initially they have the values that the player knewjade published.
#[derive(Clone, Debug)]
pub struct NamedWeights(Value);

/// A weights file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsFile {
    /// The evaluator.
    pub evaluator: Option<EvaluatorKind>,
    /// The quiescence of the evaluator.
    pub quiescence: Option<Quiescence>,
    /// The value of each weight in the file, keyed by the weight's name.
    #[serde(default)]
    pub weights: toml::Table,
}

/// Error for invalid weights.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is too large.
    #[error("the weights file is too large: it can have at most {} KiB", MAX_FILE_BYTES >> 10)]
    TooLarge,
    /// The file is not TOML with these fields.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A weight is not a number.
    #[error("the weight of {0} is not a number")]
    NotNumber(String),
    /// A weight is not finite.
    #[error("the weight of {name} is {value}: give a finite number")]
    NotFinite {
        /// Name of the weight.
        name: String,
        /// The weight.
        value: f64,
    },
    /// There is no such weight.
    #[error("unknown weight {name:?}: choose one of {known}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
}

impl WeightsFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if the file cannot be read or parsed.
    pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
        let mut text = String::new();
        // The size is checked after reading, because the path may name a device, which reports no size.
        let mut limited = fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
        limited.read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(WeightsError::TooLarge);
        }
        Ok(toml::from_str(&text)?)
    }
}

impl Default for NamedWeights {
    fn default() -> NamedWeights {
        NamedWeights(serde_json::json!(Weights::default()))
    }
}

impl NamedWeights {
    /// Sets the weights of a file.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if a weight is unknown or not a finite number.
    pub fn set_all(&mut self, file: &WeightsFile) -> Result<(), WeightsError> {
        for (name, value) in &file.weights {
            let number = match value {
                toml::Value::Float(number) => *number,
                toml::Value::Integer(number) => *number as f64,
                _ => return Err(WeightsError::NotNumber(name.clone())),
            };
            self.set(name, number)?;
        }
        Ok(())
    }

    /// Sets the weight `name`.
    ///
    /// # Errors
    /// Returns a [`WeightsError`] if the weight is unknown or the value is not finite.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), WeightsError> {
        let Some(number) = Number::from_f64(value) else {
            let name = name.to_owned();
            return Err(WeightsError::NotFinite { name, value });
        };
        match self.0.get_mut(name) {
            Some(weight) => {
                *weight = Value::Number(number);
                Ok(())
            }
            None => {
                let known = self.0.as_object().into_iter().flatten();
                let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
                Err(WeightsError::Unknown {
                    name: name.to_owned(),
                    known: known.join(", "),
                })
            }
        }
    }

    /// Returns the weights.
    ///
    /// # Errors
    /// Returns no error in practice, because all values are numbers.
    pub fn weights(self) -> Result<Weights, serde_json::Error> {
        serde_json::from_value(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_values_that_are_not_numbers_are_errors() {
        let mut weights = NamedWeights::default();
        weights.set("holes", 12.5).unwrap();
        let unknown = weights.set("hole", 1.0).unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown weight \"hole\": choose one of ")
                && unknown.contains(", holes,"),
            "{unknown}"
        );
        assert!(weights.set("holes", f64::NAN).is_err());
        let file: WeightsFile = toml::from_str("[weights]\nscore = -4\n").unwrap();
        weights.set_all(&file).unwrap();
        let expected = Weights {
            holes: 12.5,
            score: -4.0,
            ..Weights::default()
        };
        assert_eq!(weights.weights().unwrap(), expected);
        let text: WeightsFile = toml::from_str("[weights]\nholes = \"many\"\n").unwrap();
        assert!(NamedWeights::default().set_all(&text).is_err());
    }
}
