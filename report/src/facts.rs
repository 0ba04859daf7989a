//! Facts about a run, whether it was searched on one machine or in a cluster.

use crate::numbers::grouped;
use hatebeam_game::Geometry;

/// Facts about a run.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the run.
    pub run: String,
    /// Width of the beam.
    pub width: u64,
    /// Name of the evaluator.
    pub evaluator: &'static str,
    /// Name of the evaluator's quiescence.
    pub quiescence: &'static str,
    /// Run specification, as JSON.
    pub spec: String,
    /// Size of the wells.
    pub geometry: Geometry,
    /// Whether the run has ended, and why.
    pub end: End,
    /// Committed depths, ascending.
    pub depths: Vec<DepthFacts>,
    /// Digest of the last committed depth.
    pub digest: String,
    /// Size of the stored tables.
    pub stored_bytes: u64,
    /// Scores of a whole depth, if they are available; or the reason why they cannot be read.
    pub scores: Option<Result<Scores, String>>,
}

/// Whether a run has ended, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The run is in progress, or can be resumed.
    Open,
    /// The search is complete: every game is over after the last depth.
    Over,
    /// The limit with this name, such as `max-depth`, stopped the run.
    Stopped(String),
}

impl End {
    /// Returns the end with this name: `over`, or the name of the limit that stopped the run.
    pub fn of(name: &str) -> End {
        match name {
            "over" => End::Over,
            limit => End::Stopped(limit.to_owned()),
        }
    }

    /// Returns the end in words.
    pub fn words(&self) -> String {
        match self {
            End::Open => "not finished".to_owned(),
            End::Over => "searched to the end".to_owned(),
            End::Stopped(limit) => match limit.as_str() {
                "max-depth" => "stopped at its depth limit".to_owned(),
                "max-cost" => "stopped at its cost limit".to_owned(),
                "max-hours" => "stopped at its time limit".to_owned(),
                other => format!("stopped: {other}"),
            },
        }
    }
}

/// Facts about a committed depth. The fields `*_eval` are scores of the evaluator.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthFacts {
    /// Number of pieces placed.
    pub depth: u32,
    /// Number of wells.
    pub count: u64,
    /// Highest score.
    pub best_eval: i32,
    /// Median of the scores.
    pub median_eval: i32,
    /// Lowest score: the cut.
    pub worst_eval: i32,
    /// Most lines cleared by any game of this depth.
    pub best_lines: u32,
    /// Height of the stack of the game with the most lines.
    pub height: usize,
    /// Number of distinct children, summed over the parents.
    pub children: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Size of the stored tables.
    pub bytes: u64,
}

/// Distribution of the scores of a depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// The depth.
    pub depth: u32,
    /// Number of its wells.
    pub count: u64,
    /// Number of wells with the lowest score.
    pub at_cut: usize,
    /// Median of the scores.
    pub median: i32,
    /// All scores, or an evenly spaced sample of them.
    pub values: Vec<i32>,
}

impl Facts {
    /// Returns the most lines cleared by any game of the run.
    pub fn lines(&self) -> u32 {
        let lines = self.depths.iter().map(|depth| depth.best_lines);
        lines.max().unwrap_or(0)
    }

    /// Describes the search in words.
    pub fn about(&self) -> String {
        format!(
            "a beam of {} wells, evaluator {}, quiescence {}",
            grouped(self.width),
            self.evaluator,
            self.quiescence
        )
    }
}
