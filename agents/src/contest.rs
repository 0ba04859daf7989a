//! Contests, in which each player plays a series of games with the same pieces. Results are available as tables, JSON
//! and CSV.

use crate::Statistics;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;

/// Result of a game of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameRecord {
    /// Score by which players are compared: points or rows cleared.
    pub score: u64,
    /// Number of rows cleared.
    pub lines: u64,
    /// Number of pieces placed.
    pub pieces: u64,
    /// Whether the game ended because it reached its limit (a number of pieces or of cleared rows), and not because it
    /// was lost.
    pub is_complete: bool,
}

/// All games of a player.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the player.
    pub name: String,
    /// Results in the order of the game numbers.
    pub games: Vec<GameRecord>,
    /// Duration of all games in seconds.
    pub seconds: f64,
}

impl Series {
    /// Returns the total number of pieces placed.
    fn pieces(&self) -> u64 {
        self.games.iter().map(|game| game.pieces).sum()
    }
}

/// Summary of a series.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesSummary {
    /// Name of the player.
    pub name: String,
    /// Number of games.
    pub games: usize,
    /// Mean score.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval, or `None` for a single game.
    pub half_width: Option<f64>,
    /// Median of the scores.
    pub median: f64,
    /// Minimum score.
    pub min: u64,
    /// Maximum score.
    pub max: u64,
    /// Number of games with [`GameRecord::is_complete`].
    pub complete: usize,
    /// Percentage of games that reached the goal, or `None` if there is no goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_percent: Option<f64>,
    /// Total number of pieces placed.
    pub pieces: u64,
    /// Duration of all games in seconds.
    pub seconds: f64,
}

/// Comparison of a series with the first series, game by game.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PairSummary {
    /// Name of the player.
    pub(crate) name: String,
    /// Name of the first player.
    pub(crate) than: String,
    /// Mean difference between the player's score and the first player's score.
    pub(crate) mean_difference: f64,
    /// Half the width of the 95 % confidence interval of the mean difference, or `None` for a single game.
    pub(crate) half_width: Option<f64>,
    /// Number of games in which the player's score is higher than the first player's score.
    pub(crate) better: usize,
    /// Number of games in which the player's score is lower than the first player's score.
    pub(crate) worse: usize,
}

/// The series of several players, all played with the same pieces.
#[derive(Clone, Debug)]
pub struct Contest {
    /// One series for each player, with the same number of games.
    pub series: Vec<Series>,
    /// Unit of the scores, such as `lines`.
    pub unit: &'static str,
    /// Name of the goal and the lowest score that reaches it, or `None` if there is no goal.
    pub goal: Option<(&'static str, u64)>,
}

/// The JSON object of a contest.
#[derive(Serialize)]
pub(crate) struct ContestJson<'a> {
    unit: &'a str,
    players: Vec<SeriesSummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<PairSummary>,
}

impl Contest {
    /// Removes the players without games, and the games that not all other players have played. So the players of an
    /// interrupted contest remain comparable. The durations become those of the remaining games, estimated from their
    /// numbers of pieces, so the speeds stay as measured.
    pub fn keep_common_games(&mut self) {
        self.series.retain(|series| !series.games.is_empty());
        let lengths = self.series.iter().map(|series| series.games.len());
        let common = lengths.min().unwrap_or(0);
        for series in &mut self.series {
            let before = series.pieces();
            series.games.truncate(common);
            series.seconds *= series.pieces() as f64 / before.max(1) as f64;
        }
    }

    /// Returns the summaries of all series.
    pub fn summaries(&self) -> Vec<SeriesSummary> {
        self.series
            .iter()
            .filter_map(|series| self.summary(series))
            .collect()
    }

    fn summary(&self, series: &Series) -> Option<SeriesSummary> {
        let scores = || series.games.iter().map(|game| game.score);
        let statistics = Statistics::of(scores().map(|score| score as f64))?;
        let goal_percent = self.goal.map(|(_, least)| {
            let reached = scores().filter(|&score| score >= least).count();
            100.0 * reached as f64 / statistics.count as f64
        });
        Some(SeriesSummary {
            name: series.name.clone(),
            games: statistics.count,
            mean: statistics.mean,
            half_width: statistics.half_width,
            median: statistics.median,
            min: scores().min()?,
            max: scores().max()?,
            complete: series.games.iter().filter(|game| game.is_complete).count(),
            goal_percent,
            pieces: series.pieces(),
            seconds: series.seconds,
        })
    }

    /// Compares every later series with the first series.
    pub(crate) fn pairs(&self) -> Vec<PairSummary> {
        let Some((first, others)) = self.series.split_first() else {
            return Vec::new();
        };
        let compare = |series: &Series| {
            let scores = series.games.iter().zip(&first.games);
            let differences = scores.map(|(one, other)| one.score as f64 - other.score as f64);
            let differences: Vec<f64> = differences.collect();
            let statistics = Statistics::of(differences.iter().copied())?;
            Some(PairSummary {
                name: series.name.clone(),
                than: first.name.clone(),
                mean_difference: statistics.mean,
                half_width: statistics.half_width,
                better: differences
                    .iter()
                    .filter(|&&difference| difference > 0.0)
                    .count(),
                worse: differences
                    .iter()
                    .filter(|&&difference| difference < 0.0)
                    .count(),
            })
        };
        others.iter().filter_map(compare).collect()
    }

