//! Tuning of the weights of the evaluator `knewjade`, based on the length of games in beam searches.

use crate::beam::{BeamSettings, run_beam};
use hatebeam_game::{Emulator, Geometry, Rules};
use hatebeam_search::{
    Evaluator, EvaluatorError, EvaluatorKind, EvaluatorSpec, Quiescence, Weights,
};
use hatebeam_tune::{Evaluation, Measured, Objective, Parameter, TunedWeight, TunedWeightError};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Maximum number of pieces in a game. Games in these beams are far shorter.
const MAX_PIECES: usize = 5000;

/// Default range of each weight: the start value plus or minus this number, within the range that the evaluator accepts.
const SPANS: [(&str, f64); 11] = [
    ("holes", 40.0),
    ("enclosed", 100.0),
    ("enclosed_lines", 200.0),
    ("surface_height", 100.0),
    ("stack_height", 100.0),
    ("bumpiness", 20.0),
    ("gaps", 100.0),
    ("steps", 20.0),
    ("erasability", 200.0),
    ("erasability_sz", 200.0),
    ("score", 600.0),
];

/// Error in the settings of a tuning run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuningError {
    /// A name of a weight is unknown or occurs twice.
    #[error(transparent)]
    Weight(#[from] TunedWeightError),
    /// The evaluator refuses the minimum or the maximum of a range.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
}

/// Mean number of pieces in the longest games of several beams, as a function of the weights of `knewjade`.
pub struct BeamObjective {
    emulator: Emulator,
    parameters: Vec<Parameter>,
    /// Start values of all weights, by name.
    weights: Value,
    quiescence: Quiescence,
    widths: Vec<usize>,
    cancel: Arc<AtomicBool>,
}

impl BeamObjective {
    /// Creates the objective. If `tuned` is empty, all weights are tuned. Each evaluation runs one beam search for
    /// each width, and stops early when `cancel` becomes `true`.
    ///
    /// # Errors
    /// Returns a [`TuningError`] if a weight is unknown or named twice, or the evaluator refuses the limits of a range.
    pub fn new(
        start: &Weights,
        tuned: &[TunedWeight],
        quiescence: Quiescence,
        widths: Vec<usize>,
        cancel: Arc<AtomicBool>,
    ) -> Result<BeamObjective, TuningError> {
        let weights = json!(start);
        let tuned = TunedWeight::chosen(tuned, &SPANS.map(|(name, _)| name))?;
        let parameters = tuned.iter().map(|weight| parameter(weight, &weights));
        let objective = BeamObjective {
            emulator: Emulator::new(Geometry::STANDARD, Rules::default()),
            parameters: parameters.collect(),
            weights,
            quiescence,
            widths,
            cancel,
        };
        for limits in [
            |parameter: &Parameter| parameter.min,
            |parameter: &Parameter| parameter.max,
        ] {
            let weights: Vec<f64> = objective.parameters.iter().map(limits).collect();
            objective.spec(&weights).check()?;
        }
        Ok(objective)
    }

    fn named(&self, values: &[f64]) -> Value {
        let mut weights = self.weights.clone();
        for (parameter, &value) in self.parameters.iter().zip(values) {
            weights[&parameter.name] = value.into();
        }
        weights
    }

    fn spec(&self, values: &[f64]) -> EvaluatorSpec {
        let weights = serde_json::from_value(self.named(values));
        EvaluatorSpec {
            kind: EvaluatorKind::Knewjade,
            weights: weights.expect("all values are numbers"),
            quiescence: self.quiescence,
        }
    }

    /// Returns the number of pieces in the longest game of a beam.
    fn pieces(&self, spec: &EvaluatorSpec, width: usize) -> usize {
        let evaluator = Evaluator::new(&self.emulator, spec);
        let mut evaluator = evaluator.expect("weights between the limits are valid");
        let settings = BeamSettings::new(width, MAX_PIECES);
        run_beam(&self.emulator, &mut evaluator, &settings, &self.cancel).pieces()
    }
}

fn parameter(weight: &TunedWeight, start: &Value) -> Parameter {
    let span = SPANS.iter().find(|(name, _)| *name == weight.name);
    let (name, span) = span.expect("the names were checked");
    let start = start[name].as_f64().unwrap_or(0.0);
    let default = [start - span, start + span];
    weight.parameter(
        start,
        default.map(|limit| limit.clamp(-Weights::MAX, Weights::MAX)),
    )
}

