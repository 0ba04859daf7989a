//! The state of a run's search.

use super::failures::{FailureTracker, Retries};
use super::speeds::Speeds;
use crate::parts::Parts;
use hatebeam_cost::Micros;
use hatebeam_runs::{EndReason, Manifest, ManifestError, RunState, VersionedManifest};
use std::sync::Arc;

/// Reason why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The search is complete, or a limit is reached.
    Over(EndReason),
    /// A client stopped the run.
    Cancelled,
}

pub(crate) struct RunDriver {
    pub(super) parts: Arc<Parts>,
    pub(super) versioned: VersionedManifest,
    pub(super) failures: FailureTracker,
    pub(super) retries: Retries,
    /// Name of the worker that owned each shard (range of well hashes) in the last epoch (period with a fixed set of
    /// workers).
    pub(super) owners: Vec<String>,
    /// Total search time in seconds, including that of earlier coordinators.
    pub(super) seconds: f64,
    /// Cost since the last committed depth of waiting for workers, of failed attempts, and of pauses before retries.
    pub(super) waiting: Micros,
    pub(super) speeds: Speeds,
    /// Whether the budget warning for the current limits was sent.
    pub(super) has_warned: bool,
    /// Whether the event for the end by the current limits was sent.
    pub(super) has_reported_limit: bool,
    /// Number of times that depths were dropped because they contradicted earlier ones.
    pub(super) searches_again: u32,
}

impl RunDriver {
    /// Creates the driver of an open run. Saves nothing until [`run`](RunDriver::run) is called.
    pub(crate) fn new(parts: Arc<Parts>, mut versioned: VersionedManifest) -> RunDriver {
        versioned.manifest.coordinator = parts.settings.name.clone();
        RunDriver {
            seconds: versioned.manifest.seconds,
            parts,
            versioned,
            failures: FailureTracker::default(),
            retries: Retries::default(),
            owners: Vec::new(),
            waiting: Micros::ZERO,
            speeds: Speeds::default(),
            has_warned: false,
            has_reported_limit: false,
            searches_again: 0,
        }
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.versioned.manifest
    }

    pub(super) fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.versioned.manifest
    }

    /// Returns the last committed depth, or 0 if none is committed.
    pub(super) fn depth(&self) -> u32 {
        let last = self.manifest().last();
        last.map_or(0, |last| last.record.depth)
    }

    /// Sets the note that shows clients what delays the run. An empty text clears the note.
    pub(super) fn note(&self, text: impl Into<String>) {
        self.parts.queue.note(&self.manifest().name, text.into());
    }

    /// Saves the manifest with the current ledger, and makes it visible to clients.
    pub(super) async fn save(&mut self) -> Result<(), ManifestError> {
        if let Some(ledger) = self.parts.costs.ledger(&self.manifest().name) {
            self.manifest_mut().ledger = ledger;
        }
        if self.manifest().state != RunState::Running {
            self.manifest_mut().ledger.close();
        }
        self.versioned.save().await?;
        let stored = self.manifest().stored_bytes();
        self.parts.costs.set_stored(stored);
        self.parts.metrics.coordinator.manifests.add(1);
        self.parts.queue.put(self.manifest());
        Ok(())
    }
}
