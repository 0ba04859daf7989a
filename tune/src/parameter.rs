//! Parameters and points of a search.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use thiserror::Error;

/// Number of steps between the minimum and the maximum of a parameter.
pub const GRID: u32 = 1 << 16;

/// A weight to optimize.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name of the weight.
    pub name: String,
    /// Starting value for methods that use a starting point.
    pub start: f64,
    /// Minimum value.
    pub min: f64,
    /// Maximum value.
    pub max: f64,
}

/// Error for a parameter with an invalid range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "the range of {} is {} to {} with start {}: use finite numbers, with the minimum below the maximum and the start \
     between them",
    .0.name, .0.min, .0.max, .0.start
)]
pub struct ParameterError(Parameter);

/// Name of a weight to tune, and optionally its range.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedWeight {
    /// Name of the weight.
    pub name: String,
    /// Minimum and maximum, or `None` for the default range around the start value.
    pub range: Option<[f64; 2]>,
}

/// Error for the names of weights to tune.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TunedWeightError {
    /// There is no weight with this name.
    #[error("unknown weight {name:?}: choose one of {known}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// A weight is named twice.
    #[error("the weight {0:?} is named twice: give it once")]
    Twice(String),
}

impl TunedWeight {
    /// Returns the weights in `tuned`, or if there are none, all weights with their default ranges. `names` are the names
    /// of all weights.
    ///
    /// # Errors
    /// Returns an error if a name in `tuned` is unknown or occurs twice.
    pub fn chosen(
        tuned: &[TunedWeight],
        names: &[&str],
    ) -> Result<Vec<TunedWeight>, TunedWeightError> {
        for (index, TunedWeight { name, .. }) in tuned.iter().enumerate() {
            if !names.contains(&name.as_str()) {
                return Err(TunedWeightError::Unknown {
                    name: name.clone(),
                    known: names.join(", "),
                });
            }
            if tuned[..index].iter().any(|other| other.name == *name) {
                return Err(TunedWeightError::Twice(name.clone()));
            }
        }
        if !tuned.is_empty() {
            return Ok(tuned.to_vec());
        }
        let all = names.iter().map(|&name| TunedWeight {
            name: name.to_owned(),
            range: None,
        });
        Ok(all.collect())
    }

    /// Creates the parameter of the weight. `default` is the default range. If `start` is outside the range, the nearest
    /// limit replaces it.
    pub fn parameter(&self, start: f64, default: [f64; 2]) -> Parameter {
        let [min, max] = self.range.unwrap_or(default);
        Parameter {
            name: self.name.clone(),
            start: start.max(min).min(max),
            min,
            max,
        }
    }
}

impl FromStr for TunedWeight {
    type Err = String;

    /// Parses `name` or `name=min..max`.
    fn from_str(text: &str) -> Result<TunedWeight, String> {
        let Some((name, range)) = text.split_once('=') else {
            return Ok(TunedWeight {
                name: text.to_owned(),
                range: None,
            });
        };
        let range = range.split_once("..").and_then(|(min, max)| {
            let range: [f64; 2] = [min.parse().ok()?, max.parse().ok()?];
            let is_finite = range.iter().all(|limit| limit.is_finite());
            (is_finite && range[0] < range[1]).then_some(range)
        });
        let Some(range) = range else {
            return Err(format!(
                "{text:?} is not a range: write min..max with min less than max, such as {name}=-10..40"
            ));
        };
        Ok(TunedWeight {
            name: name.to_owned(),
            range: Some(range),
        })
    }
}

impl Parameter {
    /// Returns a parameter between 0 and 1.
    #[cfg(test)]
    pub(crate) fn of_tests() -> Parameter {
        Parameter {
            name: "a".to_owned(),
            start: 0.0,
            min: 0.0,
            max: 1.0,
        }
    }

    /// Checks the range.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        let is_finite = (self.max - self.min).is_finite();
        if is_finite && self.min < self.max && (self.min..=self.max).contains(&self.start) {
            return Ok(());
        }
        Err(ParameterError(self.clone()))
    }

    /// Returns the position of the start within the range, from 0 to 1.
    pub(crate) fn unit_start(&self) -> f64 {
        (self.start - self.min) / (self.max - self.min)
    }

    fn value(&self, step: u32) -> f64 {
        let share = f64::from(step) / f64::from(GRID);
        self.min + share * (self.max - self.min)
    }
}

/// A point on the grid: for each parameter, the number of steps above its minimum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point(Vec<u32>);

impl Point {
    /// Returns the grid point nearest to the given coordinates, which are clamped to the range from 0 to 1.
    pub(crate) fn nearest(coordinates: &[f64]) -> Point {
        let step = |&share: &f64| (share.clamp(0.0, 1.0) * f64::from(GRID)).round() as u32;
        Point(coordinates.iter().map(step).collect())
    }

    /// Returns `true` if the point has a valid coordinate for each of `count` parameters.
    pub(crate) fn is_valid(&self, count: usize) -> bool {
        self.0.len() == count && self.0.iter().all(|&step| step <= GRID)
    }

    /// Returns the value of each parameter.
    pub fn values(&self, parameters: &[Parameter]) -> Vec<f64> {
        let steps = parameters.iter().zip(&self.0);
        steps
            .map(|(parameter, &step)| parameter.value(step))
            .collect()
    }
}
