//! A search with one method, which records values in a journal and finds the best point.

use crate::journal::{Journal, JournalError};
use crate::method::{Method, Plan};
use crate::parameter::{Parameter, ParameterError, Point};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use thiserror::Error;

/// Settings of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Optimization method.
    pub method: Method,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of evaluations. Methods with populations round it up to whole generations.
    pub evaluations: usize,
    /// Number of points in a generation, at least four. [`Method::Simplers`] ignores it.
    pub population: usize,
    /// Number of threads. It does not change the result.
    pub threads: usize,
}

/// A point with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Value of each parameter.
    pub weights: Vec<f64>,
    /// Value that the objective returned for the weights.
    pub value: f64,
    /// Number of evaluations so far, including this one and evaluations from the journal.
    pub number: usize,
    /// Whether this process measured the value. If not, the value is from the journal.
    pub is_new: bool,
    /// Best value so far, including this one.
    pub best: f64,
}

impl Evaluation {
    /// Returns `true` if no earlier value is better.
    pub fn is_best(&self) -> bool {
        self.value >= self.best
    }

    /// Returns the evaluation as a line of text with named weights.
    pub fn row(&self, names: &[&str], unit: &str) -> String {
        let weights = names.iter().zip(&self.weights);
        let weights: Vec<String> = weights
            .map(|(name, weight)| format!("{name}={weight:.2}"))
            .collect();
        format!(
            "{:>6}  {:.2} {unit}  {}\n",
            self.number,
            self.value,
            weights.join(" ")
        )
    }

    /// Returns the evaluation as a JSON object with named weights.
    pub fn json(&self, names: &[&str]) -> Value {
        let weights: Map<String, Value> = names
            .iter()
            .zip(&self.weights)
            .map(|(name, &weight)| ((*name).to_owned(), weight.into()))
            .collect();
        json!({"number": self.number, "value": self.value, "best": self.best, "weights": weights})
    }
}

/// Search error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The list of parameters is empty.
    #[error("there is nothing to tune: name at least one weight")]
    NoParameter,
    /// The population is too small.
    #[error("a population of {0} is too small: use at least 4")]
    Population(usize),
    /// The range of a parameter is not valid.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The journal cannot be opened or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The threads cannot be created.
    #[error("cannot create threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The folder or a file in it cannot be written.
    #[error("{}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The objective stopped the search.
    #[error("the search was interrupted")]
    Interrupted,
}

/// Result of a search.
#[derive(Debug)]
pub struct Outcome {
    /// The best point found, which may also exist after an error.
    pub best: Option<Evaluation>,
    /// Reason why the search ended early, or `None` if it is complete.
    pub error: Option<SearchError>,
}

impl Outcome {
    fn failed(error: SearchError) -> Outcome {
        Outcome {
            best: None,
            error: Some(error),
        }
    }

    /// Returns the best point of a complete search.
    ///
    /// # Errors
    /// Returns the reason why the search ended early.
    pub fn into_best(self) -> Result<Evaluation, SearchError> {
        match self.error {
            Some(error) => Err(error),
            None => self.best.ok_or(SearchError::Interrupted),
        }
    }
}

/// Searches for the point with the greatest value. If several points have this value, the result is the point whose
/// weights come first in lexicographic order, so the result does not depend on timing.
///
/// `objective` returns the value for the given weights, or `None` to interrupt the search. It must return the same
/// finite value for the same weights. `on_value` is called after each evaluation.
///
/// The search ends early if the settings are not valid, the journal cannot be written, or the objective interrupts it.
pub fn search(
    parameters: &[Parameter],
    settings: &Settings,
    journal: Journal,
    objective: &(dyn Fn(&[f64]) -> Option<f64> + Sync),
    on_value: &(dyn Fn(&Evaluation) + Sync),
) -> Outcome {
    if let Err(error) = check(parameters, settings) {
        return Outcome::failed(error);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads.max(1));
    let pool = match pool.build() {
        Ok(pool) => pool,
        Err(error) => return Outcome::failed(error.into()),
    };
    let plan = Plan {
        start: parameters.iter().map(Parameter::unit_start).collect(),
        seed: settings.seed,
        evaluations: settings.evaluations,
        population: settings.population,
    };
    let recorder = Recorder {
        parameters,
        objective,
        on_value,
        state: Mutex::new(State {
            journal,
            number: 0,
            best: None,
            error: None,
        }),
    };
    pool.install(|| {
        // The start is evaluated first, because some methods ignore it.
        if recorder.value(&plan.start).is_some() {
            settings.method.run(&plan, &|point| recorder.value(point));
        }
    });
    let state = recorder
        .state
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    Outcome {
        best: state.best,
        error: state.error,
    }
}

fn check(parameters: &[Parameter], settings: &Settings) -> Result<(), SearchError> {
    if parameters.is_empty() {
        return Err(SearchError::NoParameter);
    }
    if settings.population < 4 {
        return Err(SearchError::Population(settings.population));
    }
    parameters.iter().try_for_each(Parameter::check)?;
    Ok(())
}

/// Evaluates points, records their values, and keeps the best point.
struct Recorder<'a> {
    parameters: &'a [Parameter],
    objective: &'a (dyn Fn(&[f64]) -> Option<f64> + Sync),
    on_value: &'a (dyn Fn(&Evaluation) + Sync),
    state: Mutex<State>,
}

struct State {
    journal: Journal,
    number: usize,
    best: Option<Evaluation>,
    /// Reason to stop the search.
    error: Option<SearchError>,
}

impl Recorder<'_> {
    /// Returns the value of the point at these coordinates, or `None` if the search must stop.
    fn value(&self, coordinates: &[f64]) -> Option<f64> {
        let point = Point::nearest(coordinates);
        let known = {
            let state = self.state();
            if state.error.is_some() {
                return None;
            }
            state.journal.get(&point)
        };
        let weights = point.values(self.parameters);
        let measured = match known {
            Some(value) => Some(value),
            None => (self.objective)(&weights),
        };
        let mut state = self.state();
        let Some(value) = measured else {
            state.error.get_or_insert(SearchError::Interrupted);
            return None;
        };
        if known.is_none()
            && let Err(error) = state.journal.add(point, value)
        {
            state.error.get_or_insert(error.into());
            return None;
        }
        let evaluation = state.record(weights, value, known.is_none());
        drop(state);
        (self.on_value)(&evaluation);
        Some(value)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

impl State {
    fn record(&mut self, weights: Vec<f64>, value: f64, is_new: bool) -> Evaluation {
        self.number += 1;
        let is_best = self
            .best
            .as_ref()
            .is_none_or(|best| value > best.value || value == best.value && weights < best.weights);
        let mut evaluation = Evaluation {
            weights,
            value,
            number: self.number,
            is_new,
            best: value,
        };
        if is_best {
            self.best = Some(evaluation.clone());
        } else if let Some(best) = &self.best {
            evaluation.best = best.value;
        }
        evaluation
    }
}
