//! Client updates of an open run: changed limits and stop requests.

use hatebeam_cost::Micros;
use hatebeam_runs::{EndReason, Limits, Manifest};
use std::time::Duration;

/// A change of a run's limits. `None` keeps a limit, and `Some(None)` removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsChange {
    /// The new maximum depth.
    pub max_depth: Option<Option<u32>>,
    /// The new maximum cost.
    pub max_cost: Option<Option<Micros>>,
    /// The new maximum search time.
    pub max_time: Option<Option<Duration>>,
}

impl LimitsChange {
    fn all_of(limits: Limits) -> LimitsChange {
        LimitsChange {
            max_depth: Some(limits.max_depth),
            max_cost: Some(limits.max_cost),
            max_time: Some(limits.max_time),
        }
    }

    fn change(self, limits: Limits) -> Limits {
        Limits {
            max_depth: self.max_depth.unwrap_or(limits.max_depth),
            max_cost: self.max_cost.unwrap_or(limits.max_cost),
            max_time: self.max_time.unwrap_or(limits.max_time),
        }
    }

    fn or(self, earlier: LimitsChange) -> LimitsChange {
        LimitsChange {
            max_depth: self.max_depth.or(earlier.max_depth),
            max_cost: self.max_cost.or(earlier.max_cost),
            max_time: self.max_time.or(earlier.max_time),
        }
    }
}

/// A client's update of an open run. It takes effect once it is saved in the run's manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunUpdate {
    /// The change of the limits. Each limit is merged separately, because several clients may change different ones.
    pub(crate) limits: LimitsChange,
    /// Whether to stop the run without the depth in progress, or `None` to leave this unchanged.
    pub(crate) stop_requested: Option<bool>,
}

impl RunUpdate {
    pub(crate) const STOP: RunUpdate = RunUpdate::stop_requested(true);
    /// The withdrawal of a stop request.
    pub(crate) const CONTINUE: RunUpdate = RunUpdate::stop_requested(false);

    const fn stop_requested(is_requested: bool) -> RunUpdate {
        RunUpdate {
            limits: LimitsChange {
                max_depth: None,
                max_cost: None,
                max_time: None,
            },
            stop_requested: Some(is_requested),
        }
    }

    pub(crate) fn limits(limits: LimitsChange) -> RunUpdate {
        RunUpdate {
            limits,
            stop_requested: None,
        }
    }

    /// Applies the update to a manifest. Returns the update that reverts the change.
    pub(crate) fn put(self, manifest: &mut Manifest) -> RunUpdate {
        let before = RunUpdate {
            limits: LimitsChange::all_of(manifest.limits),
            stop_requested: Some(manifest.stop_requested),
        };
        let limits = self.limits.change(manifest.limits);
        // If the search ended at a limit that the new limits raise, it has not ended any more.
        let allows_more = |end: &EndReason| {
            limits != manifest.limits && limits.allow_more_than(&manifest.limits, *end)
        };
        manifest.end = manifest.end.filter(|end| !allows_more(end));
        manifest.limits = limits;
        if let Some(stop_requested) = self.stop_requested {
            manifest.stop_requested = stop_requested;
        }
        before
    }

    /// Whether a manifest already contains the update.
    pub(crate) fn is_in(self, manifest: &Manifest) -> bool {
        let stop_requested = manifest.stop_requested;
        self.limits.change(manifest.limits) == manifest.limits
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
