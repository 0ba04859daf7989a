//! Observers of a run on this machine.

use crate::result::ResultJson;
use crate::screen::Screen;
use hatebeam_runs::Observer;
use hatebeam_store::{DepthRecord, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// An observer that also learns how the run ended.
pub(crate) trait RunObserver: Observer {
    /// The run ended with this result, or failed for this reason.
    fn ended(&mut self, result: Result<&ResultJson<'_>, &str>);
}

/// The screen and all other observers of a run.
pub(crate) struct Observers {
    pub(crate) screen: Screen,
    pub(crate) others: Vec<Box<dyn RunObserver>>,
}

impl Observers {
    /// Tells all observers how the run ended.
    pub(crate) fn ended(&mut self, result: Result<&ResultJson<'_>, &str>) {
        for other in &mut self.others {
            other.ended(result);
        }
    }
}

impl Observer for Observers {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        for other in &mut self.others {
            other.begun(depth, parents, expanded);
        }
        self.screen.begun(depth, parents, expanded);
    }

    fn committed(&mut self, record: &DepthRecord) {
        for other in &mut self.others {
            other.committed(record);
        }
        self.screen.committed(record);
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        for other in &mut self.others {
            other.damaged(depth, error);
        }
        self.screen.damaged(depth, error);
    }
}

/// The observers that the command line asks for.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) observers: Vec<Box<dyn RunObserver>>,
    /// URL of the metrics.
    pub(crate) metrics_url: Option<String>,
}
