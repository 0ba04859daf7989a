//! Client updates of an open run: changed limits and stop requests.

use hatebeam_runs::{EndReason, Limits, Manifest};

/// A client's update of an open run. It takes effect once it is saved in the run's manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunUpdate {
    /// The new limits, or `None` to keep the current ones.
    pub(crate) limits: Option<Limits>,
    /// Whether to stop the run at the end of its current depth, or `None` to leave this unchanged.
    pub(crate) stop_requested: Option<bool>,
}

impl RunUpdate {
    pub(crate) const STOP: RunUpdate = RunUpdate {
        limits: None,
        stop_requested: Some(true),
    };
    /// The withdrawal of a stop request.
    pub(crate) const CONTINUE: RunUpdate = RunUpdate {
        limits: None,
        stop_requested: Some(false),
    };

    /// Applies the update to a manifest. Returns the update that reverts the change.
    pub(crate) fn put(self, manifest: &mut Manifest) -> RunUpdate {
        let before = RunUpdate {
            limits: Some(manifest.limits),
            stop_requested: Some(manifest.stop_requested),
        };
        if let Some(limits) = self.limits {
            // If the search ended at a limit that the new limits raise, it has not ended any more.
            let allows_more = |end: &EndReason| limits.allow_more_than(&manifest.limits, *end);
            manifest.end = manifest.end.filter(|end| !allows_more(end));
            manifest.limits = limits;
        }
        if let Some(stop_requested) = self.stop_requested {
            manifest.stop_requested = stop_requested;
        }
        before
    }

    /// Whether a manifest already contains the update.
    pub(crate) fn is_in(self, manifest: &Manifest) -> bool {
        let limits = manifest.limits;
        let stop_requested = manifest.stop_requested;
        self.limits.is_none_or(|update| update == limits)
            && self
                .stop_requested
                .is_none_or(|update| update == stop_requested)
    }

    /// Merges this update with an earlier one. Values of this update take precedence.
    pub(crate) fn or(self, earlier: RunUpdate) -> RunUpdate {
        RunUpdate {
            limits: self.limits.or(earlier.limits),
            stop_requested: self.stop_requested.or(earlier.stop_requested),
        }
    }
}
