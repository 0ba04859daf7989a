//! A run as clients see it.

use crate::costs::Cost;
use crate::registry::Expansion;
use hatebeam_cost::Micros;
use hatebeam_runs::{Manifest, Projection};
use std::sync::Arc;

/// A run, as clients see it.
#[derive(Clone, Debug)]
pub struct RunStatus {
    /// Its manifest, as it was saved last.
    pub manifest: Arc<Manifest>,
    /// What holds the run up, or why it failed; empty otherwise.
    pub note: String,
    /// Progress of the current depth.
    pub expansion: Expansion,
    /// What it has cost.
    pub cost: Cost,
    /// Where it may end, while it is running and that can be estimated.
    pub projection: Option<CostProjection>,
}

/// Where a run may end, and what it will have cost then.
#[derive(Clone, Debug)]
pub struct CostProjection {
    /// Depths and time.
    pub projection: Projection,
    /// Total cost at the lower end.
    pub cost_low: Micros,
    /// Total cost at the upper end.
    pub cost_high: Micros,
}

impl RunStatus {
    /// Returns the last committed depth; 0 before the first.
    pub fn depth(&self) -> u32 {
        let last = self.manifest.last();
        last.map_or(0, |last| last.record.depth)
    }
}
