//! A search with one method, which records values in a journal and finds the best point.

use crate::journal::{Journal, JournalError, Measured};
use crate::method::{Method, Plan};
use crate::parameter::{Parameter, ParameterError, Point};
use serde_json::{Map, Value, json};
use std::cmp;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use thiserror::Error;

/// Settings of a search.
#[derive(Clone, Debug, PartialEq)]
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
    /// Mean of the values that the objective returned for the weights in all rounds so far.
    pub value: f64,
    /// Half the width of the 95 % confidence interval of `value`, or 0 if it is exact.
    pub half_width: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// Number of evaluations so far, including this one and evaluations from the journal.
    pub number: usize,
    /// Whether this process measured the value. If not, the value is from the journal.
    pub is_new: bool,
    /// Value of the best point so far, including this one.
    pub best: f64,
    /// Whether no earlier point is better.
    pub is_best: bool,
}

impl Evaluation {
    /// Returns the value as text, with its confidence interval and unit.
    pub fn value_text(&self, unit: &str) -> String {
        if self.half_width > 0.0 {
            format!("{:.2} ± {:.2} {unit}", self.value, self.half_width)
        } else {
            format!("{:.2} {unit}", self.value)
        }
    }

    /// Compares the evaluations of two points, where the better point is greater. A value from a single round is
    /// probably too high if it is the best of many, so any value from several rounds is better.
    fn compare(&self, other: &Evaluation) -> cmp::Ordering {
        let key = |one: &Evaluation| one.rounds > 1;
        let values = self.value.total_cmp(&other.value);
        key(self).cmp(&key(other)).then(values)
    }

    /// Compares the evaluations of two points. Of equally good points, the point whose weights come first in
    /// lexicographic order is greater.
    fn order(&self, other: &Evaluation) -> cmp::Ordering {
        let weights = other.weights.partial_cmp(&self.weights);
        self.compare(other)
            .then(weights.unwrap_or(cmp::Ordering::Equal))
    }

