//! Objectives for tuning the weights of agents and searches. An objective is the mean score of games as a function of
//! the weights.

use crate::Statistics;
use crate::drop::DropRun;
use crate::nes::{GameRules, Widths, play};
use crate::weights::{DropPlayer, NesPlayer, WeightsFile};
use hatebeam_tetris::Piece;
use hatebeam_tune::{Evaluation, Measured, Objective, Parameter, TunedWeight, TunedWeightError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Half the width of a weight's range is the sum of `own` times its absolute start value and `greatest` times the
/// greatest absolute start value, which lets small weights and zeros change too.
struct Span {
    own: f64,
    greatest: f64,
}

/// Ranges of agents for dropped pieces.
const DROP_SPAN: Span = Span {
    own: 1.5,
    greatest: 0.25,
};
/// [`Span::greatest`] for searches for Nintendo Tetris.
const NES_GREATEST: f64 = 0.01;

/// Error for weights or ranges that cannot be tuned.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RangeError {
    /// The search has no named weights.
    #[error("weights of the search {0} cannot be tuned: use `learn`")]
    Learned(&'static str),
    /// The span is not a positive number.
    #[error("span {0} is not positive")]
    Span(f64),
    /// A name of a weight is unknown or occurs twice.
    #[error(transparent)]
    Weight(#[from] TunedWeightError),
}

/// Function that plays the game with the given number, using the given weights, and returns its score.
type Score<'a> = dyn Fn(&[f64], usize) -> f64 + Sync + 'a;

/// Mean score of a player's games, as a function of the player's weights. The pieces do not depend on the weights.
pub struct GamesObjective<'a> {
    player: &'static str,
    names: &'static [&'static str],
    /// Start values of all weights.
    start: Vec<f64>,
    /// The weights to tune.
    parameters: Vec<Parameter>,
    description: Value,
    games: usize,
    has_rounds: bool,
    unit: &'static str,
    score: Box<Score<'a>>,
    cancel: Arc<AtomicBool>,
}

/// Returns the parameters of the weights to tune, or of all weights if `tuned` is empty.
fn parameters(
    names: &[&str],
    start: &[f64],
    span: &Span,
    tuned: &[TunedWeight],
) -> Result<Vec<Parameter>, RangeError> {
    let greatest = start
        .iter()
        .fold(0.0, |greatest: f64, weight| greatest.max(weight.abs()));
    let tuned = TunedWeight::chosen(tuned, names)?;
    let parameter = |weight: &TunedWeight| {
        let index = names.iter().position(|name| *name == weight.name);
        let start = start[index.expect("the names were checked")];
        let span = span.own * start.abs() + span.greatest * greatest;
        weight.parameter(start, [start - span, start + span])
    };
    Ok(tuned.iter().map(parameter).collect())
}

impl<'a> GamesObjective<'a> {
    /// Creates the objective for an agent for dropped pieces: the mean number of rows that it clears in the games
    /// 0 to `games − 1`, and in further rounds in the games after them. If `tuned` is empty, all weights are tuned. An
    /// evaluation stops between games when `cancel` is true. Returns an error if a weight in `tuned` is unknown or
    /// occurs twice.
    pub fn drop(
        start: &DropPlayer,
        tuned: &[TunedWeight],
        run: &'a DropRun,
        games: usize,
        cancel: Arc<AtomicBool>,
    ) -> Result<GamesObjective<'a>, RangeError> {
        let agent = start.agent;
        let score = move |weights: &[f64], number: usize| {
            let mut agent = agent.with_weights(weights);
            run.play(agent.as_mut(), number as u64).lines as f64
        };
        Ok(GamesObjective {
            player: agent.name,
            names: agent.weight_names,
            start: start.weights.clone(),
            parameters: parameters(agent.weight_names, &start.weights, &DROP_SPAN, tuned)?,
            description: json!({"games": games, "rules_sha256": digest(&format!("{run:?}"))}),
            games,
            has_rounds: true,
            unit: "lines",
            score: Box::new(score),
            cancel,
        })
    }

    /// Creates the objective for a search for Nintendo Tetris: the mean score of one game per list of pieces. Half the
    /// width of a weight's range is about `span` times its start value. There are no further rounds. If `tuned` is
    /// empty, all weights are tuned. An evaluation stops between games when `cancel` is true. Returns an error if the
    /// weights cannot be tuned one by one, a weight in `tuned` is unknown or occurs twice, or `span` is not
    /// positive.
    pub fn nes(
        start: &NesPlayer,
        span: f64,
        tuned: &[TunedWeight],
        rules: &'a GameRules,
        widths: Option<Widths>,
        sets: &'a [Vec<Piece>],
        cancel: Arc<AtomicBool>,
    ) -> Result<GamesObjective<'a>, RangeError> {
        let search = start.search;
        if search.weight_names.is_empty() {
            return Err(RangeError::Learned(search.name));
        }
        if !span.is_finite() || span <= 0.0 {
            return Err(RangeError::Span(span));
        }
        let span = Span {
            own: span,
            greatest: NES_GREATEST,
        };
        let score = move |weights: &[f64], number: usize| {
            let mut search = search.with_weights(rules.rows, widths, weights);
            f64::from(play(search.as_mut(), &sets[number], rules).score.points)
        };
        let letters = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.letter()).collect();
        let letters: Vec<String> = sets.iter().map(letters).collect();
        let mut description = json!({
            "games": sets.len(), "pieces_sha256": digest(&letters.join("\n")), "rows": rules.rows.to_string(),
            "level": rules.start_level, "stop_lines": rules.stop_lines, "widths": format!("{widths:?}"),
        });
        if rules.gravity {
            description["gravity"] = true.into();
        }
        Ok(GamesObjective {
            player: search.name,
            names: search.weight_names,
            start: start.weights.clone(),
            parameters: parameters(search.weight_names, &start.weights, &span, tuned)?,
            description,
            games: sets.len(),
            has_rounds: false,
            unit: "points",
            score: Box::new(score),
            cancel,
        })
    }

    /// Returns all weights: the given values of the tuned weights, and the start values of the others.
    fn file(&self, tuned: &[f64]) -> WeightsFile {
        let mut file = WeightsFile::new(self.player, self.names, &self.start);
        for (parameter, &value) in self.parameters.iter().zip(tuned) {
            file.weights.insert(parameter.name.clone(), value);
        }
        file
    }

    /// Returns the unit of the values.
    pub fn unit(&self) -> &'static str {
        self.unit
    }
}

fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

impl Objective for GamesObjective<'_> {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn description(&self) -> Value {
        let mut description = self.description.clone();
        description["player"] = self.player.into();
        if self.parameters.len() < self.names.len() {
            description["fixed"] = json!(self.start);
        }
        description
    }

    fn has_rounds(&self) -> bool {
        self.has_rounds
    }

    fn measure(&self, weights: &[f64], round: usize) -> Option<Measured> {
        let named = self.file(weights).weights;
        let weights: Vec<f64> = self.names.iter().map(|&name| named[name]).collect();
        let mut scores = Vec::with_capacity(self.games);
        for number in 0..self.games {
            if self.cancel.load(Ordering::Relaxed) {
                return None;
            }
            scores.push((self.score)(&weights, round * self.games + number));
        }
        let statistics = Statistics::of(scores)?;
        Some(Measured {
            value: statistics.mean,
            // The journal has no unknown widths. A value without an interval is written like an exact one.
            half_width: statistics.half_width.unwrap_or_default(),
        })
    }

    fn weights_file(&self, best: &Evaluation) -> String {
        let text = self.file(&best.weights).text();
        let (value, games) = (best.value_text(self.unit), best.rounds * self.games);
        format!("# Mean of {value} in {games} games.\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop::find_agent;
    use crate::nes::find_search;
    use hatebeam_tetris::drop::{DropGame, GeneratorKind, PieceSet};
    use hatebeam_tune::{Method, Settings, tune};

    #[test]
    fn ranges_of_nes_weights_follow_their_start_values() {
        let objective = |name: &str, span| {
            let search = find_search(name).unwrap();
            let weights = search.weights.to_vec();
            let player = NesPlayer { search, weights };
            let rules = &GameRules::ARTICLE;
            GamesObjective::nes(&player, span, &[], rules, None, &[], Arc::default())
                .map(|objective| objective.parameters)
        };
        let greatest = 25.267_981_421_496_216;
        for parameter in objective("bfs", 0.5).unwrap() {
            let half = (parameter.max - parameter.min) / 2.0;
            let expected = 0.5 * parameter.start.abs() + 0.01 * greatest;
            assert!((half - expected).abs() < 1e-9, "{parameter:?}");
        }
        assert_eq!(objective("bfs", 0.0).unwrap_err(), RangeError::Span(0.0));
        let learned = objective("learned", 0.5).unwrap_err();
        assert_eq!(learned, RangeError::Learned("learned"));
    }

    #[test]
    fn tuning_improves_bad_weights_and_writes_the_best_weights_to_a_file() {
        let run = DropRun {
            game: DropGame::new(6, 10, PieceSet::standard()).unwrap(),
            generator: GeneratorKind::Uniform,
            seed: 3,
            previews: 1,
            most_pieces: 300,
        };
        let agent = find_agent("bcts").unwrap();
        // Dellacherie's weights, with a reward for holes.
        let bad = [-1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 0.0];
        let start = DropPlayer {
            agent,
            weights: bad.to_vec(),
        };
        let objective = GamesObjective::drop(&start, &[], &run, 8, Arc::default());
        let objective = objective.unwrap();
        let before = objective.measure(&bad, 0).unwrap().value;
        let settings = Settings {
            method: Method::CmaEs,
            seed: 1,
            evaluations: 300,
            population: 12,
            threads: 2,
        };
        let folder = tempfile::tempdir().unwrap();
        let (best, path) = tune(folder.path(), &objective, &settings, &|_| ()).unwrap();
        assert!(best.value > before + 2.0, "{} after {before}", best.value);
        let file = WeightsFile::read(&path).unwrap();
        let weights = file.in_order(agent.weight_names, &path).unwrap();
        assert_eq!((file.player.as_str(), &weights), ("bcts", &best.weights));
        let again = objective.measure(&weights, 0).unwrap();
        assert_eq!(
            (again.value, again.half_width),
            (best.value, best.half_width)
        );
    }
}
