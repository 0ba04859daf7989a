//! Selection of weights: removal of the weights without which a player is not worse.

use crate::contest::ContestJson;
use crate::{Contest, Series};
use serde::Serialize;
use thiserror::Error;

/// Error of a selection with too few games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("one game cannot show whether a player is worse: select with --games 2 or more")]
pub struct TooFewGames;

/// A round of a selection.
#[derive(Clone, Debug)]
pub struct SelectionRound {
    /// The games with the current weights, followed by the same games without each of the weights.
    pub contest: Contest,
    /// Name of the weight that the round removes, or `None` if the player is worse without any of the weights.
    pub removed: Option<&'static str>,
}

#[derive(Serialize)]
struct RoundJson<'a> {
    #[serde(flatten)]
    contest: ContestJson<'a>,
    removed: Option<&'a str>,
}

impl SelectionRound {
    /// Returns the contest and the name of the removed weight as one JSON object.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&RoundJson {
            contest: self.contest.object(),
            removed: self.removed,
        })
    }
}

/// Removes weights one by one, and returns the weights with zeros for the removed ones.
///
/// Each round plays the same games without each of the remaining weights. It removes the weight without which the mean
/// score is greatest, unless the 95 % confidence interval of the difference shows that the player is worse. The last
/// weight is never removed. The interval does not account for the choice among several weights, so a weight with a small
/// benefit may be removed.
///
/// `play` plays the games with the given weights, or returns `None` to end the selection with the weights of the last
/// complete round. `on_round` is called after each round.
///
/// # Errors
/// Returns [`TooFewGames`] if `play` plays fewer than two games.
pub fn select_weights(
    names: &[&'static str],
    weights: &[f64],
    unit: &'static str,
    play: impl Fn(&str, &[f64]) -> Option<Series>,
    mut on_round: impl FnMut(&SelectionRound),
) -> Result<Vec<f64>, TooFewGames> {
    let mut weights = weights.to_vec();
    let Some(mut current) = play("all", &weights) else {
        return Ok(weights);
    };
    if current.games.len() < 2 {
        return Err(TooFewGames);
    }
    loop {
        let used: Vec<usize> = (0..weights.len())
            .filter(|&at| weights[at] != 0.0)
            .collect();
        if used.len() < 2 {
            return Ok(weights);
        }
        let without = |&at: &usize| {
            let mut fewer = weights.clone();
            fewer[at] = 0.0;
            play(&format!("without {}", names[at]), &fewer)
        };
        let Some(others) = used.iter().map(without).collect::<Option<Vec<_>>>() else {
            return Ok(weights);
        };
        let mut series = vec![current];
        series.extend(others);
        let contest = Contest {
            series,
            unit,
            goal: None,
        };
        let pairs = contest.pairs();
        let best = (0..pairs.len()).rev().max_by(|&one, &other| {
            pairs[one]
                .mean_difference
                .total_cmp(&pairs[other].mean_difference)
        });
        let removed = best.filter(|&at| {
            let half_width = pairs[at].half_width.unwrap_or(f64::INFINITY);
            pairs[at].mean_difference + half_width >= 0.0
        });
        let round = SelectionRound {
            contest,
            removed: removed.map(|at| names[used[at]]),
        };
        on_round(&round);
        let Some(at) = removed else {
            return Ok(weights);
        };
        weights[used[at]] = 0.0;
        let mut series = round.contest.series;
        current = series.swap_remove(at + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GameRecord;
    use std::cell::Cell;

    /// Plays games whose scores depend on the weights `a` and `b`, and on `c` in a way that averages out.
    fn play(name: &str, weights: &[f64]) -> Option<Series> {
        let games = (0..20).map(|game| {
            let noise = if game % 2 == 0 { 5.0 } else { -5.0 };
            let score = 100.0 + 10.0 * weights[0] + 20.0 * weights[1] + noise * weights[2];
            GameRecord {
                score: score as u64,
                lines: 0,
                pieces: 1,
                is_complete: false,
            }
        });
        Some(Series {
            name: name.to_owned(),
            games: games.collect(),
            seconds: 1.0,
        })
    }

    #[test]
    fn only_weights_without_benefit_are_removed() {
        let mut rounds = Vec::new();
        let on_round = |round: &SelectionRound| {
            rounds.push((round.removed, round.contest.series.len()));
        };
        let weights = select_weights(&["a", "b", "c"], &[1.0, 1.0, 1.0], "points", play, on_round);
        assert_eq!(weights, Ok(vec![1.0, 1.0, 0.0]));
        assert_eq!(rounds, [(Some("c"), 4), (None, 3)]);
        let harmful = select_weights(&["a", "b", "c"], &[-1.0, -1.0, 0.0], "points", play, |_| ());
        assert_eq!(harmful, Ok(vec![-1.0, 0.0, 0.0]));
    }

    #[test]
    fn interrupted_selection_returns_the_weights_of_the_last_round() {
        for (series, expected) in [(0_usize, 1.0), (3, 1.0), (4, 0.0), (6, 0.0)] {
            let left = Cell::new(series);
            let play_some = |name: &str, weights: &[f64]| {
                left.set(left.get().checked_sub(1)?);
                play(name, weights)
            };
            let weights = select_weights(&["a", "b", "c"], &[1.0; 3], "points", play_some, |_| ());
            assert_eq!(weights, Ok(vec![1.0, 1.0, expected]), "{series}");
        }
    }

    #[test]
    fn single_game_is_refused() {
        let play_one = |name: &str, weights: &[f64]| {
            let mut series = play(name, weights)?;
            series.games.truncate(1);
            Some(series)
        };
        let weights = select_weights(&["a", "b", "c"], &[1.0; 3], "points", play_one, |_| ());
        assert_eq!(weights, Err(TooFewGames));
    }
}
