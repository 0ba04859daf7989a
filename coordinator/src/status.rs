//! The status of a run for clients.

use crate::costs::Cost;
use crate::registry::Expansion;
use hatebeam_cost::Micros;
use hatebeam_runs::{Manifest, Projection};
use std::sync::Arc;

/// Status of a run.
#[derive(Clone, Debug)]
pub struct RunStatus {
    /// The last saved manifest, which contains the run's state.
    pub manifest: Arc<Manifest>,
    /// Reason why the run is delayed, has failed, or has no result. Empty otherwise.
    pub note: String,
    /// Number of wells to expand at the current depth, and number of those that are expanded.
    pub expansion: Expansion,
    /// Cost so far.
    pub cost: Cost,
    /// Estimated end of the run. `None` if the run is not running, or if no estimate is possible.
    pub projection: Option<CostProjection>,
}

/// Estimated end of a run, and its total cost at that time.
#[derive(Clone, Debug)]
pub struct CostProjection {
    /// Estimated last depth and remaining time, each as a range.
    pub projection: Projection,
    /// Total cost at the lower end of the time range.
    pub cost_low: Micros,
    /// Total cost at the upper end of the time range.
    pub cost_high: Micros,
}

impl RunStatus {
    /// Returns the last committed depth, or 0 if none is committed.
    pub fn depth(&self) -> u32 {
        let last = self.manifest.last();
        last.map_or(0, |last| last.record.depth)
    }
}