    /// Returns a table of the summaries, followed by the comparisons.
    pub fn text(&self) -> String {
        let summaries = self.summaries();
        let width = summaries
            .iter()
            .map(|row| row.name.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let mut text = format!(
            "{:width$}  {:>6}  {:>14} {:<12}  {:>12}  {:>12}  {:>8}",
            "player",
            "games",
            format!("mean {}", self.unit),
            "± 95 %",
            "median",
            "max",
            "complete",
        );
        if let Some((name, _)) = self.goal {
            let _ = write!(text, "  {name:>8}");
        }
        text += "  pieces/s\n";
        for row in &summaries {
            let _ = write!(
                text,
                "{:width$}  {:>6}  {:>14.2} ± {:<10}  {:>12}  {:>12}  {:>8}",
                row.name,
                row.games,
                row.mean,
                half_width_text(row.half_width),
                row.median,
                row.max,
                row.complete,
            );
            if let Some(percent) = row.goal_percent {
                let _ = write!(text, "  {percent:>6.2} %");
            }
            let _ = writeln!(text, "  {:>8.0}", row.pieces as f64 / row.seconds.max(1e-9));
        }
        for pair in self.pairs() {
            let _ = writeln!(
                text,
                "{} - {}: {:+.2} ± {} on the same pieces, better in {} games, worse in {}",
                pair.name,
                pair.than,
                pair.mean_difference,
                half_width_text(pair.half_width),
                pair.better,
                pair.worse,
            );
        }
        text
    }

    /// Returns the summaries and the comparisons as one JSON object.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.object())
    }

    pub(crate) fn object(&self) -> ContestJson<'_> {
        ContestJson {
            unit: self.unit,
            players: self.summaries(),
            compared: self.pairs(),
        }
    }

    /// Returns a table of all games as CSV.
    pub fn csv(&self) -> String {
        let mut text = String::from("player,game,score,lines,pieces,complete\n");
        for series in &self.series {
            let name = csv_field(&series.name);
            for (number, game) in series.games.iter().enumerate() {
                let _ = writeln!(
                    text,
                    "{name},{number},{},{},{},{}",
                    game.score, game.lines, game.pieces, game.is_complete
                );
            }
        }
        text
    }
}

/// Returns a text as a field of a CSV file, in quotes if it contains a special character.
fn csv_field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// Returns half the width of an interval as text.
fn half_width_text(half_width: Option<f64>) -> String {
    half_width.map_or_else(|| "–".to_owned(), |half_width| format!("{half_width:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest() -> Contest {
        let series = |name: &str, scores: [u64; 3]| Series {
            name: name.to_owned(),
            games: scores
                .map(|score| GameRecord {
                    score,
                    lines: score / 10,
                    pieces: 50,
                    is_complete: score > 25,
                })
                .to_vec(),
            seconds: 0.5,
        };
        Contest {
            series: vec![series("a", [10, 20, 30]), series("b", [10, 30, 50])],
            unit: "points",
            goal: Some(("maxout", 30)),
        }
    }

    #[test]
    fn players_are_compared_game_by_game() {
        let pairs = contest().pairs();
        assert_eq!(pairs.len(), 1);
        let pair = &pairs[0];
        assert_eq!(
            (pair.mean_difference, pair.better, pair.worse),
            (10.0, 2, 0)
        );
        assert!((pair.half_width.unwrap() - 4.303 * (100.0f64 / 3.0).sqrt()).abs() < 1e-9);
        let text = contest().text();
        assert!(
            text.contains(
                "b - a: +10.00 ± 24.84 on the same pieces, better in 2 games, worse in 0"
            )
        );
        assert!(
            text.lines()
                .nth(2)
                .is_some_and(|row| row.contains(" 66.67 % ")),
            "{text}"
        );
    }

    #[test]
    fn single_game_has_no_interval() {
        let mut contest = contest();
        for series in &mut contest.series {
            series.games.truncate(1);
        }
        let text = contest.text();
        assert!(text.contains("10.00 ± –  "), "{text}");
        assert!(
            text.contains("b - a: +0.00 ± – on the same pieces"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&contest.json().unwrap()).unwrap();
        for list in ["players", "compared"] {
            assert!(json[list][0]["half_width"].is_null(), "{json}");
        }
    }

    #[test]
    fn interrupted_contest_keeps_the_games_of_all_players() {
        let mut contest = contest();
        contest.series.push(contest.series[0].clone());
        contest.series[1].games.truncate(2);
        contest.series[2].games.clear();
        contest.keep_common_games();
        let lengths = contest.series.iter().map(|series| series.games.len());
        assert_eq!(lengths.collect::<Vec<_>>(), [2, 2]);
        assert_eq!(contest.series[0].games[1].score, 20);
        // The first player played three games of 50 pieces in half a second, and the second player two.
        let summaries = contest.summaries();
        let speeds = summaries
            .iter()
            .map(|row| (row.pieces as f64 / row.seconds).round());
        assert_eq!(speeds.collect::<Vec<_>>(), [300.0, 200.0]);
    }

    #[test]
    fn csv_has_a_header_and_one_line_per_game() {
        let csv = contest().csv();
        assert_eq!(csv.lines().count(), 7);
        assert_eq!(csv.lines().nth(4), Some("b,0,10,1,50,false"));
        let mut contest = contest();
        contest.series[1].name = "my \"b\", tuned".to_owned();
        let csv = contest.csv();
        let quoted = "\"my \"\"b\"\", tuned\",0,10,1,50,false";
        assert_eq!(csv.lines().nth(4), Some(quoted));
    }
}
