//! Facts about a run, whether it was searched on one machine or in a cluster.

use crate::numbers::grouped;
use hatebeam_game::Geometry;
use hatebeam_search::DepthRecord;

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
    /// How the search ended, in words, or that it did not end yet.
    pub end: &'static str,
    /// Committed depths, ascending.
    pub depths: Vec<DepthRecord>,
    /// Scores of a whole depth, if they are available; or the reason why they cannot be read.
    pub scores: Option<Result<Scores, String>>,
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
        lines.max().map_or(0, u32::from)
    }

    /// Returns the size of the stored tables.
    pub fn stored_bytes(&self) -> u64 {
        self.depths.iter().map(|depth| depth.bytes).sum()
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
