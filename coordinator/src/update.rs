//! Updates of an open run by clients.

use hatebeam_runs::{Limits, Manifest};

/// A change of an open run. It counts once the manifest is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunUpdate {
    /// The new limits, if they change.
    pub(crate) limits: Option<Limits>,
    /// Whether to stop the run at the end of its depth, if that changes.
    pub(crate) stop_requested: Option<bool>,
}

impl RunUpdate {
    /// Stops the run.
    pub(crate) const STOP: RunUpdate = RunUpdate {
        limits: None,
        stop_requested: Some(true),
    };
    /// Withdraws a request to stop the run.
    pub(crate) const CONTINUE: RunUpdate = RunUpdate {
        limits: None,
        stop_requested: Some(false),
    };

    /// Applies the update to a manifest, and returns the update that undoes it.
    pub(crate) fn put(self, manifest: &mut Manifest) -> RunUpdate {
        let before = RunUpdate {
            limits: Some(manifest.limits),
            stop_requested: Some(manifest.stop_requested),
        };
        if let Some(limits) = self.limits {
            manifest.limits = limits;
        }
        if let Some(stop_requested) = self.stop_requested {
            manifest.stop_requested = stop_requested;
        }
        before
    }

    /// Whether a manifest has the update.
    pub(crate) fn is_in(self, manifest: &Manifest) -> bool {
        let limits = manifest.limits;
        let stop_requested = manifest.stop_requested;
        self.limits.is_none_or(|update| update == limits)
            && self
                .stop_requested
                .is_none_or(|update| update == stop_requested)
    }

    /// Joins this update with an earlier one that is not applied yet.
    pub(crate) fn or(self, earlier: RunUpdate) -> RunUpdate {
        RunUpdate {
            limits: self.limits.or(earlier.limits),
            stop_requested: self.stop_requested.or(earlier.stop_requested),
        }
    }
}