impl Objective for BeamObjective {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn description(&self) -> Value {
        json!({
            "value": "mean number of pieces",
            "widths": self.widths,
            "quiescence": self.quiescence,
            "weights": self.weights,
        })
    }

    fn has_rounds(&self) -> bool {
        false
    }

    fn measure(&self, weights: &[f64], _round: usize) -> Option<Measured> {
        let spec = self.spec(weights);
        let widths = self.widths.par_iter();
        let pieces: usize = widths.map(|&width| self.pieces(&spec, width)).sum();
        let is_cancelled = self.cancel.load(Ordering::Relaxed);
        (!is_cancelled).then(|| Measured::exact(pieces as f64 / self.widths.len() as f64))
    }

    fn weights_file(&self, best: &Evaluation) -> String {
        let mut text = format!(
            "# Weights for the evaluator knewjade: {:.1} pieces on average in beams of widths {:?}.\n\
             evaluator = \"knewjade\"\nquiescence = \"{}\"\n\n[weights]\n",
            best.value,
            self.widths,
            self.quiescence.name(),
        );
        for (name, value) in self.named(&best.weights).as_object().into_iter().flatten() {
            let _ = writeln!(text, "{name} = {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_tune::{Method, Settings, tune};

    fn objective(tuned: &[TunedWeight]) -> Result<BeamObjective, TuningError> {
        let start = Weights::default();
        let cancel = Arc::default();
        BeamObjective::new(&start, tuned, Quiescence::Off, vec![20, 30], cancel)
    }

    #[test]
    fn unknown_and_extreme_weights_are_refused() {
        let weight = |name: &str, range| TunedWeight {
            name: name.to_owned(),
            range,
        };
        let name_error = |tuned: &[TunedWeight]| match objective(tuned) {
            Err(TuningError::Weight(error)) => error,
            _ => panic!("{tuned:?} was not refused"),
        };
        let unknown = name_error(&[weight("hole", None)]);
        assert!(matches!(unknown, TunedWeightError::Unknown { .. }));
        let twice = name_error(&[weight("holes", None), weight("holes", Some([0.0, 1.0]))]);
        assert_eq!(twice, TunedWeightError::Twice("holes".to_owned()));
        let far = objective(&[weight("holes", Some([0.0, 1e6]))]);
        assert!(matches!(far, Err(TuningError::Evaluator(_))));
        assert_eq!(objective(&[]).unwrap().parameters().len(), SPANS.len());
    }

    #[test]
    fn default_range_ends_at_greatest_weight() {
        let start = Weights {
            holes: Weights::MAX,
            score: 10.0 - Weights::MAX,
            ..Weights::default()
        };
        let objective = BeamObjective::new(&start, &[], Quiescence::Off, vec![20], Arc::default());
        let objective = objective.unwrap();
        let range = |name| {
            let mut parameters = objective.parameters().iter();
            let parameter = parameters.find(|parameter| parameter.name == name);
            parameter.map(|parameter| [parameter.min, parameter.start, parameter.max])
        };
        assert_eq!(range("holes"), Some([4056.0, 4096.0, 4096.0]));
        assert_eq!(range("score"), Some([-4096.0, -4086.0, -3486.0]));
    }

    #[test]
    fn tuned_weights_give_longer_games() {
        let folder = tempfile::tempdir().unwrap();
        let objective = objective(&[]).unwrap();
        let start: Vec<f64> = objective
            .parameters()
            .iter()
            .map(|parameter| parameter.start)
            .collect();
        let before = objective.measure(&start, 0).unwrap().value;
        let settings = Settings {
            method: Method::CmaEs,
            seed: 1,
            evaluations: 60,
            population: 10,
            threads: 2,
        };
        let (best, file) = tune(folder.path(), &objective, &settings, &|_| ()).unwrap();
        assert!(
            best.value > before,
            "{} pieces with tuned weights, {before} before",
            best.value
        );
        let text = std::fs::read_to_string(file).unwrap();
        let weights: toml::Table = toml::from_str(&text).unwrap();
        let weights: Weights = weights["weights"].clone().try_into().unwrap();
        assert_eq!(weights, objective.spec(&best.weights).weights);
    }
}
