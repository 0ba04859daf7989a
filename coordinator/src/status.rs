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
    /// Current obstacle of the run, or the reason for its failure; empty otherwise.
    pub note: String,
    /// Progress of the current depth.
    pub expansion: Expansion,
    /// Cost so far.
    pub cost: Cost,
    /// Estimated end of a running run, if it can be estimated.
    pub projection: Option<CostProjection>,
}

/// Estimated end of a run, and its cost then.
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