    /// Returns the evaluation as a line of text with named weights.
    pub fn row(&self, names: &[&str], unit: &str) -> String {
        let weights = names.iter().zip(&self.weights);
        let weights: Vec<String> = weights
            .map(|(name, weight)| format!("{name}={weight:.2}"))
            .collect();
        format!(
            "{:>6}  {}  {}\n",
            self.number,
            self.value_text(unit),
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
        json!({
            "number": self.number, "value": self.value, "half_width": self.half_width, "rounds": self.rounds,
            "best": self.best, "weights": weights,
        })
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
    #[error("cannot write {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The objective stopped the search.
    #[error("the search was interrupted")]
    Interrupted,
}

/// Function that measures weights in a round. See [`search`].
type Measure<'a> = dyn Fn(&[f64], usize) -> Option<Measured> + Sync + 'a;

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
/// weights come first in lexicographic order, so the result does not depend on timing. If a method measures points in
/// several rounds, the result is one of the points with more than one round. All points in the journal count, also those
/// that another method or another seed has measured.
///
/// `objective` returns the value for the given weights and round, or `None` to interrupt the search. It must return the
/// same finite value for the same weights and round. If `has_rounds` is false, the round is always 0. `on_value` is called
/// after each evaluation.
///
/// The search ends early if the settings are not valid, the journal cannot be written, or the objective interrupts it.
pub fn search(
    parameters: &[Parameter],
    settings: &Settings,
    journal: Journal,
    has_rounds: bool,
    objective: &Measure<'_>,
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
        has_rounds,
    };
    let recorder = Recorder {
        parameters,
        objective,
        on_value,
        state: Mutex::new(State::new(journal)),
    };
    pool.install(|| {
        // The start is evaluated first, because some methods ignore it.
        if recorder.value(&plan.start, 0).is_some() {
            let value = |point: &[f64], round| recorder.value(point, round);
            settings.method.run(&plan, &value);
        }
    });
    let mut state = recorder
        .state
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    state.record_rest(parameters);
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
    objective: &'a Measure<'a>,
    on_value: &'a (dyn Fn(&Evaluation) + Sync),
    state: Mutex<State>,
}

struct State {
    journal: Journal,
    number: usize,
    points: HashMap<Point, Rated>,
    /// The greatest of the last evaluations of all points.
    best: Option<Evaluation>,
    /// Reason to stop the search.
    error: Option<SearchError>,
}

impl Recorder<'_> {
    /// Returns the value of the point at these coordinates in a round, or `None` if the search must stop.
    fn value(&self, coordinates: &[f64], round: usize) -> Option<f64> {
        let key = (Point::nearest(coordinates), round);
        let known = {
            let state = self.state();
            if state.error.is_some() {
                return None;
            }
            state.journal.get(&key)
        };
        let weights = key.0.values(self.parameters);
        let measured = known.or_else(|| (self.objective)(&weights, round));
        let mut state = self.state();
        let Some(measured) = measured else {
            state.error.get_or_insert(SearchError::Interrupted);
            return None;
        };
        // Another thread failed to write to the journal during the measurement. A line of this thread could follow an
        // incomplete line. After an interruption, the value is still worth recording.
        if matches!(state.error, Some(SearchError::Journal(_))) {
            return None;
        }
        if known.is_none()
            && let Err(error) = state.journal.add(key.clone(), measured)
        {
            state.error.get_or_insert(error.into());
            return None;
        }
        let evaluation = state.record(key, weights, measured, known.is_none());
        drop(state);
        (self.on_value)(&evaluation);
        Some(measured.value)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

/// A point's sums over its rounds, and its evaluation after the last of them.
#[derive(Default)]
struct Rated {
    total: Total,
    last: Option<Evaluation>,
}

/// Sums over the rounds of a point.
#[derive(Clone, Copy, Default)]
struct Total {
    rounds: usize,
    value: f64,
    /// Sum of the squares of the half-widths.
    squares: f64,
}

impl State {
    fn new(journal: Journal) -> State {
        State {
            journal,
            number: 0,
            points: HashMap::new(),
            best: None,
            error: None,
        }
    }

    /// Records the values of the journal that the search has not asked for, such as those of another method.
    fn record_rest(&mut self, parameters: &[Parameter]) {
        for (key, measured) in self.journal.take_values() {
            let rated = self.points.get(&key.0);
            // Rounds that the search has asked for count already.
            if key.1 == rated.map_or(0, |rated| rated.total.rounds) {
                let weights = key.0.values(parameters);
                self.record(key, weights, measured, false);
            }
        }
    }

    fn record(
        &mut self,
        (point, round): (Point, usize),
        weights: Vec<f64>,
        measured: Measured,
        is_new: bool,
    ) -> Evaluation {
        self.number += 1;
        let rated = self.points.entry(point).or_default();
        let total = &mut rated.total;
        // A method may ask for the same value again.
        if round == total.rounds {
            total.rounds += 1;
            total.value += measured.value;
            total.squares += measured.half_width.powi(2);
        }
        let rounds = total.rounds as f64;
        let mut evaluation = Evaluation {
            weights,
            value: total.value / rounds,
            half_width: total.squares.sqrt() / rounds,
            rounds: total.rounds,
            number: self.number,
            is_new,
            best: total.value / rounds,
            is_best: true,
        };
        rated.last = Some(evaluation.clone());
        let rival = match &self.best {
            // Another round can make the best point worse than any other point.
            Some(best) if best.weights == evaluation.weights => {
                let points = self.points.values().filter_map(|rated| rated.last.as_ref());
                points.max_by(|one, other| one.order(other)).cloned()
            }
            best => best.clone(),
        };
        if let Some(rival) = rival {
            evaluation.is_best = evaluation.compare(&rival).is_ge();
            if evaluation.order(&rival).is_le() {
                evaluation.best = rival.value;
                self.best = Some(rival);
                return evaluation;
            }
        }
        self.best = Some(evaluation.clone());
        evaluation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[derive(Clone, Copy)]
    struct Value {
        point: f64,
        round: usize,
        value: f64,
    }

    /// Records values, and returns the last evaluation.
    fn record(state: &mut State, parameters: &[Parameter], values: &[Value]) -> Evaluation {
        let mut last = None;
        for &Value {
            point,
            round,
            value,
        } in values
        {
            let key = (Point::nearest(&[point]), round);
            let weights = key.0.values(parameters);
            last = Some(state.record(key, weights, Measured::exact(value), true));
        }
        last.unwrap()
    }

    #[test]
    fn nothing_is_recorded_after_a_failed_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let parameters = [Parameter::of_tests()];
        let state = State::new(Journal::open(&path, &parameters, json!(0)).unwrap());
        let before = std::fs::read(&path).unwrap();
        let (started, starts) = mpsc::channel();
        let (failed, fails) = mpsc::channel();
        let channels = Mutex::new((started, fails));
        let objective = |_: &[f64], _| {
            let channels = channels.lock().unwrap();
            channels.0.send(()).unwrap();
            channels.1.recv().unwrap();
            Some(Measured::exact(1.0))
        };
        let recorder = Recorder {
            parameters: &parameters,
            objective: &objective,
            on_value: &|_| (),
            state: Mutex::new(state),
        };
        std::thread::scope(|scope| {
            let value = scope.spawn(|| recorder.value(&[0.5], 0));
            starts.recv().unwrap();
            // Another thread fails during the measurement.
            let error = JournalError::InUse { path: path.clone() };
            recorder.state().error = Some(error.into());
            failed.send(()).unwrap();
            assert_eq!(value.join().unwrap(), None);
        });
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn best_point_loses_its_rank_when_its_mean_falls() {
        let folder = tempfile::tempdir().unwrap();
        let parameters = [Parameter::of_tests()];
        let state = |name| {
            let journal = Journal::open(&folder.path().join(name), &parameters, json!(0));
            State::new(journal.unwrap())
        };
        let of = |point, round, value| Value {
            point,
            round,
            value,
        };
        let rounds = [100.0, 60.0, 60.0].into_iter().enumerate();
        let rounds = rounds.map(|(round, lucky)| [of(0.25, round, lucky), of(0.75, round, 75.0)]);
        let mut values: Vec<Value> = rounds.flatten().collect();
        let mut first = state("first");
        let last = record(&mut first, &parameters, &values[..4]);
        assert!(!last.is_best && last.best == 80.0, "{last:?}");
        let last = record(&mut first, &parameters, &values[4..5]);
        assert!(!last.is_best && last.best == 75.0, "{last:?}");
        record(&mut first, &parameters, &values[5..]);
        // The order of the evaluations does not change the result.
        let mut second = state("second");
        values.chunks_mut(2).for_each(|round| round.swap(0, 1));
        record(&mut second, &parameters, &values);
        for state in [first, second] {
            let best = state.best.unwrap();
            assert_eq!(best.weights, [0.75]);
            assert_eq!([best.value, best.best], [75.0; 2]);
            assert_eq!(best.rounds, 3);
        }
    }

    #[test]
    fn values_of_earlier_searches_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let parameters = [Parameter::of_tests()];
        let journal = Journal::open(&folder.path().join("journal"), &parameters, json!(0));
        let mut state = State::new(journal.unwrap());
        let key = |point, round| (Point::nearest(&[point]), round);
        // The first round of the last point is missing.
        let values = [
            (0.25, 0, 9.0),
            (0.75, 0, 4.0),
            (0.75, 1, 8.0),
            (1.0, 1, 99.0),
        ];
        for (point, round, value) in values {
            let measured = Measured::exact(value);
            state.journal.add(key(point, round), measured).unwrap();
        }
        state.record(key(0.75, 0), vec![0.75], Measured::exact(4.0), false);
        state.record_rest(&parameters);
        let best = state.best.unwrap();
        assert_eq!(
            (best.weights, best.value, best.rounds),
            (vec![0.75], 6.0, 2)
        );
        assert_eq!(state.number, 3);
    }
}
