//! Facts about a run, for its report. The same type serves runs on one machine and runs in a cluster.

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
    /// Name of the evaluator's quiescence mode.
    pub quiescence: &'static str,
    /// Run specification in JSON.
    pub spec: String,
    /// Size of the wells.
    pub geometry: Geometry,
    /// Phrase that describes how the search ended, or states that it has not ended.
    pub end: &'static str,
    /// Records of the committed (completely searched and stored) depths, in ascending order.
    pub depths: Vec<DepthRecord>,
    /// Scores at one depth, or the reason why they cannot be read. `None` if no depth with scores is stored.
    pub scores: Option<Result<Scores, String>>,
}

/// Distribution of the evaluator's scores at one depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// The depth.
    pub depth: u32,
    /// Number of wells at the depth.
    pub count: u64,
    /// Number of wells with the lowest score (the cut).
    pub at_cut: usize,
    /// Median of the scores.
    pub median: i32,
    /// All scores, or an evenly spaced sample of them.
    pub values: Vec<i32>,
}

impl Facts {
    /// Returns the number of rows cleared in the best game of the run.
    pub fn lines(&self) -> u32 {
        let lines = self.depths.iter().map(|depth| depth.best_lines);
        lines.max().map_or(0, u32::from)
    }

    /// Returns the total size in bytes of the tables, the files that contain the wells of all depths.
    pub fn stored_bytes(&self) -> u64 {
        self.depths.iter().map(|depth| depth.bytes).sum()
    }

    /// Returns a phrase that describes the search.
    pub fn about(&self) -> String {
        format!(
            "a beam of {} wells, evaluator {}, quiescence {}",
            grouped(self.width),
            self.evaluator,
            self.quiescence
        )
    }
}
